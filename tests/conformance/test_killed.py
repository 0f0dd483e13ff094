"""Processes that are killed in the middle of their work, or do the same work at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.store import Store
from mgl.types import Conversation
from tests.conformance.dying import FORGOTTEN, Operation, Place
from tests.conformance.kinds import TALK, Case, dump, list_cases, own_word
from tests.conformance.snapshots import check_snapshots

pytestmark = pytest.mark.heavy
OPERATIONS = [
    pytest.param(case.values[0], operation, id=f"{case.id}-{operation}", marks=case.marks)
    for case in list_cases()
    for operation in (("append", "build", "forget") if case.values[0].grows else ("build",))
]
few = settings(max_examples=max(1, settings().max_examples // 10))


@pytest.fixture(scope="session")
def fresh(pytestconfig: pytest.Config) -> str:
    """Another text in each run: the first example that a property draws is always the same."""
    return str(pytestconfig.getoption("--hypothesis-seed"))


@pytest.fixture(scope="module")
def begin(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case, Operation], Any]:
    """Where an operation begins, how many moments it has, and what it leaves undisturbed."""

    @cache
    def work(case: Case, operation: Operation) -> tuple[Path, int, dict[str, Any]]:
        start = tmp_path_factory.mktemp("start")
        if operation == "forget":
            Place(start).work(case, "append")
            Place(start).appended.unlink()
        whole = Place(tmp_path_factory.mktemp("whole") / "all")
        shutil.copytree(start, whole.folder)
        moments = whole.work(case, operation)
        assert moments
        with Store.open(whole.database) as store:
            return start, moments, dump(store)

    return work


@pytest.mark.parametrize(("case", "operation"), OPERATIONS)
@few
@given(at=st.integers(0, 10**6))
def test_a_killed_process_loses_nothing_and_the_next_asks_nothing_twice(
    begin: Callable[[Case, Operation], Any], fresh: str, case: Case, operation: Operation, at: int
) -> None:
    start, moments, expected = begin(case, operation)
    place = Place(Path(mkdtemp(dir=start.parent)) / "killed")
    shutil.copytree(start, place.folder)
    assert place.work(case, operation, Random(f"{at} {fresh}").randrange(moments)) is None
    made = place.read_lines(place.calls)
    with Store.open(place.database) as store:
        stored = {key for key in made if store.find_call(key) is not None}
        kept = {turn.id for record in store.memories() if case.grows
                for turn in store.turns(record.document_id)}  # fmt: skip
        check_snapshots(store)
        assert set(place.read_lines(place.appended)) <= kept
    assert place.work(case, operation)
    if operation != "forget":  # a deletion empties calls, which may then be made again
        assert not stored.intersection(place.read_lines(place.calls)[len(made) :])
    with Store.open(place.database) as store:
        assert dump(store) == expected
        check_snapshots(store)
    if operation == "forget":
        words = [own_word(int(turn[1:])) for turn in FORGOTTEN]
        left = b"".join(file.read_bytes() for file in place.folder.glob("mgl.sqlite*")).lower()
        assert not [word for word in words if word.encode() in left]
    shutil.rmtree(place.folder.parent)


WAITING = {"graph", "mindgraph", "naive-rag", "peer:mem0"}
"""The lab has builds wait for each other whatever the kind: others than these run nightly."""

TOGETHER = [
    pytest.param(
        case.values[0],
        operations,
        id=f"{case.id}-{' and '.join(operations)}",
        marks=[] if case.values[0].grows or case.values[0].line in WAITING else [pytest.mark.slow],
    )
    for case in list_cases()
    for operations in (("build", "build"), ("append", "append"), ("forget", "append"))
    if case.values[0].grows or operations[0] == "build"
]


@pytest.mark.parametrize(("case", "operations"), TOGETHER)
def test_two_processes_leave_what_one_leaves(
    begin: Callable[[Case, Operation], Any],
    tmp_path: Path,
    case: Case,
    operations: tuple[Operation, Operation],
) -> None:
    start, _, expected = begin(case, operations[0])
    place = Place(tmp_path / "both")
    shutil.copytree(start, place.folder)
    place.work_together(case, operations)
    with Store.open(place.database) as store:
        assert dump(store) == expected
        check_snapshots(store)


@pytest.mark.parametrize("case", [case for case in list_cases() if case.values[0].grows])
def test_turns_that_two_processes_append_at_once_are_all_there_in_their_order(
    tmp_path: Path, case: Case
) -> None:
    place = Place(tmp_path)
    place.work_together(case, ["append even", "append odd"])
    with Store.open(place.database) as store:
        exported = case.open(store, source=Conversation.from_name("talk")).export()
    ids = [turn["id"] for turn in exported["turns"]]
    assert sorted(ids) == sorted(turn.id for turn in TALK.turns)
    for half in (TALK.turns[::2], TALK.turns[1::2]):
        assert [each for each in ids if each in {turn.id for turn in half}] == [t.id for t in half]
