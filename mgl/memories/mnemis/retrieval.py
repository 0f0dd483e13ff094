"""Both routes for a question, their union, and what of it an answer is shown.

Source: Mnemis §2.3, Tables 4 and 9. System-1 finds the best of each kind by embeddings (episodes,
summaries, facts) and BM25 (content; name and summary; fact), fused by their ranks. System-2
(``selection``) gives entities, with their facts, their episodes and what the facts link them to,
and the categories that were selected on the way (Appendix B: their summaries enrich the context).
The union of each kind is ordered by the re-ranker and cut: k episodes, 2k entities (with
categories), 2k facts. With ``ranking`` context (ours) three orders of episodes are fused: what
stands around them, the facts and entities that were found in them, and what was selected in them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from mgl.memories.base import Tools
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.episodes import render_episode
from mgl.memories.mnemis.facts import render_period
from mgl.memories.mnemis.index import KINDS, Index, Kind
from mgl.memories.mnemis.selection import Selection, select
from mgl.memories.mnemis.state import (
    Entity,
    Fact,
    Mention,
    State,
    node_text,
)
from mgl.prompt import one_line
from mgl.retrieval.base import Hit, Reranker
from mgl.retrieval.ranking import fuse_hits
from mgl.types import Source

Found = dict[Kind, list[str]]


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
    """What was found, by kind, the best first: ids, an episode's its number as a text.

    ``similar`` is what System-1 found before the cut, ``selected`` what System-2 reached.
    """

    found: Mapping[Kind, tuple[str, ...]]
    similar: Mapping[Kind, tuple[str, ...]] = field(default_factory=dict)
    selected: Mapping[Kind, tuple[str, ...]] = field(default_factory=dict)
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

    def within(self, state: State) -> Reading:
        """Leave out what a state lacks; a deletion may have taken nodes since the search began."""
        found = {
            kind: tuple(each for each in ids if _has(state, kind, each))
            for kind, ids in self.found.items()
        }
        selection = self.selection
        if selection is not None:
            left = {
                entity: path
                for entity, path in selection.paths.items()
                if all(_has(state, "entities", each) for each in (entity, *path))
            }
            kept = tuple(each for each in selection.categories if each in state.categories)
            selection = replace(selection, entities=tuple(left), paths=left, categories=kept)
        return replace(self, found=found, selection=selection)

    def until(self, last: int, state: State, *, shown: int) -> Reading:
        """Leave out what a reply to the turn ``last`` may not stand on.

        Episodes must end before ``shown``, the first turn that is shown as it is; facts must be
        stated up to ``last``, and entities only there: their summaries are made of all episodes.
        """

        def is_late(episode: int) -> bool:
            return state.episodes[episode].turns[0] > last

        episodes = (n for n in self.episodes if state.episodes[n].turns[-1] < shown)
        facts = (
            each
            for each in self.found.get("facts", ())
            if not all(map(is_late, state.facts[each].episodes))
        )
        entities = (
            each
            for each in self.found.get("entities", ())
            if each not in state.entities or not any(map(is_late, state.entities[each].episodes))
        )
        found: dict[Kind, tuple[str, ...]] = {
            "episodes": tuple(map(str, episodes)),
            "facts": tuple(facts),
            "entities": tuple(entities),
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
                mentions = node.mentions if isinstance(node, Entity) else ()
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
        """Return how it came about: counts, layers of the selection, paths to its entities."""
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
    tools: Tools, index: Index, source: Source, query: str, config: MnemisConfig
) -> Reading:
    """Find what the configured routes give for a query. Raises the EngineError family.

    ``source`` is as it was when the index was updated.
    """
    state, budget = index.state, _budget(config)
    similar: Found = {kind: [] for kind in budget}
    selected: Found = {kind: [] for kind in budget}
    selection = None
    by_context = config.ranking == "context" and "episodes" in budget
    in_context = await index.rank_in_context(query) if by_context else []
    in_context = [each for each in in_context if _has(state, "episodes", each)]
    if config.routes != "system2":
        vector = await index.embed(query)
        for kind, count in budget.items():
            if by_context and kind == "episodes":
                similar[kind] = in_context[:count]
            else:
                hits = index.search(kind, query, vector, count)
                similar[kind] = [each for each in hits if _has(state, kind, each)]
    if config.routes != "system1":
        selection = await select(tools.llm, state, query, config)
        reached = _reach(state, selection)
        selected = {kind: reached[kind] for kind in budget}
    found: dict[Kind, tuple[str, ...]] = {}
    for kind, count in budget.items():
        if by_context and kind == "episodes":
            continue
        union = list(dict.fromkeys((*similar[kind], *selected[kind])))
        if config.routes != "system1" or config.reranked:
            texts = [_text(state, source, kind, each) for each in union]
            union = await _rerank(tools.required_reranker, query, union, texts)
        found[kind] = tuple(union[:count])
    if by_context:
        within = set(selected["episodes"] if config.routes == "system2" else in_context)
        orders = [
            [int(number) for number in in_context if number in within],
            rank_episodes(found, state),
            _rank_by_selection(selection, state),
        ]
        found["episodes"] = _fuse(orders, config.k)
    return Reading(
        found,
        {kind: tuple(ids) for kind, ids in similar.items()},
        {kind: tuple(ids) for kind, ids in selected.items()},
        selection,
    )


def rank_episodes(found: Mapping[Kind, Sequence[str]], state: State) -> list[int]:
    """Return the episodes that found facts and entities stand on, rank by rank, facts first.

    Ours: in Table 4 the graph's items alone are read, and nothing is said of their episodes.
    """
    ranks = zip_longest(found.get("facts", ()), found.get("entities", ()))
    ids = [each for rank in ranks for each in rank if each is not None]
    items: list[Fact | Entity] = [
        state.facts[each] if each in state.facts else state.entities[each]
        for each in ids
        if each in state.facts or each in state.entities
    ]
    return list(dict.fromkeys(number for item in items for number in item.episodes))


def _budget(config: MnemisConfig) -> dict[Kind, int]:
    counts: dict[Kind, int] = {
        "episodes": config.k,
        "entities": 2 * config.k,
        "facts": 2 * config.k,
    }
    wanted: Mapping[str, tuple[Kind, ...]] = {
        "all": KINDS,
        "rag": ("episodes",),
        "graph": ("entities", "facts"),
    }
    return {kind: counts[kind] for kind in wanted[config.kinds]}


def _reach(state: State, selection: Selection) -> Found:
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
    """Whether a state has a node; an index may have grown to a later one."""
    if kind == "entities":
        return identity in state.entities or identity in state.categories
    return identity in state.facts if kind == "facts" else int(identity) in state.episodes


def _text(state: State, source: Source, kind: Kind, identity: str) -> str:
    """Return a node as it is judged."""
    if kind == "facts":
        return state.facts[identity].text
    if kind == "entities":
        return node_text(state.node(identity))
    return render_episode(source, state.episodes[int(identity)])


async def _rerank(
    reranker: Reranker, query: str, ids: Sequence[str], texts: Sequence[str]
) -> list[str]:
    if not ids:
        return []
    scores = await reranker.scores(query, texts)
    order = sorted(range(len(ids)), key=lambda place: (-float(scores[place]), place))
    return [ids[place] for place in order]


def _rank_by_selection(selection: Selection | None, state: State) -> list[int]:
    """Rank episodes by the selected entities in them; an entity of few episodes counts more."""
    held: defaultdict[int, float] = defaultdict(float)
    for entity in selection.entities if selection else ():
        own = state.entities[entity].episodes
        for number in own:
            held[number] += 1 / len(own)
    return sorted(held, key=lambda number: -held[number])


def _fuse(orders: Sequence[Sequence[int]], k: int) -> tuple[str, ...]:
    """Fuse the k best episodes of each order by reciprocal rank.

    A speaker stands on half of all episodes, so whole orders would fuse to nothing new.
    """
    fused = fuse_hits([[Hit(number, 0.0) for number in order[:k]] for order in orders])
    return tuple(str(hit.id) for hit in fused[:k])
