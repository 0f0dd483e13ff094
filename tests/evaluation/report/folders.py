"""Run folders written by hand, so that every figure of a report can be worked out beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mgl.evaluation.records import BuildRecord, Record, Spent, VerdictRecord
from mgl.evaluation.runs.manifest import Arguments, DatasetFacts, Manifest, Method, Session
from mgl.llm.engines.recorded import ModelFacts

MODEL = "qwen2.5-7b-instruct"
FACTS = ModelFacts(
    profile=MODEL,
    model_id="Qwen/Qwen2.5-7B-Instruct",
    engine="openvino",
    context_tokens=32_768,
    native_tools=True,
    concurrency=8,
    preset="paper",
    weights_sha256="ab" * 32,
    sampling={"temperature": 0.0},
    embedder="bge-m3",
    reranker="none",
)
SESSION = Session(
    code={"version": "0.1.0", "commit": "0123456789abcdef", "dirty": True},
    packages={},
    prompts={},
    machine={"system": "Linux", "processor": "x86_64", "cores": 2},
    concurrency=8,
    started="2026-01-01T00:00:00+00:00",
    ended="2026-01-01T01:00:00+00:00",
)


@dataclass
class Said:
    """What came of one item: its scores (None: it failed) and what else a record has."""

    scores: Mapping[str, float] | None
    verdict: float | None = None
    reason: str = ""
    answer: str = "an answer"
    ratio: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def method(label: str, memory: str | None = None, model: str = MODEL, **config: Any) -> Method:
    return Method(label, memory or label, model, config, config)


def item(id: str, category: str = "", **more: Any) -> dict[str, Any]:
    """A benchmark's item as a record has it."""
    return {
        "id": id,
        "source": "a source",
        "question": {"text": f"What of {id}?", "asked_at": None},
        "golds": ["gold"],
        "category": category,
        "evidence": [],
        "choices": [],
        "pair": "",
        "labels": {},
        **more,
    }


def record(label: str, about: Mapping[str, Any], said: Said, judge: str | None = None) -> Record:
    failed = said.scores is None
    verdicts = {}
    if judge is not None and not failed:
        verdicts = {judge: VerdictRecord(said.verdict, "…", usage={"judge": Spent(1, 200, 20)})}
    outcome = "failed" if failed else "scored"
    if not failed and not said.scores and said.verdict is None:
        outcome = "unscored"
    values: dict[str, Any] = {
        "method": label,
        "item": about,
        "outcome": outcome,
        "reason": said.reason or ("" if outcome == "scored" else "EngineTimeout: no answer"),
        "answer": "" if failed else said.answer,
        "scores": said.scores or {},
        "verdicts": verdicts,
        "usage": {} if failed else {"answer": Spent(2, 1000, 50)},
        "memory": {} if failed else {"compaction_ratio": said.ratio},
        **said.more,
    }
    return Record(**values)


def write_run(
    folder: Path,
    methods: Sequence[Method],
    items: Sequence[Mapping[str, Any]],
    said: Mapping[str, Sequence[Said]],
    *,
    benchmark: str = "locomo",
    scorers: tuple[str, ...] = ("exact_match",),
    judge: str | None = None,
    builds: Sequence[BuildRecord] = (),
    seconds: Sequence[Mapping[str, Any]] = (),
    sha256: str = "cd" * 32,
    ended: str | None = "2026-01-01T01:00:00+00:00",
    of: int | None = None,
    notes: tuple[str, ...] = (),
    made_with: Mapping[str, Any] | None = None,
) -> Path:
    """A run's folder; ``said`` has what each method said to the items, in their order, and may be
    shorter where a run is not finished."""
    folder.mkdir(parents=True)
    Manifest(
        arguments=Arguments(
            benchmark=benchmark,
            data=Path("data.json"),
            memories=tuple(one.memory for one in methods),
            models=(MODEL,),
            judge=None if judge is None else MODEL,
        ),
        reads="document",
        scorers=scorers,
        judge=judge,
        judge_model=None if judge is None else MODEL,
        methods=tuple(methods),
        models={MODEL: FACTS},
        dataset=DatasetFacts(
            sha256={"data.json": sha256},
            items=tuple(one["id"] for one in items),
            of=of or len(items),
            notes=notes,
            made_with=made_with,
        ),
        sessions=(SESSION,),
        started="2026-01-01T00:00:00+00:00",
        ended=ended,
    ).write(folder)
    records = [
        record(one.label, about, each, judge)
        for one in methods
        for about, each in zip(items, said[one.label], strict=False)
    ]
    _write(folder / "records.jsonl", map(asdict, records))
    _write(folder / "builds.jsonl", map(asdict, builds))
    _write(folder / "seconds.jsonl", seconds)
    return folder


def _write(path: Path, rows: Any) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
