"""Run folders written by hand, so that every figure of a report can be worked out beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mgl.evaluation.records import BuildRecord, Record, Spent, VerdictRecord
from mgl.evaluation.report.frame import Frame
from mgl.evaluation.report.runs import group_runs, read_run
from mgl.evaluation.runs.folder import RunFolder
from mgl.evaluation.runs.manifest import (
    Arguments,
    DatasetFacts,
    JudgedBy,
    Manifest,
    Method,
    Session,
)
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
    ratio: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def method(label: str, memory: str | None = None, model: str = MODEL, **config: Any) -> Method:
    return Method(label, memory or label, model, config, config)


def item(id: str, category: str = "", source: str = "a source", **more: Any) -> dict[str, Any]:
    """A benchmark's item as a record has it."""
    return {
        "id": id,
        "source": source,
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
    if said.scores is None:
        return Record(label, about, reason="EngineTimeout: no answer")
    verdict = VerdictRecord(said.verdict, "…", usage={"judge": Spent(1, 200, 20)})
    made = Record(
        label,
        about,
        answer="an answer",
        scores=said.scores,
        verdicts={} if judge is None else {judge: verdict},
        usage={"answer": Spent(2, 1000, 50)},
        memory={"compaction_ratio": said.ratio},
        took={"own_s": 2.0, "replayed": 0, "at": 1767226800.0, "stages": {"answer": 1.5}},
    )
    return replace(made, **said.more)


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
    sha256: str = "cd" * 32,
    **manifest: Any,
) -> Path:
    """A run's folder; ``said`` has what each method said to the items, in their order, and may be
    shorter where a run is not finished. More of it than items are repeats."""
    folder.mkdir(parents=True)
    repeats = max(1, max(map(len, said.values())) // len(items))
    values: dict[str, Any] = {
        "arguments": Arguments(
            benchmark=benchmark,
            data=Path("data.json"),
            memories=tuple(one.memory for one in methods),
            models=(MODEL,),
            repeats=repeats,
        ),
        "reads": "document",
        "scorers": scorers,
        "headline": judge or scorers[0],
        "judged_by": () if judge is None else (JudgedBy(judge=judge, model="a-judge"),),
        "methods": tuple(methods),
        "models": {MODEL: FACTS},
        "dataset": DatasetFacts(
            sha256={"data.json": sha256},
            items=tuple(one["id"] for one in items),
            of=len(items),
        ),
        "sessions": (SESSION,),
        "started": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T01:00:00+00:00",
    }
    Manifest(**{**values, **manifest}).write(folder)
    log = RunFolder(folder).log
    for build in builds:
        log.add_build(build)
    for one in methods:
        for number, each in enumerate(said[one.label]):
            made = record(one.label, items[number % len(items)], each, judge)
            made = replace(made, repeat=number // len(items))
            log.add_answer(made)
            for name, verdict in made.verdicts.items():
                log.add_verdict(made, name, verdict)
    return folder


def make_frame(
    folder: Path,
    items: Sequence[Mapping[str, Any]],
    said: Mapping[str, Sequence[Said]],
    methods: Sequence[Method] = (),
    **options: Any,
) -> Frame:
    """The frame of a run that ``write_run`` writes; without methods, of one for each name."""
    made = methods or [method(label) for label in said]
    return read_frame(write_run(folder / "run", made, items, said, **options))


def read_frame(*folders: Path) -> Frame:
    """The frame of the only group of some runs."""
    (group,) = group_runs([read_run(folder) for folder in folders])
    return Frame(group)
