"""How an answer, or a reply in a chat, came to be: what was found for it, and the calls behind it.

    with Lab.open() as lab:                                             # doctest: +SKIP
        trace = trace_answer(lab, "diary", "What is the horse called?")
        print([call.seconds for call in trace.calls])

The calls are those that were made, or replayed, while it was answered, as they were stored with it.
Those that built the memory before are not among them: its edits lead to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mgl.errors import NotThere
from mgl.memories.turns import cite_turn
from mgl.types import Citation, Span

if TYPE_CHECKING:
    from mgl.lab.lab import Lab
    from mgl.llm.calls import CallRecord


@dataclass(frozen=True, slots=True)
class Trace:
    """What was found and was not deleted since, the best first where that is known, and the calls,
    in their order."""

    retrieved: tuple[Citation, ...]
    calls: tuple[CallRecord, ...]


def trace_answer(lab: Lab, source: str, question: str) -> Trace:
    """Trace a stored answer by its question; NotThere if there is none."""
    found = [answer for answer in lab.answers(source) if answer.question == question]
    if not found:
        raise NotThere("this question has no answer here", hint="ask it")
    calls = lab.answer_calls(source, question)
    return Trace(tuple(_cite(lab, source, found[-1].retrieved)), tuple(calls))


def trace_reply(lab: Lab, source: str, turn: str) -> Trace:
    """Trace a reply by the id of its turn; NotThere if that is no reply."""
    if lab.memory(source).turns is None:
        raise NotThere(f"turn {turn!r} is no reply", hint="a document has no turns")
    told = lab.read_transcript(source)
    talk = told.conversation
    numbers = {each.id: number for number, each in enumerate(talk.turns)}
    number = numbers.get(turn, -1)
    sources = lab.replies(source).get(number)
    if sources is None:
        raise NotThere(f"turn {turn!r} is no reply", hint="those have ids that end in +")
    shown = [*sorted(sources.made_of), *sorted(sources.shown - sources.made_of)]
    cited = tuple(cite_turn(talk, each) for each in shown if each not in told.forgotten)
    return Trace(cited, tuple(lab.reply_calls(source, number)))


def _cite(lab: Lab, source: str, retrieved: tuple[str, ...]) -> Iterator[Citation]:
    """Cite turns by their ids, or passages of a document by their places."""
    if lab.memory(source).turns is not None:
        told = lab.read_transcript(source)
        turns = enumerate(told.conversation.turns)
        numbers = {turn.id: number for number, turn in turns if number not in told.forgotten}
        found = (numbers[each] for each in retrieved if each in numbers)
        yield from (cite_turn(told.conversation, number) for number in found)
        return
    document = lab.document(source)
    yield from (document.cite(each, Span.at(document.id, each)) for each in retrieved)
