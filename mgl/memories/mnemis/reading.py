"""Both routes, their union, and what of it is read.

Source: Mnemis §2.3, Tables 4 and 9. System-1 finds the best of each kind; System-2 the entities
that were selected, with their facts, their episodes and what the facts link them to. The union of
each kind is ordered by the re-ranker and cut: k episodes, 2k entities (with categories), 2k facts.
With ``ranking`` context (ours) three orders of episodes are fused: what stands around them, the
facts and entities that were found in them, and what was selected in them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from mgl.llm.base import LLM
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.nodes import Entity, Fact
from mgl.memories.mnemis.selection import Selection, select
from mgl.memories.mnemis.similarity import Kind, Similarity, Texts, node_text
from mgl.memories.mnemis.state import State
from mgl.retrieval.base import Hit, Reranker
from mgl.retrieval.ranking import fuse_hits

__all__ = ["Reading", "of_the_graph", "read", "trace"]

Found = dict[Kind, list[str]]


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
        """The selection's ways to the entities that are read, each from the top to the entity."""
        if self.selection is None:
            return ()
        wanted = set(self.found.get("entities", ()))
        ways = self.selection.paths.items()
        return tuple((*path, entity) for entity, path in ways if entity in wanted)

    @property
    def episodes(self) -> tuple[int, ...]:
        return tuple(int(number) for number in self.found.get("episodes", ()))

    def within(self, state: State) -> Reading:
        """The same without what a state lacks, which may have lost nodes since it was begun."""
        nodes = state.entities.keys() | state.categories.keys()
        there: dict[Kind, Collection[str]] = {
            "episodes": {str(number) for number in state.episodes},
            "entities": nodes,
            "facts": state.facts.keys(),
        }
        found = {
            kind: tuple(each for each in ids if each in there[kind])
            for kind, ids in self.found.items()
        }
        selection = self.selection
        if selection is not None:
            ways = selection.paths.items()
            left = {each: path for each, path in ways if nodes >= {each, *path}}
            selection = replace(selection, entities=tuple(left), paths=left)
        return replace(self, found=found, selection=selection)

    def until(self, last: int, state: State, *, shown: int) -> Reading:
        """What of it a reply to the turn ``last`` stands on.

        That is: episodes that end before ``shown``, from where turns are shown as they are; facts
        that a turn up to ``last`` states; and entities of which no later one tells, since what is
        known of an entity is of all that do.
        """
        later = {n for n, episode in state.episodes.items() if episode.turns[0] > last}
        ended = (n for n in self.episodes if state.episodes[n].turns[-1] < shown)
        facts, entities = self.found.get("facts", ()), self.found.get("entities", ())
        spoilt = {
            each.id for each in state.entities.values() if not later.isdisjoint(each.episodes)
        }
        found: dict[Kind, tuple[str, ...]] = {
            "episodes": tuple(map(str, ended)),
            "facts": tuple(f for f in facts if not later.issuperset(state.facts[f].episodes)),
            "entities": tuple(each for each in entities if each not in spoilt),
        }
        return replace(self, found=found)


async def read(
    llm: LLM,
    reranker: Reranker,
    similarity: Similarity,
    texts: Texts,
    state: State,
    query: str,
    config: MnemisConfig,
) -> Reading:
    """What the configured routes find for a query. Raises the EngineError family."""
    budget = _budget(config)
    similar: Found = {kind: [] for kind in budget}
    selected: Found = {kind: [] for kind in budget}
    selection = None
    around = config.ranking == "context" and "episodes" in budget
    in_context = await similarity.in_context(query) if around else []
    if config.routes != "system2":
        vector = await similarity.vector(query)
        for kind, count in budget.items():
            by_context = around and kind == "episodes"
            similar[kind] = (
                in_context[:count] if by_context else similarity.search(kind, query, vector, count)
            )
    if config.routes != "system1":
        selection = await select(llm, state, query, config)
        reached = _reached(state, selection)
        selected = {kind: reached[kind] for kind in budget}
    found: dict[Kind, tuple[str, ...]] = {}
    for kind, count in budget.items():
        if around and kind == "episodes":
            continue
        joined = list(dict.fromkeys((*similar[kind], *selected[kind])))
        if config.routes != "system1" or config.reranked:
            joined = await _ranked(reranker, query, kind, joined, texts, state)
        found[kind] = tuple(joined[:count])
    if around:
        within = set(selected["episodes"] if config.routes == "system2" else in_context)
        orders = [
            [int(number) for number in in_context if number in within],
            of_the_graph(found, state),
            _holding(selection, state),
        ]
        found["episodes"] = _fused(orders, config.k)
    return Reading(
        found,
        {kind: tuple(ids) for kind, ids in similar.items()},
        {kind: tuple(ids) for kind, ids in selected.items()},
        selection,
    )


