"""Both routes for a question, their union, and what of it an answer is shown.

Source: Mnemis §2.3, Tables 4 and 9. System-1 finds the best of each kind by embeddings (episodes,
summaries, facts) and BM25 (content; name and summary; fact), fused by their ranks. System-2
(``selection``) gives entities, with their facts, their episodes and what the facts link them to,
and the categories that were selected on the way (Appendix B: their summaries enrich the context).
The union of each kind is ordered by the re-ranker and cut: k episodes, 2k entities (with
categories), 2k facts. With ``ranking`` context (ours) episodes are ranked as plain turns are
(``mgl.retrieval.turns``), and System-2 alone says which of them may be read: what facts, entities
and selections say of episodes takes better ones' places (LOG.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from mgl.memories.base import Tools
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.facts import render_period
from mgl.memories.mnemis.reading import render_episode
from mgl.memories.mnemis.selection import Ask, Selection, ask_printed, select
from mgl.memories.mnemis.state import (
    EMPTY,
    Entity,
    Fact,
    Mention,
    State,
    node_text,
    summary_text,
    words_text,
)
from mgl.prompt import one_line
from mgl.retrieval.base import Embedder, Reranker
from mgl.retrieval.turns import TurnIndex, rank_turns
from mgl.retrieval.vectors import HybridIndex
from mgl.store import Store
from mgl.types import Conversation, Question, Source, Turn

Kind = Literal["episodes", "entities", "facts"]
KINDS: Final[Mapping[str, tuple[Kind, ...]]] = {
    "all": ("episodes", "entities", "facts"),
    "rag": ("episodes",),
    "graph": ("entities", "facts"),
}
FIRST_CITED, LAST_CITED = 3, 7
"""Mentions that stand for all of an entity where it has more: a speaker has thousands."""

Found = Mapping[Kind, Sequence[str]]
"""Ids by kind, the best first; an episode's is its number as a text."""


# The index of System-1


class Index:
    """The nodes of a state by words and by meaning, for each kind; it grows with the state.

    With ``in_context`` episodes, which must be turns, are ranked by what stands around them, too.
    Episodes and facts, whose texts never change, are indexed in the store under the memory's
    ``name``; a deletion empties these indexes.
    """

    def __init__(
        self,
        embedder: Embedder,
        store: Store | None = None,
        name: str = "",
        *,
        in_context: bool = False,
    ) -> None:
        self.state = EMPTY
        self.in_context = in_context
        self._embedder = embedder
        facts = HybridIndex(embedder, store, f"{name}/facts")
        self._nodes = {"e": HybridIndex(embedder), "f": facts}
        self._episodes = (
            TurnIndex(embedder, store, f"{name}/said")
            if in_context
            else HybridIndex(embedder, store, f"{name}/episodes")
        )
        self._numbers: list[int] = []
        self._turns: list[Turn] = []

    def update(self, state: State, source: Source) -> None:
        """Index the nodes of a later state that are new or changed; embeds, and blocks.

        No node may be missing: after a deletion another index is needed.
        """
        known = self.state
        entities = state.entities.changes_since(known.entities) or ()
        facts = state.facts.changes_since(known.facts) or ()
        stored = self._nodes["f"]
        missing = stored.find_missing(int(id[1:]) for id in facts)
        changed = {int(id[1:]): state.entities[id] for id in entities}
        own = self._nodes["e"]
        own.vectors.extend({at: summary_text(each) for at, each in changed.items()})
        own.words.extend({at: words_text(each) for at, each in changed.items()})
        stored.extend({number: state.facts[f"f{number}"].text for number in missing})
        self._add_episodes(state, source, state.episodes.changes_since(known.episodes) or ())
        self.state = state

    async def embed(self, query: str) -> NDArray[np.float32]:
        """Embed a query: shape (dims,)."""
        vectors = await asyncio.to_thread(self._embedder.embed, [query], task="query")
        vector: NDArray[np.float32] = vectors[0]
        return vector

    def search(self, kind: Kind, query: str, vector: NDArray[np.float32], count: int) -> list[str]:
        """Return the ids of the ``count`` most similar nodes of a kind, the best first."""
        if kind == "episodes":
            assert isinstance(self._episodes, HybridIndex)
            hits = self._episodes.search(query, count, vector=vector)
            return [str(self._numbers[hit.id]) for hit in hits]
        letter = kind[0]
        hits = self._nodes[letter].search(query, count, vector=vector)
        return [f"{letter}{hit.id}" for hit in hits]

    async def rank_in_context(self, question: Question, reranker: Reranker | None) -> Iterator[str]:
        """Yield the ids of all episodes, the best first, by what stands around them, too."""
        assert isinstance(self._episodes, TurnIndex)
        turns = self._turns  # it may grow meanwhile
        scores = await rank_turns(question, turns, self._episodes, reranker=reranker)
        return (str(self._numbers[place]) for place in np.argsort(-scores, kind="stable").tolist())

    def _add_episodes(self, state: State, source: Source, numbers: Sequence[int]) -> None:
        first = len(self._numbers)
        missing = self._episodes.find_missing(range(first, first + len(numbers)))
        self._numbers += numbers
        if not isinstance(self._episodes, TurnIndex):
            new = {at: state.episodes[self._numbers[at]] for at in missing}
            self._episodes.extend({at: render_episode(source, each) for at, each in new.items()})
            return
        assert isinstance(source, Conversation)
        spoken = [source.turns[state.episodes[number].turns[0]] for number in numbers]
        turns = [*self._turns, *spoken]
        self._episodes.extend(turns, missing)
        self._turns = turns


