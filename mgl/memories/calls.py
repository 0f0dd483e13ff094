"""The calls that memories and baselines share, one call each.

- ``answer_from_passages`` answers a question about a document from passages of it,
- ``answer_from_turns`` answers a question about a conversation from turns of it,
- ``reply_to_turn`` says the next turn of a conversation,
- ``extract_claim`` says in a sentence what a passage tells, and how surely it tells it,
- ``summarize`` shortens a text within a token budget.

The prompts are ours and the same for every method, so that methods differ by what they read alone.
Passages come before the question, so that calls about one passage share an engine's prefix cache;
the numbers of what is cited come before the answer, so that it stands on something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from mgl.errors import ContextOverflow, ReplyInvalid
from mgl.llm.base import LLM, Message, Sampling
from mgl.llm.constraints import index_set, max_chars, number
from mgl.llm.prompting import available_tokens, fit_texts, reader_messages, shorten
from mgl.prompt import Prompt, one_line
from mgl.text.groups import format_turn
from mgl.types import Answer, AnswerForm, Citation, Conversation, Question, Turn

__all__ = [
    "ANSWER_TOKENS",
    "CLAIM",
    "CLAIM_WITHOUT_QUESTION",
    "LONG_PASSAGE_ANSWER",
    "OPEN_QUESTION",
    "PASSAGE_ANSWER",
    "REMEMBERED",
    "REPLY",
    "SUPPORTED",
    "TURN_ANSWER",
    "UNMENTIONED",
    "Claim",
    "Note",
    "PassageAnswer",
    "Shown",
    "answer_from_lines",
    "answer_from_passages",
    "answer_from_turns",
    "check_room",
    "cite_turn",
    "extract_claim",
    "reply_to_turn",
    "show_turns",
    "summarize",
]

ANSWER_TOKENS: Final[Mapping[AnswerForm, int]] = {"short": 256, "long": 1024}

PASSAGE_ANSWER = Prompt(
    "reading.answer",
    source="ours",
    text=(
        "{passages}\n\nQuestion: {question}\n"
        "Answer the question in one short sentence, using only the text above. Be specific."
    ),
    variables=("passages", "question"),
)

LONG_PASSAGE_ANSWER = Prompt(
    "reading.long_answer",
    source="ours",
    text=(
        "{passages}\n\nQuestion: {question}\n"
        "Answer the question in full, using only the text above: everything that it tells about "
        "the question, from every side, with names and particulars. Write plain prose."
    ),
    variables=("passages", "question"),
)

_PROMPTS: Final[Mapping[AnswerForm, Prompt]] = {
    "short": PASSAGE_ANSWER,
    "long": LONG_PASSAGE_ANSWER,
}


@dataclass(frozen=True, slots=True)
class PassageAnswer:
    """``input_tokens`` is what the call read, instructions included."""

    text: str
    input_tokens: int


async def answer_from_passages(
    llm: LLM,
    passages: Sequence[str],
    question: str,
    *,
    form: AnswerForm = "short",
    stage: str = "answer",
) -> PassageAnswer:
    """An answer from numbered passages; what LLM.complete raises."""
    body = "\n\n".join(f"[{number}] {one_line(text)}" for number, text in enumerate(passages, 1))
    reply = await llm.complete(
        reader_messages(_PROMPTS[form].render(passages=body, question=question)),
        sampling=Sampling(max_tokens=ANSWER_TOKENS[form]),
        stage=stage,
    )
    return PassageAnswer(one_line(reply.text), reply.usage.input_tokens)


ANSWER_CHARS = 400
MOST_CITED: Final = 10
NONE = Field(max_length=0)
UNMENTIONED: Final = "Not mentioned in the conversation."

TURN_ANSWER = Prompt(
    "replying.answer",
    source="ours",
    text="""Memories of a conversation, each with its number and the time at which it was said:

{memories}

Question: {question}

First name the numbers of the memories that answer the question, then answer in as few words as \
you can, with the words of the conversation. Give dates as dates, reckoned from the time at which \
a thing was said. If no memory answers it, the answer is "Not mentioned in the conversation."

{"memories": [numbers], "answer": "..."}""",
    variables=("memories", "question"),
)

REPLY = Prompt(
    "replying.reply",
    source="ours",
    text="""You are {name}, in a conversation with {speaker}.

