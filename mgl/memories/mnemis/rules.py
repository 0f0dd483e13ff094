"""The rules of Appendix E that code can check, and how a reply that breaks them is mended.

A reply names categories and, for each, the indexes of its nodes. ``broken`` says in sentences what
is wrong with one, for the call that asks again; ``mended`` is what can be used of it:

    bad_index         an index that no node has: left out
    and_in_name       a name with the word "and": the category is refused
    no_name           a name without a word, or too long for one: refused
    not_the_speaker   "user" and first persons elsewhere than under "Speaker": taken out
    same_children     the same nodes as an earlier category has: refused
    empty             a category without nodes: refused

Categories of one name are one. Nodes that are left over, and categories of fewer nodes than the
compression ratio asks for, are seen to when a layer is complete (``layers``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mgl.memories.graph.names import NAME_CHARS, clean_name, entity_key

__all__ = ["SPEAKER", "SPEAKER_KEY", "Group", "broken", "is_speaker", "left_over", "mended"]

SPEAKER: Final = "Speaker"
SPEAKER_KEY: Final = entity_key(SPEAKER)
_FIRST_PERSONS: Final = frozenset({"user", "i", "me"})
_AND: Final = re.compile(r"\band\b", re.IGNORECASE)
_LISTED = 12


@dataclass(frozen=True, slots=True)
class Group:
    """A category as it is proposed: its name, and the indexes of its nodes in the batch."""

    name: str
    indexes: tuple[int, ...]

    @property
    def key(self) -> str:
        """What its name has in common with other spellings of it."""
        return entity_key(self.name)


def is_speaker(name: str) -> bool:
    """Whether a node's name is "user" or a first person."""
    return entity_key(name) in _FIRST_PERSONS


def broken(
    groups: Sequence[Group],
    names: Sequence[str],
    known: Collection[str],
    least: int,
    free: Collection[int] = (),
) -> list[str]:
    """What breaks a rule in a reply about nodes of these ``names``; nothing where all is well.

    ``known`` are the keys of the categories that are there, which may take a single node more;
    a new one has ``least`` nodes, or one alone. ``free`` nodes may be left out.
    """
    joined = _joined(groups)
    return [
        *_bad_indexes(joined, len(names)),
        *_bad_names(joined),
        *_bad_speakers(joined, names, known),
        *_bad_sizes(joined, known, least),
        *_left_out(joined, names, free),
    ]


def left_over(
    groups: Sequence[Group], names: Sequence[str], free: Collection[int] = ()
) -> tuple[int, ...]:
    """The nodes that are in no category, by index, but for speakers and those that are free."""
    held = {index for group in groups for index in group.indexes} | set(free)
    return tuple(
        index for index, name in enumerate(names) if index not in held and not is_speaker(name)
    )


def mended(
    groups: Sequence[Group], names: Sequence[str], known: Collection[str]
) -> tuple[list[Group], list[tuple[Group, str]]]:
    """The categories that can be used, and those that are refused, each with the reason."""
    kept: list[Group] = []
    refused: list[tuple[Group, str]] = []
    seen: set[tuple[int, ...]] = set()
    speakers = frozenset(index for index, name in enumerate(names) if is_speaker(name))
    joined = _joined(groups)
    if speakers and SPEAKER_KEY in known:
        joined = _joined([*joined, Group(SPEAKER, ())])
    for group in joined:
        valid = {index for index in group.indexes if 0 <= index < len(names)}
        valid = valid | speakers if _is_speakers(group) else valid - speakers
        usable = Group(clean_name(group.name), tuple(sorted(valid)))
        reason = _refusal(usable)
        if reason is None and usable.key not in known:
            reason = "same_children" if usable.indexes in seen else None
            seen.add(usable.indexes)
        if reason is None:
            kept.append(usable)
        else:
            refused.append((usable, reason))
    return kept, refused


def _refusal(group: Group) -> str | None:
    if not group.key or len(group.name) > NAME_CHARS:
        return "no_name"
    if _AND.search(group.name):
        return "and_in_name"
    return None if group.indexes else "empty"


def _joined(groups: Sequence[Group]) -> list[Group]:
    """Categories of one name as one, under the first spelling."""
    held: dict[str, Group] = {}
    for group in groups:
        key = group.key or group.name
        first = held.get(key, Group(group.name, ()))
        held[key] = Group(first.name, tuple(dict.fromkeys((*first.indexes, *group.indexes))))
    return list(held.values())


def _is_speakers(group: Group) -> bool:
    return group.key == SPEAKER_KEY


def _bad_indexes(groups: Sequence[Group], count: int) -> Iterator[str]:
    for group in groups:
        wrong = [index for index in group.indexes if not 0 <= index < count]
        if wrong:
            yield f'"{group.name}" has {_listed(wrong)}, but the indexes are 0 to {count - 1}.'


def _bad_names(groups: Sequence[Group]) -> Iterator[str]:
    for group in groups:
        if _AND.search(group.name):
            yield f'"{group.name}" has the word "and": name what its nodes share, or split it.'
        elif not group.key or len(group.name) > NAME_CHARS:
            yield f'"{group.name[:NAME_CHARS]}" is no name of a category.'


def _bad_speakers(
    groups: Sequence[Group], names: Sequence[str], known: Collection[str]
) -> Iterator[str]:
    speakers = {index for index, name in enumerate(names) if is_speaker(name)}
    under = {index for group in groups if _is_speakers(group) for index in group.indexes}
    elsewhere = {
        index
        for group in groups
        if not _is_speakers(group)
        for index in group.indexes
        if index in speakers
    }
    if elsewhere:
        yield f'{_listed(sorted(elsewhere))} may be in "{SPEAKER}" alone.'
    there = SPEAKER_KEY in known or any(map(_is_speakers, groups))
    if there and (missing := sorted(speakers - under - elsewhere)):
        yield f'{_listed(missing)} must be in "{SPEAKER}".'


def _bad_sizes(groups: Sequence[Group], known: Collection[str], least: int) -> Iterator[str]:
    holders: dict[frozenset[int], str] = {}
    for group in groups:
        if group.key in known:
            continue
        if 1 < len(group.indexes) < least:
            yield f'"{group.name}" has fewer than {least} nodes.'
        same = holders.setdefault(frozenset(group.indexes), group.name)
        if same != group.name:
            yield f'"{same}" and "{group.name}" have the same nodes.'


def _left_out(
    groups: Sequence[Group], names: Sequence[str], free: Collection[int]
) -> Iterator[str]:
    if missing := left_over(groups, names, free):
        yield f"{_listed(missing)} are in no category."


def _listed(indexes: Sequence[int]) -> str:
    shown = ", ".join(map(str, indexes[:_LISTED]))
    return shown if len(indexes) <= _LISTED else f"{shown} and {len(indexes) - _LISTED} more"
