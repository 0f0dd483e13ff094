"""What deletion leaves of a Mnemis log.

Ours: the paper leaves deletion to a rebuild. What was made of a deleted turn is dropped, and the
step of the deletion puts back what the rest still supports, under its id:

- an episode keeps its other turns; one that was masked in part is taken in again;
- an entity keeps its other mentions, those that a trimmed episode still has, and the names that
  these say;
- a fact keeps its other mentions. First stated in what went, it has no times any more and is said
  in the words of the first sentence that is left; closed by what went, it is open again;
- a description goes if it was made of what went. The one before is back, and the node is stale
  until the next build describes it again;
- a category keeps its name unless it has a lost word: then it is called by its first children.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Final, TypeVar

from mgl.memories.graph.names import mentions
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
from mgl.memories.mnemis.episodes import clip, render_episode
from mgl.memories.mnemis.pruning import prune_hierarchy
from mgl.memories.mnemis.small.likeness import grouping_texts
from mgl.memories.mnemis.small.terms import FACT_CHARS
from mgl.memories.mnemis.state import (
    Category,
    Entity,
    Episode,
    Fact,
    Mention,
    Node,
    State,
    node_text,
)
from mgl.memories.table import Table
from mgl.prompt import one_line, words_of
from mgl.retrieval.turns import with_previous
from mgl.store.deletion import Gone
from mgl.types import Conversation, Span, Turn

NAMED_AFTER: Final = 2
"""Children that a category is called by which lost its name."""

Description = tuple[str, tuple[str, ...]]
NodeT = TypeVar("NodeT", Entity, Category)
ItemT = TypeVar("ItemT", Entity, Fact, Category)


class MnemisRedactor:
    """How a log of Mnemis loses its words (``mgl.memories.deletion``).

    ``least`` is how many children a category has.
    """

    def __init__(self, gone: Gone, before: State, least: int) -> None:
        self._gone = gone
        self._before = before
        self._least = least
        self._dropped: set[str] = set()

    def redact(self, edit: Edit) -> Edit | None:
        """The edit without words: an episode has none, most others nothing else."""
        match edit:
            case AddEpisode(episode=episode):
                left = self._trim(episode)
                return None if left is None else AddEpisode(left)
            case Describe(id=known, summary=summary, tags=tags):
                self._note_description(known, summary, tags)
                return None
            case AddEntity() | AddFact() | Repeat() | Close() | PutCategory() | Restore():
                return None
        return edit

    def restore(self, left: Sequence[Edit], after: State) -> list[Edit]:
        """What is dropped, what is stale, and the nodes that are put back."""
        target = self._target(left)
        nodes: list[Entity | Fact | Category] = [
            *_find_changed(target.entities, after.entities),
            *_find_changed(target.facts, after.facts),
            *sorted(
                _find_changed(target.categories, after.categories), key=lambda each: each.layer
            ),
        ]
        pairs = (
            (after.entities, target.entities),
            (after.facts, target.facts),
            (after.categories, target.categories),
        )
        dropped = tuple(each for old, new in pairs for each in old if each not in new)
        turns = tuple(sorted(self._gone.turns))
        forget = Forget(turns, dropped, tuple(sorted(target.stale)), dict(target.counts))
        return [forget, *(Restore(node) for node in nodes)]

    def texts(self, state: State, turns: Sequence[Turn]) -> set[str]:
        """Nodes as they are searched and grouped, episodes with the one before, and old forms."""
        source = Conversation(self._gone.document_id, "", tuple(turns))
        lines = [render_episode(source, episode) for episode in state.episodes.values()]
        found = {*lines, *with_previous(lines), *(fact.text for fact in state.facts.values())}
        nodes: list[Node] = [*state.entities.values(), *state.categories.values()]
        for node in nodes:
            found.add(node_text(node))
            names = node.names if isinstance(node, Entity) else (node.name,)
            for name in names:
                found |= {name, *grouping_texts(name, node.summary, node.tags)}
        return found | self._dropped if state is self._before else found

    # What is left

    def _target(self, left: Sequence[Edit]) -> State:
        """The state that the deletion leads to; ``left`` are the edits that stand."""
        before = self._before
        said = _Standing(left)
        ids = count(before.counts.get("c", 0) + 1)
        entities = {e.id: e for e in map(self._keep_entity, before.entities.values()) if e}
        facts = {
            fact.id: fact
            for known in before.facts.values()
            if known.source in entities and known.target in entities
            if (fact := self._keep_fact(known, said)) is not None
        }
        categories = {
            known.id: known if known.id in said.names else replace(known, name="")
            for known in before.categories.values()
        }
        entities = {each.id: said.describe(each) for each in entities.values()}
        described = [said.describe(each) for each in categories.values()]
        pruned = prune_hierarchy(described, entities, self._least, ids)
        nodes: dict[str, Node] = {**entities, **_name(pruned, entities)}
        known_nodes: dict[str, Node] = {**before.entities, **before.categories}
        lost = {
            name
            for name, node in nodes.items()
            if name in known_nodes and _description(known_nodes[name]) != _description(node)
        }
        alive = {name for name in before.stale if name in nodes}
        episodes = (self._trim(episode) for episode in before.episodes.values())
        return State(
            Table({each.number: each for each in episodes if each is not None}),
            Table(entities),
            Table(facts),
            Table({name: node for name, node in nodes.items() if isinstance(node, Category)}),
            Table({**before.counts, "c": next(ids) - 1}),
            frozenset(lost | alive),
            categorised=None,
        )

    def _trim(self, episode: Episode) -> Episode | None:
        """An episode without the turns that went."""
        left = tuple(turn for turn in episode.turns if turn not in self._gone.turns)
        if not left or left == episode.turns:
            return episode if left else None
        source = self._gone.source
        span = Span(source.id, source.span(left[0]).start, source.span(left[-1]).end)
        times = (source.turns[number].time for number in reversed(left))
        return Episode(episode.number, span, left, next((each for each in times if each), None))

    def _keep_entity(self, entity: Entity) -> Entity | None:
        kept = self._keep_mentions(entity.mentions)
        if len(kept) == len(entity.mentions) and not self._gone.is_told_in(entity.names):
            return entity
        held = {mention.episode for mention in kept}
        for number in entity.episodes:
            if number not in held and (mention := self._find_mention(entity, number)) is not None:
                kept = (*kept, mention)
        said = {word for mention in kept for word in words_of(self._quote(mention))}
        names = [name for name in entity.names if words_of(name) <= said]
        names = names or [name for name in entity.names if not self._gone.is_told_in(name)]
        if not kept or not names:
            return None
        in_order = tuple(sorted(kept, key=lambda each: (each.episode, each.span.start)))
        return replace(entity, names=tuple(names), mentions=in_order)

    def _find_mention(self, entity: Entity, number: int) -> Mention | None:
        """Where else an episode names an entity: a mention is recorded once for each episode."""
        episode = self._trim(self._before.episodes[number])
        source = self._gone.source
        for turn in episode.turns if episode is not None else ():
            if any(mentions(name, source.turns[turn].line) for name in entity.names):
                return Mention(number, source.span(turn))
        return None

    def _keep_fact(self, fact: Fact, said: _Standing) -> Fact | None:
        kept = self._keep_mentions(fact.mentions)
        if not kept:
            return None
        if (stated := said.facts.get(fact.id)) is None:
            text = clip(self._sentence(kept[0]), FACT_CHARS)
            fact = replace(fact, text=text, valid_at=None, invalid_at=said.closed.get(fact.id))
        else:
            end = said.closed.get(fact.id, stated.invalid_at)
            fact = replace(fact, text=stated.text, valid_at=stated.valid_at, invalid_at=end)
        return replace(fact, mentions=kept)

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

    def _note_description(self, known: str, summary: str, tags: Sequence[str]) -> None:
        """Note the texts under which a node was embedded when it had this description."""
        entity = self._before.entities.get(known)
        category = self._before.categories.get(known)
        names = entity.names if entity else (category.name,) if category else ()
        for name in names:
            about = f" ({', '.join(tags)})" if tags else ""
            self._dropped.add(f"{name}{about}: {summary}" if summary else f"{name}{about}")
            self._dropped |= grouping_texts(name, summary, tags)


class _Standing:
    """What the edits that are left say: descriptions, facts, when these were closed, and names."""

    def __init__(self, left: Sequence[Edit]) -> None:
        self.facts: dict[str, AddFact | Fact] = {}
        self.closed: dict[str, datetime] = {}
        self.names: set[str] = set()
        self._descriptions: dict[str, Description] = {}
        for edit in left:
            match edit:
                case Describe(id=known, summary=summary, tags=tags):
                    self._descriptions[known] = summary, tags
                case AddFact(id=known):
                    self.facts[known] = edit
                case Close(id=known, invalid_at=end):
                    self.closed[known] = end
                case PutCategory(id=known):
                    self.names.add(known)
                case Restore(node=Fact() as fact):
                    self.facts[fact.id] = fact
                    self.closed.pop(fact.id, None)
                case Restore(node=Entity() | Category() as node):
                    self.names.add(node.id)
                    self._descriptions[node.id] = _description(node)

    def describe(self, node: NodeT) -> NodeT:
        summary, tags = self._descriptions.get(node.id, ("", ()))
        if (summary, tags) == _description(node):
            return node
        return replace(node, summary=summary, tags=tags)


def _description(node: Entity | Category) -> Description:
    return node.summary, node.tags


def _find_changed(target: Mapping[str, ItemT], after: Mapping[str, ItemT]) -> Iterator[ItemT]:
    """The nodes that are to be, and are not so in ``after``."""
    return (node for name, node in target.items() if name not in after or after[name] != node)


def _name(
    categories: Mapping[str, Category], entities: Mapping[str, Entity]
) -> dict[str, Category]:
    """The categories, those that lost their name called by their first children."""
    named: dict[str, Category] = {}
    for category in sorted(categories.values(), key=lambda each: each.layer):
        if not category.name:
            known: Mapping[str, Entity | Category] = {**entities, **named}
            first = [known[child].name for child in category.children[:NAMED_AFTER]]
            category = replace(category, name=", ".join(first))
        named[category.id] = category
    return named