{remembered}The conversation now:
{recent}

Write what {name} says next: a friendly reply to the last line, in one to three sentences, that \
uses what was said above. If {speaker} asks for something that was not said above, say that you do \
not know it.

{"memories": [numbers], "answer": "..."}""",
    variables=("name", "speaker", "remembered", "recent"),
)

REMEMBERED = Prompt(
    "replying.remembered",
    source="ours",
    text="""What was said in earlier talks, each with its number and the time at which it was said:
{memories}

First name the numbers of those that you use, if you use any.

""",
    variables=("memories",),
)

Shown = tuple[tuple[int, ...], str]
"""What is shown under one number: the turns it stands for, and its text."""


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid")

    memories: list[int]
    answer: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1), max_chars(ANSWER_CHARS)
    ]


def show_turns(turns: Sequence[Turn], numbers: Sequence[int]) -> list[Shown]:
    """Some turns in the order of the conversation, a line each, with the day on which it was
    said."""
    return [((number,), format_turn(turns[number])) for number in sorted(numbers)]


async def answer_from_turns(
    llm: LLM,
    conversation: Conversation,
    memories: Sequence[Shown],
    question: Question,
    prompt: Callable[..., str] | None = None,
    *,
    sampling: Sampling,
) -> Answer:
    """An answer from memories; where there are none, that the conversation does not mention it.

    ``prompt`` is rendered with ``memories``, and asks the question by default. Raises what
    LLM.complete raises.
    """
    if not memories and prompt is None:
        return Answer(question.text, UNMENTIONED, "low", ())

    def cite(places: Sequence[int]) -> list[Citation]:
        numbers = (number for place in places for number in memories[place][0])
        return [cite_turn(conversation, number) for number in numbers]

    prompt = prompt or partial(TURN_ANSWER.render, question=question.text)
    lines = [text for _, text in memories]
    return await answer_from_lines(llm, lines, cite, question, prompt, sampling)


async def reply_to_turn(
    llm: LLM,
    conversation: Conversation,
    memories: Sequence[Shown],
    recent: Sequence[int],
    *,
    name: str,
    sampling: Sampling,
) -> Answer:
    """What ``name`` says next, to the last of the ``recent`` turns; it may stand on memories.

    Raises what LLM.complete raises.
    """
    last = conversation.turns[recent[-1]]
    lines = [conversation.turns[number].line for number in recent]
    shown = await fit_texts(llm, lines, reserve=llm.context_tokens // 2)
    asked = Question(last.text, last.time, last.speaker or None)

    def prompt(*, memories: str) -> str:
        return REPLY.render(
            name=name,
            speaker=last.speaker or "somebody",
            remembered=REMEMBERED.render(memories=memories) if memories else "",
            recent="\n".join(shown),
        )

    return await answer_from_turns(llm, conversation, memories, asked, prompt, sampling=sampling)


async def answer_from_lines(
    llm: LLM,
    lines: Sequence[str],
    cite: Callable[[Sequence[int]], Sequence[Citation]],
    question: Question,
    prompt: Callable[..., str],
    sampling: Sampling,
    *,
    source_tokens: int | None = None,
) -> Answer:
    """One call over numbered lines: which of them are used, then the answer.

    ``cite`` makes citations of the places, from 0, of the lines that were named; ``prompt`` is
    rendered with ``memories``. With ``source_tokens`` the answer has its compaction ratio.
    Raises what LLM.complete raises.
    """
    kept = await fit_texts(llm, lines, reserve=sampling.max_tokens)
    shown = "\n".join(f"[{place}] {line}" for place, line in enumerate(kept, 1))
    schema = create_model("answer", __base__=_Said, memories=(_citable(len(lines)), ...))
    reply = await llm.complete(
        [Message("user", prompt(memories=shown))], schema, sampling=sampling, stage="answer"
    )
    citations = tuple(cite([place - 1 for place in sorted(set(reply.parsed.memories))]))
    return Answer(
        question=question.text,
        text=reply.parsed.answer,
        confidence="medium" if citations else "low",
        citations=citations,
        compaction_ratio=reply.usage.input_tokens / source_tokens if source_tokens else None,
    )


def _citable(memories: int) -> Any:
    """What may be cited: a set of numbers; of more memories than may be cited, some in any order.

    A small model that may name all of fifty does, and its budget ends before it answers.
    """
    if not memories:
        return Annotated[list[int], NONE]
    if memories <= MOST_CITED:
        return index_set(memories, first=1)
    item: Any = number(1, memories)
    return Annotated[list[item], Field(max_length=MOST_CITED)]


def cite_turn(conversation: Conversation, number: int) -> Citation:
    """The citation of one turn: its id, its session, and what it said."""
    turn = conversation.turns[number]
    return Citation(
        node_id=turn.id,
        document=conversation.name,
        span=conversation.span(number),
        quote=turn.text,
        section=conversation.session_at(number),
    )


CLAIM_TOKENS = 60
OPEN_QUESTION = "What happens?"

CLAIM = Prompt(
    "claiming.claim",
    source="ours",
    text=(
        "Passage from a book:\n{block}\n\nQuestion: {question}\n"
        "Answer the question in one short sentence, using only the passage above. "
        "Name who does what."
    ),
    variables=("block", "question"),
)

CLAIM_WITHOUT_QUESTION = Prompt(
    "claiming.claim_without_question",
    source="ours",
    text=(
        "Passage from a book:\n{block}\n\n"
        "Say in one short sentence the most important thing that the passage above tells. "
        "Name who does what."
    ),
    variables=("block",),
)

SUPPORTED = Prompt(
    "claiming.supported",
    source="ours",
    text=(
        "Passage from a book:\n{block}\n\nQuestion: {question}\nProposed answer: {claim}\n"
        "Does the passage above say this, and does it answer the question? Reply Yes or No."
    ),
    variables=("block", "question", "claim"),
)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a passage tells, and the model's P(Yes) that it says so and answers the question."""

    text: str
    support: float
    call_key: str | None


