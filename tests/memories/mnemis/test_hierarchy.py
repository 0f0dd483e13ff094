"""The hierarchy as it is built and updated: its rules, why it stops, and bad replies."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.memories.graph.names import entity_key
from mgl.memories.mnemis import MnemisConfig, hierarchy
from mgl.memories.mnemis.edits import VOCABULARY, Describe, PutCategory, replay
from mgl.memories.mnemis.grouping import BATCH
from mgl.memories.mnemis.hierarchy import HierarchyBuilder, needs_rebuild
from mgl.memories.mnemis.layers import is_user
from mgl.memories.mnemis.state import Category, MnemisState
from mgl.store import EditRecord
from tests.memories.mnemis.engine import (
    Groups,
    Model,
    Written,
    by_first_word,
    draft_of,
    grow_hierarchy,
    state_of,
    tools_of,
)

ANIMALS = [f"{kind} {n}|animal" for kind in ("Cat", "Cow", "Dog", "Duck", "Fox") for n in range(4)]


def config(**options: Any) -> MnemisConfig:
    return MnemisConfig.model_validate(options)


async def build(
    names: Sequence[str], engine: Model, *, batch: int = BATCH, **options: Any
) -> tuple[list[EditRecord], MnemisState, str]:
    own = config(**options)
    return await grow_hierarchy(tools_of(engine), state_of(names), own, 7, batch)


def tree(state: MnemisState, layer: int) -> dict[str, list[str]]:
    return {
        each.name: [state.node(child).name for child in each.children]
        for each in state.layer(layer)
        if isinstance(each, Category)
    }


def check(state: MnemisState, least: int) -> None:
    """What holds of every hierarchy (§2.2)."""
    reached = {node.id for node in state.layer(state.top)}
    for layer in range(state.top, 0, -1):
        nodes = [each for each in state.layer(layer) if isinstance(each, Category)]
        reached = {child for each in nodes if each.id in reached for child in each.children}
        assert layer == 1 or len(nodes) <= len(state.layer(layer - 1))
        for each in nodes:
            assert len(each.children) >= least or each.is_promotion
            named = entity_key(state.node(each.children[0]).name), "speaker"
            assert not each.is_promotion or entity_key(each.name) in named
        assert len({frozenset(each.children) for each in nodes}) == len(nodes)
        assert least > 2 or len({entity_key(each.name) for each in nodes}) == len(nodes)
    skipped = {each.id for each in state.entities.values() if is_user(each.name)}
    assert reached | skipped == set(state.entities)


async def test_layers_up_to_one_node() -> None:
    engine = Model()
    rows, state, stopped = await build(ANIMALS, engine)
    assert stopped == "one_node"
    assert tree(state, 1)["Cow kind"] == ["Cow 0", "Cow 1", "Cow 2", "Cow 3"]
    assert tree(state, 2) == {
        "C kind": ["Cat kind", "Cow kind"],
        "D kind": ["Dog kind", "Duck kind"],
        "Fox kind": ["Fox kind"],
    }
    assert tree(state, 3) == {"Things kind": ["C kind", "D kind", "Fox kind"]}
    check(state, 2)
    assert engine.stages().count("categorise") == 3
    assert engine.stages().count("describe") == 5 + 2 + 1
    assert {row.chunk for row in rows} == {7}
    assert all(row.call_key for row in rows if row.op == "put_category" and not row.reason)
    fox = next(each for each in state.layer(2) if each.name == "Fox kind")
    assert (fox.tags, fox.summary) == (("Fox",), "About Fox kind.")
    assert [row.reason for row in rows if row.outcome == "repaired"] == ["single_child"]


@pytest.mark.parametrize(
    ("names", "options", "stopped", "layers"),
    [
        ([], {}, "no_entities", 0),
        (["Ann"], {}, "too_few", 0),
        (["Cat 1", "Cat 2"], {"compression": 3}, "too_few", 0),
        (["Cat 1", "Cat 2"], {}, "one_node", 1),
        (["Ann", "Bob"], {}, "compression", 0),
        (ANIMALS, {"layers": 2}, "layer_limit", 2),
    ],
)
async def test_why_a_build_stops(
    names: list[str], options: dict[str, Any], stopped: str, layers: int
) -> None:
    _, state, why = await build(names, Model(), **options)
    assert (why, state.top) == (stopped, layers)
    check(state, 2)


async def test_later_batches_are_shown_the_categories_of_earlier_ones() -> None:
    names = [f"{kind} {n}" for n in range(4) for kind in ("Cat", "Dog")]
    engine = Model()
    _, state, _ = await build(names, engine, batch=4, layers=1)
    first, second = [prompt for stage, prompt in engine.asked if stage == "categorise"]
    assert "<EXISTING CATEGORIES>\nThese are" in first
    assert "if applicable.\nNone\n" in first
    assert "- Cat kind: [Cat 0, Cat 1]\n- Dog kind: [Dog 0, Dog 1]\n" in second
    assert [len(children) for children in tree(state, 1).values()] == [4, 4]


async def test_all_existing_categories_are_shown_unless_they_do_not_fit_the_context() -> None:
    names = [f"W{n:03} {part}|tag" for n in range(200) for part in ("a", "b")]
    for context, wanted in ((200_000, 190), (6_000, 95)):
        engine = Model()
        engine.context_tokens = context
        await build([*names, "W003 c", "W007 c"], engine, batch=20, layers=1)
        prompts = [prompt for stage, prompt in engine.asked if stage == "categorise"]
        shown = prompts[-1].partition("<EXISTING CATEGORIES>")[2].partition("</EXISTING")[0]
        assert 0 <= shown.count("\n- ") - wanted <= 10
        assert "W003 kind" in shown
        assert "W007 kind" in shown


async def test_a_reply_that_breaks_rules_is_told_which_once() -> None:
    bad = [{"category": "Cats and Dogs", "indexes": [0, 1]}, {"category": "Far", "indexes": [9]}]
    good = [{"category": "Cats", "indexes": [0, 1]}, {"category": "Dogs", "indexes": [2, 3]}]
    engine = Model([bad, good])
    rows, state, _ = await build(["Cat", "Lion", "Dog", "Wolf"], engine, layers=1)
    assert engine.stages() == ["categorise", "again", "describe", "describe"]
    told = engine.asked[1][1]
    assert '"Cats and Dogs" has the word "and"' in told
    assert "2, 3 are in no category." in told
    assert tree(state, 1) == {"Cats": ["Cat", "Lion"], "Dogs": ["Dog", "Wolf"]}
    assert not [row for row in rows if row.outcome == "rejected"]


async def test_what_is_still_broken_is_refused_and_its_nodes_promoted() -> None:
    bad = [{"category": "Cats and Dogs", "indexes": [0, 1]}, {"category": "Big", "indexes": [2, 3]}]
    rows, state, _ = await build(["Cat", "Dog", "Ox", "Elk"], Model([bad]), layers=1)
    assert tree(state, 1) == {"Big": ["Ox", "Elk"], "Cat": ["Cat"], "Dog": ["Dog"]}
    refused = [row for row in rows if row.outcome == "rejected"]
    assert [(row.reason, row.payload["children"]) for row in refused] == [
        ("and_in_name", ["e1", "e2"])
    ]
    assert [row.reason for row in rows if row.outcome == "repaired"] == ["left_over"] * 2


@pytest.mark.parametrize("said", ["", "not JSON", '{"category": "A"}', [{"category": "A"}]])
async def test_replies_that_all_failed_are_no_hierarchy_that_stopped(said: Any) -> None:
    rows, state, stopped = await build(ANIMALS, Model([said]))
    assert (stopped, state.top) == ("failed", 0)
    assert [(row.op, row.outcome, row.reason) for row in rows] == [
        ("reply", "rejected", "reply_invalid")
    ]
    assert rows[0].payload["what"] == "categorise"
    assert (await build(ANIMALS, Model([[]])))[2] == "compression"


async def test_the_user_is_under_speaker_and_keeps_that_name() -> None:
    groups = [
        {"category": "Speaker", "indexes": [0]},
        {"category": "People", "indexes": [0, 1, 2]},
    ]
    _, state, _ = await build(["user", "Ann", "Bob"], Model([groups]), layers=1)
    assert tree(state, 1) == {"Speaker": ["user"], "People": ["Ann", "Bob"]}


async def test_where_there_is_no_speaker_the_user_is_skipped() -> None:
    groups = [{"category": "People", "indexes": [1, 2]}]
    engine = Model([groups])
    _, state, _ = await build(["user", "Ann", "Bob"], engine, layers=1)
    assert engine.stages() == ["categorise", "describe"]
    assert tree(state, 1) == {"People": ["Ann", "Bob"]}
    engine = Model()
    _, after = await update(state, engine, layers=1)
    assert (engine.asked, after) == ([], state)


class Careless(Model):
    """Replies drawn at random: names that are bad, indexes that are not there, or nothing."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        words = ["Pets", "pets", "Wild", "Cats and Dogs", "", "Speaker", "Big", "Small", "Ann"]

        def sort(_layer: int, names: list[str], _existing: list[str]) -> Groups | str:
            if draw.random() < 0.1:
                return "nothing"
            return [
                {
                    "category": draw.choice(words) or "…",
                    "indexes": [draw.randint(0, len(names) + 1) for _ in range(draw.randint(0, 5))],
                }
                for _ in range(draw.randint(0, 4))
            ]

        super().__init__(sort)


