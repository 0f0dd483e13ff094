"""Steps of parts, each done once: figures and ends are lines of JSON in a record.

    record = Record(Path("runs/gpu.jsonl"))
    failed = run_steps(steps, record, minutes=14)

A part that is done is skipped by the next run, one that failed or was interrupted is run again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Figures = Iterator[tuple[str, float | str]]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a step that is done whole; ``shown`` is what --plan prints of it."""

    name: str
    minutes: float
    shown: tuple[str, ...]
    run: Callable[[], Figures] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Step:
    """Parts with one purpose; ``carry`` are files that the machine with the card needs."""

    name: str
    about: str
    parts: tuple[Part, ...]
    carry: tuple[Path, ...] = ()


class Record:
    """The lines of JSON; a last line that was cut off is ignored."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text("utf-8").splitlines(keepends=True) if path.is_file() else []
        if lines and not lines[-1].endswith("\n"):
            path.write_text("".join(lines[:-1]), encoding="utf-8")
            lines.pop()
        read = map(json.loads, lines)
        self.done = {(one["step"], one["part"]) for one in read if one.get("done")}

    def write(self, step: str, part: str, **more: Any) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            line = {"step": step, "part": part, **more, "at": round(time.time())}
            file.write(json.dumps(line) + "\n")
        if more.get("done"):
            self.done.add((step, part))


def run_steps(steps: Sequence[Step], record: Record, minutes: float) -> int:
    """Run what is not done and fits into the minutes left; returns how many parts failed."""
    began, failed = time.monotonic(), 0
    for step in steps:
        for part in step.parts:
            if (step.name, part.name) in record.done:
                continue
            left = minutes - (time.monotonic() - began) / 60
            if part.minutes > left:
                print(f"{step.name} {part.name}: left out, {left:.1f} minutes are left")
                continue
            print(f"{step.name} {part.name}: about {part.minutes:g} minutes", flush=True)
            start = time.monotonic()
            try:
                for name, value in part.run():
                    record.write(step.name, part.name, name=name, value=value)
            except Exception as error:  # the minutes with a card are few: the next part runs
                failed += 1
                told = f"{type(error).__name__}: {error}"
                record.write(step.name, part.name, failed=told)
                print(f"  failed: {told}")
                continue
            seconds = round(time.monotonic() - start, 1)
            record.write(step.name, part.name, done=True, seconds=seconds)
    return failed


def measure_size(path: Path) -> int | None:
    """Bytes of a file or a folder; None if it is not there."""
    if path.is_file():
        return path.stat().st_size
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else []
    return sum(each.stat().st_size for each in files) if files else None


def print_list(steps: Sequence[Step], record: Record) -> None:
    for step in steps:
        left = sum(p.minutes for p in step.parts if (step.name, p.name) not in record.done)
        total = sum(part.minutes for part in step.parts)
        print(f"{step.name}: {step.about}; {total:g} minutes, {left:g} of them left")
        for part in step.parts:
            state = "done" if (step.name, part.name) in record.done else f"{part.minutes:g} min"
            print(f"    {state:>8}  {part.name}")


def print_plan(steps: Sequence[Step], record: Record) -> None:
    for step in steps:
        print(f"== {step.name}: {step.about}")
        for path in step.carry:
            size = measure_size(path)
            print(f"carry {path}: {'not here' if size is None else f'{size:,} bytes'}")
        for part in step.parts:
            if (step.name, part.name) not in record.done:
                print(f"-- {part.name}: {part.minutes:g} minutes", *part.shown, sep="\n")
