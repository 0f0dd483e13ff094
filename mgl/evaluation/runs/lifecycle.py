"""What can be done with a run: start, resume, retry, verify, replay, pack.

    >>> plan = plan_run(arguments, open_model)                                     # doctest: +SKIP
    >>> start_run(plan, Path("runs/locomo"), Execution(open_model, observer))      # doctest: +SKIP
    >>> verify_run(Path("runs/locomo"))                                            # doctest: +SKIP
    [Difference(name='turns: conv-30/q4', what='f1_squad', recorded='1.0', found='0.5')]

Verifying computes every score again from the records; no dataset is needed. Replaying makes the run
again from the log of its calls, without a model, and must give the same bytes: time-outs and
refusals are in the log, too. Only an item with a failed call may differ, if the same call was
answered for another. A packed run has the calls that a replay needs in its own folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mgl import registry
from mgl.errors import InputError, MglError, ResourceError, UsageError
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.records import Record, item_from_json
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.manifest import Manifest, Session, utc_now
from mgl.evaluation.runs.plan import Plan
from mgl.evaluation.runs.provenance import (
    describe_code,
    describe_machine,
    find_prompts,
    installed_packages,
)
from mgl.evaluation.runs.runner import (
    Execution,
    Runner,
    list_keys,
    missing_bertscores,
    pairs_to_compare,
)
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
    "start_run",
    "verify_run",
]

TOLERANCE: Final = 1e-4
"""How far a BERTScore may be off on another machine, which rounds in another order."""

_FAILED: Final = tuple(kind.__name__.encode() for kind in FAILURES.values())


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

    With ``execution.retry`` failed items and verdicts that judges failed to give are tried again;
    an unusable reply is in the log of calls and is not. Other code than the last session's is
    noted. Other prompts are a UsageError: half of the run would be made with each.
    """
    with RunFolder(path).lock():
        folder = RunFolder(path)
        plan = replace(plan, manifest=plan.manifest.with_sessions_of(path))
        last = plan.manifest.sessions[-1] if plan.manifest.sessions else None
        if last is not None and describe_code() != last.code:
            execution.observer.note(
                f"the last session of this run was made with other code: {last.code}"
            )
        if plan.manifest.ended is not None and not execution.retry:
            return plan.manifest
        if last is not None:
            _refuse_other_prompts(last, find_prompts(_parts_with_prompts(plan)))
        if execution.retry:
            failed = sum(record.failed for record in folder.log.answers.values())
            execution.observer.note(f"retrying {failed} failed items")
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
    command = "retry" if execution.retry else "resume"
    resume = f"then continue with `mgl eval {command} {folder.path}`"
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
    """What a record (``method: item``) says of a score, and what was found instead."""

    name: str
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
    found = [Difference(*each) for each in _find_missing(manifest, folder)]
    for record in folder.log.answers.values():
        name = _name(record)
        found += [Difference(name, *each) for each in _verify_record(manifest, record)]
        if match is not None:
            found += [Difference(name, *each) for each in _verify_bertscores(record, match)]
    return found


def _name(record: Record) -> str:
    method, item, repeat = record.key
    return f"{method}: {item}" + (f" ({repeat})" if repeat else "")


def _find_missing(manifest: Manifest, folder: RunFolder) -> Iterator[tuple[str, str, str, str]]:
    """What a complete run lacks, and records that belong to none of its items."""
    log, keys = folder.log, list_keys(manifest)
    for key in sorted(log.answers.keys() - set(keys)):
        yield _name(log.answers[key]), "record", "one", "no item of the run"
    if manifest.ended is None:
        return
    for method, item, repeat in keys:
        if (method, item, repeat) not in log.answers:
            yield f"{method}: {item}", "record", "none", "an item of the run"
    for item, one, other, model in pairs_to_compare(manifest, log.answers):
        if (item, one, other, model) not in log.pairs:
            yield f"{one} beside {other}: {item}", f"preference of {model}", "none", "due"
    once = [seat for seat in manifest.panel if not seat.repeat]
    for record in log.labelled.values():
        for seat in missing_seats(record, once):
            yield _name(record), f"verdict of {seat.key}", "none", "due"


def _verify_record(manifest: Manifest, record: Record) -> Iterator[tuple[str, str, str]]:
    again = {} if record.failed else grade(record, manifest.scorers).scores
    for name in sorted({*record.scores, *again}):
        recorded, computed = record.scores.get(name), again.get(name)
        if recorded != computed:
            yield name, str(recorded), str(computed)
    if manifest.ended is not None:
        for seat in missing_seats(record, manifest.panel):
            yield f"verdict of {seat.key}", "none", "due"
        for name in missing_bertscores(record, manifest.scorers):
            yield name, "none", "due"


def _verify_bertscores(record: Record, match: TokenMatcher) -> Iterator[tuple[str, str, str]]:
    if record.failed:
        return
    scores = bertscores(match, record.answer, item_from_json(record.item).golds)
    for name, value in scores.items():
        recorded = record.scores.get(name)
        if recorded is not None and abs(recorded - value) > TOLERANCE:
            yield name, str(recorded), str(value)


# Replay


@dataclass(frozen=True)
class Replay:
    """``differing`` are items, builds and pairs whose records are not the same, except those in
    ``exempt``, which have a failed call; ``records`` is how many were compared."""

    records: int
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
    before = RunFolder(path).log.lines()
    with tempfile.TemporaryDirectory(prefix="mgl-replay-") as scratch:
        again = RunFolder(Path(scratch))
        Runner(plan, again, execution).run()
        after = again.log.lines()
    differing = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    failed = {name for name in differing if any(kind in before.get(name, b"") for kind in _FAILED)}
    return Replay(
        len(before),
        tuple(name for name in differing if name not in failed),
        tuple(name for name in differing if name in failed),
    )
