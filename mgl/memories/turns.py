"""Answers and replies that stand on turns of a conversation: one call each.

    lines = cite_shown(talk, show_turns(talk.turns, [3, 7]))
    answer = await answer_from_lines(llm, lines, question, sampling)

The prompts are ours and the same for every method. They show when the question is asked and by
whom, where that is known. The form of an answer follows its question: one of its options, a few
words, everything of a kind, a suggestion that suits the asker, or a paragraph. Memories come before
the question, so that calls about them share an engine's prefix cache; the numbers of what is cited
come before the answer, so that it stands on something.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, create_model

from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM, FinishReason, Message, Request, Sampling
from mgl.llm.constraints import index_set, number
from mgl.llm.progress import Listener, listen
from mgl.llm.prompting import fit_texts
from mgl.llm.replies import strip_thinking
from mgl.memories.calls import TOKEN_CHARS, answer_field, list_options
from mgl.memories.propose import StrictReply
from mgl.prompt import Prompt, one_line
from mgl.retrieval.cues import ASSISTANT
from mgl.text.declining import is_declined
from mgl.text.groups import format_turn
from mgl.text.language import ENGLISH, find_phrases
from mgl.text.sentences import only_asks
from mgl.text.support import find_repeated
from mgl.types import Answer, Citation, Conversation, Question, Turn

MOST_CITED: Final = 10
SOMEBODY: Final = "somebody"  # who speaks, where that is not known
SHORT_CHARS: Final = 400
UNMENTIONED: Final = ENGLISH.unmentioned

TURN_ANSWER = Prompt(
    "replying.answer",
    source="ours",
    text="""Memories of a conversation, each with its number and the time at which it was said:

{memories}

{question}

First name the numbers of the memories that answer the question, then answer {form}

{"memories": [numbers], "answer": "..."}""",
    variables=("memories", "question", "form"),
)

REPLY = Prompt(
    "replying.reply",
    source="ours",
    text="""You are {name}, in a conversation with {speaker}. {about}

{remembered}Reply to the last message of {speaker}, whom you call "you": a remark gets a sentence \
or two, a question its answer, a request all that it needs. If {speaker} asks for something of \
their own life that was never told, reply that you do not know it.""",
    variables=("name", "speaker", "about", "remembered"),
)
"""The system message; the messages after it are the last turns."""

REMEMBERED = Prompt(
    "replying.remembered",
    source="ours",
    text="""What was said in earlier talks, each with its number and its day. Only what {speaker} \
said is a fact about {speaker}; what you said was a remark of yours. Where lines differ, the \
latest holds.
{memories}""",
    variables=("speaker", "memories"),
)

_ANSWER: Final = re.compile(r'"answer"\s*:\s*"((?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)')

Shown = tuple[tuple[int, ...], str]
"""What is shown under one number: the turns it stands for, and its text."""

Line = tuple[str, Sequence[Citation]]
"""A text that is shown under one number, and what is cited where it is named."""

Say = Callable[[LLM, str], Awaitable[str]]
"""What replies: it is given the model, and what was said before."""


@dataclass(frozen=True, slots=True)
class Voice:
    """Who replies in a chat; ``persona`` says how, in words of the user's own."""

    name: str = "assistant"
    persona: str = ""


