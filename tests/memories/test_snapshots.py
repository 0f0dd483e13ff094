"""Snapshots beside a log: what is read of them, and what is not."""

from __future__ import annotations

import importlib
import sys
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from sqlite3 import connect
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.memories import snapshots
from mgl.memories.gam.state import VOCABULARY, Append, Edit, GamState
from mgl.memories.log import Log, Vocabulary
from mgl.memories.snapshots import SnapshotCodec, find_modules, hash_code
from mgl.memories.table import Table
from mgl.observer import SILENT
from mgl.store import MemoryRecord, Store
from mgl.store.deletion import Gone, Redaction, Rewritten
from mgl.store.records import Snapshot
from mgl.types import Conversation, Turn

TALK = Conversation.from_name("talk")
EVERY = 5


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "LEAST", EVERY)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(tmp_path / "mgl.sqlite") as store:
        yield store


def open_log(
    store: Store, vocabulary: Vocabulary[Edit, GamState] = VOCABULARY
) -> Log[Edit, GamState]:
    log = Log(store, "mem_1", TALK, vocabulary, SILENT)
    log.open(lambda: MemoryRecord("mem_1", "gam", TALK.id, (), "model", {}, 0, 0))
    return log


def append(log: Log[Any, Any], count: int) -> None:
    for number in range(len(log.turns), len(log.turns) + count):
        assert log.append_turns([Turn(f"{number}", "Ann", f"Word{number}.")])


