"""System-2: what is offered layer by layer, what is selected, and the path to each entity."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.llm.grammar import to_regex
from mgl.llm.schemas import compile_schema
from mgl.memories.mnemis import selection
from mgl.memories.mnemis.edits import PutCategory, replay
from mgl.memories.mnemis.selection import LayerCount, Selection, select
from mgl.memories.mnemis.small import ask_names
from mgl.memories.mnemis.state import Category, MnemisState
from tests.memories.mnemis.engine import OFFERED, Model, Select, grow_hierarchy, state_of, tools_of
from tests.memories.mnemis.test_hierarchy import ANIMALS, NAMES, Careless, config

Tree = Mapping[str, tuple[int, tuple[str, ...]]]

PLACES = ["Detroit|city", "Boston|city", "Alps|mountains", "Rex|dog", "Tom|cat", "Chess|game"]
GEOGRAPHY: Tree = {
    "Cities": (1, ("e1", "e2")),
    "Sights": (1, ("e2", "e3")),
    "Pets": (1, ("e4", "e5")),
    "Chess": (1, ("e6",)),
    "Geography": (2, ("c1", "c2")),
    "Home": (2, ("c2", "c3")),
    "Chess itself": (2, ("c4",)),
}


def hierarchy(names: list[str], tree: Tree) -> MnemisState:
    puts = [
        PutCategory(f"c{n}", layer, name, children)
        for n, (name, (layer, children)) in enumerate(tree.items(), 1)
    ]
    return replay(puts, state_of(names))


async def selected(
    state: MnemisState, choose: Select | Mapping[str, bool], shown: int = selection.SHOWN
) -> Selection:
    pick = choose if callable(choose) else choose.get
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "SHOWN", shown)
        return await select(Model(select=pick).llm, state, "Which cities?", config())


async def test_from_the_top_down_to_the_entities() -> None:
    state = hierarchy(PLACES, GEOGRAPHY)
    engine = Model(select={"Geography": False, "Cities": False, "Detroit": False}.get)
    found = await select(engine.llm, state, 'Where "did" {query} go?', config())
    assert found.entities == ("e1",)
    path = [state.node(each).name for each in found.paths["e1"]]
    assert path == ["Geography", "Cities"]
    assert found.categories == ("c5", "c1")
    assert found.layers == (LayerCount(2, 3, 1, 0), LayerCount(1, 2, 1, 0), LayerCount(0, 2, 1, 0))
    assert found.failed == 0
    prompts = [prompt for _, prompt in engine.asked]
    assert 'User Query:\n"Where "did" {query} go?"' in prompts[0]
    offered = [[name for name, _, _ in OFFERED.findall(prompt)] for prompt in prompts]
    assert offered == [
        ["Geography", "Home", "Chess itself"],
        ["Cities", "Sights"],
        ["Detroit", "Boston"],
    ]
    assert '- name: "Detroit", uuid: "e1", tag: [city]\n' in prompts[2]


async def test_get_all_children_takes_all_below_without_asking_again() -> None:
    state = hierarchy(PLACES, GEOGRAPHY)
    found = await selected(state, {"Geography": True, "Home": False, "Pets": False, "Tom": False})
    assert found.entities == ("e1", "e2", "e3", "e5")
    assert found.paths["e2"] == ("c5", "c1")
    assert found.paths["e5"] == ("c6", "c3")
    assert found.layers == (LayerCount(2, 3, 2, 1), LayerCount(1, 1, 1, 0), LayerCount(0, 2, 1, 0))


@pytest.mark.parametrize(("count", "calls"), [(0, 0), (3, 1), (8, 4), (9, 0)])
async def test_without_a_hierarchy_few_entities_are_offered_and_many_not(
    monkeypatch: pytest.MonkeyPatch, count: int, calls: int
) -> None:
    monkeypatch.setattr(selection, "SHOWN", 2 if count > 3 else 60)
    engine = Model(select=lambda _: True)
    state = state_of([f"Thing {n}" for n in range(count)])
    found = await select(engine.llm, state, "Which?", config())
    assert len(engine.asked) == calls
    assert found.entities == (tuple(state.entities) if calls else ())
    assert not any(found.paths.values())


def saying(reply: Any) -> Model:
    return Model(selection=[reply if isinstance(reply, str) else json.dumps(reply)])


def picked(uuid: str, name: str = "x", *, whole: bool = False) -> dict[str, object]:
    return {"name": name, "uuid": uuid, "get_all_children": whole}


@pytest.mark.parametrize("said", ["", "no", [picked("c99")], [picked("e1")], [{"uuid": "c5"}]])
async def test_a_reply_that_cannot_be_used_is_counted_and_selects_nothing(said: object) -> None:
    found = await select(saying(said).llm, hierarchy(PLACES, GEOGRAPHY), "Which?", config())
    assert found == Selection(layers=(LayerCount(2, 3, 0, 0),), failed=1)


async def test_a_node_named_twice_is_selected_once_and_whole_if_once_said() -> None:
    twice = [picked("c5"), picked("c5", whole=True), picked("c5")]
    found = await select(saying(twice).llm, hierarchy(PLACES, GEOGRAPHY), "Which?", config())
    assert found.layers == (LayerCount(2, 3, 1, 1),)
    assert found.entities == ("e1", "e2", "e3")


async def test_decoding_is_held_to_the_offered_nodes_each_name_with_its_uuid() -> None:
    names = ['The "Big" one', "Line\nbreak", "Ünïcödé 名前"]
    engine = saying([])
    await select(engine.llm, state_of(names), "Which?", config())
    schema = engine.requests[0].json_schema
    assert schema is not None
    assert to_regex(compile_schema(schema)).count(r'"uuid": "e2"') == 2
    options = schema["items"]["anyOf"]
    assert [option["properties"]["name"]["const"] for option in options] == [
        'The "Big" one',
        "Line break",
        "Ünïcödé 名前",
    ]
    assert schema["maxItems"] == 3


@pytest.mark.heavy
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 45), shown=st.integers(2, 60))
async def test_each_selected_entity_has_a_path_from_the_top(
    seed: int, count: int, shown: int
) -> None:
    state = state_of(NAMES[:count])
    _, state, _ = await grow_hierarchy(tools_of(Careless(seed)), state, config(), 0, 9)

    def pick(name: str) -> bool | None:
        return [None, False, True][crc32(f"{name} {seed}".encode()) % 3]

    found = await selected(state, pick, shown)
    assert set(found.entities) <= set(state.entities)
    assert found.entities == tuple(found.paths)
    for entity, path in found.paths.items():
        for parent, child in zip((*path, entity), (*path, entity)[1:], strict=False):
            assert child in state.categories[parent].children
        assert [state.categories[each].layer for each in path] == list(range(state.top, 0, -1))
    below = [each for each in state.layer(1) if isinstance(each, Category)]
    held = {child for each in below for child in each.children} if state.top else state.entities
    reachable = tuple(each for each in state.entities if each in held)
    if state.top or count <= 4 * shown:
        everything = await selected(state, lambda _: True, shown)
        assert everything.entities == reachable
        step_by_step = await selected(state, lambda _: False, shown)
        assert step_by_step.entities == reachable


async def test_a_selection_makes_no_more_calls_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "SHOWN", 6)
    monkeypatch.setattr(selection, "MOST_CALLS", 5)
    _, state, _ = await grow_hierarchy(tools_of(Model()), state_of(ANIMALS), config(), 0)
    engine = Model(select=lambda _: False)
    found = await select(engine.llm, state, "Which?", config())
    assert len(engine.asked) == 5
    assert [count.offered for count in found.layers] == [1, 3, 4, 12]
    assert found.cut == 8
    assert found.entities == tuple(state.entities)[:12]


async def test_names_are_selected_the_most_helpful_alone() -> None:
    state = state_of(["Chess|game", "Rome|place", "Rome|town", "Go|game"])
    engine = saying({"nodes": ["Rome", "Go", "Rome"]})
    found = await select(engine.llm, state, "Where?", config(), ask_names)
    assert found.entities == ("e2", "e3", "e4")
    assert found.layers == (LayerCount(0, 4, 3, 0),)
    prompt, schema = engine.requests[0].messages[0].content, engine.requests[0].json_schema
    assert prompt.index("- Chess (game)") < prompt.index("A question: Where?")
    assert schema is not None
    nodes = schema["properties"]["nodes"]
    assert nodes["maxItems"] == 6
    assert nodes["items"]["enum"] == ["Chess", "Rome", "Go"]


@pytest.mark.parametrize("said", ["", {"nodes": ["Nobody"]}, {"nodes": ["Go"] * 9}])
async def test_names_that_cannot_be_used_are_counted(said: object) -> None:
    found = await select(saying(said).llm, state_of(["Chess", "Go"]), "Where?", config(), ask_names)
    assert found == Selection(layers=(LayerCount(0, 2, 0, 0),), failed=1)
