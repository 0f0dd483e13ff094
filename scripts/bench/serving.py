"""Measure a vLLM server and what mgl gets out of it.

    python scripts/bench/serving.py throughput document.txt --model smollm2-135m
    python scripts/bench/serving.py prefix document.txt --base-url http://127.0.0.1:8000/v1

Without --base-url, a server that `mgl serve` started is used.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import typer
from prefix import PrefixShare, measure_prefix
from throughput import Level, Run, Throughput
from traffic import RecordingEngine, Work

from mgl import registry
from mgl.cli.options import AsJson, BaseUrl, Model, ModelFolder
from mgl.cli.output import print_json, print_table, say
from mgl.cli.progress import open_observer
from mgl.errors import MglError, UsageError
from mgl.lab.model import ModelChoice
from mgl.llm.capabilities import Endpoint
from mgl.llm.engines import model_id
from mgl.models import shipped
from mgl.serving.probe import probe_once
from mgl.text import read_document
from mgl.types import Document, Question

ResultT = TypeVar("ResultT")

app = typer.Typer(
    help="Measure a vLLM server and what mgl gets out of it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

QUESTIONS: Final = (
    "Who are the people in this text, and what does each of them want?",
    "What happens, in order, and why?",
    "How does it end, and who gains by it?",
    "Where does it take place, and when?",
    "What does anybody hide from anybody else, and how does it come out?",
    "Which things change hands, and what is each of them worth to whom?",
    "Who is related to whom, and how?",
    "What is promised, and which promises are kept?",
)

Paths = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Documents to read.")]
ChunkTokens = Annotated[int, typer.Option("--chunk-tokens", min=16, help="Tokens per chunk.")]
MaxOperations = Annotated[
    int, typer.Option("--max-operations", min=1, help="Maximum edits per reply.")
]
BuildTokens = Annotated[
    int, typer.Option("--build-tokens", min=64, help="Maximum tokens per reply.")
]
Characters = Annotated[
    int | None, typer.Option("--characters", min=1, help="Read only the first N characters.")
]
Cite = Annotated[Literal["sentence", "quote"], typer.Option("--cite", help="How edits cite.")]


@app.command("throughput")
def measure_throughput(
    paths: Paths,
    questions: Annotated[
        int,
        typer.Option("--questions", min=1, max=len(QUESTIONS), help="Memories per document."),
    ] = len(QUESTIONS),
    concurrency: Annotated[
        str, typer.Option("--concurrency", help="Calls at once, comma-separated; or auto.")
    ] = "1,4,16",
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds at each level.")] = 2,
    chunk_tokens: ChunkTokens = 512,
    max_operations: MaxOperations = 6,
    build_tokens: BuildTokens = 768,
    characters: Characters = None,
    cite: Cite = "sentence",
    model: Model = None,
    base_url: BaseUrl = None,
    models: ModelFolder = None,
    as_json: AsJson = False,
) -> None:
    """Compare the tokens a second of mgl's builds with what the server can do.

    Every document and question is a memory of its own. The ceiling is the same prompts with
    replies of the same length, sent as fast as the server takes them: unconstrained, and under
    the same constraints.
    """
    levels = parse_levels(concurrency)
    kind, config = choose_memory(cite, chunk_tokens, max_operations, build_tokens, "paper")
    works = read_works(paths, QUESTIONS[:questions], characters)

    async def measure(engine: RecordingEngine, url: str, key: str | None) -> list[Level]:
        throughput = Throughput(engine, url, key, kind, config, works, rounds)
        measured = []
        for level in levels:
            say(f"concurrency {level or 'auto'}: {len(works)} memories, {rounds} rounds")
            measured.append(await throughput.measure(level))
        return measured

    measured = run_on_server(model, base_url, models, measure)
    if as_json:
        print_json({"memories": len(works), "levels": [level.to_json() for level in measured]})
    else:
        print_levels(measured)


@app.command("prefix")
def measure_prefix_cache(
    paths: Paths,
    question: Annotated[
        list[str] | None,
        typer.Option("--question", "-q", help="A question to read them for; repeatable."),
    ] = None,
    chunk_tokens: ChunkTokens = 512,
    max_operations: MaxOperations = 6,
    build_tokens: BuildTokens = 768,
    characters: Characters = None,
    cite: Cite = "sentence",
    model: Model = None,
    base_url: BaseUrl = None,
    models: ModelFolder = None,
    as_json: AsJson = False,
) -> None:
    """Compare what the server's prefix cache saves with what it could save at most.

    For both prompt orders, each with a stable graph and with one reordered for each call.
    """
    works = read_works(paths, question or QUESTIONS[:1], characters)
    variants = (("paper", True), ("paper", False), ("cached", True), ("cached", False))

    async def measure(engine: RecordingEngine, *_: Any) -> list[PrefixShare]:
        shares = []
        for order, stable in variants:
            say(f"prompt order {order}, {'stable' if stable else 'shuffled'} graph")
            kind, config = choose_memory(cite, chunk_tokens, max_operations, build_tokens, order)
            shares.append(
                await measure_prefix(engine, kind, config, works, order=order, stable=stable)
            )
        return shares

    shares = run_on_server(model, base_url, models, measure)
    if as_json:
        print_json([share.to_json() for share in shares])
    else:
        print_shares(shares)


def run_on_server(
    model: str | None,
    base_url: str | None,
    models: Path | None,
    measure: Callable[[RecordingEngine, str, str | None], Awaitable[ResultT]],
) -> ResultT:
    """Run a measurement on the named server, or on one that `mgl serve` started."""
    home = shipped.home()
    with open_observer() as progress:
        choice = ModelChoice(
            profile=model,
            engine="openai",
            base_url=base_url,
            api_key=os.environ.get("MGL_API_KEY"),
            models=models,
        ).with_server(home, progress)
        profile = choice.load_profile(home)
        choice.engine_for(profile)
        url = choice.base_url or ""
        names = (profile.weights.hub.repo, profile.name)

        async def run() -> ResultT:
            found = await probe_once(url, choice.api_key, names, home, progress.note)
            engine = await RecordingEngine.record(
                Endpoint(url, choice.api_key, capabilities=found),
                profile,
                model_id=model_id(profile, "openai"),
            )
            try:
                root = url.rstrip("/").removesuffix("/v1")
                return await measure(engine, f"{root}/v1", choice.api_key)
            finally:
                await engine.aclose()

        return asyncio.run(run())


def parse_levels(written: str) -> list[int | None]:
    levels: list[int | None] = []
    for part in (part.strip() for part in written.split(",")):
        if part != "auto" and not (part.isdecimal() and int(part)):
            raise UsageError(
                f"{part!r} is not a number of calls",
                hint="for instance --concurrency 1,4,16 or --concurrency auto",
            )
        levels.append(None if part == "auto" else int(part))
    return levels


def choose_memory(
    cite: str, chunk_tokens: int, max_operations: int, build_tokens: int, order: str
) -> tuple[Any, Any]:
    kind = registry.load("memory", "mindgraph")
    return kind, kind.Config(
        preset="paper",
        cite=cite,
        chunk_tokens=chunk_tokens,
        max_operations=max_operations,
        build_tokens=build_tokens,
        prompt_order=order,
    )


def read_works(
    paths: Sequence[Path], questions: Sequence[str], characters: int | None
) -> list[Work]:
    documents = [read_document(path) for path in paths]
    if characters is not None:
        documents = [Document.from_text(one.name, one.text[:characters]) for one in documents]
    return [(document, Question(text)) for document in documents for text in questions]


def print_levels(levels: Sequence[Level]) -> None:
    print_table(
        (
            *("AT ONCE", "LOAD", "TIME S", "CALLS", "OUT TOK/S", "TOTAL TOK/S", "CACHED"),
            *("TTFT MS", "TPOT MS", "E2EL MS", "SLOTS BUSY"),
        ),
        [
            (str(level.concurrency or f"auto ({level.peak})"), name, *_cells(run))
            for level in levels
            for name, runs in (
                ("mgl", level.mgl),
                ("ceiling", level.ceiling),
                ("constrained", level.constrained),
            )
            for run in runs
        ],
    )
    for level in levels:
        outside = level.outside_server
        typer.echo(
            f"at {level.concurrency or 'auto'}: mgl {level.output_ratio:.2f} of the ceiling's "
            f"output tokens a second ({level.total_ratio:.2f} of all tokens, "
            f"{level.constrained_ratio:.2f} of the same under constraints); no request in flight "
            f"{level.outside_calls:.1%} of the time"
            + (f", outside the server {outside:.1%}" if outside is not None else "")
            + f", mgl's CPU {level.cpu_share:.1%}; "
            f"calls repeated or given up: {sum(built.repeated for built in level.builds)}"
        )
        runs = (*level.mgl, *level.ceiling, *level.constrained)
        if failed := sum(run.failed for run in runs):
            say(f"note: {failed} requests were refused or lost")
        if not all(run.alone for run in runs):
            say("note: the server had other clients, so its TTFT and TPOT are not mgl's alone")


def _cells(run: Run) -> tuple[str, ...]:
    return (
        f"{run.duration:.1f}",
        str(run.completed),
        f"{run.output_throughput:.1f}",
        f"{run.total_token_throughput:.1f}",
        f"{run.cached / max(1, run.total_input):.1%}",
        f"{run.mean_ttft_ms:.0f}",
        f"{run.mean_tpot_ms:.1f}",
        f"{run.mean_e2el_ms:.0f}",
        f"{run.slots_busy:.1%}",
    )


def print_shares(shares: Sequence[PrefixShare]) -> None:
    print_table(
        ("ORDER", "GRAPH", "PROMPTS", "TOKENS", "CACHEABLE", "CACHED", "OF THAT", "OF ALL"),
        [
            (
                share.order,
                "stable" if share.stable else "shuffled",
                str(share.prompts),
                f"{share.tokens:,}",
                f"{share.cacheable:,}",
                f"{share.counted:,}",
                "-" if share.of_cacheable is None else f"{share.of_cacheable:.1%}",
                f"{share.of_all:.1%}",
            )
            for share in shares
        ],
    )
    typer.echo(
        f"tokens by the server's tokenizer, in blocks of {shares[0].block_tokens}; "
        "cached by the server's own counters"
    )
    if not all(share.alone for share in shares):
        say("note: the server had other clients, so its counters are not mgl's alone")


def main() -> int:
    try:
        app(standalone_mode=False)
    except MglError as error:
        say(f"error: {error.message}\nhint: {error.hint}")
        return 2 if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
