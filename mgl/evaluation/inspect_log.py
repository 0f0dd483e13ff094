"""A run as logs of Inspect (inspect_ai), whose viewer opens them: one file a method.

    inspect view --log-dir logs

The format is version 2 of its ``.eval`` logs: a zip with a member a sample. A sample has the
messages of the call that answered, an event for each call with its prompt, reply and tokens, and
scores on Inspect's scale of 0 to 1. An answer that failed is scored 0 and says why; one that lacks
a score has no such score. A judge's calls have Inspect's role ``grader``. Without the store of the
run's calls a sample has its question and answer alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from mgl.errors import UsageError
from mgl.evaluation.audit import Audit, Auditor, LoggedCall
from mgl.evaluation.records import Record, Spent, sum_spent
from mgl.evaluation.runs.folder import list_counted, open_run, tally
from mgl.evaluation.runs.manifest import Manifest, Method
from mgl.llm.base import Message, ToolCall
from mgl.llm.calls import CallRecord, RecordedRun
from mgl.models.permissions import make_private_folder, open_private

VERSION: Final = 2
_GRADER: Final = "grader"
_STOPS: Final = {"length": "max_tokens"}


def write_inspect_logs(run: Path, folder: Path, store: RecordedRun | None = None) -> list[Path]:
    """Write a log for each method of a run into ``folder``; give their paths.

    ``store`` has the run's calls. InputError if ``run`` is no run, UsageError if the logs cannot be
    written.
    """
    manifest, log = open_run(run)
    auditor = Auditor(manifest, log, store)
    paths = []
    try:
        make_private_folder(folder)
        for method in manifest.methods:
            own = [one for one in log.answers.values() if one.method == method.label]
            logged = _MethodLog(run.resolve().name, manifest, method, own)
            spec = logged.header["eval"]
            words = (spec["created"], _join_words(spec["task"]), spec["task_id"])
            name = "_".join(word.replace(":", "-") for word in words)
            paths.append(folder / f"{name}.eval")
            audits = map(auditor.audit, sorted(own, key=lambda one: str(one.item["source"])))
            _write_log(paths[-1], logged, audits)
    except OSError as error:
        raise UsageError(
            f"cannot write {folder}: {error.strerror}", hint="name another folder"
        ) from error
    return paths


def _join_words(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")


def _write_log(path: Path, log: _MethodLog, audits: Iterable[Audit]) -> None:
    """Write the members of a log one by one, as they are read."""
    scratch, summaries, header = path.with_suffix(".part"), [], log.header
    counted = {name: {one.key for one in list_counted(name, log.records)} for name in log.names}
    with open_private(scratch, "wb") as file, ZipFile(file, "w") as members:

        def write(name: str, value: object) -> None:
            text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
            member = ZipInfo(name)
            member.compress_type = ZIP_DEFLATED
            members.writestr(member, text)

        write("_journal/start.json", {key: header[key] for key in ("version", "eval", "plan")})
        for audit in audits:
            own = [name for name in log.names if audit.record.key in counted[name]]
            sample = _make_sample(audit, log, own)
            write(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
            summaries.append(_sum_up(sample))
        write("summaries.json", summaries)
        usage = _add_usage(one["model_usage"] for one in summaries)
        write("header.json", {**header, "stats": {**header["stats"], "model_usage": usage}})
    scratch.replace(path)


@dataclass(frozen=True)
class _MethodLog:
    """One method of a ``run``, and its answers."""

    run: str
    manifest: Manifest
    method: Method
    records: Sequence[Record]

    @property
    def names(self) -> list[str]:
        """The judges and scorers."""
        return [*self.manifest.judges, *self.manifest.scorers]

    @cached_property
    def header(self) -> dict[str, Any]:
        run, manifest, method = self.run, self.manifest, self.method
        scores = []
        for name in self.names:
            found = tally(name, self.records)
            if found is not None:
                mean = {"mean": {"name": "mean", "value": found.mean}}
                counts = {
                    "scored_samples": found.n - found.missing,
                    "unscored_samples": found.missing,
                }
                scores.append({"name": name, "scorer": name, **counts, "metrics": mean})
        return {
            "version": VERSION,
            "status": "success" if manifest.ended else "started",
            "eval": {
                "created": manifest.started,
                "task": f"{manifest.arguments.benchmark}, {method.label}",
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
                "completed_samples": len(self.records),
                "scores": scores,
            },
            "stats": {"started_at": manifest.started, "completed_at": manifest.ended or ""},
        }


def _make_sample(audit: Audit, log: _MethodLog, names: Sequence[str]) -> dict[str, Any]:
    """Make the sample of an answer, with the scores that it counts for, by ``names``."""
    manifest, model = log.manifest, log.method.model
    judges = {seat.key: seat.model for seat in manifest.panel}
    record, item, usage = audit.record, audit.record.item, _count(audit.record.usage)
    question = item["question"]["text"]
    reply = {"role": "assistant", "content": record.answer}
    events = list(_list_events(audit, manifest.started))
    asked = [one for one in events if one["event"] == "model" and one["role"] is None]
    messages = [{"role": "user", "content": question}, reply]
    if asked:
        last = [choice["message"] for choice in asked[-1]["output"]["choices"]]
        messages = [*asked[-1]["input"], *last]
    judged = ({judges[key]: _count(one.usage)} for key, one in record.verdicts.items())
    return {
        "id": item["id"],
        "epoch": record.repeat + 1,
        "input": question,
        "choices": list(item["choices"]) or None,
        "target": list(item["golds"]),
        "messages": messages,
        "output": {
            "model": model,
            "choices": [{"message": reply, "stop_reason": "stop"}],
            "completion": record.answer,
            "usage": usage,
            "error": record.reason or None,
        },
        "scores": {
            name: score for name in names if (score := _make_score(record, name)) is not None
        },
        "metadata": {
            **({"failed": record.reason} if record.failed else {}),
            **{name: item[name] for name in ("source", "category", "labels", "evidence")},
            **{name: getattr(record, name) for name in ("confidence", "citations")},
            "retrieved": [asdict(one) for one in audit.retrieved],
            "memory": record.memory,
        },
        "events": events,
        "model_usage": _add_usage([{model: usage}, *judged]),
        "total_time": record.took.get("wall_s"),
        "working_time": record.took.get("own_s"),
    }


def _list_events(audit: Audit, started: str) -> Iterator[dict[str, Any]]:
    """List an event for each call: those of the memory if it is the answer's own, of the answer,
    and of its judges."""
    record, build = audit.record, audit.build
    at = record.took.get("at")
    time = started if at is None else datetime.fromtimestamp(at, UTC).isoformat()
    base = {"timestamp": time, "working_start": 0.0}
    if build is not None and build.usage:
        calls = sum_spent([build.usage]).calls
        about = {"shared memory": build.source, "calls": calls, **_count(build.usage)}
        yield {"event": "info", **base, "source": "memory", "data": about}
    own = (*(audit.building if build is None else ()), *audit.calls)
    for call, role in (
        *((call, None) for call in own),
        *((call, _GRADER) for calls in audit.judging.values() for call in calls),
    ):
        if call.record is not None:
            yield {**_make_event(call, call.record, role), **base}


def _make_event(call: LoggedCall, known: CallRecord, role: str | None) -> dict[str, Any]:
    request, done, sampling = known.request, known.completion, known.request.sampling
    output: dict[str, Any] = {"model": known.model_id, "choices": [], "time": known.seconds}
    if done is not None:
        message = Message("assistant", done.text, done.tool_calls)
        stop = _STOPS.get(done.finish_reason, done.finish_reason)
        output["choices"] = [{"message": _write_message(message), "stop_reason": stop}]
        output["completion"] = done.text
        cached = done.usage.cached_tokens
        output["usage"] = {
            "input_tokens": done.usage.input_tokens - cached,
            "output_tokens": done.usage.output_tokens,
            "total_tokens": done.usage.input_tokens + done.usage.output_tokens,
            "input_tokens_cache_read": cached,
        }
    return {
        "event": "model",
        "model": known.model_id,
        "role": role,
        "input": [_write_message(message) for message in request.messages],
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": {"type": "object", "properties": {}, **tool.parameters},
            }
            for tool in request.tools
        ],
        "tool_choice": "auto" if request.tools else "none",
        "config": {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "seed": sampling.seed,
        },
        "output": output,
        "error": known.error,
        "working_time": known.seconds,
        "metadata": {
            "key": call.key,
            "stage": known.stage,
            "outcome": known.outcome,
            "edits": list(call.edits),
            "json_schema": None if request.json_schema is None else dict(request.json_schema),
            "choices": list(request.choices),
        },
    }


def _write_message(message: Message) -> dict[str, Any]:
    written: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        written["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        written["tool_calls"] = [_write_call(one) for one in message.tool_calls]
    return written


def _write_call(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = None
    known = arguments if isinstance(arguments, dict) else {"unreadable": call.arguments}
    return {"id": call.id, "function": call.name, "arguments": known, "type": "function"}


def _sum_up(sample: Mapping[str, Any]) -> dict[str, Any]:
    """What the viewer's list of samples shows."""
    names = ("id", "epoch", "input", "choices", "target", "scores", "model_usage", "total_time")
    shown = {name: sample[name] for name in (*names, "working_time")}
    short = {name: sample["metadata"][name] for name in ("source", "category")}
    return {
        **shown,
        "metadata": short,
        "completed": True,
        "message_count": len(sample["messages"]),
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
    spent = sum_spent([usage])
    return {
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "total_tokens": spent.input_tokens + spent.output_tokens,
    }


def _add_usage(parts: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """Add up the tokens of each model."""
    total: dict[str, dict[str, int]] = {}
    for part in parts:
        for model, counts in part.items():
            known = total.setdefault(model, {})
            for name, number in counts.items():
                known[name] = known.get(name, 0) + number
    return total
