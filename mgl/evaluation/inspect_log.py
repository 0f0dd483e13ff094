"""A run as logs of Inspect (inspect_ai), whose viewer opens them: one file a method.

    inspect view --log-dir logs

The format is version 2 of its JSON logs. A score is on Inspect's scale of 0 to 1. An item that was
not answered has the value 0 and its error; one that lacks a score has no such score.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mgl.errors import UsageError
from mgl.evaluation.records import Record, Spent, replace_file
from mgl.evaluation.runs.folder import RunFolder, list_counted, tally
from mgl.evaluation.runs.manifest import Manifest, Method
from mgl.models.permissions import make_private_folder

VERSION: Final = 2


def write_inspect_logs(run: Path, folder: Path) -> list[Path]:
    """Write a log for each method of a run into ``folder``; give their paths.

    InputError if ``run`` is no run, UsageError if the logs cannot be written.
    """
    manifest, answers = Manifest.read(run), RunFolder(run).log.answers
    try:
        make_private_folder(folder)
    except OSError as error:
        raise UsageError(
            f"cannot write {folder}: {error.strerror}", hint="name another folder"
        ) from error
    paths = []
    for method in manifest.methods:
        own = [record for record in answers.values() if record.method == method.label]
        log = _make_log(run.resolve().name, manifest, method, own)
        spec = log["eval"]
        words = (spec["created"], _join_words(spec["task"]), spec["task_id"])
        path = folder / "_".join(word.replace(":", "-") for word in words)
        paths.append(path.with_name(f"{path.name}.json"))
        replace_file(paths[-1], json.dumps(log, ensure_ascii=False, indent=1).encode())
    return paths


def _join_words(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")


def _make_log(
    run: str, manifest: Manifest, method: Method, records: Sequence[Record]
) -> dict[str, Any]:
    names = [*manifest.judges, *manifest.scorers]
    task = f"{manifest.arguments.benchmark}, {method.label}"
    counted = {name: {one.key for one in list_counted(name, records)} for name in names}
    samples = [
        _make_sample(one, method.model, [name for name in names if one.key in counted[name]])
        for one in records
    ]
    scores = []
    for name in names:
        found = tally(name, records)
        if found is not None:
            mean = {"mean": {"name": "mean", "value": found.mean}}
            counts = {"scored_samples": found.n - found.missing, "unscored_samples": found.missing}
            scores.append({"name": name, "scorer": name, **counts, "metrics": mean})
    return {
        "version": VERSION,
        "status": "success" if manifest.ended else "started",
        "eval": {
            "created": manifest.started,
            "task": task,
            "task_id": hashlib.sha256(f"{run}/{method.label}".encode()).hexdigest()[:22],
            "run_id": run,
            "dataset": {
                "name": manifest.arguments.benchmark,
                "samples": len(manifest.dataset.items),
                "sample_ids": list(manifest.dataset.items),
            },
            "model": method.model,
            "config": {"epochs": manifest.arguments.repeats},
        },
        "plan": {"steps": [{"solver": method.memory, "params": dict(method.config)}]},
        "results": {
            "total_samples": len(manifest.dataset.items) * manifest.arguments.repeats,
            "completed_samples": len(samples),
            "scores": scores,
        },
        "stats": {"started_at": manifest.started, "completed_at": manifest.ended or ""},
        "samples": samples,
    }


def _make_sample(record: Record, model: str, names: Sequence[str]) -> dict[str, Any]:
    item, usage = record.item, _count(record.usage)
    question = item["question"]["text"]
    reply = {"role": "assistant", "content": record.answer}
    error = {"message": record.reason, "traceback": "", "traceback_ansi": ""}
    return {
        "id": item["id"],
        "epoch": record.repeat + 1,
        "input": question,
        "choices": list(item["choices"]) or None,
        "target": list(item["golds"]),
        "messages": [{"role": "user", "content": question}, reply],
        "output": {
            "model": model,
            "choices": [{"message": reply, "stop_reason": "stop"}],
            "usage": usage,
        },
        "scores": {
            name: score for name in names if (score := _make_score(record, name)) is not None
        },
        "metadata": {
            **{name: item[name] for name in ("source", "category", "labels", "evidence")},
            **{name: getattr(record, name) for name in ("confidence", "retrieved", "citations")},
            "memory": record.memory,
        },
        "model_usage": {model: usage},
        "total_time": record.took.get("wall_s"),
        "working_time": record.took.get("own_s"),
        "error": error if record.failed else None,
    }


def _make_score(record: Record, name: str) -> dict[str, Any] | None:
    """The score of an answer, with the words of the judge that gave it."""
    value = 0.0 if record.failed else record.value(name)
    if value is None:
        return None
    verdict = record.verdicts.get(name)
    words = record.reason if verdict is None else verdict.reply
    return {"value": value, "answer": record.answer, "explanation": words or None}


def _count(usage: Mapping[str, Spent]) -> dict[str, int]:
    read = sum(one.input_tokens for one in usage.values())
    written = sum(one.output_tokens for one in usage.values())
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
