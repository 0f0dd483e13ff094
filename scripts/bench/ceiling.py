#!/usr/bin/env python3
"""Score every memory with a perfect model in place of a real one.

    python scripts/bench/ceiling.py --data DATA --benchmark locomo,nocha --memory gam,turns

The model knows each item's gold answer and evidence. Asked for an answer, it replies with the gold
if the prompt shows all the evidence, and otherwise declines as the prompt says. It answers Yes or
No truthfully, and fills a memory with sentences of its prompts. So whatever an item loses between
the prompt and the score is a fault of mgl. Each is listed with its reason.

Of an item without marked evidence the gold stands for it, where the source says it word for word;
else every prompt counts as showing it. Memories have the paper's preset.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from perfect import CONTEXT, RECALL, PerfectEngine, Truth, fold

from mgl import registry
from mgl.benchmarks.base import Benchmark, Dataset, Item, source_until
from mgl.benchmarks.drawing import sample as draw
from mgl.cli.progress import open_observer
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.records import Record
from mgl.evaluation.runs.manifest import Method
from mgl.evaluation.runs.units import Ask, Build, LocalExecutor, source_as_read
from mgl.evaluation.scorers.choices import declines
from mgl.evaluation.scorers.registry import score_answer
from mgl.lab import ModelChoice, OwnModels
from mgl.lab.workplace import DATABASE, Workplace
from mgl.memories.options import choose_kind
from mgl.models import shipped
from mgl.observer import SILENT, Observer
from mgl.retrieval.base import Embedder, Reranker
from mgl.retrieval.opening import DEFAULT_EMBEDDER, open_embedder
from mgl.store import Store
from mgl.types import Conversation


@dataclass
class Tally:
    """What became of one method's items of one benchmark."""

    method: str
    benchmark: str
    items: int = 0
    marked: int = 0
    shown: int = 0
    score: float = 0.0
    tokens: int = 0
    lost: dict[str, str] = field(default_factory=dict)

    def add(self, truth: Truth, record: Record, score: float, engine: PerfectEngine) -> None:
        self.items += 1
        self.marked += bool(truth.needles)
        self.tokens += sum(spent.input_tokens for spent in record.usage.values())
        if engine.saw or (engine.asked if not truth.needles else truth.reply is None):
            self.shown += 1
            self.score += score
            if score < 1:
                self.lost[truth.item.id] = explain(truth, record, engine)

    def row(self) -> str:
        given = f"{self.score / self.shown:.3f}" if self.shown else "–"
        shown = f"{self.shown / self.items:.3f}" if self.items else "–"
        tokens = f"{self.tokens / max(1, self.items):,.0f}"
        cells = (self.benchmark, self.method, self.items, self.marked, shown, given, tokens)
        return f"| {' | '.join(map(str, cells))} |"


HEAD: Final = (
    "| benchmark | memory | n | with evidence | evidence shown | score given shown | tokens in |\n"
    "|---|---|---|---|---|---|---|"
)


def explain(truth: Truth, record: Record, engine: PerfectEngine) -> str:
    """Why an item whose evidence was shown lost its score."""
    if record.reason:
        return record.reason
    if not engine.asked:
        return f"never asked for an answer: {record.answer[:60]!r}"
    if engine.cut:
        return "the reply's budget cuts the gold"
    if truth.reply is not None and fold(record.answer) != fold(truth.reply):
        return f"said {truth.reply[:50]!r}, the answer is {record.answer[:50]!r}"
    return f"not counted: {record.answer[:60]!r}"


async def measure(
    place: Workplace,
    engine: PerfectEngine,
    benchmark: Benchmark,
    dataset: Dataset,
    items: Sequence[Item],
    memory: str,
    folder: Path,
    observer: Observer = SILENT,
) -> Tally:
    """Put items to a memory, of which those of one source, asked after one turn, share what is
    built."""
    tally = Tally(memory, benchmark.name)
    kind, config = choose_kind(memory, {}, lambda: "paper")
    method = Method(memory, memory, "perfect", {}, config.model_dump(mode="json"))
    executor = LocalExecutor(place)
    by_source: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        by_source.setdefault((item.source, item.after), []).append(item)
    for number, ((name, after), own) in enumerate(by_source.items()):
        observer.progress(f"{benchmark.name} {memory}", number, len(by_source))
        source = source_until(dataset.sources[name](), after)
        read = source_as_read(source, kind)
        engine.known = [Truth.of(item, source, benchmark.scorers) for item in own]
        text = source.transcript.text if isinstance(source, Conversation) else source.text
        engine.told, engine.truth = fold(text), None
        base = None
        if not kind.question_aware:
            base = folder / f"{memory}-{number}.sqlite"
            work = Build(method, name, source, read, (), after)
            built = await executor.build(work, base, SILENT)
            if built.reason:
                observer.note(f"{memory} of {name}: {built.reason}")
        for truth in engine.known:
            asked = (truth.item.question,) if kind.question_aware else ()
            ask = Ask(Build(method, name, source, read, asked, after), truth.item, base=base)
            engine.begin(truth)
            record = await executor.answer(ask, folder / "answer.sqlite")
            tally.add(
                truth, record, await find_score(place, engine, benchmark, truth, record), engine
            )
    executor.close()
    return tally