def _budget(config: MnemisConfig) -> dict[Kind, int]:
    counts: dict[Kind, int] = {
        "episodes": config.k,
        "entities": 2 * config.k,
        "facts": 2 * config.k,
    }
    wanted: Mapping[str, tuple[Kind, ...]] = {
        "all": ("episodes", "entities", "facts"),
        "rag": ("episodes",),
        "graph": ("entities", "facts"),
    }
    return {kind: counts[kind] for kind in wanted[config.kinds]}


def _reached(state: State, selection: Selection) -> Found:
    """The selected entities with their categories, their facts, whom these link them to, and all
    their episodes."""
    own = list(selection.entities)
    facts = {fact.id: fact for entity in own for fact in state.facts_of(entity)}
    linked = [end for fact in facts.values() for end in (fact.source, fact.target)]
    paths = (category for entity in own for category in selection.paths.get(entity, ()))
    episodes = (number for entity in own for number in state.entities[entity].episodes)
    return {
        "entities": list(dict.fromkeys((*own, *linked, *paths))),
        "facts": list(facts),
        "episodes": [str(number) for number in dict.fromkeys(episodes)],
    }


def _fused(orders: Sequence[Sequence[int]], k: int) -> tuple[str, ...]:
    """Episodes by the reciprocal ranks of the k best of each order. A speaker stands on half of
    all episodes, so whole orders would fuse to nothing new."""
    fused = fuse_hits([[Hit(number, 0.0) for number in order[:k]] for order in orders])
    return tuple(str(hit.id) for hit in fused[:k])


def _holding(selection: Selection | None, state: State) -> list[int]:
    """Episodes by how much of what was selected they hold, where an entity counts the more the
    fewer episodes it is in."""
    held: defaultdict[int, float] = defaultdict(float)
    for entity in selection.entities if selection else ():
        own = state.entities[entity].episodes
        for number in own:
            held[number] += 1 / len(own)
    return sorted(held, key=lambda number: -held[number])


def of_the_graph(found: Mapping[Kind, Sequence[str]], state: State) -> list[int]:
    """The episodes that the facts and entities found stand on, rank by rank, facts first.

    Ours: in Table 4 the graph's items alone are read, and nothing is said of their episodes.
    """
    ranks = zip_longest(found.get("facts", ()), found.get("entities", ()))
    known: dict[str, Fact | Entity] = {**state.facts, **state.entities}
    items = [known[each] for rank in ranks for each in rank if each in known]
    return list(dict.fromkeys(number for item in items for number in item.episodes))


async def _ranked(
    reranker: Reranker,
    query: str,
    kind: Kind,
    ids: Sequence[str],
    texts: Texts,
    state: State,
) -> list[str]:
    if not ids:
        return []
    known = texts.by_kind[kind]
    shown = [known[i] if i in known else node_text(state.categories[i]) for i in ids]
    scores = await reranker.scores(query, shown)
    order = sorted(range(len(ids)), key=lambda place: (-float(scores[place]), place))
    return [ids[place] for place in order]


def trace(reading: Reading, state: State) -> tuple[str, ...]:
    """How a reading came about: the layers of the selection, and the path to each entity read."""
    lines = [
        f"similar: {', '.join(f'{len(ids)} {kind}' for kind, ids in reading.similar.items())}",
        f"selected: {', '.join(f'{len(ids)} {kind}' for kind, ids in reading.selected.items())}",
    ]
    if reading.selection is not None:
        lines += [
            f"layer {count.layer}: {count.selected} of {count.offered} selected, "
            f"{count.taken_whole} with all below"
            for count in reading.selection.layers
        ]
        if reading.selection.cut:
            lines.append(f"{reading.selection.cut} nodes not offered: too many calls")
        lines += [" → ".join(state.node(each).name for each in path) for path in reading.paths]
    return tuple(lines)
