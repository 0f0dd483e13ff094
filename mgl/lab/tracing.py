"""How an answer, or a reply in a chat, came to be: what was found for it, and the calls behind it.

    with Lab.open() as lab:                                             # doctest: +SKIP
        trace = trace_answer(lab, "diary", "What is the horse called?")
        print([call.seconds for call in trace.calls])

A call records no question. The calls of an answer are those whose prompt holds its question; those
of a reply hold the turn that it replies to in their prompt, and its words in what the model wrote.
A replayed call belongs to the memory that it was first made for.
"""

from __future__ import annotations

import json
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
    """What was found, the best first where that is known, and the calls, in their order."""

    retrieved: tuple[Citation, ...]
    calls: tuple[CallRecord, ...]


def trace_answer(lab: Lab, source: str, question: str) -> Trace:
    """Trace a stored answer by its question; NotThere if there is none."""
    found = [answer for answer in lab.answers(source) if answer.question == question]
    if not found:
        raise NotThere("this question has no answer here", hint="ask it")
    calls = tuple(
        call
        for call in lab.calls(source)
        if any(question in message.content for message in call.request.messages)
    )
    return Trace(tuple(_cite(lab, source, found[-1].retrieved)), calls)


def trace_reply(lab: Lab, source: str, turn: str) -> Trace:
    """Trace a reply by the id of its turn; NotThere if that is no reply."""
    if lab.memory(source).turns is None:
        raise NotThere(f"turn {turn!r} is no reply", hint="a document has no turns")
    talk = lab.transcript(source)
    numbers = {each.id: number for number, each in enumerate(talk.turns)}
    sources = lab.replies(source).get(numbers.get(turn, -1))
    if sources is None:
        raise NotThere(f"turn {turn!r} is no reply", hint="those have ids that end in +")
    replied_to = max(sources.made_of)  # what it cites was said before that
    text, heard = talk.turns[numbers[turn]].text, talk.turns[replied_to].text
    forms = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    calls = tuple(
        call
        for call in lab.calls(source)
        if any(heard in message.content for message in call.request.messages)
        if call.completion and any(form in call.completion.text for form in forms)
    )
    shown = [*sorted(sources.made_of), *sorted(sources.shown - sources.made_of)]
    return Trace(tuple(cite_turn(talk, number) for number in shown), calls)


def _cite(lab: Lab, source: str, retrieved: tuple[str, ...]) -> Iterator[Citation]:
    """Cite turns by their ids, or passages of a document by their places."""
    if lab.memory(source).turns is not None:
        talk = lab.transcript(source)
        numbers = {turn.id: number for number, turn in enumerate(talk.turns)}
        yield from (cite_turn(talk, numbers[each]) for each in retrieved if each in numbers)
        return
    document = lab.document(source)
    yield from (document.cite(each, Span.at(document.id, each)) for each in retrieved)
