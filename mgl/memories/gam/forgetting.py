"""What deletion makes of a memory's log, and what filters would have deleted.

A deletion is a step of its own that names turns and, where parts of a turn are masked, characters;
never words. Earlier rows keep what they say of numbers and lose the words that were made of the
turns: replayed, they lead to the state that the deletion leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from mgl.errors import UsageError
from mgl.memories.gam.prompts import TIME_SENSITIVE
from mgl.memories.gam.reading import remove_names
from mgl.memories.gam.state import (
    VOCABULARY,
    Consolidate,
    Edit,
    Forget,
    Mask,
    Rewrite,
    raw_text,
)
from mgl.retrieval.rerankers import HELPS
from mgl.store import EditRecord
from mgl.store.redaction import MASK, Redaction, Treated, masked
from mgl.store.traces import AROUND
from mgl.types import Turn

__all__ = ["DERIVED", "Filter", "filtered", "private_parts", "shown", "treated"]

DERIVED: Final = MappingProxyType({"summary": ("summary", "keywords")})
"""The stages whose replies later calls quote, and the fields that they quote."""

Filter = Callable[[Turn], Sequence[tuple[int, int]]]
"""The characters of a turn's text that must not be remembered: ranges, ends exclusive."""


def private_parts(turn: Turn) -> list[tuple[int, int]]:
    """The filter for secrets and personal data (``mgl.text.private``)."""
    from mgl.text.private import find_private

    return [(part.start, part.end) for part in find_private(turn.text)]


def filtered(filters: Sequence[Filter], turns: Mapping[int, Turn]) -> Redaction:
    """What filters take from turns, by their number; a turn of which nothing is left is forgotten.

    UsageError where a filter gives a range that is not one of its text.
    """
    forgotten: set[int] = set()
    parts: dict[int, tuple[tuple[int, int], ...]] = {}
    for number, turn in turns.items():
        ranges = {(start, end) for find in filters for start, end in find(turn)}
        for start, end in ranges:
            if not 0 <= start <= end <= len(turn.text):
                raise UsageError(
                    f"a filter gave the characters {start} to {end} of the {len(turn.text)} "
                    f"of turn {turn.id!r}",
                    hint="a range is (start, end) in the turn's text, the end exclusive",
                )
        left = masked(turn.text, sorted(ranges))
        if left == turn.text:
            continue
        if left.replace(MASK, "").strip():
            parts[number] = tuple(sorted(ranges))
        else:
            forgotten.add(number)
    return Redaction(frozenset(forgotten), parts)


def treated(
    what: Redaction, step: int, log: Sequence[EditRecord], turns: Sequence[Turn]
) -> Treated:
    """What becomes of a log (``mgl.memories.deletion``)."""
    edits = [VOCABULARY.edit(row) for row in log]
    topics = VOCABULARY.replay(log).topics
    lost = {name for name, topic in topics.items() if not what.turns.isdisjoint(topic.turns)}
    made: set[str] = set()
    embedded = {raw_text(topics[name], turns) for name in lost}
    heard = _heard(turns)
    embedded |= {remove_names(turns[n].text, names) for n in what.turns for names in heard}
    rows: list[EditRecord] = []
    for row, edit in zip(log, edits, strict=True):
        match edit:
            case Consolidate(topic) if topic.id in lost:
                made.add(topic.summary)
                embedded.add(raw_text(topic, turns))
                marks = {turn: m for turn, m in topic.marks.items() if turn not in what.turns}
                blank = Consolidate(replace(topic, summary="", keywords=(), marks=marks))
                rows.append(replace(row, payload=VOCABULARY.record(row.chunk, blank).payload))
            case Rewrite(name, summary) if name in lost:
                made.add(summary)
                rows.append(
                    replace(
                        row, payload=VOCABULARY.record(row.chunk, Rewrite(name, "", ())).payload
                    )
                )
            case None if row.op == "reply":
                rows.append(replace(row, payload={**row.payload, "problem": ""}))
            case _:
                rows.append(row)
    said: list[Edit] = []
    if what.masked:
        said.append(
            Mask(
                {
                    turn: tuple((start, end) for start, end in parts)
                    for turn, parts in what.masked.items()
                }
            )
        )
    if what.forgotten:
        said.append(Forget(tuple(sorted(what.forgotten))))
    made.update(shown(turns, what.forgotten))
    return Treated(rows, [VOCABULARY.record(step, edit) for edit in said], made - {""}, embedded)


def shown(turns: Sequence[Turn], numbers: Collection[int]) -> Iterator[str]:
    """How prompts show turns that are replied to: as a question, without the speaker."""
    for number in numbers:
        text = turns[number].text
        yield TIME_SENSITIVE.around("question", text, AROUND)
        yield HELPS.around("query", text, AROUND)


def _heard(turns: Sequence[Turn]) -> list[frozenset[str]]:
    """Who had spoken, each time that somebody new had: a reading knows those of its own time."""
    heard: list[frozenset[str]] = []
    for turn in turns:
        known = heard[-1] if heard else frozenset[str]()
        if turn.speaker and turn.speaker not in known:
            heard.append(known | {turn.speaker})
    return heard
