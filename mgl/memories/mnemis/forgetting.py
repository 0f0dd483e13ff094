"""What deletion makes of a Mnemis log: what episodes say goes with them, what others say stays.

Ours: the paper leaves deletion to a rebuild. The step that is written names episodes and nodes,
never words. Earlier rows keep what they say of numbers and lose their words, or are rejected as
``forgotten``; replayed, they lead to the state that the deletion leads to.

- An entity goes with its last mention. It keeps the names that episodes which are left give it, in
  their own spelling where they have another.
- A fact goes with its last mention, or with one of its entities. First stated in what goes, it
  loses its times, and its words, unless the sentences that are left have them all: then it is what
  the first of these says. A fact that was closed by what goes is open again.
- A description goes if it was made of what goes, or after it: the one before is back, and the next
  build makes another. A category's name stays, unless it has a lost word (``losses``): then it is
  called by its first children.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any, Final

from mgl.memories.mnemis.edits import (
    VOCABULARY,
    AddEntity,
    AddEpisode,
    AddFact,
    Assign,
    Close,
    Describe,
    Edit,
    PutCategory,
    Repeat,
    replay,
)
from mgl.memories.mnemis.losses import Losses
from mgl.memories.mnemis.pruning import Forget
from mgl.memories.mnemis.small.likeness import grouping_texts
from mgl.memories.mnemis.state import State, node_text
from mgl.store import EditRecord
from mgl.store.redaction import Redaction, Treated
from mgl.store.traces import TELLING, strings, words_of
from mgl.types import Turn

__all__ = ["DERIVED", "after", "treated"]

_DESCRIPTION: Final = ("summary", "tags")
DERIVED: Final = MappingProxyType(
    {
        "entity_summaries": _DESCRIPTION,
        "describe_category": _DESCRIPTION,
        "edges": ("fact",),
        "edges_reflection": ("fact",),
    }
)
"""The stages whose replies later calls quote, and the fields that they quote. A fact that repeats
a known one is nowhere else in its own words."""

_SHOWN_CHILDREN: Final = 2


def after(log: Sequence[EditRecord]) -> State:
    """The state that a log leads to."""
    return replay(edit for row in log if (edit := VOCABULARY.edit(row)) is not None)


def treated(
    what: Redaction, least: int, step: int, log: Sequence[EditRecord], turns: Sequence[Turn]
) -> Treated:
    """What becomes of a log; ``least`` is how many children a category has."""
    edits = [edit for row in log if (edit := VOCABULARY.edit(row)) is not None]
    losses = Losses(what, edits, replay(edits), turns)
    rewriting = _Rewriting(losses)
    rows = [rewriting.row(row) for row in log]
    edit = Forget(tuple(sorted(losses.episodes)), losses.nameless, tuple(rewriting.stale), least)
    said = [VOCABULARY.record(step, edit)]
    state = after([*rows, *said])
    rows = _labelled(rows, state)
    left = [edit for row in rows if (edit := VOCABULARY.edit(row)) is not None]
    dropped = {text for text in rewriting.dropped if text}
    words = {word for text in dropped for word in words_of(text)} & losses.words
    made = {text for text in dropped if len(text) >= TELLING}
    made.update(losses.traces())
    embedded = {*dropped, *losses.shown()}
    embedded |= _grouped(edits, losses.before) - _grouped(left, state)
    return Treated(rows, said, made, embedded, words, rewriting.keys)


class _Rewriting:
    """Row by row in the order of the log; what was known at a row is known to the next.

    ``stale`` are nodes that lost a description, ``dropped`` all texts that went, and ``keys`` those
    of the calls that episodes which go were taken in with: one that found nothing new was asked
    about their words all the same.
    """

    def __init__(self, losses: Losses) -> None:
        self.stale: dict[str, None] = {}
        self.dropped: set[str] = set()
        self.keys: set[str] = set()
        self._losses = losses
        self._touched: set[str] = set()
        self._children: dict[str, set[str]] = {}
        self._names: dict[str, tuple[str, str]] = {}
        self._going: set[int] = set()
        kept = losses.names
        self._lost_names = {
            name
            for entity in losses.before.entities.values()
            for name in entity.names
            if name not in kept.get(entity.id, {}).values()
        } - {name for names in kept.values() for name in names.values()}
        self._begins = {
            (frozenset((fact.source, fact.target)), fact.valid_at)
            for fact in losses.before.facts.values()
            if losses.stays(fact) and losses.stands(fact.mentions[0])
        }

    def row(self, row: EditRecord) -> EditRecord:
        """What becomes of a row."""
        if row.op in ("append", "hierarchy"):
            return row
        edit = VOCABULARY.edit(row)
        if isinstance(edit, AddEpisode) and edit.episode.number in self._losses.episodes:
            self._going.add(row.chunk)
        if row.chunk in self._going and row.call_key is not None:
            self.keys.add(row.call_key)
        if edit is None:
            return self._unused(row)
        if isinstance(edit, Describe):
            return self._described(row, edit)
        if isinstance(edit, Close) and row.chunk in self._going:
            return _rejected(row)
        new = self._rewritten(row, edit)
        if new == edit:
            return row
        payload = VOCABULARY.record(row.chunk, new).payload
        self._drop(*set(strings(asdict(edit))) - set(strings(asdict(new))))
        if row.reason == "ended_by_later" and isinstance(new, AddFact) and new.invalid_at is None:
            return replace(row, payload=payload, outcome="applied", reason=None)
        return replace(row, payload=payload)

    def _rewritten(self, row: EditRecord, edit: Edit) -> Edit:
        losses = self._losses
        match edit:
            case AddEntity(id=own, name=name, mention=mention):
                self._touch(own, mention.episode)
                names = losses.names.get(own, {})
                new = names.get(name) or next(iter(names.values()), "")
                self._names[own] = name, new
                return replace(edit, name=new)
            case Repeat(id=own, mention=mention, name=name):
                self._touch(own, mention.episode)
                left = losses.names.get(own, {})
                return edit if name is None else replace(edit, name=left.get(name))
            case AddFact():
                return self._fact(row, edit)
            case PutCategory(id=own, name=name, children=children):
                self._children[own] = set(children)
                new = self._category(edit)
                self._names[own] = name, new
                return replace(edit, name=new)
            case Assign(category=own, child=child):
                self._children.setdefault(own, set()).add(child)
        return edit

    def _fact(self, row: EditRecord, edit: AddFact) -> AddFact:
        losses = self._losses
        fact = losses.before.facts.get(edit.id)
        if fact is None or not losses.stays(fact):
            return replace(edit, text="", valid_at=None, invalid_at=None)
        if not losses.stands(edit.mention):
            edit = replace(edit, valid_at=None, invalid_at=None)
            tells = losses.supports(fact)
        else:
            tells = not losses.tainted(edit.text)
            ends = frozenset((edit.source, edit.target))
            if row.reason == "ended_by_later" and (ends, edit.invalid_at) not in self._begins:
                edit = replace(edit, invalid_at=None)
        if tells:
            return edit
        first = next(mention for mention in fact.mentions if losses.stands(mention))
        return replace(edit, text=losses.sentence(first))

    def _category(self, edit: PutCategory) -> str:
        """Its name; "" where it has none that is left."""
        if len(edit.children) == 1:
            was, now = self._names.get(edit.children[0], (None, ""))
            if was == edit.name:
                return now
        gone = edit.id not in self._losses.before.categories
        if self._losses.tainted(edit.name) or (gone and self._is_touched(edit.id)):
            return ""
        return edit.name

    def _described(self, row: EditRecord, edit: Describe) -> EditRecord:
        touched = self._is_touched(edit.id)
        if not touched and not self._losses.tainted(edit.summary, *edit.tags):
            return row
        self._touched.add(edit.id)
        self.stale[edit.id] = None
        self._drop(edit.summary, *edit.tags)
        entity = self._losses.before.entities.get(edit.id)
        if entity is not None:
            self._drop(node_text(replace(entity, summary=edit.summary, tags=edit.tags)))
        return _rejected(row)

    def _unused(self, row: EditRecord) -> EditRecord:
        """A row that was rejected, or tells of a reply."""
        said = set(strings(dict(row.payload)))
        goes = row.chunk in self._going or self._losses.tainted(*said)
        if not goes and self._lost_names.isdisjoint(said):
            return row
        self._drop(*said - row.payload.keys())
        return replace(row, payload={**row.payload, "problem": ""} if row.op == "reply" else {})

    def _touch(self, identity: str, episode: int) -> None:
        if episode in self._losses.episodes:
            self._touched.add(identity)

    def _is_touched(self, identity: str) -> bool:
        """Whether what is said of a node may come from what goes."""
        known = self._losses.before.categories.get(identity)
        held = self._children.get(identity, set(known.children) if known else set())
        return identity in self._touched or not self._touched.isdisjoint(held)

    def _drop(self, *texts: str) -> None:
        self.dropped.update(texts)


def _grouped(edits: Sequence[Edit], state: State) -> set[str]:
    """The texts under which nodes were grouped by likeness, at any time; ``state`` knows the names
    of those that a deletion made."""
    names = {node.id: node.name for node in state.categories.values()}
    texts: set[str] = set()
    for edit in edits:
        match edit:
            case AddEntity(id=own, name=name) | PutCategory(id=own, name=name):
                names[own] = name
                texts |= grouping_texts(name, "", ())
            case Describe(id=own, summary=summary, tags=tags) if own in names:
                texts |= grouping_texts(names[own], summary, tags)
    return texts


def _rejected(row: EditRecord) -> EditRecord:
    return replace(row, payload={}, outcome="rejected", reason="forgotten")


def _labelled(rows: Sequence[EditRecord], state: State) -> list[EditRecord]:
    """Rows in which each category that is left without a name has one."""
    names: dict[str, str] = {entity.id: entity.name for entity in state.entities.values()}
    for category in sorted(state.categories.values(), key=lambda each: each.layer):
        first = category.children[:_SHOWN_CHILDREN]
        names[category.id] = category.name or ", ".join(names[child] for child in first)
    return [_named(row, names) for row in rows]


def _named(row: EditRecord, names: Mapping[str, str]) -> EditRecord:
    edit: Any = VOCABULARY.edit(row) if row.op == "put_category" else None
    if edit is None or edit.name or edit.id not in names:
        return row
    return replace(
        row, payload=VOCABULARY.record(row.chunk, replace(edit, name=names[edit.id])).payload
    )
