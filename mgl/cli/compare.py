"""``mgl train compare``: an adapter beside what it replaces, on data that it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.eval import find_benchmark
from mgl.cli.options import AsJson, Data, Sources, argument, open_lab, option, split_list
from mgl.cli.output import print_json, print_table, say
from mgl.cli.progress import open_observer
from mgl.errors import UsageError

if TYPE_CHECKING:
    from mgl.evaluation.runs.manifest import Arguments
    from mgl.evaluation.runs.retrieving import Recalls
    from mgl.models.adapters import LoraAdapter
    from mgl.training.data import Dialogue, Example

Rows = Annotated[list[Path] | None, option("--rows FILE", "Rows of `mgl train data` (repeatable).")]


def compare(
    name: Annotated[str, argument("NAME", "An adapter (`mgl models`).")],
    rows: Rows = None,
    benchmark: Annotated[str, option("--benchmark NAME", "Measure recall on it.")] = "locomo",
    memory: Annotated[list[str] | None, option("--memory NAME,…", "Memories to read with.")] = None,
    source: Sources = None,
    data: Data = None,
    allow_leak: Annotated[
        bool, option("--allow-leak", "Measure it on what it was trained on, too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare an adapter with what it replaces, on unseen data.

    A retriever is compared by the evidence that memories return, question by question, a reranker
    by what GAM returns, read by its preset small and as in its paper; a detector of boundaries by
    the labels of --rows. A difference whose interval holds 0 shows nothing.
    """
    from mgl.models.adapters import find_adapter
    from mgl.models.shipped import home
    from mgl.training.data import Dialogue, Example, read_rows

    adapter = find_adapter(name, home())
    if adapter.manifest.kind == "builder":
        raise UsageError(
            f"{name} builds memories: these are compared by the answers that they give",
            hint="run `mgl eval` with --adapter and without it",
        )
    if adapter.manifest.kind == "yes-no":
        answered = [row for path in rows or () for row in read_rows(path, Example)]
        _compare_judges(adapter, answered, as_json)
        return
    if adapter.manifest.kind == "boundary":
        labelled = [row for path in rows or () for row in read_rows(path, Dialogue)]
        _compare_boundaries(adapter, labelled, as_json)
        return
    from mgl.evaluation.runs.manifest import Arguments

    arguments = Arguments(
        benchmark=benchmark,
        data=find_benchmark(benchmark, data),
        memories=split_list(memory),
        models=("none",),
        sources=tuple(source or ()),
        allow_leak=allow_leak,
    )
    _compare_retrieval(adapter, arguments, as_json)


def _compare_retrieval(adapter: LoraAdapter, arguments: Arguments, as_json: bool) -> None:
    from mgl.evaluation.runs.retrieving import compare_recall
    from mgl.lab.model import ModelChoice
    from mgl.lab.workplace import Workplaces
    from mgl.training.comparing import PAPER, RERANKED, judge_change

    reranks = adapter.manifest.kind == "reranker"
    if reranks:
        if arguments.memories:
            raise UsageError("a reranker is compared in GAM", hint="leave out --memory")
        arguments = arguments.model_copy(update={"memories": RERANKED, "settings": PAPER})

    def measure(name: str) -> Recalls:
        choice = ModelChoice(reranker=name) if reranks else ModelChoice(embedder=name)
        with (
            open_observer() as observer,
            Workplaces.open_home(choice, observer) as places,
        ):
            return places.retrieve(arguments, say)

    after = measure(adapter.name)  # first: what it learnt from is refused
    compared = compare_recall(measure(adapter.manifest.base), after, 10)
    verdict = judge_change(compared)
    if as_json:
        print_json({"adapter": adapter.identity, "recall@10": compared, "verdict": verdict})
        return
    print_table(
        ("MEMORY", "QUESTIONS", "N", "BEFORE", "AFTER", "DIFFERENCE"),
        [
            (
                method,
                part,
                *(_format(one[name]) for name in ("n", "before", "after")),
                _format((one["value"], one["low"], one["high"])),
            )
            for method, parts in compared.items()
            for part, one in parts.items()
        ],
    )
    typer.echo(verdict)


def _compare_judges(adapter: LoraAdapter, rows: list[Example], as_json: bool) -> None:
    from mgl.lab.model import ModelChoice
    from mgl.training.judging import compare_judges

    _require_unseen(adapter, {row.source for row in rows})
    judged = {}
    for label, used in ((adapter.identity, adapter.name), (adapter.manifest.base, None)):
        choice = ModelChoice(adapter.manifest.base, engine="openvino", adapter=used)
        with open_lab(choice) as lab:
            judged[label] = lab.judge(rows)
    labels = [row.completion == "Yes" for row in rows]
    _print_scores("JUDGE", compare_judges(judged, labels, [row.source for row in rows]), as_json)


def _require_unseen(adapter: LoraAdapter, sources: set[str]) -> None:
    if not sources:
        raise UsageError("there are no labels to compare with", hint="give --rows FILE")
    if known := sources & set(adapter.manifest.sources):
        raise UsageError(
            f"{adapter.name} was trained on {len(known)} of these sources",
            hint="give rows of others, for instance --corpus tiage-dev",
        )


def _compare_boundaries(adapter: LoraAdapter, rows: list[Dialogue], as_json: bool) -> None:
    from mgl.models.shipped import home
    from mgl.retrieval.opening import open_embedder
    from mgl.retrieval.shifts import open_detector
    from mgl.training.comparing import compare_boundaries

    _require_unseen(adapter, {row.source for row in rows})
    embedder = open_embedder(adapter.manifest.base, home())
    found = compare_boundaries(open_detector(adapter.name, home()), embedder, rows)
    embedder.close()
    _print_scores("BOUNDARIES", found, as_json)


def _print_scores(title: str, found: Mapping[str, Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    columns = [column.upper() for column in next(iter(found.values()))]
    rows = [(name, *map(_format, scores.values())) for name, scores in found.items()]
    print_table((title, *columns), rows)


def _format(value: int | float | tuple[float, float, float]) -> str:
    """Format a count, a score, or a difference with its interval."""
    if isinstance(value, tuple):
        return "{:+.3f} [{:+.3f}, {:+.3f}]".format(*value)
    return f"{value:.3f}" if isinstance(value, float) else f"{value}"
