"""Processes that are killed while they write, and several that use one memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mgl.memories.gam.state import VOCABULARY, Append
from mgl.store import Store
from tests.memories.gam.streaming import memory, turns

TURNS, SEED = 60, 7


def streaming(database: Path, pause: float = 0.0) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.memories.gam.streaming", str(database), "talk"]
    return subprocess.Popen(
        [*command, str(TURNS), str(SEED), str(pause)], stdout=subprocess.PIPE, text=True
    )


async def test_two_processes_write_and_no_turn_is_lost_or_twice(tmp_path: Path) -> None:
    database = tmp_path / "both.sqlite"
    writers = [streaming(database, pause=0.002) for _ in range(2)]
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0, 0]
    with Store.open(database) as store:
        assert list(memory(store, "talk", SEED).conversation.turns) == turns(TURNS, SEED)


async def test_a_step_written_while_the_log_is_read_is_taken_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = turns(3, SEED)
    with Store.open(tmp_path / "shared.sqlite") as store, Store.open(store.path) as other:
        reader = memory(store, "talk", SEED)
        await memory(other, "talk", SEED).append(said[0])
        steps = store.steps

        def steps_then_another(memory_id: str) -> int:
            known = steps(memory_id)
            number = len(other.turns(talk))
            if number < len(said):
                edit = VOCABULARY.record(known, Append(number))
                other.append_turn(talk, number, said[number], memory_id, edit)
            return known

        talk = reader.conversation.id
        monkeypatch.setattr(store, "steps", steps_then_another)
        for _ in said:
            state = reader.state
            assert list(state.buffer) == list(range(state.turns))
        assert reader.state.turns == len(said)
