"""Deletion without a rebuild: what an episode says goes with it, what others say stays."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import InputError, UsageError
from mgl.memories.mnemis import Mnemis, index
from mgl.memories.mnemis.edits import (
    VOCABULARY,
    AddEntity,
    AddEpisode,
    Edit,
    Forget,
    PutCategory,
    apply,
    replay,
)
from mgl.memories.mnemis.state import (
    Category,
    Entity,
    Episode,
    Fact,
    Mention,
    MnemisState,
    node_text,
)
from mgl.memories.talk import Change
from mgl.store import Store
from mgl.store.deletion import MASK
from mgl.types import Conversation, Question, Span, Turn
from tests.leftovers import find_kept, keep_vectors, left
from tests.memories.mnemis.engine import (
    LABELS,
    Model,
    Open,
    Reply,
    everything,
    in_pairs,
    stated,
)

DAY = datetime(2023, 5, 8, 9, 0)


def reader(**replies: Sequence[Reply]) -> Model:
    """Tells of an entity what a sentence says of it, sorts in pairs, selects all, and answers with
    the first line that it is given."""
    told: dict[str, Any] = {"entity_summaries": [quoting], "answer": [first_line], **replies}
    return Model(in_pairs, everything, **told)


def first_line(prompt: str) -> dict[str, object]:
    return {"memories": [1], "answer": prompt.split("[1] ")[1].splitlines()[0]}


def deciding(verdict: object) -> Callable[[str], object]:
    """What says the same of each label."""
    return lambda prompt: dict.fromkeys(LABELS.findall(prompt), verdict)


def quoting(prompt: str) -> dict[str, object]:
    """Of each entity, all that was known of it and the last sentence."""
    text = re.findall(r"\[\d+\] (.*)", prompt.partition("Entities that it tells of")[0])[-1]
    known = re.findall(r"^(e\d+) [^:\n]*(?:: (.*))?$", prompt, re.MULTILINE)
    return {
        each: {"src": 1, "summary": f"{before[-120:]} {text[:80]}", "tags": [text.split()[0][:20]]}
        for each, before in known
    }


@pytest.fixture
def memory_of(memory_of: Open) -> Open:
    """Of terms only where that is said."""

    def make(source: Conversation, engine: Model | None = None, **config: object) -> Mnemis:
        extraction = {} if "preset" in config else {"extraction": "model"}
        return memory_of(source, engine or reader(), **{**extraction, **config})

    return make


def talk(*said: str, speakers: str = "Ann Bo") -> Conversation:
    names = speakers.split()
    return Conversation.from_turns(
        "talk",
        [
            Turn(f"t{n}", names[n % len(names)], text, DAY + timedelta(days=n // 2), f"{n // 2}")
            for n, text in enumerate(said)
        ],
    )


def check(memory: Mnemis, store: Store) -> None:
    """No orphan, the log alone gives the state, and the hierarchy holds together."""
    state = memory.state
    assert VOCABULARY.replay(store.edits(memory.id)) == state
    nodes: list[Entity | Fact] = [*state.entities.values(), *state.facts.values()]
    assert all(node.mentions for node in nodes)
    mentions = [mention for node in nodes for mention in node.mentions]
    assert all(mention.episode in state.episodes for mention in mentions)
    assert all(entity.names and all(entity.names) for entity in state.entities.values())
    for fact in state.facts.values():
        assert fact.text
        assert {fact.source, fact.target} <= state.entities.keys()
    forgotten = {n for n, t in enumerate(memory.conversation.turns) if set(t.text) == {MASK}}
    assert not any(forgotten & set(episode.turns) for episode in state.episodes.values())
    assert state.stale <= state.entities.keys() | state.categories.keys()
    check_hierarchy(state)


def check_hierarchy(state: MnemisState) -> None:
    """Every node but those of the top, and entities that came since, has a way up."""
    for layer in range(1, state.top + 1):
        below = {node.id for node in state.layer(layer - 1)}
        own = state.layer(layer)
        children = [child for c in own if isinstance(c, Category) for child in c.children]
        assert set(children) <= below
        for category in own:
            assert isinstance(category, Category)
            assert category.name
            assert category.children
        assert layer == 1 or set(children) == below


REPEATED = {"same": "f1", "contradicts": []}
SAID = (
    "I went to Rome with Cy.",
    "The museum in Rome was closed.",
    "We saw Zanzibar with Quentin, and in Zanzibar it was humid for Quentin.",
    "I like Rome.",
)


@pytest.fixture(params=["terms", "model"])
async def memory(memory_of: Open, request: pytest.FixtureRequest) -> Mnemis:
    """A memory of what was SAID, extracted either way."""
    built = memory_of(talk(*SAID), extraction=request.param)
    await built.build()
    return built


async def test_what_one_episode_says_goes_and_what_others_say_stays(
    memory: Mnemis, store: Store
) -> None:
    await memory.answer(Question("Was Zanzibar humid?"))
    before = memory.state
    assert left(store.path, ["Zanzibar", "Quentin"]) == ["Zanzibar", "Quentin"]
    gone = await memory.forget(["t2"])
    state = memory.state
    check(memory, store)
    assert left(store.path, ["Zanzibar", "Quentin", "humid"]) == []
    assert gone.turns == ("t2",)
    facts = {each for each in gone.removed if each in before.facts}
    entities = {before.entities[each].name for each in {*gone.removed} - facts}
    assert entities == {"Zanzibar", "Quentin"}
    assert {before.facts[each].episodes for each in facts} == {(2,)}
    names = {entity.name: entity.episodes for entity in state.entities.values()}
    assert names["Rome"] == (0, 1, 3)
    assert names["Ann"] == (0,)
    assert set(state.facts) == set(before.facts) - facts
    await memory.build()
    assert memory.state.stale == frozenset()
    check(memory, store)
    below = {child for each in memory.state.layer(1) for child in each.children}  # type: ignore[union-attr]
    assert below == set(memory.state.entities)
    assert left(store.path, ["Zanzibar", "Quentin"]) == []


async def test_a_name_that_only_the_deleted_episode_gives_goes(
    memory_of: Open, store: Store
) -> None:
    said = talk("Melanie is also called mel.", "Mel sang.", speakers="Ann")
    memory = memory_of(said, reader(entity_deduplication=[deciding("e2")]))
    await memory.build()
    assert list(memory.state.entities["e2"].names) == ["Melanie", "Mel"]
    await memory.forget(["t0"])
    assert list(memory.state.entities["e2"].names) == ["Mel"]
    assert left(store.path, ["Melanie"]) == []
    check(memory, store)


async def test_an_entity_that_took_in_another_is_forgotten_with_its_turns(
    memory: Mnemis, store: Store
) -> None:
    asked = Question("Was Zanzibar humid?")
    await memory.search(asked, 3)
    ids = {entity.name: entity.id for entity in memory.state.entities.values()}
    rome, other, quentin = ids["Rome"], ids["Zanzibar"], ids["Quentin"]
    old = memory.state
    moved = {each.id for each in old.facts.values() if other in each.ends}
    await memory.edit(rome, Change(merge=other))
    check(memory, store)
    assert store.edits(memory.id)[-2].payload == {"id": rome, "gone": other}
    assert memory.state.categorised == len(memory.state.entities) == len(old.entities) - 1
    made = memory.state.entities[rome]
    assert (made.names, made.episodes) == (("Rome", "Zanzibar"), (0, 1, 2, 3))
    assert moved
    assert all(rome in memory.state.facts[each].ends for each in moved)
    assert other not in {child for each in memory.state.layer(1) for child in each.children}  # type: ignore[union-attr]
    grown = await memory._grow_index(lambda own: own.update(memory.state, memory.conversation))
    [vector] = grown.embedder.embed([node_text(made)])
    assert grown.search("entities", node_text(made), vector, 1) == [rome]
    await memory.build()
    assert "Zanzibar" in memory.state.entities[rome].summary
    with pytest.raises(InputError, match=f"no entity '{other}'"):
        await memory.edit(rome, Change(merge=other))
    with pytest.raises(InputError, match="cannot take in itself"):
        await memory.edit(rome, Change(merge=rome))
    with pytest.raises(UsageError, match="no topics"):
        await memory.edit(rome, Change(frozen=True))

    await memory.forget(["t2"])
    check(memory, store)
    assert left(store.path, ["Zanzibar", "Quentin"]) == []
    assert memory.state.entities[rome].names == ("Rome",)
    assert quentin not in memory.state.entities
    await memory.build()
    check(memory, store)
    await memory.edit(rome, Change("A city.", ["place"], merge=ids["Ann"]))
    made = memory.state.entities[rome]
    assert (made.names, made.summary, made.tags) == (("Rome", "Ann"), "A city.", ("place",))


async def test_a_description_goes_back_to_what_was_known_before(memory_of: Open) -> None:
    memory = memory_of(talk("Rome is old.", "Rome is warm.", "Rome is far.", speakers="Ann"))
    await memory.build()
    (rome,) = (e for e in memory.state.entities.values() if e.name == "Rome")
    assert "old" in rome.summary
    assert "warm" in rome.summary
    assert "far" in rome.summary
    await memory.forget(["t1"])
    assert memory.state.entities[rome.id].summary.count("Rome is") == 1
    assert "old" in memory.state.entities[rome.id].summary
    assert rome.id in memory.state.stale
    await memory.build()
    assert "far" in memory.state.entities[rome.id].summary
    assert "warm" not in memory.state.entities[rome.id].summary
    assert memory.state.stale == frozenset()


async def test_a_fact_that_another_episode_repeats_is_what_that_one_says(
    memory_of: Open, store: Store
) -> None:
    said = talk("Cy gladly inhabits Rome.", "Cy is at home in Rome.", speakers="Ann")
    memory = memory_of(said, reader(edge_deduplication=[deciding(REPEATED)]))
    await memory.build()
    assert memory.state.facts["f1"].text == "Cy gladly inhabits Rome."
    await memory.forget(["t0"])
    fact = memory.state.facts["f1"]
    assert (fact.text, fact.episodes) == ("Ann: Cy is at home in Rome.", (1,))
    assert left(store.path, ["gladly", "inhabits"]) == []
    await memory.forget(["t1"])
    assert memory.state.facts == {}
    assert left(store.path, ["at home"]) == []
    check(memory, store)


async def test_a_repeated_fact_goes_in_its_own_words_too(
    memory_of: Open, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = talk("Cy gladly lives in Rome.", "Cy quietly lives in Rome.", speakers="Ann")
    monkeypatch.setattr(index, "LEAST_SIMILARITY", 0.1)

    def edges(prompt: str) -> str:
        told = json.dumps(stated(prompt))
        return told.replace('"fact": "Cy quietly', '"fact": "Cy, gone bankrupt,')

    memory = memory_of(said, reader(edge_deduplication=[deciding(REPEATED)], edges=[edges]))
    embedder = keep_vectors(memory).model_id
    await memory.build()
    assert memory.state.facts["f1"].episodes == (0, 1)
    (row,) = (
        row
        for row in store.edits(memory.id)
        if row.payload.get("id") == "f1" and row.op == "repeat"
    )
    told = "Cy, gone bankrupt, lives in Rome."
    assert left(store.path, ["bankrupt"]) == ["bankrupt"]
    assert [vector is None for vector in store.vectors(embedder, [told])] == [False]
    assert store.find_call(row.call_key or "") is not None
    await memory.forget(["t1"])
    assert left(store.path, ["bankrupt"]) == []
    assert store.vectors(embedder, [told]) == [None]
    assert store.find_call(row.call_key or "") is None
    assert memory.state.facts["f1"].text == "Cy gladly lives in Rome."
    check(memory, store)


async def test_a_node_goes_as_it_was_grouped(memory_of: Open, store: Store) -> None:
    said = ("My horse ran.", "Oh.", "In Zanzibar, old Zanzibar.", "Hm.", "My horse ran in Rome.")
    memory = memory_of(talk(*said), preset="small")
    embedder = keep_vectors(memory)
    await memory.build()
    assert {"Zanzibar (name)", "Ann (speaker)"} <= find_kept(store, embedder)
    await memory.forget(["t2"])
    kept = find_kept(store, embedder)
    assert not any("Zanzibar" in text for text in kept)
    assert "Bo (speaker)" in kept
    check(memory, store)


async def test_a_turn_goes_as_it_was_searched_and_asked(memory_of: Open, store: Store) -> None:
    memory = memory_of(
        talk("I paint.", "Did Ann paint Zanzibar?"), preset="small", routes="system1"
    )
    embedder = keep_vectors(memory)
    await memory.build()
    await memory.read(Question("Did Ann paint Zanzibar?"))
    lines = ["Bo: Did Ann paint Zanzibar?", "Ann: I paint."]
    query, asked = f"{embedder.model_id} as query", ["Did paint Zanzibar?"]

    def kept() -> list[bool]:
        vectors = store.vectors(embedder.model_id, lines) + store.vectors(query, asked)
        return [vector is not None for vector in vectors]

    assert kept() == [True, True, True]
    await memory.forget(["t1"])
    assert kept() == [False, True, False]
    assert (await memory.read(Question("Did Ann paint Zanzibar?"))).found["episodes"] == ["0"]
    check(memory, store)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_what_had_a_way_to_the_top_keeps_it(seed: int) -> None:
    draw = random.Random(seed)
    span = Span("d", 0, 1)
    edits: list[Edit] = [AddEpisode(Episode(0, span))]
    below = [f"e{n + 1}" for n in range(draw.randint(1, 12))]
    edits += [AddEntity(each, f"n{each}", Mention(0, span)) for each in below]
    number = count(1)
    for layer in range(1, draw.randint(1, 4) + 1):
        groups = [draw.sample(below, draw.randint(1, len(below))) for _ in range(3)]
        groups += [[each] for each in below if not any(each in group for group in groups)]
        own = [(f"c{next(number)}", tuple(group)) for group in groups]
        names = [draw.choice(["", f"kind {identity}"]) for identity, _ in own]
        edits += [
            PutCategory(*each[:1], layer, name, each[1])
            for each, name in zip(own, names, strict=True)
        ]
        below = [identity for identity, _ in own]
    state = replay(edits)
    gone = draw.sample(list(state.entities), draw.randint(0, len(state.entities)))
    after = apply(state, Forget((), tuple(gone)))
    assert set(after.entities) == set(state.entities) - set(gone)
    check_hierarchy(after)
    if after.entities:
        assert {c for each in after.categories_of(1) for c in each.children} == set(after.entities)
        assert after.top == state.top


@pytest.mark.parametrize(
    ("gone", "text", "end"),
    [("t1", "Ann lives in Rome.", None), ("t0", "Ann: I left Rome.", datetime(2019, 12, 31))],
    ids=["the repetition", "the first statement"],
)
async def test_an_end_that_a_repetition_told_stands_as_long_as_its_turn(
    memory_of: Open, store: Store, gone: str, text: str, end: datetime | None
) -> None:
    about = {"src": 1, "source": "Ann", "target": "Rome", "fact": "Ann lives in Rome."}
    said = [Turn("t0", "Ann", "I live in Rome."), Turn("t1", "Ann", "I left Rome.")]
    edges = [{"facts": [about]}, {"facts": [{**about, "invalid_at": "2019"}]}]
    model = Model(in_pairs, edges=edges, concurrency=1)
    memory = memory_of(Conversation.from_turns("talk", said), model)
    await memory.build()
    (fact,) = memory.state.facts.values()
    assert fact.invalid_at == datetime(2019, 12, 31)
    await memory.forget([gone])
    (fact,) = memory.state.facts.values()
    assert (fact.text, fact.invalid_at) == (text, end)
    check(memory, store)
