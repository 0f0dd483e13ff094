"""Processes that are killed while they write, and several that use one memory."""

from __future__ import annotations

import asyncio
import random
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


@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.slow)])
async def test_killed_at_random_points_it_ends_as_if_it_had_never_been(
    tmp_path: Path, kills: int
) -> None:
    chance = random.Random(SEED)
    database = tmp_path / "killed.sqlite"
    reached = [0]
    for _ in range(kills):
        process = streaming(database, pause=0.005)
        assert process.stdout is not None
        for _ in range(chance.randint(1, TURNS // 2)):
            process.stdout.readline()
        await asyncio.sleep(chance.uniform(0, 0.02))
        process.kill()
        process.wait()
        process.stdout.close()
        with Store.open(database) as store:
            there = memory(store, "talk", SEED)
            kept = there.conversation.turns if store.steps(there.id) else ()
            assert list(kept) == turns(TURNS, SEED)[: len(kept)]
            assert len(kept) >= reached[-1]
            reached.append(len(kept))
    assert len(set(reached)) > min(2, kills // 5)
    last = streaming(database)
    last.communicate()
    assert last.returncode == 0
    with Store.open(database) as store, Store.open(tmp_path / "whole.sqlite") as other:
        resumed, whole = memory(store, "talk", SEED), memory(other, "talk", SEED)
        for turn in turns(TURNS, SEED):
            await whole.append(turn)
        assert resumed.conversation.turns == whole.conversation.turns
        assert resumed.state == whole.state


async def test_one_process_writes_while_another_reads(tmp_path: Path) -> None:
    database = tmp_path / "shared.sqlite"
    writer = streaming(database, pause=0.01)
    assert writer.stdout is not None
    for _ in range(5):
        writer.stdout.readline()
    with Store.open(database) as store:
        reader = memory(store, "talk", SEED)
        seen = [len(reader.conversation.turns)]
        while writer.poll() is None:
            writer.stdout.readline()
            state = reader.state
            held = [number for topic in state.topics.values() for number in topic.turns]
            assert sorted([*held, *state.buffer]) == list(range(state.turns))
            seen.append(state.turns)
        writer.stdout.close()
        assert len(set(seen)) > 5
        assert reader.state.turns == TURNS


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