@dataclass(slots=True)
class Wish:
    """How a reply is to be sampled, where that is asked for, and how it ended."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    finish_reason: FinishReason = "stop"

    def apply(self, sampling: Sampling) -> Sampling:
        """The sampling with what is asked for."""
        return Sampling(
            sampling.temperature if self.temperature is None else self.temperature,
            sampling.top_p if self.top_p is None else self.top_p,
            self.max_tokens or sampling.max_tokens,
            sampling.seed if self.seed is None else self.seed,
        )


@dataclass(frozen=True, slots=True)
class Form:
    """How a kind of question is answered: how the prompt says it, and how many tokens it needs.

    An answer has that many, or what the configuration gives if that is more.
    """

    said: str
    tokens: int

    @property
    def chars(self) -> int:
        return max(SHORT_CHARS, self.tokens * TOKEN_CHARS)


_DATES = " Give dates as dates, reckoned from the time at which a thing was said."
_ELSE = f' If no memory answers it, the answer is "{UNMENTIONED}"'

SHORT: Final = Form(
    f"in as few words as you can, with the words of the conversation.{_DATES}{_ELSE}", 16
)
LIST: Final = Form(
    "with all that the memories name, separated by commas, with the words of the conversation."
    f"{_DATES}{_ELSE}",
    256,
)
SUGGESTION: Final = Form(
    "with a suggestion of a few sentences that suits what the memories tell of the asker's likes "
    "and needs, and says which. If they tell nothing of use, suggest what suits most people.",
    400,
)
PARAGRAPH: Final = Form(
    f"in full sentences, with all that the memories tell about it.{_DATES}{_ELSE}", 800
)
REPLY_TOKENS: Final = 1024
REPLY_TEMPERATURE: Final = 0.6  # at 0 a small model that is asked for a verse repeats itself

_SUGGESTION: Final = re.compile(
    r"\bany (?:good )?(?:advice|ideas?|recommendations?|suggestions?|tips)\b"
    r"|\b(?:can|could|would|will) you (?:please )?(?:recommend|suggest|advise)\b"
    r"|\b(?:what|which|where|how)\b[^.?!]{0,200}\bshould i\b|^should i\b"
    r"|\bwhat (?:do|would) you (?:recommend|suggest)\b|^(?:please )?(?:recommend|suggest)\b",
    re.IGNORECASE,
)
_PARAGRAPH: Final = re.compile(
    r"^(?:please |can you |could you )*(?:compare|describe|explain|recap|summari[sz]e"
    r"|tell me (?:more |everything |all )?about|give me (?:an overview|a summary))\b",
    re.IGNORECASE,
)
_LIST: Final = re.compile(
    r"^(?:please |can you |could you )*(?:list|name (?:all|the|every)\b)"
    r"|^(?:what|which) (?:are|were)\b"
    r"|^(?:what|which)(?: [\w'-]+){0,4}? [\w-]+(?<!s)(?<!u)(?<!i)s "
    r"(?:are|can|could|did|do|does|had|has|have|is|was|were|will|would)\b",
    re.IGNORECASE,
)


def find_form(question: Question) -> Form:
    """The form of answer that a question asks for: as it says itself, else by its words."""
    form = _find_form(question)
    if not question.unknown:
        return form
    return replace(form, said=form.said.replace(UNMENTIONED, question.unknown))


def say_unknown(question: Question) -> str:
    """What an answer says where nothing that was said tells it."""
    return question.unknown or UNMENTIONED


def _find_form(question: Question) -> Form:
    if question.options:
        return Form(f"with one of these, as it is written: {list_options(question)}.", 16)
    text = question.text.strip()
    last = re.split(r"(?<=[.!]) ", text)[-1]
    if question.form == "long" or _PARAGRAPH.search(text):
        return PARAGRAPH
    if is_suggestion(text):
        return SUGGESTION
    return LIST if _LIST.search(last) else SHORT


def is_suggestion(text: str) -> bool:
    """Whether a message asks for advice."""
    return bool(_SUGGESTION.search(text))


def ask_lines(question: Question) -> dict[str, str]:
    """A question as prompts show it: the day on which it is asked, by whom and whom, its words, its
    form, with its language where that is not English."""
    day = f"Today is {question.asked_at:%A, %d %B %Y}.\n" if question.asked_at else ""
    asker = f" by {question.asker}" if question.asker else ""
    addressee = f" to {question.asked}" if question.asked else ""
    asked = f"{day}Question{asker}{addressee}: {question.text}"
    form, language = find_form(question).said, find_phrases(question.text)
    if language is not ENGLISH and not question.options:
        form = f"in {language.name}, {form}"
    return {"question": asked, "form": form}


def find_replied(turn: Turn, speakers: Mapping[str, str]) -> str | None:
    """Return the id of the turn that a reply (``ID+``, a second one ``ID++``) replies to; None
    where the turn is no reply. ``speakers`` are those of all turns by their ids: nobody replies to
    themselves.

    Of two turns ``C`` and ``C+`` that people said, ``C++`` is taken for a reply to the second."""
    heard = list_heard(turn.id)
    return next((each for each in heard if speakers.get(each, turn.speaker) != turn.speaker), None)


def list_heard(identity: str) -> Iterator[str]:
    """List the ids that a turn with this id may reply to."""
    while identity.endswith("+"):
        identity = identity[:-1]
        yield identity


def find_assistants(turns: Sequence[Turn], speakers: Mapping[str, str]) -> set[str]:
    """Return the speakers that reply as a chat's assistant does, by the ids of their turns or by
    name; ``speakers`` as of ``find_replied``."""
    replied = {turn.speaker for turn in turns if find_replied(turn, speakers) is not None}
    return replied | {turn.speaker for turn in turns if turn.speaker == ASSISTANT}


def format_statement(turn: Turn, who: str) -> str:
    """Write a turn as a statement with its day: ``Ann said on 3 May 2023: I moved.``"""
    day = f" on {turn.time.day} {turn.time:%B %Y}" if turn.time else ""
    return f"{who} said{day}: {one_line(turn.text)}"


def show_turns(turns: Sequence[Turn], numbers: Sequence[int]) -> list[Shown]:
    """Some turns in the order of the conversation, a line each, with the day on which it was
    said."""
    return [((number,), format_turn(turns[number])) for number in sorted(numbers)]


async def reply_to_turn(
    llm: LLM,
    conversation: Conversation,
    memories: Sequence[Shown],
    heard: Turn,
    voice: Voice,
    say: Say,
    before: Sequence[int] = (),
) -> Answer:
    """What is replied to a turn, by ``say``. The memories and the turns just ``before`` that it
    repeats are cited, except what the voice itself said: its own words are no source for it.

    The text is empty where it replies otherwise, by calls of tools for one. Raises what ``say``
    raises.
    """
    lines = cite_shown(conversation, order_for_reply(conversation.turns, memories, heard, voice))
    texts = [text for text, _ in lines]
    kept = await fit_texts(llm, texts, reserve=llm.context_tokens // 2)
    remembered = ""
    if kept:
        speaker = heard.speaker or SOMEBODY
        remembered = REMEMBERED.render(speaker=speaker, memories=_number_lines(kept))
    answer = Answer(heard.text, await say(llm, remembered), "low", ())
    question = Question(heard.text)
    lines += cite_shown(conversation, show_turns(conversation.turns, before))
    told = [line for line in lines if any(each.speaker != voice.name for each in line[1])]
    return _cite_repeated(answer, question, told)


@dataclass(frozen=True, slots=True)
class Speaker:
    """Replies as ``voice`` to the last of the ``recent`` turns; ``hear`` is given the reply as it
    is written."""

    recent: Sequence[Turn]
    voice: Voice
    sampling: Sampling
    hear: Listener | None = None
    wish: Wish | None = None

    async def say(self, llm: LLM, remembered: str) -> str:
        """What the voice says next.

        Raises the EngineError family, and ReplyInvalid where the model writes nothing.
        """
        last, hear, wish = self.recent[-1], self.hear, self.wish
        speaker = last.speaker or SOMEBODY
        today = f"Today is {last.time:%A, %d %B %Y}." if last.time else ""
        system = REPLY.render(
            name=self.voice.name,
            speaker=speaker,
            about=" ".join(filter(None, (today, self.voice.persona))),
            remembered=f"{remembered}\n\n" if remembered else "",
        )
        tokens = max(self.sampling.max_tokens, min(REPLY_TOKENS, llm.context_tokens // 8))
        temperature = max(self.sampling.temperature, REPLY_TEMPERATURE)
        sampling = replace(self.sampling, max_tokens=tokens, temperature=temperature)
        sampling = sampling if wish is None else wish.apply(sampling)
        messages = (Message("system", system), *await _show_recent(llm, self.recent, self.voice))
        with nullcontext() if hear is None else listen(lambda said: hear(strip_thinking(said))):
            reply = await llm.forward(Request(messages, sampling=sampling), stage="answer")
        if wish is not None:
            wish.finish_reason = reply.finish_reason
        if not (text := strip_thinking(reply.text)):
            hint = "say it again, or use another model"
            raise ReplyInvalid("the model wrote no reply", hint=hint)
        return text


def _number_lines(lines: Sequence[str]) -> str:
    return "\n".join(f"[{place}] {line}" for place, line in enumerate(lines, 1))


def order_for_reply(
    turns: Sequence[Turn], memories: Sequence[Shown], heard: Turn, voice: Voice
) -> list[Shown]:
    """Turn memories into statements: first what the speaker of ``heard`` said, then what others
    did and what stands for several turns, then what the speaker only asked, then what the voice
    itself said; each with its day."""
    stated, others, asked, own = list[Shown](), list[Shown](), list[Shown](), list[Shown]()
    for numbers, text in memories:
        turn = turns[numbers[0]] if numbers else None
        if turn is None or text != format_turn(turn):
            others.append((numbers, text))
        elif turn.speaker == voice.name:
            own.append((numbers, format_statement(turn, "You")))
        else:
            shown = numbers, format_statement(turn, turn.speaker or "Somebody")
            of_speaker = asked if only_asks(turn.text) else stated
            (of_speaker if turn.speaker == heard.speaker else others).append(shown)
    return [*stated, *others, *asked, *own]


async def _show_recent(llm: LLM, turns: Sequence[Turn], voice: Voice) -> list[Message]:
    """The last turns as messages, by turns the others' and the voice's own.

    Where more than one other speaks, each of their lines has its speaker.
    """
    others = {turn.speaker for turn in turns} - {voice.name}
    said = [turn.text if len(others) == 1 else turn.line for turn in turns]
    shown = await fit_texts(llm, said, reserve=3 * llm.context_tokens // 4)
    own = [turn.speaker == voice.name and turn is not turns[-1] for turn in turns]
    pairs = zip(own, shown, strict=True)
    return [
        Message("assistant" if is_own else "user", "\n".join(text for _, text in group))
        for is_own, group in groupby(pairs, key=itemgetter(0))
    ]


async def answer_from_lines(
    llm: LLM,
    lines: Sequence[Line],
    question: Question,
    sampling: Sampling,
    *,
    source_tokens: int | None = None,
) -> Answer:
    """One call over numbered lines: which of them are used, then the answer.

    With ``source_tokens`` the answer has its compaction ratio. Raises what LLM.complete raises.
    """
    tokens = max(sampling.max_tokens, find_form(question).tokens)
    sampling = replace(sampling, max_tokens=tokens)
    kept = await fit_texts(llm, [text for text, _ in lines], reserve=tokens)
    prompt, schema = request_answer(kept, question)
    messages = [Message("user", prompt)]
    reply = await llm.complete(messages, schema, sampling=sampling, stage="answer")
    places = sorted(set(reply.parsed.memories))
    citations = cite_lines(lines, (place - 1 for place in places))
    answer = Answer("", reply.parsed.answer, "medium" if citations else "low", citations)
    if is_declined(answer.text, say_unknown(question)):
        answer = replace(answer, confidence="low", citations=())
    elif not question.options:
        answer = _cite_repeated(answer, question, lines)
    ratio = reply.usage.input_tokens / source_tokens if source_tokens else None
    return replace(answer, question=question.text, compaction_ratio=ratio)


def request_answer(texts: Sequence[str], question: Question) -> tuple[str, type[_Said]]:
    """What is asked by TURN_ANSWER of lines of such texts, and the schema of the reply."""
    prompt = TURN_ANSWER.render(memories=_number_lines(texts), **ask_lines(question))
    field = answer_field(question, find_form(question).chars)
    return prompt, _answer_schema(len(texts), field)


def _cite_repeated(answer: Answer, question: Question, lines: Sequence[Line]) -> Answer:
    """Cite the lines that an answer repeats, where the model named none that it does.

    A line that only asks is cited where no line that states something repeats the answer.
    """
    named = answer.citations
    stated = tuple(each for each in named if not only_asks(each.quote))
    if find_repeated(answer.text, "", [each.quote for each in stated]):
        return replace(answer, citations=stated)
    is_named = bool(find_repeated(answer.text, "", [each.quote for each in named]))
    telling = [line for line in lines if not all(only_asks(each.quote) for each in line[1])]
    found = _find_cited(answer.text, "" if is_named else question.text, telling)
    if not found and not is_named:
        found = _find_cited(answer.text, question.text, lines)
    return replace(answer, confidence="medium", citations=found) if found else answer


def _find_cited(answer: str, question: str, lines: Sequence[Line]) -> tuple[Citation, ...]:
    """Find the citations of the lines that an answer repeats."""
    return cite_lines(lines, find_repeated(answer, question, [text for text, _ in lines]))


def cite_lines(lines: Sequence[Line], places: Iterable[int]) -> tuple[Citation, ...]:
    """Cite the lines at some places, from 0, each citation once."""
    return tuple(dict.fromkeys(each for place in places for each in lines[place][1]))


class _Said(StrictReply):
    memories: list[int]
    answer: str


@lru_cache
def _answer_schema(count: int, answer_type: Any) -> type[_Said]:
    """The schema of an answer that cites some of ``count`` lines."""
    memories = (_citable(count), ...)
    return create_model("answer", __base__=_Said, memories=memories, answer=(answer_type, ...))


def read_answer(reply: str) -> str:
    """The answer in a reply in JSON, as far as it is written.

    >>> read_answer('{"memories": [1], "answer": "He said \\\\"N')
    'He said "N'
    """
    found = _ANSWER.search(reply)
    if found is None:
        return ""
    said: str = json.loads(f'"{found[1]}"', strict=False)
    return said.encode(errors="ignore").decode()  # half a surrogate pair is to be continued


def _citable(memories: int) -> Any:
    """What may be cited: a set of numbers; of more memories than may be cited, some in any order.

    A small model that may name all of fifty does, and its budget ends before it answers. A grammar
    asks for the numbers in order; a reply that names them otherwise is as good.
    """
    if not memories:
        return Annotated[list[int], Field(max_length=0)]
    if memories <= MOST_CITED:
        return Annotated[index_set(memories, first=1), BeforeValidator(_put_in_order)]
    item: Any = number(1, memories)
    return Annotated[list[item], Field(max_length=MOST_CITED)]


def _put_in_order(numbers: Any) -> Any:
    is_list = isinstance(numbers, list) and all(isinstance(each, int) for each in numbers)
    return sorted(set(numbers)) if is_list else numbers


def cite_shown(conversation: Conversation, memories: Sequence[Shown]) -> list[Line]:
    """Pair each text that is shown with the citations of its turns."""
    return [
        (text, [cite_turn(conversation, number) for number in numbers])
        for numbers, text in memories
    ]


def cite_turn(conversation: Conversation, number: int) -> Citation:
    """The citation of one turn: its id, its session, and what it said."""
    turn = conversation.turns[number]
    return Citation(
        node_id=turn.id,
        document=conversation.name,
        span=conversation.span(number),
        quote=turn.text,
        section=conversation.session_at(number),
        speaker=turn.speaker,
        time=turn.time,
    )
