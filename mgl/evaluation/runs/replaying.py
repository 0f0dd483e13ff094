"""A run made again from the log of its calls, without a model: it must give the same bytes.

What an item's model did then, it does again: also its time-outs and refusals, which the log has.
Only an item of which a call failed, its judge's too, may differ, where the same call was answered
to another.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mgl.errors import InputError
from mgl.evaluation.runs.folder import KEPT, RunFolder
from mgl.evaluation.runs.lines import JsonLines
from mgl.evaluation.runs.plan import Plan
from mgl.evaluation.runs.runner import Run
from mgl.evaluation.runs.workplace import OpenModel
from mgl.llm.engines.recorded import FAILURES
from mgl.observer import Observer

__all__ = ["Replay", "replay"]

_FAILED = tuple(kind.__name__ for kind in FAILURES.values())


@dataclass(frozen=True)
class Replay:
    """``differing`` are items and builds (``method: id``) whose lines are not the same, but for
    those in ``exempt``; ``lines`` is how many were compared."""

    lines: int
    differing: tuple[str, ...]
    exempt: tuple[str, ...]


def replay(
    plan: Plan, path: Path, open_model: OpenModel, observer: Observer, *, concurrency: int
) -> Replay:
    """Make a complete run again and compare. ``open_model`` opens what says again what it said.

    InputError for a run that is not complete, EngineUnavailable for a call that the log lacks.
    """
    if plan.manifest.ended is None:
        raise InputError(
            f"the run in {path} is not complete", hint=f"`mgl eval resume {path}` completes it"
        )
    with tempfile.TemporaryDirectory(prefix="mgl-replay-") as scratch:
        again = RunFolder(Path(scratch))
        Run(plan, again, open_model, observer, concurrency=concurrency).go()
        found = [_compared(path / name, Path(scratch) / name) for name in KEPT]
    return Replay(
        sum(one.lines for one in found),
        tuple(name for one in found for name in one.differing),
        tuple(name for one in found for name in one.exempt),
    )


def _compared(recorded: Path, made: Path) -> Replay:
    before, after = _lines(recorded), _lines(made)
    failed = {key for key, (reason, _) in before.items() if any(kind in reason for kind in _FAILED)}
    differing = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    if not differing and _bytes(recorded) != _bytes(made):
        differing = [f"the order of {recorded.name}"]
    return Replay(
        len(before),
        tuple(key for key in differing if key not in failed),
        tuple(key for key in differing if key in failed),
    )


def _lines(path: Path) -> dict[str, tuple[str, bytes]]:
    """The reasons and the bytes of each line, by what it is of."""
    lines = _bytes(path).split(b"\n")
    return {
        _name(row): (" ".join(_reasons(row)), line)
        for row, line in zip(JsonLines(path).rows, lines, strict=False)
    }


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _name(row: Mapping[str, Any]) -> str:
    """``method: id`` of an item or a build; of a pair both methods, and the model."""
    if "forth" in row:
        return f"{row['one']} beside {row['other']}, by {row['model']}: {row['item']}"
    return f"{row['method']}: {row['source'] if 'source' in row else row['item']['id']}"


def _reasons(row: Mapping[str, Any]) -> Iterator[str]:
    orders = [row[order] for order in ("forth", "back") if order in row]
    yield row.get("reason", "")
    yield from (verdict["reason"] for verdict in (*row.get("verdicts", {}).values(), *orders))
