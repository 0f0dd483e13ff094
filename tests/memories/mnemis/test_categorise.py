"""Categories are described from their children: the prompts, and what they show."""

from __future__ import annotations

import re

from mgl.memories.mnemis.edits import Describe, PutCategory, replay
from mgl.memories.mnemis.hierarchy import describe_categories
from mgl.memories.mnemis.state import State
from tests.memories.mnemis.engine import Model, Written, draft_of, state_of, tools_of
from tests.memories.mnemis.test_hierarchy import config


async def describe(state: State, engine: Model, ids: list[str]) -> Written:
    draft = draft_of(state, 3)
    await describe_categories(tools_of(engine), draft, ids, config())
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
