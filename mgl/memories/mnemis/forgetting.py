"""What deletion leaves of a Mnemis log.

Ours: the paper leaves deletion to a rebuild. Rows that are made of a deleted turn are dropped, and
the step of the deletion puts back what the rest still supports, under its id:

- an episode is a turn: it goes, and one that was masked in part is taken in again;
- an entity keeps its other mentions, and the names that these say;
- a fact keeps its other mentions. First stated in what went, it keeps the times that its other
  mentions state, and is said in the words of the first sentence that is left; closed by what went,
  it is open again;
- a description goes if it was made of what went. The one before is back, and the node is stale
  until the next build describes it again;
- a category keeps the children that are left, and goes with the last of them. One whose name has a
  lost word is called as its first child. How many children a category must have (§2.2) holds again
  when the hierarchy is next built.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from mgl.memories.mnemis.edits import (
    AddEntity,
    AddEpisode,
    AddFact,
    Close,
    Describe,
    Edit,
    Forget,
    PutCategory,
    Repeat,
    Restore,
)
from mgl.memories.mnemis.reading import clip
from mgl.memories.mnemis.state import Entity, Fact, Mention, MnemisState, Node
from mgl.memories.mnemis.terms import FACT_CHARS
from mgl.prompt import one_line, words_of
from mgl.store.deletion import Gone


class MnemisRedactor:
    """How a log of Mnemis loses its words (``mgl.memories.deletion``)."""

    def __init__(self, gone: Gone, before: MnemisState) -> None:
        self._gone = gone
        self._before = before

    def redact(self, edit: Edit) -> Edit | None:
        """The edit without words: a category keeps its children, most others nothing."""
        if isinstance(edit, PutCategory):
            return replace(edit, name="")
        made = AddEpisode | AddEntity | AddFact | Repeat | Close | Restore | Describe
        return None if isinstance(edit, made) else edit

    def restore(self, left: Sequence[Edit], after: MnemisState) -> list[Edit]:
        """The nodes that are put back, what is dropped, and what is stale."""
        before = self._before
        kept = (self._keep_entity(each, after) for each in before.entities.values())
        entities = {each.id: each for each in kept if each is not None}
        times: dict[str, tuple[datetime | None, datetime | None]] = {}
        for each in left:
            if isinstance(each, Close | Repeat):
                begin, end = times.get(each.id, (None, None))
                stated = each.valid_at if isinstance(each, Repeat) else None
                times[each.id] = stated or begin, each.invalid_at or end
        facts = {
            fact.id: fact
            for known in before.facts.values()
            if known.source in entities and known.target in entities
            if (fact := self._keep_fact(known, after, times.get(known.id))) is not None
        }
        nodes: dict[str, Node] = {**after.categories, **entities}
        stale = {
            name
            for name, node in nodes.items()
            if name in before.stale or _description(before.node(name)) != _description(node)
        }
        standing = entities.keys() | facts.keys()
        dropped = (each for each in (*before.entities, *before.facts) if each not in standing)
        return [
            *_restore_changed(entities, after.entities),
            *_restore_changed(facts, after.facts),
            Forget(
                tuple(sorted(self._gone.turns)),
                tuple(dropped),
                tuple(sorted(stale)),
                dict(before.counts),
            ),
        ]

    def _keep_entity(self, entity: Entity, after: MnemisState) -> Entity | None:
        """The entity that is left, described as ``after`` has it, where only rows were dropped."""
        kept = self._keep_mentions(entity.mentions)
        names = entity.names
        if len(kept) < len(entity.mentions) or self._gone.is_told_in(names):
            said = {word for mention in kept for word in words_of(self._quote(mention))}
            names = tuple(name for name in entity.names if words_of(name) <= said) or tuple(
                name for name in entity.names if not self._gone.is_told_in(name)
            )
        if not kept or not names:
            return None
        known = after.entities.get(entity.id)
        summary, tags = ("", ()) if known is None else _description(known)
        return replace(entity, names=names, mentions=kept, summary=summary, tags=tags)

    def _keep_fact(
        self, fact: Fact, after: MnemisState, times: tuple[datetime | None, datetime | None] | None
    ) -> Fact | None:
        kept = self._keep_mentions(fact.mentions)
        if not kept:
            return None
        if (known := after.facts.get(fact.id)) is None:
            text = clip(self._sentence(kept[0]), FACT_CHARS)
            begin, end = times or (None, None)
            known = replace(fact, text=text, valid_at=begin, invalid_at=end)
        return replace(known, mentions=kept)

    def _keep_mentions(self, known: Sequence[Mention]) -> tuple[Mention, ...]:
        gone, source = self._gone.turns, self._gone.source
        return tuple(each for each in known if gone.isdisjoint(source.turns_at(each.span)))

    def _quote(self, mention: Mention) -> str:
        """The lines of the turns that a mention lies in, speakers included."""
        source = self._gone.source
        return "\n".join(source.turns[number].line for number in source.turns_at(mention.span))

    def _sentence(self, mention: Mention) -> str:
        """What a mention says, with who says it."""
        source = self._gone.source
        speaker = source.turns[source.turns_at(mention.span)[0]].speaker
        said = one_line(source.transcript.quote(mention.span))
        return f"{speaker}: {said}" if speaker else said


def _description(node: Node) -> tuple[str, tuple[str, ...]]:
    return node.summary, node.tags


def _restore_changed(
    target: Mapping[str, Entity | Fact], after: Mapping[str, Entity | Fact]
) -> Iterable[Restore]:
    return (Restore(node) for name, node in target.items() if after.get(name) != node)
