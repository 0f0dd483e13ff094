"""What deletion leaves of a memory's log, and what filters would have deleted.

A deletion is a step of its own that names turns and, where parts of a turn are masked, characters;
never words. Earlier rows keep what they say of numbers and lose the words that were made of the
turns: replayed, they lead to the state that the deletion leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mgl.memories.gam.reading import remove_names
from mgl.memories.gam.state import Consolidate, Edit, Forget, Mask, Rewrite, State, raw_text
from mgl.store.deletion import MASK, Gone, Redaction, mask_text
from mgl.types import Turn

Filter = Callable[[Turn], Sequence[tuple[int, int]]]
"""The characters of a turn's text that must not be remembered: ranges, ends exclusive."""


def private_parts(turn: Turn) -> list[tuple[int, int]]:
    """The filter for secrets and personal data (``mgl.text.private``)."""
    from mgl.text.private import find_private

    return [(part.start, part.end) for part in find_private(turn.text)]


def apply_filters(filters: Sequence[Filter], turns: Mapping[int, Turn]) -> Redaction:
    """What filters take from turns, by number; one of which nothing is left is forgotten."""
    forgotten: set[int] = set()
    parts: dict[int, tuple[tuple[int, int], ...]] = {}
    for number, turn in turns.items():
        ranges = sorted({part for find in filters for part in find(turn)})
        left = mask_text(turn.text, ranges)
        if left == turn.text:
            continue
        if left.replace(MASK, "").strip():
            parts[number] = tuple(ranges)
        else:
            forgotten.add(number)
    return Redaction(frozenset(forgotten), parts)


class GamRedactor:
    """How a log of GAM loses its words (``mgl.memories.deletion``): a topic keeps its numbers."""

    def __init__(self, gone: Gone, before: State) -> None:
        self._gone = gone
        self._before = before

    def redact(self, edit: Edit) -> Edit | None:
        """The edit without words; None for one that has nothing else."""
        match edit:
            case Consolidate(topic):
                known = topic.marks.items()
                marks = {turn: mark for turn, mark in known if turn not in self._gone.turns}
                return Consolidate(replace(topic, summary="", keywords=(), marks=marks))
            case Rewrite():
                return None
        return edit

    def restore(self, left: Sequence[Edit], after: State) -> list[Edit]:
        """What is masked and what is forgotten."""
        del left
        what = self._gone.what
        stale = [
            name
            for name, topic in self._before.topics.items()
            if topic.summary and name in after.topics and not after.topics[name].summary
            if what.turns.isdisjoint(topic.turns)
        ]
        masked = {turn: tuple(parts) for turn, parts in what.masked.items()}
        masks: list[Edit] = [Mask(masked)] if masked else []
        return [*masks, Forget(tuple(sorted(what.forgotten)), tuple(stale))]

    def texts(self, state: State, turns: Sequence[Turn]) -> set[str]:
        """The topics as they are searched and linked, and the turns as they are asked about."""
        topics = state.topics.values()
        found = {form for topic in topics for form in (topic.summary, raw_text(topic, turns))}
        names = list(dict.fromkeys(turn.speaker for turn in turns))
        for count in range(1, len(names) + 1):  # a question is read without the names known by then
            known = {*names[:count]} - {""}
            found |= {remove_names(turns[number].text, known) for number in self._gone.turns}
        return found
