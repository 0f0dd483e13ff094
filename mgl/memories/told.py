"""Questions about what a person told: answered from that person's own words, or not at all.

    told = await answer_from_told(llm, talk, Question("Where do I live?", now, "Ann"), [6, 0], [])

A small model that is offered "you have not told me" takes it for nearly every question, and one
that is not offered it invents. So it is asked for an answer, and the answer is checked: by code,
for names and numbers that the person's statements lack and for what the question asks for, and by
the model, which is shown the few statements that the answer repeats and says Yes or No, to whether
they say that answer, and to whether one of them answers the question. What is cited are these
statements. Of a relative whom no statement names nothing was told.

What an assistant said is no statement of the person's. Prompts ours.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM, Sampling
from mgl.llm.calls import showing_only
from mgl.llm.prompting import fit_texts, reader_messages
from mgl.memories.turns import cite_turn, find_form, format_statement, is_suggestion
from mgl.prompt import Prompt, one_line
from mgl.text.asked import asks_when, gives_what_is_asked, names_unknown_relative
from mgl.text.support import DATE, find_repeated, find_unsaid, stem_words
from mgl.types import Answer, Conversation, Question, Turn

__all__ = [
    "UNTOLD",
    "answer_from_statements",
    "answer_from_told",
    "asks_for_told",
    "find_assistants",
    "name_person",
]

UNTOLD: Final = "You have not told me."
ANSWER_TOKENS: Final = 60
MOST_STATEMENTS: Final = 12
LEAST_SUPPORT: Final = 0.48
WHO_TALKS: Final = 100
"""The last turns, by which it is known who talks here, and whether one of them is an assistant."""

STATED = Prompt(
    "replying.stated",
    source="ours",
    text="""What {person} said, in order:
{statements}

{today}{person} asks: "{question}"
Answer {person} in one short sentence, using only the lines above; call {person} "you". Where the \
lines differ, the latest holds.""",
    variables=("person", "statements", "today", "question"),
)

CONFIRMED = Prompt(
    "replying.confirmed",
    source="ours",
    text="""What {person} said:
{statements}

Question: {question}
Proposed answer: {answer}
Do the words above say this, and does it answer the question? Reply Yes or No.""",
    variables=("person", "statements", "question", "answer"),
)

ANSWERING = Prompt(
    "replying.answering",
    source="ours",
    text="""{statement}

{person} asks: "{question}"
Do {person}'s words above answer this question? Reply Yes or No.""",
    variables=("person", "statement", "question"),
)
"""The two together tell more than either, or than one that is shown all statements
(docs/measurements.md)."""

_ASKS: Final = re.compile(
    r"\?\s*$|^(?:and |so |but )?(?:what|which|who|whom|whose|when|where|why|how|do|does|did|is|are"
    r"|was|were|has|have|had)\b",
    re.IGNORECASE,
)
_OWN: Final = re.compile(r"\b(?:I|me|my|mine|myself|we|us|our|ours)\b", re.IGNORECASE)
_OF_ASSISTANT: Final = re.compile(r"\byou(?:r|rs)?\b", re.IGNORECASE)
_RECALLS: Final = re.compile(
    r"\b(?:do you (?:still )?(?:know|remember|recall)|did I (?:tell|say|mention)"
    r"|have I (?:told|said|mentioned)|(?:can|could) you (?:tell|remind) me|I told you)\b",
    re.IGNORECASE,
)
_HELP: Final = re.compile(
    r"\bhow (?:do|can|could|would|might|shall) (?:I|we)\b|\b(?:should|shall) (?:I|we)\b"
    r"|\bwhat (?:can|could|shall|would) (?:I|we)\b|\bcan (?:I|we)\b",
    re.IGNORECASE,
)
_YOU: Final = {
    "the user's": "your",
    "the user said": "you said",
    "i am": "you are",
    "i'm": "you're",
    "i was": "you were",
    "i": "you",
    "me": "you",
    "my": "your",
    "mine": "yours",
    "myself": "yourself",
}
_OF_USER: Final = re.compile(r"\bthe user(?:['’]s| said)\b", re.IGNORECASE)
_COPIED: Final = re.compile(r"(?:I|My)\b")
_FIRST_PERSON: Final = re.compile(r"\b(?:I(?: am|['’]m| was)?|[Mm](?:e|y|ine|yself))\b")
_LAST_DATE: Final = re.compile(rf",?(?: on)? ({DATE.pattern})\.?$")
_DEFINITE: Final = re.compile(r"\b(?:the|this|that|his|her|their) ([^\W\d_]+)", re.IGNORECASE)


def find_assistants(turns: Sequence[Turn]) -> frozenset[str]:
    """Return the speakers that reply as a chat's assistant does, by the ids of their turns or by
    name."""
    replied = {turn.speaker for turn in turns if turn.id.endswith("+")}
    return frozenset(replied | {turn.speaker for turn in turns if turn.speaker == "assistant"})


def name_person(speaker: str) -> str:
    """Name a speaker as a prompt does: a chat's nameless user is "the user"."""
    return "the user" if speaker in ("user", "") else speaker


