"""What deletion leaves of a memory's log, and what is private and has to be masked.

A deletion is a step of its own that names turns, never words. Earlier rows keep what they say of
numbers and lose the words that were made of the turns: replayed, they lead to the state that the
deletion leads to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mgl.memories.gam.state import Consolidate, Edit, Forget, Rewrite, State, raw_text
from mgl.retrieval.turns import remove_names
from mgl.store.deletion import MASK, Gone, Redaction, mask_text
from mgl.types import Turn


def find_private_parts(turns: Mapping[int, Turn]) -> Redaction:
    """What to mask of turns (``mgl.text.private``); one of which nothing is left is forgotten."""
    from mgl.text.private import find_private

    forgotten: set[int] = set()
    parts: dict[int, tuple[tuple[int, int], ...]] = {}
    for number, turn in turns.items():
        ranges = tuple(find_private(turn.text))
        left = mask_text(turn.text, ranges)
        if left == turn.text:
            continue
        if left.replace(MASK, "").strip():
            parts[number] = ranges
        else:
            forgotten.add(number)
    return Redaction(frozenset(forgotten), parts)


class GamRedactor:
    """How a log of GAM loses its words (``mgl.memories.deletion``): a topic keeps its numbers."""

    def __init__(self, gone: Gone, before: State) -> None:
        self._gone = gone
        self._before = before
        self._dropped: set[str] = set()

    def redact(self, edit: Edit) -> Edit | None:
        """The edit without words; None for one that has nothing else."""
        match edit:
            case Consolidate(topic):
                self._dropped.add(topic.summary)
                known = topic.marks.items()
                marks = {turn: mark for turn, mark in known if turn not in self._gone.turns}
                return Consolidate(replace(topic, summary="", keywords=(), marks=marks))
            case Rewrite(_, summary, _):
                self._dropped.add(summary)
                return None
        return edit

    def restore(self, left: Sequence[Edit], after: State) -> list[Edit]:
        """The edit that says which turns were deleted and masked."""
        del left
        what = self._gone.what
        stale = [
            name
            for name, topic in self._before.topics.items()
            if topic.summary and name in after.topics and not after.topics[name].summary
            if what.turns.isdisjoint(topic.turns)
        ]
        return [Forget(tuple(sorted(what.forgotten)), tuple(stale), tuple(sorted(what.masked)))]

    def texts(self, state: State, turns: Sequence[Turn]) -> set[str]:
        """Topics as they are and were searched, and deleted turns as they are asked about."""
        topics = state.topics.values()
        found = {form for topic in topics for form in (topic.summary, raw_text(topic, turns))}
        names = list(dict.fromkeys(turn.speaker for turn in turns))
        for count in range(1, len(names) + 1):  # a question is read without the names known by then
            known = {*names[:count]} - {""}
            found |= {remove_names(turns[number].text, known) for number in self._gone.turns}
        return found | self._dropped if state is self._before else found
