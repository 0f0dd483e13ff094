"""The base graph and the hierarchy: what an edit does, and what none may do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mgl.memories.mnemis.edits import (
    AddEntity,
    AddEpisode,
    AddFact,
    Assign,
    Close,
    Describe,
    DropHierarchy,
    Edit,
    PutCategory,
    Repeat,
    apply,
    replay,
)
from mgl.memories.mnemis.state import Episode, Lookups, Mention
from mgl.memories.table import Prefix, Table
from mgl.types import Span


def at(episode: int) -> Mention:
    return Mention(episode, Span("d", episode * 10, episode * 10 + 5))


BASE: list[Edit] = [
    AddEpisode(Episode(0, Span("d", 0, 10), (0,), datetime(2023, 5, 8))),
    AddEpisode(Episode(1, Span("d", 10, 20), (1,))),
    AddEntity("e1", "Dave", at(0)),
    AddEntity("e2", "Detroit", at(0)),
    AddEntity("e3", "Boston", at(1)),
    AddFact("f1", "e1", "e2", "Dave attended a conference in Detroit.", at(0)),
    PutCategory("c1", 1, "Cities", ("e2", "e3")),
    PutCategory("c2", 1, "People", ("e1",)),
    PutCategory("c3", 2, "Geography", ("c1",)),
]


def test_a_category_takes_another_child_and_ids_are_never_used_again() -> None:
    state = replay([*BASE, Assign("c2", "e3"), DropHierarchy()])
    assert state.categories == {}
    assert state.next_id("c") == "c4"
    assert state.top == 0


@pytest.mark.parametrize(
    "edit",
    [
        AddEpisode(Episode(0, Span("d", 0, 10))),
        AddEntity("e3", "was given", at(0)),
        Repeat("e9", at(0)),
        Describe("x1", "nobody", ()),
        AddFact("f2", "e1", "e2", "ends first", at(0), datetime(2024, 1, 2), datetime(2024, 1, 1)),
        AddFact(
            "f2",
            "e1",
            "e2",
            "with a zone and without",
            at(0),
            datetime(2024, 1, 2, tzinfo=UTC),
            datetime(2024, 1, 1),
        ),
        Close("f9", datetime(2024, 1, 1)),
        PutCategory("c3", 1, "was given", ("e1",)),
        Assign("c9", "e1"),
    ],
)
def test_an_edit_that_cannot_be_is_refused(edit: Edit) -> None:
    with pytest.raises((KeyError, ValueError)):
        apply(replay(BASE), edit)


def test_lookups_are_carried_on_as_they_are_read_off_the_nodes() -> None:
    state = replay([*BASE, Repeat("e1", at(1), "David")])
    made = Lookups.of(state.episodes, state.entities, state.facts)
    assert state.lookups == replace(made, next_turn=2)
    assert state.lookups.entities["david"] == ("e1",)


def test_a_table_keeps_its_order_and_knows_what_changed() -> None:
    table, tables = Table[int, str](), []
    for number in range(3 * Table.MOST_LATE):
        if number % 50 == 0:
            tables.append(table)
        table = table.put(number, f"old {number}")
    changed = table.put(7, "new")
    assert list(changed) == list(range(3 * Table.MOST_LATE))
    assert (len(changed), changed[7], table[7]) == (len(table), "new", "old 7")
    assert changed.changes_since(table) == [7]
    assert all(
        len(changed.changes_since(each) or ()) >= len(changed) - len(each) for each in tables
    )
    assert changed.last(2) == list(changed.values())[-2:]


def test_a_prefix_stays_as_it_was_while_its_list_grows() -> None:
    items = [1, 2, 3]
    prefix = Prefix(items)
    items.append(4)
    assert (len(prefix), [*prefix], prefix[-1], prefix[1:]) == (3, [1, 2, 3], 3, (2, 3))
    assert (prefix == (1, 2, 3), hash(prefix)) == (True, hash((1, 2, 3)))
    with pytest.raises(IndexError):
        prefix[3]
