"""Categories are described from their children: the prompts, and what they show."""

from __future__ import annotations

import re

import pytest

from mgl.memories.mnemis.edits import Describe, PutCategory, replay
from mgl.memories.mnemis.hierarchy import describe_categories
from mgl.memories.mnemis.state import State
from tests.memories.mnemis.engine import Model, Written, draft_of, state_of, tools_of
from tests.memories.mnemis.test_hierarchy import config


async def describe(state: State, engine: Model, ids: list[str], together: int = 1) -> Written:
    draft = draft_of(state, 3)
    await describe_categories(tools_of(engine), draft, ids, config(), together=together)
    return draft.rows, draft.state


def with_categories(count: int, children: int) -> State:
    state = state_of(f"Thing {n}|kind {n}" for n in range(count * children))
    puts = [
        PutCategory(
            f"c{n + 1}", 1, f"Some {n}", tuple(f"e{n * children + k + 1}" for k in range(children))
        )
        for n in range(count)
    ]
    return replay(puts, state)


@pytest.mark.parametrize(
    ("count", "together", "shown"), [(1, 1, 30), (2, 1, 30), (2, 2, 12), (5, 2, 12)]
)
async def test_of_many_children_the_first_and_the_last_are_shown(
    count: int, together: int, shown: int
) -> None:
    state, engine = with_categories(count, 100), Model()
    ids = [f"c{n + 1}" for n in range(count)]
    rows, after = await describe(state, engine, ids, together)
    assert len(engine.asked) == -(-count // together)
    lines = re.findall(r"(?m)^- (Thing \d+) \[", engine.asked[0][1])
    assert len(lines) == shown * min(count, together)
    assert lines[: shown // 2] == [f"Thing {n}" for n in range(shown // 2)]
    assert lines[shown - 1] == "Thing 99"
    assert [row.payload["id"] for row in rows] == ids
    assert all(after.categories[each].tags == ("Some",) for each in ids)


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
