"""Mnemis as a memory: taken in, categorised, read by two routes, and answered from."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partialmethod
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import InputError, UsageError
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.client import Client, Policy
from mgl.memories.base import Tools
from mgl.memories.mnemis import Mnemis, MnemisConfig
from mgl.memories.mnemis.retrieval import Index
from mgl.observer import SilentObserver
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import Answer, Conversation, Document, Question, Source, Turn
from tests.memories.mnemis.ingesting import MARKS, RULES, stage_of
from tests.memories.mnemis.sorting import Sorter

SAID = [
    ("1", "Ann", "I went to Rome with Bo in May. The ferry was late."),
    ("1", "Bo", "The ferry was late, and the museum in Rome was closed."),
    ("2", "Ann", "In Detroit I saw the museum of cars with Cy."),
    ("2", "Bo", "Cy lives in Detroit, near the museum."),
]
TURNS = [
    Turn(f"t{n}", speaker, text, datetime(2023, 5, 8 + int(session)), session)
    for n, (session, speaker, text) in enumerate(SAID)
]
TALK = Conversation.from_turns("talk", TURNS)
ONCE = Policy(max_retries=0, repair_attempts=0)
QUESTION = Question("Which cities did Ann see?")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "mgl.sqlite") as opened:
        yield opened


class Teller(Sorter):
    """Sorts in pairs, selects as it is told, and answers from the first that it is given."""

    def __init__(self, select: Callable[[str], bool | None] = lambda _: None) -> None:
        super().__init__(in_pairs, select)

    async def generate(self, request: Request) -> Completion:
        if '"memories"' in json.dumps(request.json_schema):
            said = json.dumps({"memories": [1], "answer": "Rome."})
            return Completion(said, "stop", TokenUsage(1, 1))
        return await super().generate(request)


def in_pairs(layer: int, names: list[str], existing: list[str]) -> list[dict[str, Any]]:
    del existing
    return [
        {"category": f"Pair {n} of {layer}", "indexes": [*range(n, min(n + 2, len(names)))]}
        for n in range(0, len(names), 2)
    ]


Open = Callable[..., Mnemis]


@pytest.fixture
def memory_of(store: Store) -> Open:
    """``memory_of(source, engine, **config)``: a memory of terms over the test's store."""

    def make(source: Source = TALK, engine: Teller | None = None, **config: object) -> Mnemis:
        tools = Tools(
            llm=Client(engine or Teller(), store.call_log(), ONCE),
            store=store,
            observer=SilentObserver(),
            clock=lambda: 0.0,
            embedder=WordEmbedder(256),
            reranker=WordReranker(),
        )
        options = {"extraction": "terms", **config}
        return Mnemis(tools, source, (), MnemisConfig.model_validate(options))

    return make


class Ingesting(Teller):
    """Takes episodes in by rules; the first replies, ``failing`` of them, are none."""

    def __init__(self, failing: int = 0) -> None:
        super().__init__(everything)
        self._failing = failing

    async def generate(self, request: Request) -> Completion:
        asked = request.messages[0].content
        if not any(mark in asked for mark in MARKS.values()):
            return await super().generate(request)
        self.asked.append(("episode", asked))
        self._failing -= 1
        rule = RULES[stage_of(request)]
        said = json.dumps(rule(asked) if callable(rule) else rule)
        return Completion("no" if self._failing >= 0 else said, "stop", TokenUsage(1, 1))


def everything(_: str) -> bool:
    return True


def nothing(_: str) -> None:
    return None


async def test_an_answer_cites_the_turns_that_it_stands_on(memory_of: Open) -> None:
    answer = await memory_of(engine=Teller(everything)).answer(QUESTION)
    ids = {turn.id for turn in TURNS}
    assert all(citation.node_id in ids for citation in answer.citations)
    assert {citation.node_id for citation in answer.citations} <= set(answer.retrieved) <= ids
    assert any(line.startswith("layer ") for line in answer.trace)


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
    memory = memory_of(engine=Teller(everything), kinds=kinds, k=2)
    await memory.build()
    reading = await memory.read(QUESTION)
    assert set(reading.found) == wanted
    budget = {"episodes": 2, "entities": 4, "facts": 4}
    assert all(len(ids) <= budget[kind] for kind, ids in reading.found.items())