def list_reads(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The steps from which rows are read, from now on."""
    read, edits = list[int | None](), store.edits

    def note(memory_id: str, *, since: int | None = None) -> Any:
        read.append(since)
        return edits(memory_id, since=since)

    monkeypatch.setattr(store, "edits", note)
    return read


def spoil(store: Store, column: str, value: object) -> None:
    with closing(connect(store.path)) as connection:
        connection.execute(f"UPDATE snapshots SET {column} = ?", (value,))
        connection.commit()


def test_who_opens_a_memory_reads_the_steps_after_its_snapshot(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(store)
    append(log, EVERY)
    assert store.find_snapshot("mem_1") is None
    append(log, 2 * EVERY - 2)
    read = list_reads(store, monkeypatch)
    assert open_log(store).state == log.state
    assert read == [2 * EVERY]


def test_a_step_that_is_not_written_leaves_no_snapshot(store: Store) -> None:
    one, other = open_log(store), open_log(store)
    append(one, EVERY)
    other.catch_up()
    late = other.draft()
    late.put(Append(EVERY))
    with closing(connect(store.path)) as connection:
        connection.execute("INSERT INTO steps (memory_id, chunk) VALUES ('mem_1', ?)", (EVERY,))
        connection.commit()
    assert not other.write(late)
    assert store.find_snapshot("mem_1") is None


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("version", "0", ""),
        ("body", b'{"turns": 3', "damaged"),
        ("body", b'{"turns": "many"}', "damaged"),
        ("body", b"\xff", "damaged"),
    ],
)
def test_what_other_code_wrote_or_cannot_be_read_is_left_and_written_again(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    column: str,
    value: object,
    said: str,
) -> None:
    log = open_log(store)
    append(log, EVERY + 1)
    spoil(store, column, value)
    read = list_reads(store, monkeypatch)
    opened = open_log(store)
    assert opened.state == log.state
    assert read == [0]
    assert said in caplog.text
    append(opened, 1)
    kept = store.find_snapshot("mem_1")
    assert kept is not None
    assert VOCABULARY.snapshots.read(kept) == log.state


def delete_words(store: Store) -> None:
    """Delete what turn 0 said, for a kind that writes no step of it."""
    what = Redaction(frozenset({0}))

    def keep(_: MemoryRecord, __: int, log: Any, gone: Gone) -> Rewritten:
        assert gone.turns == {0}
        return Rewritten(log)

    assert store.delete(TALK.id, what, keep)


def test_a_deletion_drops_the_snapshot_and_who_does_not_know_of_it_writes_none(
    store: Store,
) -> None:
    log = open_log(store)
    append(log, EVERY + 1)
    delete_words(store)
    assert store.find_snapshot("mem_1") is None
    stale = Snapshot(EVERY, 0, VOCABULARY.snapshots.version, b"Word0")
    turns = store.turns(TALK.id)
    store.append_edits("mem_1", EVERY + 1, [], snapshot=stale)
    row = VOCABULARY.record(EVERY + 2, Append(len(turns)), turns=())
    store.append_turns("mem_1", len(turns), [Turn("new", "Bo", "Hm.")], [row], stale)
    assert store.find_snapshot("mem_1") is None
    deleted = store.count_deletions(TALK.id)
    store.append_edits("mem_1", EVERY + 3, [], snapshot=replace(stale, since=deleted))
    assert store.find_snapshot("mem_1") is not None


def test_a_log_that_was_rewritten_without_a_step_is_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(store)
    append(log, EVERY + 1)
    delete_words(store)
    read = list_reads(store, monkeypatch)
    log.catch_up()
    assert read == [0]


def test_a_memory_is_removed_with_its_snapshot(store: Store) -> None:
    append(open_log(store), EVERY + 1)
    store.remove(TALK.id)
    with closing(connect(store.path)) as connection:
        assert connection.execute("SELECT count(*) FROM snapshots").fetchone() == (0,)


class Opaque:
    """What cannot be written as JSON."""


@dataclass(frozen=True)
class Odd:
    """States that are not what their types say."""

    held: Any = None
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Undefined:
    """States whose type names another that is not there when the program runs."""

    held: Nowhere | None = None  # type: ignore[name-defined]  # noqa: F821


@dataclass(frozen=True)
class Untyped:
    """States with a table that does not say of what."""

    held: Table = field(default_factory=Table)  # type: ignore[type-arg]


@pytest.mark.parametrize(
    "empty",
    [Opaque(), Odd(Opaque()), Odd(names={"set"}), Undefined(), Untyped()],  # type: ignore[arg-type]
)
def test_a_state_that_cannot_be_written_has_no_snapshot_and_goes_on(
    store: Store, caplog: pytest.LogCaptureFixture, empty: Any
) -> None:
    vocabulary: Vocabulary[Any, Any] = Vocabulary({"append": Append}, lambda state, _: state, empty)
    log = open_log(store, vocabulary)
    append(log, EVERY + 1)
    assert log.step == EVERY + 1
    assert store.find_snapshot("mem_1") is None
    assert "no snapshot is kept" in caplog.text


def test_the_version_is_another_when_code_that_a_state_is_made_by_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "snapped").mkdir()
    for name, text in (("used", "def f(): ..."), ("using", "from snapped.used import f")):
        (tmp_path / "snapped" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("snapped.using")
    first = hash_code(["snapped.using"])
    assert hash_code(["snapped.using"]) == first
    (tmp_path / "snapped" / "used.py").write_text("def f(): return 1")
    assert hash_code(["snapped.using"]) != first
    for name in [name for name in sys.modules if name.startswith("snapped")]:
        del sys.modules[name]


def test_a_snapshot_is_of_the_code_that_ran_when_files_are_replaced_meanwhile(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "replaced.py"
    path.write_text("def apply(state, edit): return state")
    monkeypatch.syspath_prepend(tmp_path)
    apply = importlib.import_module("replaced").apply
    log = open_log(store, Vocabulary({"append": Append}, apply, GamState()))
    path.write_text("def apply(state, edit): return edit")
    append(log, EVERY + 1)
    kept = store.find_snapshot("mem_1")
    assert kept is not None
    assert SnapshotCodec(apply, GamState()).read(kept) is None
    del sys.modules["replaced"]


def test_the_code_of_a_state_is_all_that_its_module_uses_of_mgl() -> None:
    importlib.import_module("mgl.memories.mnemis.edits")
    found = find_modules(["mgl.memories.mnemis.edits"])
    assert found >= {
        "mgl.memories.mnemis.edits",
        "mgl.memories.mnemis.state",
        "mgl.memories.graph.names",
        "mgl.memories.table",
        "mgl.types",
    }
    assert all(name.startswith("mgl.") for name in found)


def test_a_module_may_get_further_names_while_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = ModuleType("mgl.growing")

    class Lazy:
        @property
        def __module__(self) -> str:  # type: ignore[override]
            module.__dict__[f"late{len(module.__dict__)}"] = None
            return "mgl.types"

    module.__dict__["lazy"] = Lazy()
    monkeypatch.setitem(sys.modules, "mgl.growing", module)
    assert find_modules(["mgl.growing"]) >= {"mgl.growing", "mgl.types"}


@dataclass(frozen=True)
class Tables:
    """Tables by keys that JSON has no objects for."""

    numbers: Table[int, tuple[datetime, ...]]
    ends: Table[frozenset[str], float]


texts = st.text(st.characters(exclude_categories=["Cs"]))
zones = st.sampled_from([None, *(timezone(timedelta(hours=hours)) for hours in (-9, 0, 5.5))])
zoned = st.datetimes(timezones=zones)


@given(
    numbers=st.dictionaries(st.integers(-(2**40), 2**40), st.lists(zoned, max_size=3)),
    ends=st.dictionaries(st.frozensets(texts), st.floats(allow_nan=False, allow_infinity=False)),
)
def test_tables_come_back_as_they_were_in_their_order(
    numbers: dict[int, list[datetime]], ends: dict[frozenset[str], float]
) -> None:
    state = Tables(Table({n: tuple(at) for n, at in numbers.items()}), Table())
    for key, value in ends.items():
        state = replace(state, ends=state.ends.put(key, value))
    codec = SnapshotCodec(test_tables_come_back_as_they_were_in_their_order, state)
    body = codec.dump(state)
    assert body is not None
    read = codec.read(Snapshot(0, 0, codec.version, body))
    assert read == state
    assert ([*read.numbers], [*read.ends]) == ([*state.numbers], [*state.ends])
