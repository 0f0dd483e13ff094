"""Evaluations and trainings as the inspector shows them: read-only, and their owner's alone.

What a request names is looked up in a listing of one folder, so no request names a path, and a
link that leads out of the folder is not in the listing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mgl.errors import MglError
from mgl.openai.errors import NotServed

if TYPE_CHECKING:
    from mgl.evaluation.audit import Audit, Auditor
    from mgl.evaluation.report.cells import Cell, ReportTable
    from mgl.evaluation.report.report import Chapter, ReportedAnswer, ReportedItem
    from mgl.evaluation.report.runs import StoredRun

_DEPTH: Final = ("*", "*/*")
_QUOTE: Final = 600
_MOST: Final = 300  # questions
_READ: Final = 10  # passages of an answer

Stamp = tuple[int, int]
"""When a file was last written, in ns, and its bytes."""


class Runs:
    """The evaluations in a folder and the trainings in a home; None holds none."""

    def __init__(self, folder: Path | None = None, home: Path | None = None) -> None:
        self._folder = folder
        self._home = home

    def list_all(self) -> list[dict[str, Any]]:
        """List the runs, the newest first, each with its methods' mean scores, or its fault."""
        found = []
        for name, path in self._find_folders().items():
            try:
                found.append({"name": name, **_summarize(path, _stamp(path))})
            except MglError as error:
                found.append({"name": name, "started": "", "fault": str(error)})
        return sorted(found, key=lambda each: str(each["started"]), reverse=True)

    def report(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Report runs by their names: chapters of tables and questions.

        NotServed for a name that is not listed; errors as of ``read_run`` and ``make_report``.
        """
        folders = self._find_folders()
        for name in names:
            if name not in folders:
                raise NotServed(f"there is no run {name!r}", hint="list the runs for their names")
        paths = [folders[name] for name in names]
        return _report(tuple((path, _stamp(path)) for path in paths))

    def list_trainings(self) -> list[dict[str, Any]]:
        """List what is not finished, then the adapters of the home and those that ship."""
        from mgl.models.adapters import list_adapters
        from mgl.training.records import list_unfinished

        if self._home is None:
            return []
        fault = "not finished: the command that began it goes on with it"
        found = [{"name": name, "fault": fault} for name in list_unfinished(self._home)]
        for name in list_adapters(self._home):
            try:
                found.append(_training_json(name, self._home))
            except MglError as error:
                found.append({"name": name, "fault": str(error)})
        return found

    def show_training(self, name: str) -> dict[str, Any]:
        """Say how an adapter was trained, and what was measured; NotServed if there is none."""
        from mgl.models.adapters import list_adapters

        if self._home is None or name not in list_adapters(self._home):
            raise NotServed(f"there is no adapter {name!r}", hint="list the trainings for names")
        return _training_json(name, self._home)

    def _find_folders(self) -> dict[str, Path]:
        from mgl.evaluation.runs.folder import RECORDS
        from mgl.evaluation.runs.manifest import MANIFEST

        if self._folder is None:
            return {}
        root = self._folder.resolve()
        found = {}
        for pattern in _DEPTH:
            for path in root.glob(f"{pattern}/{MANIFEST}"):
                files = (path, path.with_name(RECORDS))
                if all(each.resolve().is_relative_to(root) for each in files):
                    found[path.parent.relative_to(root).as_posix()] = path.parent
        return found


def _training_json(name: str, home: Path) -> dict[str, Any]:
    from mgl.models.adapters import find_adapter
    from mgl.training.records import read_course

    adapter = find_adapter(name, home)
    lists = {"sources", "adapted_to", "questions"}
    manifest = adapter.manifest.model_dump(mode="json")
    return {
        "name": name,
        "identity": adapter.identity,
        **{key: len(value) if key in lists else value for key, value in manifest.items()},
        **asdict(read_course(adapter)),
    }


def _stamp(folder: Path) -> tuple[Stamp, ...]:
    """What a run's files are now; they are read again once it changes."""
    from mgl.evaluation.runs.folder import RECORDS
    from mgl.evaluation.runs.manifest import MANIFEST

    files = [each.stat() for name in (MANIFEST, RECORDS) if (each := folder / name).is_file()]
    return tuple((each.st_mtime_ns, each.st_size) for each in files)


@lru_cache(maxsize=256)
def _summarize(path: Path, stamp: tuple[Stamp, ...]) -> dict[str, Any]:
    from mgl.evaluation.report.runs import read_run
    from mgl.evaluation.runs.due import list_keys
    from mgl.evaluation.runs.folder import summarize

    del stamp
    run = read_run(path)
    manifest, headline = run.manifest, run.manifest.headline
    labels = [method.label for method in manifest.methods]
    methods = []
    for each in summarize(run.records, labels, [headline]):
        score = each.scores[headline]
        mean = None if score is None else score.mean
        about = {"label": each.method, "answers": each.items, "failed": each.failed}
        methods.append({**about, "score": mean})
    return {
        "benchmark": manifest.arguments.benchmark,
        "headline": headline,
        "methods": methods,
        "models": sorted({method.model for method in manifest.methods}),
        "answers": len(run.records),
        "of": len(list_keys(manifest)),
        "started": manifest.started,
        "ended": manifest.ended,
    }


@lru_cache(maxsize=8)
def _report(runs: tuple[tuple[Path, tuple[Stamp, ...]], ...]) -> list[dict[str, Any]]:
    from mgl.evaluation.papers.references import load_references
    from mgl.evaluation.papers.suites import load_suites
    from mgl.evaluation.report.report import make_report
    from mgl.evaluation.report.runs import read_run

    read = [_leave_paths(read_run(path)) for path, _ in runs]
    papers, suites = load_references().values(), load_suites().values()
    return [_chapter_json(each) for each in make_report(read, papers, suites, with_plots=False)]


def _leave_paths(run: StoredRun) -> StoredRun:
    """Forget where a run had its data: files that a manifest names are not opened for a request;
    those in MGL_DATA are."""
    manifest = run.manifest
    arguments = manifest.arguments.model_copy(update={"data": None})
    return replace(run, manifest=manifest.model_copy(update={"arguments": arguments}))


def _chapter_json(chapter: Chapter) -> dict[str, Any]:
    from mgl.evaluation.audit import Auditor, read_dataset

    read = cache(read_dataset)
    auditors = {run.name: Auditor(run.manifest, run.log, None, read) for run in chapter.runs}
    return {
        "title": chapter.title,
        "headline": chapter.headline,
        "notes": chapter.notes,
        "tables": [_table_json(each) for each in chapter.tables],
        "questions": [_question_json(each, auditors) for each in chapter.questions[:_MOST]],
        "left_out": max(0, len(chapter.questions) - _MOST),
    }


def _table_json(table: ReportTable) -> dict[str, Any]:
    rows = [[_cell_json(cell) for cell in row] for row in table.rows]
    about = {"title": table.title, "head": table.head, "notes": table.notes}
    return {**about, "rows": rows, "folded": table.folded}


def _cell_json(cell: Cell) -> dict[str, Any]:
    """A cell as it is read; its interval, of 1, if it is one that is drawn."""
    found = cell.interval if cell.drawn else None
    drawn = None if found is None else [found.low, found.mean, found.high]
    return {"text": cell.text, "beside": cell.beside, "drawn": drawn}


def _question_json(question: ReportedItem, auditors: Mapping[str, Auditor]) -> dict[str, Any]:
    item = question.item
    audits = [auditors[each.series.run.name].audit(each.record) for each in question.answers]
    return {
        "id": item["id"],
        "source": item["source"],
        "category": item["category"],
        "text": item["question"]["text"],
        "golds": item["golds"],
        "kind": question.kind,
        "evidence": [astuple(one) for audit in audits[:1] for one in audit.evidence],
        "answers": [
            _said_json(each, audit) for each, audit in zip(question.answers, audits, strict=True)
        ],
    }


def _said_json(said: ReportedAnswer, audit: Audit) -> dict[str, Any]:
    record = said.record
    verdicts = {name: [verdict.score, verdict.reason] for name, verdict in record.verdicts.items()}
    return {
        "label": said.series.label,
        "verdict": said.verdict,
        "answer": record.answer,
        "reason": record.reason,
        "scores": {**{name: [value, ""] for name, value in record.scores.items()}, **verdicts},
        "read": [astuple(one) for one in audit.retrieved[:_READ]],
        "read_in_all": len(record.retrieved),
        "trace": record.trace,
        "cited": [str(each["quote"])[:_QUOTE] for each in record.citations],
    }
