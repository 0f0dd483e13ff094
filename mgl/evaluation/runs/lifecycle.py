"""What can be done with a run: start, resume, retry, verify, replay, pack.

    >>> plan = plan_run(arguments, open_model)                                     # doctest: +SKIP
    >>> start_run(plan, Path("runs/locomo"), Execution(open_model, observer))      # doctest: +SKIP
    >>> verify_run(Path("runs/locomo"))                                            # doctest: +SKIP
    [Difference(name='turns: conv-30/q4', what='f1_squad', recorded='1.0', found='0.5')]

Verifying computes every score again from the records, and reads every verdict again from its reply;
no dataset is needed. Replaying makes the run again from the log of its calls, without a model, and
must give the same bytes: time-outs, refusals and unusable replies are in the log, too. Only an item
with a failed call may differ, if the same call was answered for another. A packed run has the calls
that a replay needs in its own folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from mgl import registry
from mgl.errors import InputError, MglError, ReplyInvalid, ResourceError, UsageError
from mgl.evaluation.judges.judging import find_judge, read_again
from mgl.evaluation.records import Record, RunLog, item_from_json
from mgl.evaluation.runs.due import due_answers, due_bertscores, due_verdicts, list_keys
from mgl.evaluation.runs.folder import RunFolder, open_run
from mgl.evaluation.runs.manifest import Manifest, Session, utc_now
from mgl.evaluation.runs.plan import RunPlan
from mgl.evaluation.runs.provenance import (
    describe_code,
    describe_machine,
    find_prompts,
    installed_packages,
)
from mgl.evaluation.runs.runner import Execution, Runner
from mgl.evaluation.scorers.bertscore import bertscore_names, bertscores, bertscores_among
from mgl.evaluation.scorers.registry import score_answer
from mgl.llm.calls import CallRecord
from mgl.llm.concurrency import Portal
from mgl.llm.engines.recorded import FAILURES
from mgl.retrieval.matching import TokenMatcher
from mgl.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOLERANCE: Final = 1e-4
"""How far a BERTScore may be off on another machine, which rounds in another order."""

_FAILED: Final = tuple(kind.__name__.encode() for kind in (*FAILURES.values(), ReplyInvalid))


def start_run(plan: RunPlan, path: Path, execution: Execution) -> Manifest:
    """Create a run's folder and do all of it; return its manifest at the end.

    UsageError if the folder holds something already. What ends the run early is raised with the
    command that resumes it.
    """
    folder = RunFolder.create(path)
    with folder.lock():
        return _run_session(plan, folder, execution)


def resume_run(plan: RunPlan, path: Path, execution: Execution) -> Manifest:
    """Do what is left of a run, nothing if it is complete; errors as ``start_run``.

    With ``execution.retry`` failed items and verdicts that judges failed to give are tried again,
    unusable replies as well. Other code than the last session's is
    noted. Other prompts are a UsageError: half of the run would be made with each.
    """
    with RunFolder(path).lock():
        folder, manifest = RunFolder(path), Manifest.read(path)  # as they are under the lock
        plan = replace(plan, manifest=manifest)
        last = manifest.sessions[-1] if manifest.sessions else None
        if last is not None and describe_code() != last.code:
            execution.observer.note(
                f"the last session of this run was made with other code: {last.code}"
            )
        if manifest.ended is not None and not execution.retry:
            return manifest
        prompts = _find_prompts(manifest)
        known = {} if last is None else last.prompts
        if changed := [name for name in known if prompts.get(name) != known[name]]:
            raise UsageError(
                f"prompts have changed since the last session: {', '.join(changed)}",
                hint="resume with the code that started the run, or start another (--out)",
            )
        if execution.retry:
            failed = sum(record.failed for record in folder.log.answers.values())
            execution.observer.note(f"retrying {failed} failed item{'s' * (failed != 1)}")
        return _run_session(plan, folder, execution)


def _find_prompts(manifest: Manifest) -> dict[str, str]:
    memories = (registry.load("memory", method.memory) for method in manifest.methods)
    benchmark = registry.load("benchmark", manifest.arguments.benchmark)
    return find_prompts(
        [*memories, benchmark, *(find_judge(seat.judge) for seat in manifest.panel)]
    )


def _run_session(plan: RunPlan, folder: RunFolder, execution: Execution) -> Manifest:
    session = Session(
        code=describe_code(),
        packages=installed_packages(),
        prompts=_find_prompts(plan.manifest),
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
    manifest, log = open_run(path)
    own = bertscores_among(manifest.scorers)
    if match is not None and own != bertscore_names(match.model_id):
        raise UsageError(
            f"the run has {', '.join(own) or 'no BERTScore'}, not those of {match.model_id}",
            hint="give the model of the run",
        )
    foreign = log.answers.keys() - set(list_keys(manifest))
    found = [
        Difference(log.answers[key].name, "record", "one", "no item of the run")
        for key in sorted(foreign)
    ]
    for record in log.answers.values():
        found += _verify_scores(record, manifest.scorers, match)
    with Portal() as portal:
        found += portal.run(lambda: _verify_verdicts(manifest, log))
    return found if manifest.ended is None else [*found, *_list_missing(manifest, log)]


def _verify_scores(
    record: Record, scorers: Sequence[str], match: TokenMatcher | None
) -> Iterator[Difference]:
    recorded = dict(record.scores)
    by_model = {name: recorded.pop(name) for name in bertscores_among(record.scores)}
    item = item_from_json(record.item)
    again = {} if record.failed else score_answer(scorers, item, record)
    for name in sorted({*recorded, *again}):
        if recorded.get(name) != again.get(name):
            yield Difference(record.name, name, str(recorded.get(name)), str(again.get(name)))
    if match is not None and by_model:
        for name, value in bertscores(match, record.answer, item.golds).items():
            known = by_model.get(name)
            if known is not None and abs(known - value) > TOLERANCE:
                yield Difference(record.name, name, str(known), str(value))


async def _verify_verdicts(manifest: Manifest, log: RunLog) -> list[Difference]:
    """List the verdicts that are not what their replies say."""
    found = []
    for record in (*log.answers.values(), *log.labelled.values()):
        item = item_from_json(record.item)
        for seat in manifest.panel:
            if (verdict := record.verdicts.get(seat.key)) is None:
                continue
            judge = partial(find_judge(seat.judge).judge, item=item, record=record)
            again = await read_again(verdict, partial(judge, sampling=seat.sampling))
            if again != verdict.score:
                what = f"verdict of {seat.key}"
                found.append(Difference(record.name, what, str(verdict.score), str(again)))
    return found


def _list_missing(manifest: Manifest, log: RunLog) -> Iterator[Difference]:
    """List what a complete run lacks."""
    for method, item, _ in due_answers(manifest, log):
        yield Difference(f"{method}: {item}", "record", "none", "an item of the run")
    for record, seat in due_verdicts(manifest, log):
        yield Difference(record.name, f"verdict of {seat.key}", "none", "due")
    for record, names in due_bertscores(manifest.scorers, log):
        yield from (Difference(record.name, name, "none", "due") for name in names)


# Replay and pack


@dataclass(frozen=True)
class Replay:
    """``differing`` are items and builds whose records are not the same, except those in
    ``exempt``, which have a failed call; ``records`` is how many were compared."""

    records: int
    differing: tuple[str, ...]
    exempt: tuple[str, ...]


def replay_run(plan: RunPlan, path: Path, execution: Execution) -> Replay:
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


class PackingStore(Store):
    """A new store that copies into itself what is read from another.

    A replay over it copies just what replaying the run takes: calls, token counts and vectors.
    """

    _from: Store

    @classmethod
    def over(cls, source: Store, path: Path) -> Self:
        """Open a store at ``path`` that copies from ``source``."""
        store = cls.open(path)
        store._from = source
        return store

    def find_call(self, key: str) -> CallRecord | None:
        return self._copy(super().find_call(key), self._from.find_call(key))

    def find_failure(self, key: str) -> CallRecord | None:
        return self._copy(super().find_failure(key), self._from.find_failure(key))

    def _copy(self, own: CallRecord | None, found: CallRecord | None) -> CallRecord | None:
        if own is None and found is not None:
            self.add_call(found, None)
        return own or found

    def token_counts(self, model_id: str, texts: Sequence[str]) -> list[int | None]:
        counts = self._from.token_counts(model_id, texts)
        known = zip(texts, counts, strict=True)
        self.put_token_counts(model_id, {text: n for text, n in known if n is not None})
        return counts

    def vectors(self, model_id: str, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        import numpy as np

        found = self._from.vectors(model_id, texts)
        known = [(text, one) for text, one in zip(texts, found, strict=True) if one is not None]
        if known:
            self.put_vectors(model_id, [text for text, _ in known], np.stack([v for _, v in known]))
        return found