async def extract_claim(llm: LLM, passage: str, question: str | None) -> Claim | None:
    """The claim of a passage for a question, or for none; None where no reply could be used.

    Raises the EngineError family.
    """
    block = one_line(passage)
    if question is None:
        prompt, asked = CLAIM_WITHOUT_QUESTION.render(block=block), OPEN_QUESTION
    else:
        prompt, asked = CLAIM.render(block=block, question=question), question
    try:
        reply = await llm.complete(
            reader_messages(prompt), sampling=Sampling(max_tokens=CLAIM_TOKENS), stage="read"
        )
    except ReplyInvalid:
        return None
    said = one_line(reply.text)
    check = SUPPORTED.render(block=block, question=asked, claim=said)
    support = await llm.probability_of_yes(reader_messages(check), stage="check")
    return Claim(said, support, reply.call_key)


TOKEN_CHARS = 4
JSON_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Note:
    """``problem`` says why there was no reply that could be used; the text is another's then."""

    text: str
    call_key: str | None = None
    problem: str | None = None


class _Noted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    notes: str


async def summarize(llm: LLM, prompt: str, tokens: int, *, stage: str, fallback: str = "") -> Note:
    """A note of at most ``tokens``; ``fallback`` with the problem where no reply can be used.

    The prompt asks for ``{"notes": "..."}``. Raises what LLM.complete raises, but ReplyInvalid.
    """
    text = Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1), max_chars(TOKEN_CHARS * tokens)
    ]
    schema = create_model("notes", __base__=_Noted, notes=(text, ...))
    sampling = Sampling(max_tokens=tokens + JSON_TOKENS)
    try:
        reply = await llm.complete(reader_messages(prompt), schema, sampling=sampling, stage=stage)
    except ReplyInvalid as error:
        return Note(fallback, problem=error.message)
    (kept,) = await shorten(llm, [reply.parsed.notes], tokens)
    return Note(kept, reply.call_key)


def check_room(llm: LLM, tokens: int, option: str, *, reserve: int) -> None:
    """ContextOverflow where texts of so many tokens do not fit the model's context beside
    ``reserve`` and a prompt; ``option`` is what sets their size."""
    there = available_tokens(llm, 1, reserve=reserve)
    if tokens > there:
        raise ContextOverflow(
            f"{tokens:,} tokens of text, and {reserve:,} for notes and question, do not fit the "
            f"model's context of {llm.context_tokens:,}",
            hint=f"set {option} to {there} or less"
            if there > 0
            else "use a model with a longer context, or let notes have fewer tokens",
        )
