"""A run begun, and gone on with: its folder, its manifest, and the session of this process.

>>> begin(plan, Path("runs/locomo"), open_model, observer, concurrency=8)       # doctest: +SKIP
>>> resume(plan, Path("runs/locomo"), open_model, observer, concurrency=8)      # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mgl import registry
from mgl.errors import MglError, ResourceError, UsageError
from mgl.evaluation.judges import preferring
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.runs.executing import OpenExecutor, here
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.manifest import ExecutorName, Manifest, Session, now
from mgl.evaluation.runs.plan import Plan
from mgl.evaluation.runs.provenance import code, machine, packages, prompts
from mgl.evaluation.runs.runner import Run
from mgl.evaluation.runs.workplace import OpenModel
from mgl.observer import Observer

__all__ = ["begin", "resume"]


def begin(
    plan: Plan,
    path: Path,
    open_model: OpenModel,
    observer: Observer,
    *,
    concurrency: int,
    keep: bool = False,
    executor: ExecutorName = "local",
    execute: OpenExecutor = here,
) -> Manifest:
    """Make a new folder for a run and do all of it; its manifest at the end.

    UsageError where the folder holds something already. What ends the run before it is done is
    raised with the command that goes on with it.
    """
    folder = RunFolder.begun(path)
    with folder.held():
        return _session(
            plan,
            folder,
            open_model,
            observer,
            concurrency=concurrency,
            keep=keep,
            executor=executor,
            execute=execute,
        )


def resume(
    plan: Plan,
    path: Path,
    open_model: OpenModel,
    observer: Observer,
    *,
    concurrency: int,
    keep: bool = False,
    executor: ExecutorName = "local",
    execute: OpenExecutor = here,
    retry_failed: bool = False,
) -> Manifest:
    """Do what is left of a run, which is nothing where it is complete; errors as ``begin``.

    With ``retry_failed`` what failed is left, too, and verdicts that a judge failed to give; a
    reply that could not be used is in the log of calls, though, and is not asked for again. Other
    code than the last session's is noted; other prompts are a UsageError, since half of the run
    would be of each.
    """
    folder = RunFolder(path)
    with folder.held():
        plan = replace(plan, manifest=plan.manifest.as_left(path))
        last = plan.manifest.sessions[-1] if plan.manifest.sessions else None
        if last is not None and code() != last.code:
            observer.note(f"the run was last worked on by other code: {last.code}")
        if plan.manifest.ended is not None and not retry_failed:
            return plan.manifest
        if last is not None:
            _refuse_other_prompts(last, prompts(_parts(plan)))
        if retry_failed:
            items, verdicts = folder.forget_failed()
            observer.note(f"{items} failed items and {verdicts} verdicts are tried again")
        return _session(
            plan,
            folder,
            open_model,
            observer,
            concurrency=concurrency,
            keep=keep,
            executor=executor,
            execute=execute,
        )


def _parts(plan: Plan) -> list[object]:
    """What has prompts in a run."""
    manifest = plan.manifest
    return [
        *(registry.load("memory", method.memory) for method in manifest.methods),
        registry.load("benchmark", manifest.arguments.benchmark),
        *(JUDGES[seat.judge] for seat in manifest.panel),
        *([preferring] if manifest.arguments.judge_pairs else []),
    ]


def _refuse_other_prompts(before: Session, current: Mapping[str, str]) -> None:
    changed = [name for name, known in before.prompts.items() if current.get(name) != known]
    if changed:
        raise UsageError(
            f"prompts have changed since the run was last worked on: {', '.join(changed)}",
            hint="go on with the code that it was begun with, or begin another run (--out)",
        )


def _session(
    plan: Plan,
    folder: RunFolder,
    open_model: OpenModel,
    observer: Observer,
    *,
    concurrency: int,
    keep: bool,
    executor: ExecutorName,
    execute: OpenExecutor,
) -> Manifest:
    session = Session(
        code=code(),
        packages=packages(),
        prompts=prompts(_parts(plan)),
        machine=machine(),
        concurrency=concurrency,
        executor=executor,
        started=now(),
    )
    before = plan.manifest.sessions
    manifest = plan.manifest.model_copy(update={"sessions": (*before, session), "ended": None})
    manifest.write(folder.path)
    run = Run(
        plan, folder, open_model, observer, concurrency=concurrency, keep=keep, execute=execute
    )
    goes_on = f"`mgl eval resume {folder.path}` goes on"
    try:
        run.go()
    except MglError as error:
        raise type(error)(error.message, hint=f"{error.hint}; {goes_on}") from error
    except OSError as error:
        raise ResourceError(
            f"cannot write {error.filename or folder.path} ({error.strerror})",
            hint=f"make room for the run's stores; {goes_on}",
        ) from error
    ended = now()
    session = session.model_copy(update={"ended": ended})
    manifest = manifest.model_copy(update={"sessions": (*before, session), "ended": ended})
    manifest.write(folder.path)
    return manifest
