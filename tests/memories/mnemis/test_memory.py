"""Mnemis as a memory: taken in, categorised, read by two routes, and answered from."""

from __future__ import annotations

from functools import partialmethod
from itertools import pairwise

import numpy as np
import pytest

from mgl.baselines.turns import Turns, TurnsConfig
from mgl.memories.mnemis import SmallMnemisConfig
from mgl.memories.mnemis.edits import (
    AddEntity,
    AddEpisode,
    AddFact,
    Describe,
    Edit,
    Repeat,
    replay,
)
from mgl.memories.mnemis.index import Index
from mgl.memories.mnemis.state import Episode, Mention
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.types import Conversation, Question
from tests.memories.mnemis.engine import (
    QUESTION,
    TALK,
    TURNS,
    Model,
    Open,
    everything,
    in_pairs,
    nothing,
)


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [
        ("rag", {"episodes"}),
        ("graph", {"entities", "facts"}),
        ("all", {"episodes", "entities", "facts"}),
    ],
)
async def test_kinds_that_are_not_wanted_are_not_read(
    memory_of: Open, kinds: str, wanted: set[str]
) -> None:
    memory = memory_of(engine=Model(in_pairs, everything), kinds=kinds, k=2)
    await memory.build()
    reading = await memory.read(QUESTION)
    assert set(reading.found) == wanted
    budget = {"episodes": 2, "entities": 4, "facts": 4}
    assert all(len(ids) <= budget[kind] for kind, ids in reading.found.items())
    whole = await memory_of(engine=Model(in_pairs, everything), kinds=kinds, k=50).read(QUESTION)
    for kind, ids in whole.found.items():
        assert set(ids) == {*whole.similar[kind], *whole.selected[kind]}


async def test_one_route_alone(memory_of: Open) -> None:
    engine = Model(in_pairs, nothing)
    similar = memory_of(engine=engine, routes="system1")
    await similar.build()
    asked = len(engine.asked)
    reading = await similar.read(QUESTION)
    assert len(engine.asked) == asked
    assert reading.selection is None
    assert reading.found["episodes"]
    assert not similar.state.categories
    selected = memory_of(engine=Model(in_pairs, nothing), routes="system2")
    await selected.build()
    assert not any((await selected.read(QUESTION)).found.values())


@pytest.mark.parametrize(
    "option",
    [name for name in SmallMnemisConfig.model_fields if name not in SmallMnemisConfig.READING],
)
def test_what_decides_the_log_is_part_of_the_id(memory_of: Open, option: str) -> None:
    default = SmallMnemisConfig.model_fields[option].default
    others = {"preset": "paper", "hierarchy": "incremental"}
    others |= {"reflect": False, "temperature": 0.5}
    value = others[option] if option in others else default + 1
    own = {"extraction": "model"} if option == "reflect" else {}
    assert memory_of(**own, **{option: value}).id != memory_of(**own).id


