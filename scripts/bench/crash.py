#!/usr/bin/env python3
"""Kill memories with SIGKILL at random points of a build, an append or a deletion, then resume.

    python scripts/bench/crash.py [--points 100] [--memory gam ...] [--operation forget ...]

At each point a process starts an operation on a fresh database and is killed at a random moment;
another process repeats the operation to its end. Then

- every turn whose ``append`` had returned is there,
- the log and the state are those of a run that nobody killed (``lost`` counts the others),
- no call whose reply was in the store was made again (``paid twice``),
- after a deletion no byte of the database spells a word that only the deleted turns held.

Replies come from ``SchemaEngine``: random data under the schema, the same for the same request.
Documents are built and asked; conversations are appended to turn by turn, and deleted from.
Exit code 1 if anything was lost or paid twice. Needs a system that can fork.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from mgl import registry
from mgl.llm.base import Completion, Request
from mgl.llm.calls import call_key
from mgl.llm.client import Client, Policy
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import Tools
from mgl.observer import SILENT
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import Conversation, Document, Question, Turn

OPERATIONS = {
    "mindgraph": ("build",),
    "hgmem": ("build",),
    "gam": ("build", "append", "forget"),
    "mnemis": ("build", "append", "forget"),
}
CONFIG: dict[str, dict[str, Any]] = {
    "mindgraph": {"chunk_tokens": 100},
    "hgmem": {"steps": 2},
    "gam": {"buffer_tokens": 48},
    "mnemis": {},
}
SECRETS = ("xylograph", "quokka", "zarzuela")
TURNS = 24
CALL_S = 0.002
WORDS = "paint horse lake book garden kitchen train music letter bridge".split()
QUESTION = Question("Who gave Ann the lantern?")


def make_turns() -> list[Turn]:
    draw, start = random.Random(7), datetime(2023, 5, 8, 13, 56)
    turns = []
    for place in range(TURNS):
        said = " ".join(draw.sample(WORDS, 4))
        if place % 8 == 3:
            said += f" with the {SECRETS[place // 8]}"
        speaker, session = draw.choice(("Ann", "Bo")), place // 7
        turns.append(
            Turn(f"t{place}", speaker, f"{said}.", start + timedelta(days=session), f"{session}")
        )
    return turns


STORY = Document.from_text(
    "story.txt",
    " ".join(
        f"On day {day} Ann met Bo in the {WORDS[day % 10]} house. Bo gave Ann a {WORDS[day % 7]}."
        for day in range(30)
    ),
)


class LoggingEngine(SchemaEngine):
    """Writes the key of each call to a file before it replies."""

    def __init__(self, log: Path) -> None:
        super().__init__(concurrency=2)
        self._log = log

    async def generate(self, request: Request) -> Completion:
        with self._log.open("a") as lines:
            lines.write(f"{call_key(self.model_id, request)}\n")
        await asyncio.sleep(CALL_S)
        return await super().generate(request)


def open_memory(name: str, store: Store, calls: Path) -> Any:
    kind: Any = registry.load("memory", name)
    client = Client(LoggingEngine(calls), store.call_log(), Policy(max_retries=0))
    tools = Tools(client, store, SILENT, WordEmbedder(), WordReranker())
    talks = "append" in OPERATIONS[name]
    source = Conversation.named("talk") if talks else STORY
    questions = [] if talks or name == "hgmem" else [QUESTION]
    if not talks:
        store.put_document(STORY)
    return kind(tools, source, questions, kind.Config.model_validate(CONFIG[name]))


@dataclass(frozen=True)
class Place:
    """One database, beside it the calls that were made and the turns whose append returned."""

    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / "mgl.sqlite"

    @property
    def calls(self) -> Path:
        return self.folder / "calls"

    @property
    def appended(self) -> Path:
        return self.folder / "appended"


async def operate(name: str, operation: str, memory: Any, place: Place) -> None:
    """Do an operation, or what a killed process left of it."""
    if operation == "append" or (operation == "build" and "append" in OPERATIONS[name]):
        for turn in make_turns():
            await memory.append(turn)
            with place.appended.open("a") as lines:
                lines.write(f"{turn.id}\n")
        if operation == "build":
            await memory.flush()
    elif operation == "build":
        await memory.build()
        await memory.answer(QUESTION)
    else:
        gone = set(memory.export()["forgotten"])
        turns = [t.id for t in make_turns() if any(secret in t.text for secret in SECRETS)]
        if left := [id for id in turns if id not in gone]:
            await memory.forget(left)
        await memory.build()


def run_child(name: str, operation: str, place: Place) -> None:
    with Store.open(place.database) as store:
        memory = open_memory(name, store, place.calls)
        asyncio.run(operate(name, operation, memory, place))


def dump(name: str, place: Place) -> str:
    """All that a memory holds: its log of edits, and its state for a conversation."""
    with Store.open(place.database) as store:
        memory = open_memory(name, store, place.calls)
        rows = [
            (own.id, row.chunk, row.op, row.payload, row.outcome, row.reason)
            for own in sorted(store.memories(), key=lambda own: own.id)
            for row in store.edits(own.id)
        ]
        held = memory.export() if "append" in OPERATIONS[name] else None
    return json.dumps([rows, held], sort_keys=True)


def stored_calls(place: Place) -> set[str]:
    keys = set(place.calls.read_text().split()) if place.calls.exists() else set()
    with Store.open(place.database) as store:
        return {key for key in keys if store.find_call(key) is not None}


def run_to_end(name: str, operation: str, place: Place) -> float:
    """Run an operation in a process of its own; give its seconds."""
    process = FORK.Process(target=run_child, args=(name, operation, place))
    began = time.perf_counter()
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"{name} {operation} failed in {place.folder}")
    return time.perf_counter() - began


def kill_at(seconds: float, name: str, operation: str, place: Place) -> bool:
    """Start an operation and kill it after ``seconds``; whether it was still running."""
    process = FORK.Process(target=run_child, args=(name, operation, place))
    process.start()
    process.join(seconds)
    running = process.is_alive()
    process.kill()
    process.join()
    return running


def check_point(
    name: str, operation: str, start: Place, expected: str, seconds: float, folder: Path
) -> list[str]:
    """Kill once, resume, and name what is wrong then."""
    shutil.copytree(start.folder, folder)
    place = Place(folder)
    problems = [] if kill_at(seconds, name, operation, place) else ["ended before the kill"]
    before = stored_calls(place)
    made = len(place.calls.read_text().split()) if place.calls.exists() else 0
    if place.appended.exists():
        with Store.open(place.database) as store:
            kept = {turn.id for turn in store.turns(Conversation.named("talk").id)}
        if set(place.appended.read_text().split()) - kept:
            problems.append("lost a turn")
    run_to_end(name, operation, place)
    again = place.calls.read_text().split()[made:] if place.calls.exists() else []
    problems += ["paid twice"] * bool(before.intersection(again))
    if dump(name, place) != expected:
        problems.append("lost")
    if operation == "forget":
        bytes_left = b"".join(path.read_bytes() for path in folder.glob("mgl.sqlite*")).lower()
        problems += ["word left"] * any(word.encode() in bytes_left for word in SECRETS)
    return problems


def measure(name: str, operation: str, points: int, seed: int, folder: Path) -> Counter[str]:
    start, whole = Place(folder / "start"), Place(folder / "whole")
    start.folder.mkdir(parents=True)
    if operation == "forget":
        run_to_end(name, "build", start)
        start.appended.unlink()
    shutil.copytree(start.folder, whole.folder)
    took = run_to_end(name, operation, whole)
    expected = dump(name, whole)
    draw, found = random.Random(f"{seed} {name} {operation}"), Counter[str]()
    for number in range(points):
        at = folder / f"point{number}"
        problems = check_point(name, operation, start, expected, draw.uniform(0, took), at)
        found.update(problems)
        if not set(problems) - {"ended before the kill"}:
            shutil.rmtree(at)
    return found


FORK = multiprocessing.get_context("fork")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--points", type=int, default=100, help="kills an operation")
    parser.add_argument("--memory", nargs="+", choices=OPERATIONS, default=list(OPERATIONS))
    parser.add_argument("--operation", nargs="+", choices=("build", "append", "forget"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="keep the databases of failed points here")
    options = parser.parse_args(argv)
    failed = False
    folder = options.keep or Path(tempfile.mkdtemp())
    for name in options.memory:
        for operation in OPERATIONS[name]:
            if operation not in (options.operation or (operation,)):
                continue
            own = folder / f"{name}-{operation}"
            found = measure(name, operation, options.points, options.seed, own)
            early = found.pop("ended before the kill", 0)
            problems = ", ".join(f"{many} {what}" for what, many in found.items()) or "none"
            kills = options.points - early
            print(f"{name} {operation}: {kills} kills, problems: {problems}", flush=True)
            failed = failed or bool(found)
    if not options.keep:
        shutil.rmtree(folder)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
