"""The hierarchy follows a base graph that grows."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import resolved
from mgl.memories.mnemis.hierarchy import build_hierarchy
from mgl.memories.mnemis.state import State, replay
from mgl.memories.mnemis.update import needs_rebuild, update_hierarchy
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import EditRecord
from tests.memories.mnemis.sorting import Groups, Sorter, by_first_word, client, state_of
from tests.memories.mnemis.test_hierarchy import (
    ANIMALS,
    NAMES,
    Careless,
    build,
    check,
    config,
    tree,
)

EMBEDDER = WordEmbedder()


async def built(names: list[str] = ANIMALS, **options: Any) -> State:
    state, own = state_of(names), config(**options)
    return (await build_hierarchy(client(Sorter()), EMBEDDER, state, own, step=1))[1]


async def update(state: State, engine: Sorter, **options: Any) -> tuple[list[EditRecord], State]:
    return await update_hierarchy(client(engine), EMBEDDER, state, config(**options), step=2)


async def test_nothing_new_asks_nothing() -> None:
    state, engine = await built(), Sorter()
    assert await update(state, engine) == ([], state)
    assert engine.asked == []


async def test_without_a_hierarchy_there_is_nothing_to_take_further() -> None:
    state, engine = state_of(ANIMALS), Sorter()
    assert await update(state, engine) == ([], state)
    assert engine.asked == []


async def test_new_entities_go_to_what_is_there() -> None:
    state, engine = state_of(["Cat 8", "Fox 9"], await built()), Sorter()
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
        engine = Sorter()
        _, state = await update(state_of([f"Cat {number}"], state), engine)
        if "describe" in engine.stages():
            described.append(len(tree(state, 1)["Cat kind"]))
    assert described == [3, 4, 6, 9, 13, 19]


async def test_a_new_category_is_put_into_the_layer_above_and_so_up_to_the_top() -> None:
    state, engine = state_of(["Crow 1", "Crow 2"], await built()), Sorter()
    _, after = await update(state, engine)
    assert tree(after, 1)["Crow kind"] == ["Crow 1", "Crow 2"]
    assert tree(after, 2)["C kind"] == ["Cat kind", "Cow kind", "Crow kind"]
    assert engine.stages() == ["categorise", "describe"] * 2
    assert tree(after, 3) == tree(state, 3)
    check(after, 2)


async def test_what_merges_with_none_is_promoted_to_the_top() -> None:
    state, engine = state_of(["Newt 1"], await built()), Sorter()
    _, after = await update(state, engine)
    assert tree(after, 1)["Newt 1"] == tree(after, 2)["Newt 1"] == ["Newt 1"]
    assert tree(after, 3)["Things kind"][-1] == "Newt 1"
    check(after, 2)


async def test_a_promotion_is_not_offered_for_children_but_takes_those_of_its_name() -> None:
    state = await built(["Cat 1", "Cat 2", "Newt 1"], layers=1)
    engine = Sorter([[{"category": "Newt 1", "indexes": [0]}]])
    rows, after = await update(state_of(["Salamander"], state), engine)
    assert "- Newt 1: [" not in engine.asked[0][1]
    assert tree(after, 1)["Newt 1"] == ["Newt 1", "Salamander"]
    assert [row.op for row in rows] == ["assign", "describe"]


async def test_what_merged_with_none_is_offered_again_beside_what_is_new() -> None:
    state = await built(["Cat 1", "Cat 2", "Newt 1", "Owl 1", "Yak 1"], layers=1)
    engine = Sorter()
    rows, after = await update(state_of(["Newt 2"], state), engine, batch=3)
    assert re.findall(r"(?m)^\d+\. (.*): \[", engine.asked[0][1]) == ["Newt 2", "Owl 1", "Yak 1"]
    assert engine.stages() == ["categorise"]
    rows, after = await update(state_of(["Newt 2"], state), engine)
    assert tree(after, 1)["Newt kind"] == ["Newt 2", "Newt 1"]
    assert not [row for row in rows if row.outcome == "repaired"]


async def test_what_is_offered_again_may_be_left_out() -> None:
    state = await built(["Cat 1", "Cat 2", "Newt 1"], layers=1)
    engine = Sorter([[{"category": "Cat kind", "indexes": [0]}]])
    rows, _ = await update(state_of(["Cat 3"], state), engine)
    assert engine.stages()[0] == "categorise"
    assert "again" not in engine.stages()
    assert [row.op for row in rows if row.op != "describe"] == ["assign"]


async def test_several_categories_are_described_in_one_call() -> None:
    state = state_of([f"{kind} {n}" for kind in ("Asp", "Eel") for n in range(2)], await built())
    engine = Sorter()
    _, after = await update(state, engine, layers=1)
    assert engine.stages()[:2] == ["categorise", "describe"]
    assert "c10, Asp kind. Its nodes:\n- Asp 0 []:\n- Asp 1" in engine.asked[1][1]
    assert [each.summary for each in after.layer(1)][-2:] == ["About Asp kind.", "About Eel kind."]


async def test_a_reply_that_cannot_be_used_promotes_and_says_so() -> None:
    state = state_of(["Cat 8"], await built())
    rows, after = await update(state, Sorter(["no"]))
    assert [row.op for row in rows if row.outcome == "rejected"] == ["reply"] * 3
    assert tree(after, 3).keys() == {"Things kind", "Cat 8"}
    check(after, 2)


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

    _, state, _ = await build(ANIMALS, Sorter(ring), layers=2)
    state = state_of([f"New {n}" for n in range(3)], state)
    rows, after = await update(state, Sorter(many), layers=2)
    assert [len(state.layer(n)) for n in (1, 2)] == [5, 5]
    assert [len(after.layer(n)) for n in (1, 2)] == [8, 8]
    assert {row.reason for row in rows if row.outcome == "rejected"} == {"compression"}
    check(after, 2)


@pytest.mark.parametrize(("new", "asks"), [(0, False), (8, False), (9, True)])
async def test_many_entities_in_no_category_ask_for_a_rebuild(new: int, asks: bool) -> None:
    state = state_of([f"Newt {n}" for n in range(new)], await built())
    assert needs_rebuild(state, MnemisConfig(drift=0.3)) is asks


async def test_many_that_came_since_and_merged_with_none_ask_for_a_rebuild() -> None:
    state, settings_ = await built(), config(drift=0.1)
    for number, asks in enumerate((False, False, True)):
        state = state_of([f"{'NOP'[number]}ewt"], state)
        assert needs_rebuild(state, settings_) is asks
        _, state = await update(state, Sorter())
        assert needs_rebuild(state, settings_) is asks


async def test_promotions_of_the_build_itself_ask_for_none() -> None:
    names = [f"{kind} {n}" for kind in ("Cat", "Cow") for n in range(2)]
    state = await built([*names, *(f"{letter}ewt" for letter in "NOPQRSTU")])
    assert state.top == 3
    assert len(state.layer(1)) == 2 + 8
    assert not needs_rebuild(state, config(drift=0.1))


def test_an_empty_state_needs_nothing() -> None:
    assert not needs_rebuild(state_of([]), config())


async def test_it_needs_a_quarter_of_the_calls_of_rebuilding_after_each_session() -> None:
    """Sixteen sessions of twelve entities: of eight to a hundred topics, ever more of them known;
    with the rebuilds that drift asks for."""
    draw = random.Random(4)
    sessions = [
        [
            f"{chr(65 + topic % 26)}topic{topic} {number}.{each}|tag"
            for each in range(12)
            for topic in [min(int(draw.expovariate(1 / (6 + 2 * number))), 99)]
        ]
        for number in range(16)
    ]
    grown: dict[str, int] = {}
    for way in ("rebuild", "incremental"):
        engine, state, own = Sorter(), state_of([]), config()
        for names in sessions:
            state = state_of(names, state)
            if way == "rebuild" or needs_rebuild(state, own):
                _, state, _ = await build_hierarchy(client(engine), EMBEDDER, state, own, step=1)
            else:
                _, state = await update_hierarchy(client(engine), EMBEDDER, state, own, step=1)
        check(state, 2)
        grown[way] = len(engine.asked)
    assert grown["incremental"] <= 0.25 * grown["rebuild"], grown


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    cuts=st.lists(st.integers(1, 12), min_size=2, max_size=4),
    least=st.integers(2, 3),
)
async def test_whatever_a_model_says_the_rules_hold_as_it_grows(
    seed: int, cuts: list[int], least: int
) -> None:
    own, engine = config(batch=7, compression=least), Careless(seed)
    state, place = state_of([]), 0
    for cut in cuts:
        state, place = state_of(NAMES[place : place + cut], state), place + cut
        before = state
        rows, state = await update_hierarchy(client(engine), EMBEDDER, state, own, step=1)
        if not state.categories:
            rows, state, _ = await build_hierarchy(client(engine), EMBEDDER, state, own, step=1)
        edits = [edit for row in rows if (edit := resolved(row)) is not None]
        assert replay(edits, before) == state
        check(state, least)
