"""What the disk, other processes and a kill can do to the store."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from mgl.errors import ResourceError, StoreError
from mgl.store import EditRecord, MemoryRecord, Store
from tests.privileges import unprivileged

PREPARE = """
import sys
from pathlib import Path
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.types import Document
store = Store.open(Path(sys.argv[1]))
document = Document.from_text("a.txt", "text")
store.put_document(document)
store.put_memory(MemoryRecord("m", "toy", document.id, (), "model", {}, 10**6, 1))
"""

WRITER = (
    PREPARE
    + """
done = store.chunks_done("m")
chunk = max(done, default=-1) + 1
while True:
    store.append_edits("m", chunk, [
        EditRecord(chunk, "add_node", {"n": n, "filler": "x" * 2000}, "applied")
        for n in range(50)
    ])
    print("written", flush=True)
    chunk += 1
"""
)

FULL_DISK = (
    PREPARE
    + """
import resource
from mgl.errors import ResourceError
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
chunk = 0
try:
    while chunk < 1000:
        store.append_edits("m", chunk, [EditRecord(chunk, "op", {"t": "x" * 9000}, "applied")] * 5)
        chunk += 1
except ResourceError as error:
    print(chunk, error.hint)
"""
)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter: pytest's own are root's alone."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_killed_writer_leaves_whole_chunks_only(path: Path) -> None:
    seen = 0
    for _ in range(2):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        assert [writer.stdout.readline() for _ in range(3)] == ["written\n"] * 3
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        with Store.open(path) as store:
            edits = store.edits("m")
            done = store.chunks_done("m")
        assert len(done) > seen
        seen = len(done)
        assert [(e.chunk, e.payload["n"]) for e in edits] == [
            (chunk, n) for chunk in range(seen) for n in range(50)
        ]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_disk_that_refuses_more_is_a_resource_error_and_loses_nothing(path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=True
    )
    chunks, _, hint = result.stdout.partition(" ")
    assert "free space" in hint
    with Store.open(path) as store:
        assert store.chunks_done("m") == set(range(int(chunks)))
        assert len(store.edits("m")) == 5 * int(chunks)
        store.append_edits("m", int(chunks), [])


@pytest.mark.parametrize("content", [b"plain text, not SQLite " * 100, b"\x00" * 4096])
def test_a_file_that_is_no_database_is_a_store_error_and_stays(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not a database") as caught:
        Store.open(path)
    assert "move it away" in caught.value.hint
    assert path.read_bytes() == content


def test_a_damaged_page_is_a_store_error(path: Path, store: Store, memory: MemoryRecord) -> None:
    store.append_edits(memory.id, 0, [EditRecord(0, "op", {"t": "x" * 50_000}, "applied")])
    store.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    with pytest.raises(StoreError, match="damaged"), Store.open(path) as opened:
        opened.edits(memory.id)


def test_another_writer_is_waited_for_then_named(path: Path, memory: MemoryRecord) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Store.open(path, busy_timeout_s=0.05) as waiting:
        with pytest.raises(StoreError, match="locked by another process"):
            waiting.append_edits(memory.id, 0, [])
        assert waiting.memories() == [memory]
        other.execute("COMMIT")
        waiting.append_edits(memory.id, 0, [])
    other.close()


def test_a_read_only_file_is_a_resource_error(open_folder: Path) -> None:
    path = open_folder / "mgl.sqlite"
    Store.open(path).close()
    path.chmod(0o444)
    open_folder.chmod(0o555)
    with unprivileged(), pytest.raises(ResourceError, match="for writing") as caught:
        Store.open(path).put_token_counts("m", {"a": 1})
    assert "MGL_HOME" in caught.value.hint


@pytest.mark.parametrize("path", ["file/home/mgl.sqlite", "."])
def test_a_place_where_no_file_can_be_is_a_resource_error(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ResourceError):
        Store.open(tmp_path / path)


@pytest.mark.parametrize("times", [1, 3])
def test_an_open_waits_for_a_process_that_recovers_the_log(
    path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """SQLite gives up at once then, whatever the timeout."""
    left = times

    class Recovered(sqlite3.Connection):
        def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
            nonlocal left
            if "journal_mode" in sql and left:
                left -= 1
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY_RECOVERY
                raise error
            return super().execute(sql, *given)

    connect = partial(sqlite3.connect, factory=Recovered)
    monkeypatch.setattr("mgl.store.file.sqlite3.connect", connect)
    with Store.open(path) as store:
        assert store.memories() == []
    assert left == 0
    left = 10**6
    with pytest.raises(StoreError, match="locked by another process"):
        Store.open(path, busy_timeout_s=0.05)


MADE_TOGETHER = """
import os, sys
from pathlib import Path
from mgl.store import Store
for number in range(5):
    waits, goes = os.pipe()
    children = []
    for _ in range(3):
        if (child := os.fork()) == 0:
            os.close(goes)
            os.read(waits, 1)
            Store.open(Path(sys.argv[1]) / f"{number}.sqlite").close()
            os._exit(0)
        children.append(child)
    os.close(goes)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 3
"""


def test_processes_that_make_a_store_together_have_it_all(tmp_path: Path) -> None:
    """In a process of its own: in this one stores begin as copies."""
    subprocess.run([sys.executable, "-c", MADE_TOGETHER, tmp_path], check=True)