def test_the_embedder_is_part_of_the_id_where_it_proposes_candidates(
    memory_of: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {kind: memory_of(extraction=kind).id for kind in ("terms", "model")}
    monkeypatch.setattr(WordEmbedder, "__init__", partialmethod(named_otherwise))
    assert memory_of(extraction="terms").id == ids["terms"]
    assert memory_of(extraction="model").id != ids["model"]


def named_otherwise(embedder: WordEmbedder, dims: int) -> None:
    embedder.model_id, embedder.dims = "fake/other", dims


@pytest.mark.parametrize("hierarchy", ["rebuild", "incremental"])
async def test_the_hierarchy_follows_what_is_added(memory_of: Open, hierarchy: str) -> None:
    memory = memory_of(Conversation.from_name("grows"), hierarchy=hierarchy)
    for count in (2, 4):
        for turn in TURNS[:count]:
            await memory.append(turn)
        await memory.end_session()
        below = {child for c in memory.state.categories.values() for child in c.children}
        assert set(memory.state.entities) <= below


async def test_the_view_has_categories_over_entities(memory_of: Open) -> None:
    memory = memory_of()
    await memory.build()
    view = memory.view()
    kinds = {node.kind for node in view.nodes}
    assert {"entity", "layer 1"} <= kinds
    held = {edge.target for edge in view.edges if edge.relation == "holds"}
    assert set(memory.state.entities) <= held
    assert all(view.document.quote(node.span) for node in view.nodes)
    grown = memory_of(Conversation.from_name("grown"))
    for turn in TURNS:
        await grown.append(turn)
    assert grown.view().document.text == view.document.text


async def test_an_answer_carries_the_paths_to_what_was_read(memory_of: Open) -> None:
    memory = memory_of(engine=Model(in_pairs, everything), k=50)
    answer = await memory.answer(QUESTION)
    cited = {citation.node_id for citation in answer.citations}
    assert cited
    assert cited <= set(answer.retrieved) <= {turn.id for turn in TURNS}
    assert {path[-1] for path in answer.paths} == set(memory.state.entities)
    for path in answer.paths:
        assert len(path) == memory.state.top + 1
        for above, below in pairwise(path):
            assert below in memory.state.categories[above].children
    names = [" → ".join(memory.state.node(each).name for each in path) for path in answer.paths]
    assert set(names) <= set(answer.trace)
    assert (await memory_of(routes="system1").answer(QUESTION)).paths == ()
    view = memory.view((answer,))
    layers = {node.id: node.layer for node in view.nodes}
    assert [layers[each] for each in answer.paths[0]] == [*range(memory.state.top, -1, -1)]


async def test_in_context_episodes_are_ranked_as_turns_whatever_is_selected(
    memory_of: Open,
) -> None:
    engine = Model(
        in_pairs, lambda name: False if name == "Detroit" or name.startswith("Pair") else None
    )
    question = Question("Where was the ferry late?")
    memory = memory_of(engine=engine, routes="system1", k=4)
    await memory.build()
    plain = Turns(memory._tools, memory.conversation, (), TurnsConfig(k=4))
    found = (await memory.read(question)).found["episodes"]
    scores = await plain._score(question)
    assert [int(number) for number in found] == np.argsort(-scores, kind="stable")[:4].tolist()
    both = memory_of(engine=engine, kinds="rag", k=4)
    reading = await both.read(question)
    assert reading.selected["episodes"] == ["2", "3"]
    assert reading.found["episodes"] == found
    selected = memory_of(engine=engine, routes="system2", kinds="rag", k=4)
    assert set((await selected.read(question)).found["episodes"]) == {"2", "3"}


async def test_an_index_that_grows_finds_what_one_that_is_built_at_once_does() -> None:
    names = ("ferry", "ring", "museum")
    at = Mention(0, TALK.span(0))
    edits = [
        *(AddEpisode(Episode(number, TALK.span(number), (number,))) for number in range(2)),
        *(AddEntity(f"e{n}", name, at) for n, name in enumerate(names, 1)),
        Describe("e1", "A boat to Rome.", ("boat",)),
        Describe("e3", "Lost at sea.", ()),
        Repeat("e2", at, "gold ring"),
    ]
    states = [replay(edits[:count]) for count in range(len(edits) + 1)]
    growing, whole = Index(WordEmbedder()), Index(WordEmbedder())
    for state in states:
        growing.update(state, TALK)
    whole.update(states[-1], TALK)
    for query in ("boat", "lost ring", "museum"):
        [vector] = whole.embedder.embed([query], task="query")
        for kind in ("episodes", "entities"):
            found = growing.search(kind, query, vector, 9)
            assert found == whole.search(kind, query, vector, 9)


def test_what_another_process_has_indexed_meanwhile_is_not_found_yet(store: Store) -> None:
    at = Mention(0, TALK.span(0))
    known: list[Edit] = [
        AddEpisode(Episode(0, TALK.span(0), (0,))),
        AddEntity("e1", "Ann", at),
        AddEntity("e2", "Rome", at),
        AddFact("f1", "e1", "e2", "Ann saw Rome.", at),
    ]
    later = (AddEpisode(Episode(n, TALK.span(n), (n,))) for n in range(1, len(TALK.turns)))
    own, others = (Index(WordEmbedder(), store, "mem_1") for _ in range(2))
    own.update(replay(known), TALK)
    others.update(replay([*known, *later]), TALK)
    [vector] = own.embedder.embed([TALK.turns[-1].line], task="query")
    assert own.search("episodes", TALK.turns[-1].line, vector, 9) == ["0"]


def test_an_entity_is_embedded_by_its_summary_and_found_by_words_of_its_names_too() -> None:
    """Mnemis §2.3: summary_embedding; BM25 over name and summary. Tags are in neither."""
    at = Mention(0, TALK.span(0))
    state = replay(
        [
            AddEpisode(Episode(0, TALK.span(0), (0,))),
            AddEntity("e1", "Louvre", at),
            Describe("e1", "It was closed.", ("museum",)),
            Repeat("e1", at, "the old palace"),
            AddEntity("e2", "ferry", at),
        ]
    )
    embedder = WordEmbedder()
    index = Index(embedder)
    index.update(state, TALK)
    assert "It was closed." in embedder.embedded
    assert "ferry" in embedder.embedded
    assert not any("museum" in text or "Louvre" in text for text in embedder.embedded)
    words = index.entities.words
    found = {query: [hit.id for hit in words.search(query, 9)] for query in ("Louvre", "palace")}
    assert found == {"Louvre": [1], "palace": [1]}
    assert words.search("museum", 9) == []
