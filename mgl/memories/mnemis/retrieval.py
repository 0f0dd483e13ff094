"""Both routes for a question, their union, and what of it an answer is shown.

Source: Mnemis §2.3, Tables 4 and 9. System-1 finds the best of each kind by embeddings (episodes,
summaries, facts) and BM25 (content; name and summary; fact), fused by their ranks. System-2
(``selection``) gives entities, with their facts, their episodes and what the facts link them to,
and the categories that were selected on the way (Appendix B: their summaries enrich the context).
The union of each kind is ordered by the re-ranker and cut: k episodes, 2k entities (with
categories), 2k facts. With ``in_context`` (ours) episodes are ranked as plain turns are
(``mgl.retrieval.turns``), and System-2 alone says which of them may be read: what facts, entities
and selections say of episodes takes better ones' places (LOG.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from mgl.memories.base import Tools
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import turns_of
from mgl.memories.mnemis.facts import render_period
from mgl.memories.mnemis.index import Index, Kind
from mgl.memories.mnemis.reading import render_episode
from mgl.memories.mnemis.selection import Ask, Selection, ask_printed, select
from mgl.memories.mnemis.state import Entity, Fact, MnemisState, node_text
from mgl.prompt import one_line
from mgl.retrieval.turns import TurnIndex
from mgl.types import Conversation, Question

KINDS: Final[Mapping[str, tuple[Kind, ...]]] = {
    "all": ("episodes", "entities", "facts"),
    "rag": ("episodes",),
    "graph": ("entities", "facts"),
}
FIRST_CITED, LAST_CITED = 3, 7
"""Mentions that stand for all of an entity where it has more: a speaker has thousands."""

Found = Mapping[Kind, Sequence[str]]
"""Ids by kind, the best first; an episode's is its number as a text."""


@dataclass(frozen=True, slots=True)
class ShownItem:
    """One line that an answer is shown, and the turns that it stands on, each once."""

    id: str
    text: str
    turns: tuple[int, ...]


@dataclass(frozen=True)
class RetrievedNodes:
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

    def until(self, last: int, state: MnemisState, *, shown: int) -> RetrievedNodes:
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

    def items(
        self, state: MnemisState, source: Conversation, *, ends_known: bool = True
    ) -> list[ShownItem]:
        """Return what an answer is shown: facts, entities, then episodes in the source's order.

        Where nobody looked for the ends of facts, they are shown with their begin alone.
        """
        items = []
        for identity in self.found.get("facts", ()):
            fact = state.facts[identity]
            begin, end = state.period(fact)
            is_dated = begin is not None and not (ends_known or end)
            period = f" ({begin:%Y-%m-%d})" if is_dated else render_period(begin, end)
            items.append(ShownItem(identity, f"Fact: {fact.text}{period}", turns_of(state, fact)))
        for identity in self.found.get("entities", ()):
            node = state.node(identity)
            if node.summary or node.tags:
                turns = _choose_turns(state, node) if isinstance(node, Entity) else ()
                items.append(ShownItem(identity, one_line(node_text(node)), turns))
        for number in sorted(self.episodes, key=lambda each: state.episodes[each].span.start):
            episode = state.episodes[number]
            text = one_line(render_episode(source, episode))
            items.append(ShownItem(f"episode {number}", text, episode.turns))
        return items

    def rank_turns(self, items: Sequence[ShownItem]) -> list[int]:
        """Return the turns behind items: of the episodes, the best first, then of the others."""
        by_id = {item.id: item for item in items}
        episodes = [by_id.pop(f"episode {number}") for number in self.episodes]
        return [turn for item in (*episodes, *by_id.values()) for turn in item.turns]

    def trace(self, state: MnemisState) -> tuple[str, ...]:
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
    source: Conversation,
    question: Question,
    config: MnemisConfig,
    ask: Ask = ask_printed,
) -> RetrievedNodes:
    """Find what the configured routes give for a question. Raises the EngineError family.

    ``source`` is as it was when the index was updated.
    """
    state, query, kinds = index.state, question.text, KINDS[config.kinds]
    counts = {kind: config.k if kind == "episodes" else 2 * config.k for kind in kinds}
    similar: dict[Kind, Sequence[str]] = {kind: [] for kind in kinds}
    selected: dict[Kind, list[str]] = {kind: [] for kind in kinds}
    selection = None
    in_context = isinstance(index.episodes, TurnIndex)
    if config.routes != "system2":
        [vector] = await asyncio.to_thread(index.embedder.embed, [query], task="query")
        for kind, count in counts.items():
            if not (in_context and kind == "episodes"):
                hits = index.search(kind, query, vector, count)
                similar[kind] = [each for each in hits if _has(state, kind, each)]
    if config.routes != "system1":
        selection = await select(tools.llm, state, query, config, ask)
        reached = _reach(state, selection)
        selected = {kind: reached[kind] for kind in kinds}
    found: dict[Kind, Sequence[str]] = {}
    for kind, count in counts.items():
        if in_context and kind == "episodes":
            ranked = await index.rank_in_context(question, tools.reranker)
            ranked = (each for each in ranked if _has(state, kind, each))
            if config.routes == "system2":
                ranked = filter(set(selected[kind]).__contains__, ranked)
            found[kind] = list(islice(ranked, count))
            similar[kind] = [] if config.routes == "system2" else found[kind]
            continue
        union = list(dict.fromkeys((*similar[kind], *selected[kind])))
        if union and (config.routes != "system1" or config.reranked):
            texts = [_text(state, source, kind, each) for each in union]
            scores = await tools.required_reranker.scores(query, texts)
            order = sorted(range(len(union)), key=lambda at: (-float(scores[at]), at))
            union = [union[place] for place in order]
        found[kind] = union[:count]
    return RetrievedNodes(found, similar, selected, selection)


def _choose_turns(state: MnemisState, entity: Entity) -> tuple[int, ...]:
    """Return the turns that stand for an entity: of many mentions, the first and the latest.

    The first ones are what its description by terms quotes.
    """
    mentions = entity.mentions
    if len(mentions) > FIRST_CITED + LAST_CITED:
        mentions = (*mentions[:FIRST_CITED], *mentions[-LAST_CITED:])
    return turns_of(state, replace(entity, mentions=mentions))


def _reach(state: MnemisState, selection: Selection) -> dict[Kind, list[str]]:
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


def _has(state: MnemisState, kind: Kind, identity: str) -> bool:
    """Whether a state has what an index found, which may have grown to a later one."""
    if kind == "episodes":
        return int(identity) in state.episodes
    return identity in (state.entities if kind == "entities" else state.facts)


def _text(state: MnemisState, source: Conversation, kind: Kind, identity: str) -> str:
    """Return a node as it is judged."""
    if kind == "facts":
        return state.facts[identity].text
    if kind == "entities":
        return node_text(state.node(identity))
    return render_episode(source, state.episodes[int(identity)])