NAMES = ["user", "I", "Ann", "Cats and Dogs", "Wild", *(f"Thing {n}" for n in range(40))]


async def built(names: list[str] = ANIMALS, **options: Any) -> MnemisState:
    state, own = state_of(names), config(**options)
    return (await grow_hierarchy(tools_of(Model()), state, own, 1))[1]


async def update(
    state: MnemisState, engine: Model, batch: int = BATCH, **options: Any
) -> tuple[list[EditRecord], MnemisState]:
    return (await grow_hierarchy(tools_of(engine), state, config(**options), 2, batch))[:2]


async def test_new_entities_go_to_what_is_there() -> None:
    state, engine = state_of(["Cat 8", "Fox 9"], await built()), Model()
    rows, after = await update(state, engine)
    assert engine.stages() == ["categorise"]
    assert "- Cat kind: [Cat]\n" in engine.asked[0][1]
    assert [(row.op, row.payload.get("category")) for row in rows[:2]] == [
        ("assign", "c1"),
        ("assign", "c5"),
    ]
    assert tree(after, 1)["Fox kind"][-1] == "Fox 9"
    assert tree(after, 2) == tree(state, 2)
    check(after, 2)


async def test_a_category_is_described_again_when_it_has_grown_by_half() -> None:
    state = await built(["Cat 1", "Cat 2", "Cow 1", "Cow 2"])
    described = []
    for number in range(3, 21):
        engine = Model()
        _, state = await update(state_of([f"Cat {number}"], state), engine)
        if "describe" in engine.stages():
            described.append(len(tree(state, 1)["Cat kind"]))
    assert described == [3, 4, 6, 9, 13, 19]