def asks_for_told(text: str, statements: Sequence[str]) -> bool:
    """Whether a message asks for what the person told: of the person's own life, or of a name that
    the statements have. One that wants advice or something done does not."""
    if not _ASKS.search(text.strip()):
        return False
    if _RECALLS.search(text):
        return True
    if is_suggestion(text) or _HELP.search(text) or _OF_ASSISTANT.search(text):
        return False
    said = " ".join(statements)
    return bool(_OWN.search(text)) or _names_known(text, said) or _things_known(text, said)


def _names_known(text: str, said: str) -> bool:
    """Whether a text has a name that was said."""
    names = set(find_unsaid(text, ""))
    return bool(names) and len(find_unsaid(text, said)) < len(names)


def _things_known(text: str, said: str) -> bool:
    """Whether a text speaks of a thing, "the horse", by a word that was said."""
    return bool(set(stem_words(" ".join(_DEFINITE.findall(text)))) & set(stem_words(said)))


async def answer_from_told(
    llm: LLM,
    conversation: Conversation,
    question: Question,
    ranked: Sequence[int],
    recent: Sequence[int],
) -> Answer | None:
    """Answer from the asker's own turns, among those found and the last (``AnswerFirst``).

    Returns None where the question asks for something else, or nobody here is an assistant.
    """
    turns = conversation.turns
    assistants = find_assistants(turns[-WHO_TALKS:])
    people = {turn.speaker for turn in turns[-WHO_TALKS:]} - assistants
    asker = question.asker or (next(iter(people)) if len(people) == 1 else None)
    if asker not in people or not (assistants or recent):
        return None
    best = [n for n in ranked if turns[n].speaker == asker][:MOST_STATEMENTS]
    said = {*best, *(n for n in recent if turns[n].speaker == asker)}
    asked = question.text.strip().casefold()  # asked before, it tells nothing
    own = sorted(n for n in said if turns[n].text.strip().casefold() != asked)
    if not asks_for_told(question.text, [turns[number].text for number in own]):
        return None
    with showing_only({*own, *recent}):
        return await answer_from_statements(llm, conversation, own, replace(question, asker=asker))


async def answer_from_statements(
    llm: LLM, conversation: Conversation, numbers: Sequence[int], question: Question
) -> Answer | None:
    """Answer from what the asker said in some turns.

    Where they do not say it, the answer is ``UNTOLD``; None for a question that names neither the
    asker nor anybody they spoke of, which something else may answer. Raises what LLM.complete
    raises.
    """
    places = sorted(numbers)
    turns = [conversation.turns[number] for number in places]
    told = " ".join(turn.text for turn in turns)
    is_theirs = bool(_OWN.search(question.text)) or _names_known(question.text, told)
    untold = Answer(question.text, UNTOLD, "low", ()) if is_theirs else None
    if not turns or names_unknown_relative(question.text, told):
        return untold
    person = name_person(question.asker or turns[-1].speaker)
    lines = [format_statement(turn, _capital(person)) for turn in turns]
    lines = await fit_texts(llm, lines, reserve=ANSWER_TOKENS)
    asked = one_line(question.text)
    statements = "\n".join(lines)
    prompt = STATED.render(
        question=asked,
        person=person,
        statements=statements,
        today=f"Today is {_day(question)}. " if question.asked_at else "",
    )
    sampling = Sampling(max_tokens=max(ANSWER_TOKENS, find_form(question).tokens))
    reply = await llm.complete(reader_messages(prompt), sampling=sampling, stage="answer")
    said = _address(one_line(reply.text), question, told)
    used = find_repeated(said, asked, [turn.text for turn in turns])
    if not used or find_unsaid(said, prompt) or not gives_what_is_asked(said, asked):
        return untold
    repeated = [lines[place] for place in used]
    with suppress(ReplyInvalid):  # a server that gives no log-probabilities: the words decide
        if await _find_support(llm, person, repeated, asked, said) < LEAST_SUPPORT:
            return untold
    cited = tuple(cite_turn(conversation, places[place]) for place in used)
    return Answer(question.text, said, "medium", cited)


async def _find_support(
    llm: LLM, person: str, statements: Sequence[str], question: str, answer: str
) -> float:
    """The mean of two P(Yes): that the statements say the answer, and that one of them answers the
    question."""
    said = CONFIRMED.render(
        person=person, statements="\n".join(statements), question=question, answer=answer
    )
    answering = [
        ANSWERING.render(person=person, statement=statement, question=question)
        for statement in statements
    ]
    says, *answers = await asyncio.gather(
        *(
            llm.probability_of_yes(reader_messages(check), stage="check")
            for check in (said, *answering)
        )
    )
    return (says + max(answers)) / 2


def _address(said: str, question: Question, told: str) -> str:
    """Say "you" to the user, and leave out the day of a statement where no time is asked for."""
    said = _OF_USER.sub(_to_you, said)
    if _COPIED.match(said):
        said = _FIRST_PERSON.sub(_to_you, said)
    last = _LAST_DATE.search(said)
    if last is None or last[1] in told or asks_when(question.text):
        return said
    return f"{said[: last.start()]}."


def _to_you(found: re.Match[str]) -> str:
    before = found.string[: found.start()].rstrip()
    you = _YOU[found[0].lower().replace("’", "'")]
    return you if before and before[-1] not in ".!?" else _capital(you)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _day(question: Question) -> str:
    asked = question.asked_at
    return "" if asked is None else f"{asked.day} {asked:%B %Y}"