async def test_one_route_alone(memory_of: Open) -> None:
    engine = Teller(nothing)
    similar = memory_of(engine=engine, routes="system1")
    await similar.build()
    asked = len(engine.asked)
    reading = await similar.read(QUESTION)
    assert len(engine.asked) == asked
    assert reading.selection is None
    assert reading.found["episodes"]
    assert not similar.state.categories
    selected = memory_of(engine=Teller(nothing), routes="system2")
    await selected.build()
    assert not any((await selected.read(QUESTION)).found.values())


READING: dict[str, Any] = {
    "routes": "system2",
    "kinds": "rag",
    "reranked": True,
    "ranking": "context",
    "k": 3,
    "selecting": "names",
    "most_selected": 2,
    "selection_tokens": 99,
    "selection_calls": 9,
    "answer_tokens": 99,
}


async def test_what_decides_how_a_memory_is_read_is_no_part_of_its_id(memory_of: Open) -> None:
    assert set(READING) == MnemisConfig.READING
    memory = memory_of()
    async with memory._writer():
        pass  # a process that was killed before its first step
    for option, value in READING.items():
        other = memory_of(**{option: value})
        assert other.id == memory.id
        await other.build()
    assert other.state == memory.state


@pytest.mark.parametrize(
    "option",
    [name for name in MnemisConfig.model_fields if name not in MnemisConfig.READING],
)
def test_what_decides_the_log_is_part_of_the_id(memory_of: Open, option: str) -> None:
    default = MnemisConfig.model_fields[option].default
    others = {"preset": "small", "episode": "session", "hierarchy": "incremental"}
    others |= {"extraction": "model", "reflect": False, "drift": 0.9, "temperature": 0.5}
    others |= {"described": "doubling", "grouping": "likeness", "fact_likeness": 0.9}
    value = others.get(option, default if option in others else default + 1 if default else 1)
    assert memory_of(**{option: value}).id != memory_of().id