async def test_a_new_category_is_put_into_the_layer_above_and_so_up_to_the_top() -> None:
    state, engine = state_of(["Crow 1", "Crow 2"], await built()), Model()
    _, after = await update(state, engine)
    assert tree(after, 1)["Crow kind"] == ["Crow 1", "Crow 2"]
    assert tree(after, 2)["C kind"] == ["Cat kind", "Cow kind", "Crow kind"]
    assert engine.stages() == ["categorise", "describe"] * 2
    assert tree(after, 3) == tree(state, 3)
    check(after, 2)


async def test_a_promotion_is_not_offered_for_children_but_takes_those_of_its_name() -> None:
    state = await built(["Cat 1", "Cat 2", "Newt 1"], layers=1)
    engine = Model([[{"category": "Newt 1", "indexes": [0]}]])
    rows, after = await update(state_of(["Salamander"], state), engine)
    assert "- Newt 1: [" not in engine.asked[0][1]
    assert tree(after, 1)["Newt 1"] == ["Newt 1", "Salamander"]
    assert [row.op for row in rows] == ["assign", "describe"]


async def test_a_layer_above_the_first_does_not_outgrow_the_one_below() -> None:
    """Three new nodes, and four sets of two or three of them."""

    def ring(layer: int, names: list[str], existing: list[str]) -> Groups:
        if layer == 1:
            return by_first_word(layer, names, existing)
        pairs = [(n, (n + 1) % len(names)) for n in range(len(names))]
        return [{"category": f"Pair {names[a]}", "indexes": [a, b]} for a, b in pairs]

    def many(layer: int, names: list[str], _existing: list[str]) -> Groups:
        if layer == 1:
            return [{"category": f"Own {n}", "indexes": [n]} for n in range(len(names))]
        sets = [[0, 1], [0, 2], [1, 2], [0, 1, 2]]
        return [{"category": f"Set {held}", "indexes": held} for held in sets]

    _, state, _ = await build(ANIMALS, Model(ring), layers=2)
    state = state_of([f"New {n}" for n in range(3)], state)
    rows, after = await update(state, Model(many), layers=2)
    assert [len(state.layer(n)) for n in (1, 2)] == [5, 5]
    assert [len(after.layer(n)) for n in (1, 2)] == [8, 8]
    assert {row.reason for row in rows if row.outcome == "rejected"} == {"compression"}
    check(after, 2)


