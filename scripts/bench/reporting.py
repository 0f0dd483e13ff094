#!/usr/bin/env python3
"""Time a report of made records: no model is asked, and what the scores say means nothing.

    python scripts/bench/reporting.py [--records 100000] [--out report.html]

Five methods answer the same items of 20 sources in 5 categories, with three scores, a judge whose
verdict is unreadable now and then, 1% of failures, and prompts of 4,000 characters. Exit code 1 if
reading the records and making the report's own page take more than 30 seconds together; with
``--out`` the questions' pages are written, too.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mgl.evaluation.papers.references import load_references
from mgl.evaluation.papers.suites import load_suites
from mgl.evaluation.records import encode_row
from mgl.evaluation.report.pages import render_page, write_report
from mgl.evaluation.report.report import make_report
from mgl.evaluation.report.runs import read_run
from mgl.evaluation.runs.folder import RECORDS
from mgl.evaluation.runs.manifest import Arguments, DatasetFacts, JudgedBy, Manifest, Method
from mgl.llm.base import Completion, Message, Request, TokenUsage
from mgl.llm.calls import CallRecord
from mgl.llm.engines.recorded import ModelFacts

MODEL: Final = "qwen2.5-7b-instruct"
METHODS: Final = ("gam", "turns", "naive-rag", "read-agent", "transcript")
SCORES: Final = ("f1_set_amem", "bleu1_amem", "f1_locomo_official")
CATEGORIES: Final = ("multi-hop", "temporal", "open-domain", "single-hop", "adversarial")
MOST_SECONDS: Final = 30


def write_run(folder: Path, n: int) -> None:
    items = n // len(METHODS)
    facts = ModelFacts(
        profile=MODEL,
        model_id="made",
        engine="openvino",
        context_tokens=32_768,
        native_tools=True,
        concurrency=8,
        preset="paper",
        weights_sha256=None,
        sampling={},
        embedder="made",
        reranker="made",
    )
    Manifest(
        arguments=Arguments(benchmark="locomo", data=None, memories=METHODS, models=(MODEL,)),
        reads="conversation",
        scorers=SCORES,
        headline="locomo",
        judged_by=(JudgedBy(judge="locomo", model="a-judge"),),
        methods=tuple(Method(one, one, MODEL, {}, {}) for one in METHODS),
        models={MODEL: facts},
        dataset=DatasetFacts(sha256={}, items=tuple(f"q{one}" for one in range(items)), of=items),
        started="2026-01-01T00:00:00+00:00",
        ended="2026-01-01T01:00:00+00:00",
    ).write(folder)
    with (folder / RECORDS).open("wb") as file:
        file.writelines(encode_row(row) for row in make_rows(items))


def make_rows(items: int) -> Iterator[dict[str, Any]]:
    by = random.Random(0)
    for one in range(items):
        yield {
            "kind": "item",
            "id": f"q{one}",
            "source": f"conv-{one % 20}",
            "question": {"text": "What did Ann say of the harbour?"},
            "golds": ["that it was quiet"],
            "category": CATEGORIES[one % 5],
            "labels": {"category": str(one % 5 + 1)},
        }
    for skill, method in enumerate(METHODS):
        for one in range(items):
            key = {"method": method, "item": f"q{one}", "repeat": 0}
            if by.random() < 0.01:
                yield {"kind": "answer", **key, "reason": "EngineTimeout: no answer in time"}
                continue
            scores = {name: min(1.0, by.random() + skill / 50) for name in SCORES}
            usage = {"answer": {"calls": 1, "input_tokens": by.randrange(4000), "output_tokens": 9}}
            took = {"own_s": 1.0, "replayed": 0, "at": 1767226800.0, "keys": [f"{method} {one}"]}
            yield {"kind": "answer", **key, "answer": "Quiet.", "scores": scores, "usage": usage,
                   "took": took}  # fmt: skip
            verdict = None if by.random() < 0.01 else float(by.random() < 0.5 + skill / 50)
            yield {"kind": "verdict", **key, "judge": "locomo", "score": verdict, "reply": "{}"}


class _Calls:
    """Has a call under every key."""

    def find_call(self, key: str) -> CallRecord:
        prompt = Message("user", f"{key}: {'what was said of the harbour ' * 138}")
        done = Completion("Quiet.", "stop", TokenUsage(900, 3, 0))
        return CallRecord(key, "answer", MODEL, Request((prompt,)), done, "ok", None, 1.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_run(Path(folder), given.records)
        start = time.perf_counter()
        run = read_run(Path(folder))
        read = time.perf_counter()
        chapters = make_report([run], load_references().values(), load_suites().values())
        made = time.perf_counter()
        page = render_page(chapters, "items")
        end = time.perf_counter()
        if given.out is not None:
            pages = write_report(chapters, given.out, {run.name: _Calls()})  # type: ignore[dict-item]
            size = sum(each.stat().st_size for each in pages.iterdir())
            took = time.perf_counter() - end
            print(f"{len(chapters[0].questions):,} pages, {size / 1e6:.1f} MB: {took:.1f} s")
    for what, seconds in (("read", read - start), ("made", made - read), ("written", end - made)):
        print(f"{what}: {seconds:.1f} s")
    print(f"{given.records:,} records, {len(page) / 1e6:.1f} MB: {end - start:.1f} s")
    return int(end - start > MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
