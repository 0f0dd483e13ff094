"""Nodes grouped by similarity: the groups, their names, and what becomes of bad names."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.memories.mnemis import likeness
from mgl.memories.mnemis.layers import is_user
from mgl.memories.mnemis.likeness import BY_LIKENESS, find_homes, group_vectors
from mgl.memories.mnemis.state import Category, MnemisState
from mgl.store import EditRecord
from tests.memories.mnemis.engine import (
    Model,
    grow_hierarchy,
    state_of,
    tools_of,
)
from tests.memories.mnemis.test_hierarchy import ANIMALS, NAMES, check, config, tree


def namer(*said: str) -> Model:
    """A model that calls a group what its first node is called first, or says what it is told."""
    told = [name if name == "prose" else {"category": name} for name in said]
    return Model(name_category=told or [first_word])


def first_word(prompt: str) -> dict[str, str]:
    return {"category": re.findall(r"^- (\w+)", prompt, re.MULTILINE)[0]}


async def built(
    names: list[str], engine: Model, cluster: int = 4, **options: Any
) -> tuple[list[EditRecord], MnemisState, str]:
    own = config(**options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(likeness, "CLUSTER", cluster)
        return await grow_hierarchy(tools_of(engine), state_of(names), own, 1, how=BY_LIKENESS)


@settings(max_examples=50, deadline=None)
@given(count=st.integers(0, 60), size=st.integers(2, 9), seed=st.integers(0, 99))
def test_every_vector_is_in_one_group_and_there_are_as_many_as_asked_at_most(
    count: int, size: int, seed: int
) -> None:
    vectors = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)
    groups = group_vectors(vectors, size)
    assert sorted(place for group in groups for place in group) == list(range(count))
    assert all(groups)
    assert len(groups) <= -(-count // size)


async def test_what_is_alike_is_one_category_named_by_the_model() -> None:
    engine = namer()
    rows, state, stopped = await built(ANIMALS, engine)
    assert {name: len(held) for name, held in tree(state, 1).items()} == dict.fromkeys(
        ("Cat", "Cow", "Dog", "Duck", "Fox"), 4
    )
    assert stopped in ("one_node", "compression")
    assert not [row for row in rows if row.outcome == "rejected"]
    assert "- Cat 0 (animal)\n- Cat 1 (animal)" in engine.prompts("name_category")[0]
    assert not any(stage == "categorise" for stage in engine.stages())
    check(state, 2)


@pytest.mark.parametrize(("said", "reason"), [("cats and dogs", "and_in_name"), ("…", "no_name")])
async def test_nodes_of_a_group_without_a_usable_name_are_promoted(said: str, reason: str) -> None:
    engine = namer(said, *(f"Kind {n}" for n in range(9)))
    rows, state, _ = await built(ANIMALS, engine, layers=1)
    promoted = [each for each in state.categories.values() if each.is_promotion]
    assert len(promoted) == 4
    refused = [row.reason for row in rows if row.outcome == "rejected"]
    assert refused == [reason]
    check(state, 2)


async def test_a_new_node_joins_the_category_that_it_is_likest_to_without_a_call() -> None:
    _, state, _ = await built(ANIMALS, namer())
    grown = state_of(["Cat 9|animal", "Harbour|place", "Old harbour|place"], state)
    engine = namer()
    own = config(hierarchy="incremental")
    _, grown, _ = await grow_hierarchy(tools_of(engine), grown, own, 2, how=BY_LIKENESS)
    assert len(tree(grown, 1)["Cat"]) == 5
    (asked,) = engine.prompts("name_category")
    assert "Harbour (place)" in asked
    assert "Cat 9" not in asked
    assert "Categories that are there: Cat, " in asked
    assert tree(grown, 1)["Harbour"] == ["Harbour", "Old harbour"]
    check(grown, 2)


async def test_a_category_is_described_by_its_children_without_a_call() -> None:
    engine = namer()
    _, state, _ = await built(ANIMALS, engine)
    assert set(engine.stages()) == {"name_category"}
    cats = next(each for each in state.categories.values() if each.name == "Cat")
    assert (cats.summary, cats.tags) == ("Cat 0, Cat 1, Cat 2, Cat 3", ())
    assert all(each.summary for each in state.categories.values())


def test_a_vector_goes_to_the_likest_group_unless_it_is_less_like_than_all_of_it() -> None:
    east, north = np.eye(2, dtype=np.float32)
    between = (east + north) / np.float32(np.sqrt(2))
    held = [np.stack([east, between]), np.stack([north])]
    assert find_homes(np.stack([east, north, between, -east]), held) == [0, 1, 0, None]
    assert find_homes(np.stack([east, north]), []) == [None, None]
    assert find_homes(np.zeros((0, 2), dtype=np.float32), held) == []


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(0, 40),
    cluster=st.integers(2, 8),
    said=st.lists(st.sampled_from(["Cat", "A and B", "", "Thing", "Speaker", "prose"]), max_size=5),
)
async def test_the_rules_of_a_hierarchy_hold_whatever_is_said(
    count: int, cluster: int, said: list[str]
) -> None:
    _, state, _ = await built(NAMES[:count], namer(*said), cluster=cluster)
    check(state, 2)
    held = {
        child for each in state.layer(1) if isinstance(each, Category) for child in each.children
    }
    people = {each.id for each in state.entities.values() if is_user(each.name)}
    assert held | people == (set(state.entities) if state.top else people)