async def test_many_that_came_since_and_merged_with_none_ask_for_a_rebuild(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hierarchy, "DRIFT", 0.1)
    state = await built()
    for number, asks in enumerate((False, False, True)):
        state = state_of([f"{'NOP'[number]}ewt"], state)
        assert needs_rebuild(state) is asks
        _, state = await update(state, Model())
        assert needs_rebuild(state) is asks


@pytest.mark.heavy
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    cuts=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    batch=st.integers(2, 12),
    least=st.integers(2, 3),
)
async def test_whatever_a_model_says_the_rules_hold_as_it_grows(
    seed: int, cuts: list[int], batch: int, least: int
) -> None:
    own, engine = config(compression=least), Careless(seed)
    state, place = state_of([]), 0
    for cut in cuts:
        state, place = state_of(NAMES[place : place + cut], state), place + cut
        before = state
        rows, state, _ = await grow_hierarchy(tools_of(engine), state, own, 1, batch)
        assert VOCABULARY.replay(rows, before) == state
        check(state, least)


# Describing


async def describe(state: MnemisState, engine: Model, ids: list[str]) -> Written:
    draft = draft_of(state, 3)
    await HierarchyBuilder(tools_of(engine), config()).describe(draft, ids)
    return draft.rows, draft.state


async def test_of_many_children_the_first_and_the_last_are_shown() -> None:
    state = state_of(f"Thing {n}|kind {n}" for n in range(200))
    halves = [tuple(f"e{n}" for n in range(first, first + 100)) for first in (1, 101)]
    puts = [PutCategory(f"c{n}", 1, f"Some {n}", held) for n, held in enumerate(halves, 1)]
    engine = Model()
    rows, after = await describe(replay(puts, state), engine, ["c1", "c2"])
    assert len(engine.asked) == 2
    lines = re.findall(r"(?m)^- (Thing \d+) \[", engine.asked[0][1])
    assert lines == [f"Thing {n}" for n in (*range(15), *range(85, 100))]
    assert [row.payload["id"] for row in rows] == ["c1", "c2"]
    assert all(each.tags == ("Some",) for each in after.categories.values())


async def test_a_promotion_without_anything_said_of_its_child_is_not_described() -> None:
    state = replay([PutCategory("c1", 1, "Ann", ("e1",))], state_of(["Ann"]))
    engine = Model()
    assert await describe(state, engine, ["c1"]) == ([], state)
    told = replay([Describe("e1", "A painter.", ("person",))], state)
    rows, after = await describe(told, engine, ["c1"])
    assert (after.categories["c1"].summary, after.categories["c1"].tags) == (
        "A painter.",
        ("person",),
    )
    assert [row.call_key for row in rows] == [None]
    assert engine.asked == []