def test_the_embedder_is_part_of_the_id_where_it_proposes_candidates(
    memory_of: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {kind: memory_of(extraction=kind).id for kind in ("terms", "model")}
    monkeypatch.setattr(WordEmbedder, "__init__", partialmethod(named_otherwise))
    assert memory_of(extraction="terms").id == ids["terms"]
    assert memory_of(extraction="model").id != ids["model"]


def named_otherwise(embedder: WordEmbedder, dims: int) -> None:
    embedder.model_id, embedder.dims = "fake/other", dims


async def test_both_routes_find_what_either_does(memory_of: Open) -> None:
    engine = Teller(everything)
    both = memory_of(engine=engine, k=50)
    await both.build()
    reading = await both.read(QUESTION)
    assert reading.selection is not None
    assert set(reading.selection.entities) == set(both.state.entities)
    for kind, ids in reading.found.items():
        assert set(ids) == {*reading.similar[kind], *reading.selected[kind]}


async def test_it_is_told_turn_by_turn_and_the_hierarchy_follows_with_each_session(
    memory_of: Open,
) -> None:
    memory = memory_of(Conversation.named("told"))
    for turn in TURNS[:2]:
        await memory.append(turn)
    assert memory.state.categories == {}
    await memory.append(TURNS[2])
    assert memory.state.categories
    await memory.append(TURNS[0])
    assert len(memory.state.episodes) == 3
    with pytest.raises(InputError):
        await memory.append(replace(TURNS[0], text="other"))
    with pytest.raises(InputError):
        await memory.append(Turn("t9", "Ann", " "))


@pytest.mark.parametrize("episode", ["turn", "session"])
async def test_asking_writes_nothing(memory_of: Open, store: Store, episode: str) -> None:
    memory = memory_of(Conversation.named("asked"), Teller(everything), episode=episode, k=50)
    for turn in TURNS[:3]:
        await memory.append(turn)
    steps, before = store.steps(memory.id), memory.state
    answer = await memory.answer(Question("What was in Detroit?"))
    assert (store.steps(memory.id), memory.state) == (steps, before)
    assert TURNS[2].id in answer.retrieved or episode == "session"
    await memory.append(TURNS[3])
    await memory.flush()
    turns = [each.turns for each in memory.state.episodes.values()]
    assert turns == ([(0, 1), (2, 3)] if episode == "session" else [(0,), (1,), (2,), (3,)])


async def test_a_turn_of_a_session_that_goes_on_is_shown(memory_of: Open) -> None:
    engine = Talker()
    memory = memory_of(Conversation.named("open"), engine, episode="session")
    for turn in TURNS[:3]:
        await memory.append(turn)
    await memory.answer(Question("What was in Detroit?"))
    assert "Ann: In Detroit I saw the museum" in engine.heard[-1]


async def test_facts_are_shown_with_their_dates(memory_of: Open) -> None:
    engine = Talker()
    memory = memory_of(engine=engine, routes="system1", k=50)
    await memory.answer(QUESTION)
    (prompt,) = engine.heard
    assert "Fact: Bo: Cy lives in Detroit, near the museum. (2023-05-10 - now)" in prompt


async def test_where_no_question_reads_the_graph_none_is_extracted(
    memory_of: Open, store: Store
) -> None:
    options = {"extraction": "model", "reflect": False}
    engine = Ingesting()
    episodes = memory_of(engine=engine, routes="system1", kinds="rag", **options)
    await episodes.build()
    assert engine.asked == []
    assert (len(episodes.state.episodes), len(episodes.state.entities)) == (4, 0)
    assert (await episodes.read(QUESTION)).found["episodes"]
    both = memory_of(engine=engine, **options)
    await both.build()
    assert both.id == episodes.id
    fresh = memory_of(Conversation("fresh", "fresh", TALK.turns), Ingesting(), **options)
    await fresh.build()
    assert [e.names for e in both.state.entities.values()] == [
        e.names for e in fresh.state.entities.values()
    ]
    steps = store.steps(both.id)
    await both.build()
    assert store.steps(both.id) == steps


async def test_an_episode_that_could_not_be_read_is_read_again(memory_of: Open) -> None:
    engine = Ingesting(failing=2)
    memory = memory_of(engine=engine, extraction="model", reflect=False, routes="system1")
    for turn in TURNS:
        await memory.append(turn)
    assert memory.state.find_unread(9) == {0: 1, 1: 1}
    named = {each.name for each in memory.state.entities.values() if each.episodes[0] < 2}
    assert named == {"Ann", "Bo"}
    answer = await memory.answer(QUESTION)
    assert answer.marks == ("episodes_unread",)
    await memory.build()
    assert memory.state.find_unread(9) == {}
    rome = next(each for each in memory.state.entities.values() if each.name == "Rome")
    assert rome.episodes[0] == 0
    assert (await memory.answer(QUESTION)).marks == ()


async def test_what_never_can_be_read_is_tried_some_times_and_on_request(
    memory_of: Open, store: Store
) -> None:
    engine = Ingesting(failing=99)
    memory = memory_of(engine=engine, extraction="model", reflect=False)
    for _ in range(4):
        await memory.build()
    assert set(memory.state.find_unread(9).values()) == {3}
    steps, calls = store.steps(memory.id), len(engine.asked)
    await memory.build()
    assert (store.steps(memory.id), len(engine.asked)) == (steps, calls)
    await memory.retry_failed()
    assert set(memory.state.find_unread(9).values()) == {4}
    assert len(engine.asked) > calls


async def test_a_hierarchy_whose_replies_all_failed_is_built_again(memory_of: Open) -> None:
    engine = Teller(everything)
    engine._sorts = ["no", in_pairs]
    memory = memory_of(engine=engine)
    await memory.build()
    assert (memory.state.top, memory.state.failed_builds) == (0, 1)
    await memory.build()
    assert memory.state.top > 0
    assert memory.state.failed_builds == 0
    assert (await memory.read(QUESTION)).paths


async def test_sessions_are_episodes_when_they_have_ended(memory_of: Open) -> None:
    memory = memory_of(Conversation.named("sessions"), episode="session")
    for turn in TURNS:
        await memory.append(turn)
    assert [episode.turns for episode in memory.state.episodes.values()] == [(0, 1)]
    await memory.flush()
    assert [episode.turns for episode in memory.state.episodes.values()] == [(0, 1), (2, 3)]
    await memory.append(Turn("t9", "Ann", "Rome again.", TURNS[-1].time, "2"))
    await memory.flush()
    turns = [turn for episode in memory.state.episodes.values() for turn in episode.turns]
    assert turns == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("hierarchy", ["rebuild", "incremental"])
async def test_the_hierarchy_follows_what_is_added(memory_of: Open, hierarchy: str) -> None:
    memory = memory_of(Conversation.named("grows"), hierarchy=hierarchy)
    for count in (2, 4):
        for turn in TURNS[:count]:
            await memory.append(turn)
        await memory.end_session()
        below = {child for c in memory.state.categories.values() for child in c.children}
        assert set(memory.state.entities) <= below


async def test_a_document_is_read_in_groups_of_paragraphs(memory_of: Open) -> None:
    text = "\n\n".join(
        f"In Rome the ferry was late, day {n}. The museum was closed." for n in range(9)
    )
    document = Document.from_text("days.txt", text)
    memory = memory_of(document, Teller(everything), episode_tokens=30)
    answer = await memory.answer(Question("What was late?"))
    assert len(memory.state.episodes) > 1
    for citation in answer.citations:
        assert document.quote(citation.span) == citation.quote
        assert citation.span.place in answer.retrieved
    reading = await memory.read(Question("What was late?"))
    read = [memory.state.episodes[number].span.place for number in reading.episodes]
    assert list(answer.retrieved[: len(read)]) == read
    with pytest.raises(UsageError, match="document"):
        _ = memory.conversation


async def test_the_view_has_categories_over_entities(memory_of: Open) -> None:
    memory = memory_of()
    await memory.build()
    view = memory.view()
    kinds = {node.kind for node in view.nodes}
    assert {"entity", "layer 1"} <= kinds
    held = {edge.target for edge in view.edges if edge.relation == "holds"}
    assert set(memory.state.entities) <= held
    assert all(view.document.quote(node.span) for node in view.nodes)
    grown = memory_of(Conversation.named("grown"))
    for turn in TURNS:
        await grown.append(turn)
    assert grown.view().document.text == view.document.text


async def test_an_answer_carries_the_paths_to_what_was_read(memory_of: Open) -> None:
    memory = memory_of(engine=Teller(everything), k=50)
    answer = await memory.answer(QUESTION)
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


class Talker(Teller):
    """Numbers its replies; ``heard`` has what each was asked with."""

    def __init__(self) -> None:
        super().__init__(everything)
        self.heard: list[str] = []

    async def generate(self, request: Request) -> Completion:
        if '"memories"' not in json.dumps(request.json_schema):
            return await super().generate(request)
        self.heard.append("\n".join(message.content for message in request.messages))
        said = json.dumps({"memories": [], "answer": f"Reply {len(self.heard)}."})
        return Completion(said, "stop", TokenUsage(1, 1))


async def test_a_turn_that_was_replied_to_has_that_reply(memory_of: Open) -> None:
    engine, talk = Talker(), Conversation.named("talks")
    said = await memory_of(talk, engine).reply(TURNS[0], "mgl")
    memory = memory_of(talk, engine)
    again = await memory.reply(TURNS[0], "mgl")
    assert said.text == again.text == "Reply 1."
    assert len(engine.heard) == 1
    await memory.append(TURNS[1])
    assert (await memory.reply(TURNS[0], "mgl")).text == "Reply 1."
    assert [turn.id for turn in memory.conversation.turns] == ["t0", "t0+", "t1"]
    await memory.forget(["t0+"])
    assert (await memory.reply(TURNS[0], "mgl")).text == "Reply 2."


async def test_a_reply_that_is_late_stands_on_what_was_said_before(memory_of: Open) -> None:
    engine = Talker()
    memory = memory_of(Conversation.named("talks"), engine, k=50)
    for turn in TURNS:
        await memory.append(turn)
    await memory.reply(TURNS[1], "mgl")
    [prompt] = engine.heard
    assert prompt.endswith(TURNS[1].text)
    assert not any(word in prompt for word in ("Detroit", "Cy", "cars"))


class Interrupted(Teller):
    """Selects everything; ``meanwhile`` happens once, as it is asked to."""

    def __init__(self) -> None:
        super().__init__(everything)
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def generate(self, request: Request) -> Completion:
        happens = self.meanwhile
        if happens is not None and "hierarchical knowledge graph" in request.messages[0].content:
            self.meanwhile = None
            await happens()
        return await super().generate(request)


async def answered(memory: Mnemis) -> Answer:
    return await memory.answer(QUESTION)


async def replied(memory: Mnemis) -> Answer:
    return await memory.reply(Turn("t9", "Ann", "Which cities did I see?", None, "3"), "mgl")


@pytest.mark.parametrize("ask", [answered, replied])
async def test_what_is_forgotten_while_it_selects_is_not_answered_from(
    memory_of: Open, ask: Callable[[Mnemis], Awaitable[Answer]]
) -> None:
    engine = Interrupted()
    memory = memory_of(engine=engine, k=50)
    await memory.build()
    engine.meanwhile = lambda: memory.forget(["t2"])
    answer = await ask(memory)
    assert engine.meanwhile is None
    assert "t2" not in {*answer.retrieved, *(citation.node_id for citation in answer.citations)}
    state = memory.state
    known = state.entities.keys() | state.categories.keys()
    assert all(known >= {*path} for path in answer.paths)


async def test_what_is_forgotten_while_it_is_indexed_is_not_answered_from(
    memory_of: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = memory_of(engine=Teller(everything), k=50)
    await memory.build()
    embed = Index.embed

    async def forget_and_embed(index: Index, query: str) -> Any:
        await memory.forget(["t2"])
        return await embed(index, query)

    monkeypatch.setattr(Index, "embed", forget_and_embed)
    reading = await memory.read(QUESTION)
    assert reading.episodes
    assert set(reading.episodes) <= memory.state.episodes.keys()
    assert set(reading.found["facts"]) <= memory.state.facts.keys()


async def test_orders_of_episodes_are_fused(memory_of: Open) -> None:
    engine = Teller(lambda name: False if name == "Detroit" or name.startswith("Pair") else None)
    question = Question("Where was the ferry late?")
    options = {"ranking": "context", "k": 4}
    similar = memory_of(engine=engine, routes="system1", **options)
    await similar.build()
    assert set((await similar.read(question)).found["episodes"][:2]) == {"0", "1"}
    both = memory_of(engine=engine, kinds="rag", **options)
    await both.build()
    reading = await both.read(question)
    assert reading.selected["episodes"] == ("2", "3")
    assert set(reading.found["episodes"][:2]) & {"2", "3"}
    selected = memory_of(engine=engine, routes="system2", kinds="rag", **options)
    assert set((await selected.read(question)).found["episodes"]) == {"2", "3"}