# What is found


@dataclass(frozen=True, slots=True)
class Item:
    """One line that an answer is shown, and where it stands in the source."""

    id: str
    text: str
    mentions: tuple[Mention, ...]

    def turns(self, state: State) -> tuple[int, ...]:
        """Return the turns that it stands on, each once."""
        episodes = (state.episodes[mention.episode] for mention in self.mentions)
        return tuple(dict.fromkeys(turn for episode in episodes for turn in episode.turns))


@dataclass(frozen=True)
class Reading:
    """What was found. ``similar`` is what System-1 found before the cut, ``selected`` what System-2
    reached."""

    found: Found
    similar: Found = field(default_factory=dict)
    selected: Found = field(default_factory=dict)
    selection: Selection | None = None

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The paths of the selection to the entities that were found, from the top."""
        if self.selection is None:
            return ()
        wanted = set(self.found.get("entities", ()))
        paths = self.selection.paths.items()
        return tuple((*path, entity) for entity, path in paths if entity in wanted)

    @property
    def episodes(self) -> tuple[int, ...]:
        return tuple(int(number) for number in self.found.get("episodes", ()))

    def until(self, last: int, state: State, *, shown: int) -> Reading:
        """Leave out what a reply to the turn ``last`` may not stand on.

        Episodes must end before ``shown``, the first turn that is shown as it is; facts must be
        stated up to ``last``, and entities only there: their summaries are made of all episodes.
        """

        def is_late(episode: int) -> bool:
            return state.episodes[episode].turns[0] > last

        def is_kept(kind: Kind, each: str) -> bool:
            if kind == "episodes":
                return state.episodes[int(each)].turns[-1] < shown
            if kind == "facts":
                return not all(map(is_late, state.facts[each].episodes))
            return each in state.categories or not any(map(is_late, state.entities[each].episodes))

        found: dict[Kind, Sequence[str]] = {
            kind: [each for each in ids if is_kept(kind, each)] for kind, ids in self.found.items()
        }
        return replace(self, found=found)

    def items(self, state: State, source: Source, *, ends_known: bool = True) -> list[Item]:
        """Return what an answer is shown: facts, entities, then episodes in the source's order.

        Where nobody looked for the ends of facts, they are shown with their begin alone.
        """
        items = []
        for identity in self.found.get("facts", ()):
            fact = state.facts[identity]
            begin, end = state.period(fact)
            is_dated = begin is not None and not (ends_known or end)
            period = f" ({begin:%Y-%m-%d})" if is_dated else render_period(begin, end)
            items.append(Item(identity, f"Fact: {fact.text}{period}", fact.mentions))
        for identity in self.found.get("entities", ()):
            node = state.node(identity)
            if node.summary or node.tags:
                mentions = _cite(node.mentions) if isinstance(node, Entity) else ()
                items.append(Item(identity, one_line(node_text(node)), mentions))
        for number in sorted(self.episodes, key=lambda each: state.episodes[each].span.start):
            episode = state.episodes[number]
            text = one_line(render_episode(source, episode))
            items.append(Item(f"episode {number}", text, (Mention(number, episode.span),)))
        return items

    def rank_mentions(self, items: Sequence[Item]) -> list[Mention]:
        """Return where items stand: the episodes, the best first, then facts and entities."""
        by_id = {item.id: item for item in items}
        episodes = [by_id.pop(f"episode {number}") for number in self.episodes]
        return [mention for item in (*episodes, *by_id.values()) for mention in item.mentions]

    def trace(self, state: State) -> tuple[str, ...]:
        """Return lines of trace: counts, layers of the selection, paths to its entities."""
        lines = [
            f"similar: {', '.join(f'{len(ids)} {kind}' for kind, ids in self.similar.items())}",
            f"selected: {', '.join(f'{len(ids)} {kind}' for kind, ids in self.selected.items())}",
        ]
        if self.selection is not None:
            lines += [
                f"layer {layer.layer}: {layer.selected} of {layer.offered} selected, "
                f"{layer.taken_whole} with all below"
                for layer in self.selection.layers
            ]
            if self.selection.cut:
                lines.append(f"{self.selection.cut} nodes not offered: too many calls")
            lines += [" → ".join(state.node(each).name for each in path) for path in self.paths]
        return tuple(lines)


async def find(
    tools: Tools,
    index: Index,
    source: Source,
    question: Question,
    config: MnemisConfig,
    ask: Ask = ask_printed,
) -> Reading:
    """Find what the configured routes give for a question. Raises the EngineError family.

    ``source`` is as it was when the index was updated.
    """
    state, query, kinds = index.state, question.text, KINDS[config.kinds]
    counts = {kind: config.k if kind == "episodes" else 2 * config.k for kind in kinds}
    similar: dict[Kind, list[str]] = {kind: [] for kind in kinds}
    selected: dict[Kind, list[str]] = {kind: [] for kind in kinds}
    selection = None
    by_context = index.in_context and "episodes" in kinds
    in_context: list[str] = []
    if by_context:
        ranked = await index.rank_in_context(question, tools.reranker)
        known = (number for number in ranked if int(number) in state.episodes)
        in_context = list(known if config.routes == "system2" else islice(known, config.k))
    if config.routes != "system2":
        vector = await index.embed(query)
        for kind, count in counts.items():
            if by_context and kind == "episodes":
                similar[kind] = in_context[:count]
            else:  # the index may have grown to a later state
                hits = index.search(kind, query, vector, count)
                similar[kind] = [each for each in hits if _has(state, kind, each)]
    if config.routes != "system1":
        selection = await select(tools.llm, state, query, config, ask)
        reached = _reach(state, selection)
        selected = {kind: reached[kind] for kind in kinds}
    found: dict[Kind, Sequence[str]] = {}
    for kind, count in counts.items():
        if by_context and kind == "episodes":
            continue
        union = list(dict.fromkeys((*similar[kind], *selected[kind])))
        if union and (config.routes != "system1" or config.reranked):
            texts = [_text(state, source, kind, each) for each in union]
            scores = await tools.required_reranker.scores(query, texts)
            order = sorted(range(len(union)), key=lambda at: (-float(scores[at]), at))
            union = [union[place] for place in order]
        found[kind] = union[:count]
    if by_context:
        within = set(selected["episodes"] if config.routes == "system2" else in_context)
        found["episodes"] = [number for number in in_context if number in within][: config.k]
    return Reading(found, similar, selected, selection)


def _cite(mentions: tuple[Mention, ...]) -> tuple[Mention, ...]:
    """Return the mentions that an entity is cited by: of many, the first and the latest.

    The first ones are what its description by terms quotes.
    """
    if len(mentions) <= FIRST_CITED + LAST_CITED:
        return mentions
    return (*mentions[:FIRST_CITED], *mentions[-LAST_CITED:])


def _reach(state: State, selection: Selection) -> dict[Kind, list[str]]:
    """Return selected entities and categories, with facts, linked entities and episodes."""
    own = list(selection.entities)
    joined: dict[str, list[Fact]] = {entity: [] for entity in own}
    for fact in state.facts.values():
        for end in (fact.source, fact.target):
            if end in joined:
                joined[end].append(fact)
    facts = {fact.id: fact for entity in own for fact in joined[entity]}
    linked = [end for fact in facts.values() for end in (fact.source, fact.target)]
    episodes = (number for entity in own for number in state.entities[entity].episodes)
    return {
        "entities": list(dict.fromkeys((*own, *linked, *selection.categories))),
        "facts": list(facts),
        "episodes": [str(number) for number in dict.fromkeys(episodes)],
    }


def _has(state: State, kind: Kind, identity: str) -> bool:
    if kind == "episodes":
        return int(identity) in state.episodes
    return identity in (state.entities if kind == "entities" else state.facts)


def _text(state: State, source: Source, kind: Kind, identity: str) -> str:
    """Return a node as it is judged."""
    if kind == "facts":
        return state.facts[identity].text
    if kind == "entities":
        return node_text(state.node(identity))
    return render_episode(source, state.episodes[int(identity)])