async def find_score(
    place: Workplace, engine: PerfectEngine, benchmark: Benchmark, truth: Truth, record: Record
) -> float:
    """The least of what the benchmark's first scorer and its judge give; 0 for a failure."""
    if record.failed:
        return 0.0
    own = [name for name in benchmark.scorers if not name.startswith(RECALL)][:1]
    scores = (
        []
        if truth.reply is None and benchmark.judge
        else [value or 0.0 for value in score_answer(own, truth.item, record).values()]
    )
    if benchmark.judge is not None:
        said = declines(record.answer) if truth.reply is None else None
        engine.right = fold(record.answer) == fold(truth.reply or "") if said is None else said
        verdict = await JUDGES[benchmark.judge].judge(place.client(), truth.item, record)
        scores.append(verdict.score or 0.0)
    return min(scores, default=float(engine.asked))


def run(
    home: Path,
    datasets: Iterable[tuple[Benchmark, Dataset, Sequence[Item]]],
    memories: Callable[[Benchmark], Sequence[str]],
    *,
    embedder: Embedder | None = None,
    reranker: Reranker | None = None,
    choice: ModelChoice | None = None,
    context_tokens: int = CONTEXT,
    observer: Observer = SILENT,
) -> Iterator[Tally]:
    """Measure each memory on each benchmark, in a store of its own; ``home`` has the weights."""
    for benchmark, dataset, items in datasets:
        for memory in memories(benchmark):
            engine = PerfectEngine(context_tokens=context_tokens)
            own = OwnModels(engine, embedder, reranker, choice or ModelChoice())
            with (
                TemporaryDirectory() as folder,
                Store.open(Path(folder) / DATABASE) as store,
                Workplace(home, store, own, observer) as place,
            ):
                work = partial(
                    measure,
                    place,
                    engine,
                    benchmark,
                    dataset,
                    items,
                    memory,
                    Path(folder),
                    observer,
                )
                yield place.run(work)


def list_memories(benchmark: Benchmark) -> list[str]:
    """The memories that can read a benchmark's sources, without peers."""
    names = [name for name in registry.names("memory") if not name.startswith("peer:")]
    reads = {name: registry.load("memory", name).reads for name in names if name != "graph"}
    return [
        name
        for name, own in reads.items()
        if benchmark.reads == "conversation" or own != "conversation"
    ]


def read_data(benchmark: Any, data: Path, count: int) -> Dataset:
    """Read a benchmark's files, or make ``count`` of its items if it makes them."""
    made: Dataset
    if hasattr(benchmark, "generate"):
        config = benchmark.Config(samples=count)
        made = asyncio.run(benchmark.generate(config, PerfectEngine().count_tokens))
    else:
        made = benchmark.read(data / benchmark.about.folder)
    return made


def main() -> None:
    """Print a row for each memory and benchmark, then what was lost and why."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of MGL_DATA")
    parser.add_argument("--benchmark", required=True, help="names, by commas")
    parser.add_argument("--memory", help="names, by commas; all that can read it")
    parser.add_argument("--limit", type=int, default=40, help="items of each benchmark, drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--context", type=int, default=CONTEXT, help="tokens of the model")
    parser.add_argument("--embedder", default=DEFAULT_EMBEDDER)
    parser.add_argument("--reranker", default="all-minilm-l6-v2")
    given = parser.parse_args()
    observer = open_observer()
    found = []
    for name in given.benchmark.split(","):
        benchmark: Benchmark = registry.load("benchmark", name)
        dataset = read_data(benchmark, given.data, given.limit)
        items = draw(dataset.items, limit=given.limit, seed=given.seed)
        found.append((benchmark, dataset, items))
    wanted = given.memory.split(",") if given.memory else None
    print(HEAD)
    tallies = []
    with TemporaryDirectory() as folder, Store.open(Path(folder) / DATABASE) as vectors:
        for tally in run(
            shipped.home(),
            found,
            lambda benchmark: wanted or list_memories(benchmark),
            embedder=open_embedder(given.embedder, shipped.home(), cache=vectors),
            choice=ModelChoice(reranker=given.reranker),
            context_tokens=given.context,
            observer=observer,
        ):
            print(tally.row(), flush=True)
            tallies.append(tally)
    for tally in tallies:
        for item, reason in tally.lost.items():
            print(f"{tally.benchmark} {tally.method} {item}: {reason}")


if __name__ == "__main__":
    main()
