"""What can be done with a run: start, resume, retry, verify, replay.

    >>> plan = plan_run(arguments, open_model)                                     # doctest: +SKIP
    >>> start_run(plan, Path("runs/locomo"), Execution(open_model, observer))      # doctest: +SKIP
    >>> verify_run(Path("runs/locomo"))                                            # doctest: +SKIP
    [Difference(method='turns', item='conv-30/q4', what='f1_squad', recorded='1.0', found='0.5')]

Verifying computes every score again from the records; no dataset is needed. Replaying makes the run
again from the log of its calls, without a model, and must give the same bytes: time-outs and
refusals are in the log, too. Only an item with a failed call may differ, if the same call was
answered for another.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from mgl import registry
from mgl.errors import InputError, MglError, ResourceError, UsageError
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.records import JsonLines, Record, item_from_json
from mgl.evaluation.runs.folder import KEPT, RunFolder
from mgl.evaluation.runs.manifest import Manifest, Session, utc_now
from mgl.evaluation.runs.plan import Plan
from mgl.evaluation.runs.provenance import (
    describe_code,
    describe_machine,
    find_prompts,
    installed_packages,
)
from mgl.evaluation.runs.runner import Execution, Runner, missing_bertscores, pairs_to_compare
from mgl.evaluation.runs.units import grade, missing_seats
from mgl.evaluation.scorers.bertscore import bertscore_names, bertscores, bertscores_among
from mgl.llm.engines.recorded import FAILURES
from mgl.retrieval.matching import TokenMatcher

__all__ = [
    "TOLERANCE",
    "Difference",
    "Replay",
    "replay_run",
    "resume_run",
    "retry_run",
    "start_run",
    "verify_run",
]

TOLERANCE: Final = 1e-4
"""How far a BERTScore may be off on another machine, which rounds in another order."""

_FAILED = tuple(kind.__name__ for kind in FAILURES.values())


def start_run(plan: Plan, path: Path, execution: Execution) -> Manifest:
    """Create a run's folder and do all of it; return its manifest at the end.

    UsageError if the folder holds something already. What ends the run early is raised with the
    command that resumes it.
    """
    folder = RunFolder.create(path)
    with folder.lock():
        return _run_session(plan, folder, execution)


def resume_run(plan: Plan, path: Path, execution: Execution) -> Manifest:
    """Do what is left of a run, nothing if it is complete; errors as ``start_run``.

    Other code than the last session's is noted. Other prompts are a UsageError: half of the run
    would be made with each.
    """
    return _continue(plan, path, execution, retry=False)


def retry_run(plan: Plan, path: Path, execution: Execution) -> Manifest:
    """Resume a run, trying again what failed and verdicts that judges failed to give.

    An unusable reply is in the log of calls and is not asked for again.
    """
    return _continue(plan, path, execution, retry=True)


def _continue(plan: Plan, path: Path, execution: Execution, *, retry: bool) -> Manifest:
    folder, observer = RunFolder(path), execution.observer
    with folder.lock():
        plan = replace(plan, manifest=plan.manifest.with_sessions_of(path))
        last = plan.manifest.sessions[-1] if plan.manifest.sessions else None
        if last is not None and describe_code() != last.code:
            observer.note(f"the last session of this run was made with other code: {last.code}")
        if plan.manifest.ended is not None and not retry:
            return plan.manifest
        if last is not None:
            _refuse_other_prompts(last, find_prompts(_parts_with_prompts(plan)))
        if retry:
            items, verdicts = folder.drop_failures()
            observer.note(f"retrying {items} failed items and {verdicts} verdicts")
        return _run_session(plan, folder, execution)


def _parts_with_prompts(plan: Plan) -> list[object]:
    manifest = plan.manifest
    return [
        *(registry.load("memory", method.memory) for method in manifest.methods),
        registry.load("benchmark", manifest.arguments.benchmark),
        *(JUDGES[seat.judge] for seat in manifest.panel),
    ]


def _refuse_other_prompts(last: Session, current: Mapping[str, str]) -> None:
    changed = [name for name, known in last.prompts.items() if current.get(name) != known]
    if changed:
        raise UsageError(
            f"prompts have changed since the last session: {', '.join(changed)}",
            hint="resume with the code that started the run, or start another (--out)",
        )


def _run_session(plan: Plan, folder: RunFolder, execution: Execution) -> Manifest:
    session = Session(
        code=describe_code(),
        packages=installed_packages(),
        prompts=find_prompts(_parts_with_prompts(plan)),
        machine=describe_machine(),
        concurrency=execution.concurrency,
        executor=execution.executor,
        started=utc_now(),
    )
    before = plan.manifest.sessions
    manifest = plan.manifest.model_copy(update={"sessions": (*before, session), "ended": None})
    manifest.write(folder.path)
    resume = f"then resume with `mgl eval resume {folder.path}`"
    try:
        Runner(plan, folder, execution).run()
    except MglError as error:
        raise type(error)(error.message, hint=f"{error.hint}; {resume}") from error
    except OSError as error:
        raise ResourceError(
            f"cannot write {error.filename or folder.path} ({error.strerror})",
            hint=f"make room for the run's stores; {resume}",
        ) from error
    ended = utc_now()
    session = session.model_copy(update={"ended": ended})
    manifest = manifest.model_copy(update={"sessions": (*before, session), "ended": ended})
    manifest.write(folder.path)
    return manifest


# Verify


@dataclass(frozen=True, slots=True)
class Difference:
    """What a record says of a score or its outcome, and what was found instead."""

    method: str
    item: str
    what: str
    recorded: str
    found: str


def verify_run(path: Path, match: TokenMatcher | None = None) -> list[Difference]:
    """List everything in a run's folder that does not agree; InputError if it is unreadable.

    ``match`` computes BERTScores again, which are trusted without it; UsageError if it is of
    another model than the run's.
    """
    manifest, folder = Manifest.read(path), RunFolder(path)
    own = bertscores_among(manifest.scorers)
    if match is not None and own != bertscore_names(match.model_id):
        raise UsageError(
            f"the run has {', '.join(own) or 'no BERTScore'}, not those of {match.model_id}",
            hint="give the model of the run",
        )
    found = list(_verify_keys(manifest, folder))
    for (method, item), record in folder.records.items():
        found += (Difference(method, item, *one) for one in _verify_record(manifest, record))
        if match is not None:
            found += (Difference(method, item, *one) for one in _verify_bertscores(record, match))
    return found


def _verify_keys(manifest: Manifest, folder: RunFolder) -> Iterator[Difference]:
    """What a complete run lacks, and records that belong to none of its items."""
    keys = {(m.label, item) for m in manifest.methods for item in manifest.dataset.items}
    if manifest.ended is not None:
        for method, item in sorted(keys - folder.records.keys()):
            yield Difference(method, item, "record", "none", "an item of the run")
        for item, one, other, model in pairs_to_compare(manifest, folder.records):
            if (item, one, other, model) not in folder.pairs:
                yield Difference(
                    f"{one} beside {other}", item, f"preference of {model}", "none", "due"
                )
        once = [seat for seat in manifest.panel if not seat.repeat]
        for name, record in folder.labelled.items():
            for seat in missing_seats(record, once):
                yield Difference(record.method, name, f"verdict of {seat.key}", "none", "due")
    for method, item in sorted(folder.records.keys() - keys):
        yield Difference(method, item, "record", "one", "no item of the run")


def _verify_record(manifest: Manifest, record: Record) -> Iterator[tuple[str, str, str]]:
    again = grade(record, manifest)
    for name in sorted({*record.scores, *again.scores}):
        recorded, computed = record.scores.get(name), again.scores.get(name)
        if recorded != computed:
            yield name, str(recorded), str(computed)
    if record.outcome == "failed" and record.scores:
        yield "outcome", "failed", "scores of an answer"
    if record.outcome != again.outcome:
        yield "outcome", record.outcome, again.outcome
    if manifest.ended is not None:
        for seat in missing_seats(record, manifest.panel):
            yield f"verdict of {seat.key}", "none", "due"
        for name in missing_bertscores(record, manifest.scorers):
            yield name, "none", "due"


def _verify_bertscores(record: Record, match: TokenMatcher) -> Iterator[tuple[str, str, str]]:
    if record.outcome == "failed":
        return
    scores = bertscores(match, record.answer, item_from_json(record.item).golds)
    for name, value in scores.items():
        recorded = record.scores.get(name)
        if recorded is not None and abs(recorded - value) > TOLERANCE:
            yield name, str(recorded), str(value)


# Replay


@dataclass(frozen=True)
class Replay:
    """``differing`` are items and builds (``method: id``) whose lines are not the same, except
    those in ``exempt``; ``lines`` is how many were compared."""

    lines: int
    differing: tuple[str, ...]
    exempt: tuple[str, ...]


def replay_run(plan: Plan, path: Path, execution: Execution) -> Replay:
    """Make a complete run again and compare; its models only repeat what the log has.

    InputError for a run that is not complete, EngineUnavailable for a call that the log lacks.
    """
    if plan.manifest.ended is None:
        raise InputError(
            f"the run in {path} is not complete", hint=f"complete it: `mgl eval resume {path}`"
        )
    with tempfile.TemporaryDirectory(prefix="mgl-replay-") as scratch:
        Runner(plan, RunFolder(Path(scratch)), execution).run()
        found = [_compare_files(path / name, Path(scratch) / name) for name in KEPT]
    return Replay(
        sum(one.lines for one in found),
        tuple(name for one in found for name in one.differing),
        tuple(name for one in found for name in one.exempt),
    )


def _compare_files(recorded: Path, made: Path) -> Replay:
    before, after = _read_lines(recorded), _read_lines(made)
    failed = {key for key, (reason, _) in before.items() if any(kind in reason for kind in _FAILED)}
    differing = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    if not differing and _read_bytes(recorded) != _read_bytes(made):
        differing = [f"the order of {recorded.name}"]
    return Replay(
        len(before),
        tuple(key for key in differing if key not in failed),
        tuple(key for key in differing if key in failed),
    )


def _read_lines(path: Path) -> dict[str, tuple[str, bytes]]:
    """The reasons and the bytes of each line, by the item that it records."""
    lines = _read_bytes(path).split(b"\n")
    return {
        _name(row): (" ".join(_reasons(row)), line)
        for row, line in zip(JsonLines(path).rows, lines, strict=False)
    }


def _read_bytes(path: Path) -> bytes:
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
