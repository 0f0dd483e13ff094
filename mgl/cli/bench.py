"""``mgl bench``: measure a server and what mgl gets out of it, and retrieval."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

import typer

from mgl.cli.options import AsJson, BaseUrl, Model, Models
from mgl.cli.output import print_json, say
from mgl.cli.timings import print_figures, print_levels, print_shares
from mgl.errors import UsageError

if TYPE_CHECKING:
    from mgl.serving.bench import Level
    from mgl.serving.building import Work
    from mgl.serving.prefix import PrefixShare
    from mgl.serving.tapped import TappedEngine

__all__ = ["app"]

ResultT = TypeVar("ResultT")

app = typer.Typer(
    name="bench",
    help="Measure a vLLM server and what mgl gets out of it, or retrieval.",
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
Chunks = Annotated[int, typer.Option("--chunk-tokens", min=16, help="Tokens read at a time.")]
Operations = Annotated[int, typer.Option("--max-operations", min=1, help="Edits a reply may hold.")]
Budget = Annotated[int, typer.Option("--build-tokens", min=64, help="Tokens a reply may have.")]
Characters = Annotated[
    int | None, typer.Option("--characters", min=1, help="Read only so much of each document.")
]
Cite = Annotated[Literal["sentence", "quote"], typer.Option("--cite", help="How edits cite.")]


@app.command("serving")
def serving(
    paths: Paths,
    questions: Annotated[
        int, typer.Option("--questions", min=1, help="Memories built of each document.")
    ] = len(QUESTIONS),
    concurrency: Annotated[
        str, typer.Option("--concurrency", help="Calls at once, with commas; auto is adaptive.")
    ] = "1,4,16",
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, help="Rounds at each; their order alternates.")
    ] = 2,
    chunk_tokens: Chunks = 512,
    max_operations: Operations = 6,
    build_tokens: Budget = 768,
    characters: Characters = None,
    cite: Cite = "sentence",
    model: Model = None,
    base_url: BaseUrl = None,
    models: Models = None,
    as_json: AsJson = False,
) -> None:
    """Compare the tokens a second of mgl's builds with what the server can do.

    Every document and question is a memory of its own. The ceiling is the very same prompts with
    replies of the same length, sent as fast as the server takes them: unconstrained, and under
    the same constraints.
    """
    from mgl.serving.bench import Throughput

    levels = _levels(concurrency)
    kind, config = _kind(cite, chunk_tokens, max_operations, build_tokens, "paper")
    works = _works(paths, _questions(questions), characters)

    async def measure(engine: TappedEngine, url: str, key: str | None) -> list[Level]:
        measured = Throughput(engine, url, key, kind, config, works, rounds)
        found = []
        for level in levels:
            say(f"concurrency {level or 'auto'}: {len(works)} memories, {rounds} rounds")
            found.append(await measured.measure(level))
        return found

    found = _measured(model, base_url, models, measure)
    if as_json:
        print_json({"memories": len(works), "levels": [level.to_json() for level in found]})
    else:
        print_levels(found)


@app.command("prefix")
def prefix(
    paths: Paths,
    question: Annotated[
        list[str] | None,
        typer.Option("--question", "-q", help="A question to read them for; repeatable."),
    ] = None,
    chunk_tokens: Chunks = 512,
    max_operations: Operations = 6,
    build_tokens: Budget = 768,
    characters: Characters = None,
    cite: Cite = "sentence",
    model: Model = None,
    base_url: BaseUrl = None,
    models: Models = None,
    as_json: AsJson = False,
) -> None:
    """Compare what the server's prefix cache saves with what it could save at all.

    For both orders of the prompt, and for a graph whose lines change places with each call.
    """
    from mgl.serving.prefix import measure_prefix

    works = _works(paths, question or QUESTIONS[:1], characters)
    variants = (("paper", True), ("paper", False), ("cached", True), ("cached", False))

    async def measure(engine: TappedEngine, *_: Any) -> list[PrefixShare]:
        found = []
        for order, stable in variants:
            say(f"prompt order {order}, {'stable' if stable else 'shuffled'} graph")
            kind, config = _kind(cite, chunk_tokens, max_operations, build_tokens, order)
            found.append(
                await measure_prefix(engine, kind, config, works, order=order, stable=stable)
            )
        return found

    found = _measured(model, base_url, models, measure)
    if as_json:
        print_json([share.to_json() for share in found])
    else:
        print_shares(found)


@app.command("retrieval")
def retrieval(
    sizes: Annotated[
        str, typer.Option("--sizes", help="How many vectors and texts, with commas.")
    ] = "10000,100000",
    queries: Annotated[int, typer.Option("--queries", min=10, help="Questions at each.")] = 100,
    structure: Annotated[
        Literal["ivf", "hnsw", "exact"],
        typer.Option("--structure", help="What is built where the exact search ends."),
    ] = "ivf",
    dims: Annotated[int, typer.Option("--dims", min=8, help="Dimensions of the vectors.")] = 384,
    peers: Annotated[
        bool,
        typer.Option(help="Beside numpy with rank_bm25, and lancedb, as far as installed."),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Time, size and recall of the vector index, both lexical indexes and hybrid search.

    The vectors and texts are synthetic. A million of them take half an hour, 10 GB of memory and
    as much of the disk.
    """
    from mgl.retrieval.bench import measure

    found = [
        figures
        for size in _sizes(sizes)
        for figures in measure(
            size, queries=queries, structure=structure, peers=peers, dims=dims, note=say
        )
    ]
    if as_json:
        print_json([figures.to_json() for figures in found])
    else:
        print_figures(found)


def _measured(
    model: str | None,
    base_url: str | None,
    models: Path | None,
    measure: Callable[[TappedEngine, str, str | None], Awaitable[ResultT]],
) -> ResultT:
    """What is measured on the server that was named, or on one that mgl runs."""
    import os

    from mgl.cli.progress import observer
    from mgl.lab.model import ModelChoice
    from mgl.llm.engines.opening import model_id
    from mgl.models import shipped
    from mgl.serving.probing import honoured_by
    from mgl.serving.tapped import TappedEngine

    home = shipped.home()
    with observer() as hears:
        given = ModelChoice(
            profile=model,
            engine="openai",
            base_url=base_url,
            api_key=os.environ.get("MGL_API_KEY"),
            models=models,
        ).with_server(home, hears)
        profile = given.load_profile(home)
        given.engine_for(profile)
        url = given.base_url or ""
        names = (profile.weights.hub.repo, profile.name)

        async def run() -> ResultT:
            honoured = await honoured_by(url, given.api_key, names, home, hears.note)
            engine = await TappedEngine.tap(
                profile,
                url,
                model_id=model_id(profile, "openai"),
                api_key=given.api_key,
                honoured=honoured,
            )
            try:
                root = url.rstrip("/").removesuffix("/v1")
                return await measure(engine, f"{root}/v1", given.api_key)
            finally:
                await engine.aclose()

        return asyncio.run(run())


def _levels(written: str) -> list[int | None]:
    levels: list[int | None] = []
    for part in (part.strip() for part in written.split(",")):
        if part != "auto" and not (part.isdecimal() and int(part)):
            raise UsageError(
                f"{part!r} is no number of calls at once",
                hint="write for instance --concurrency 1,4,16 or --concurrency auto",
            )
        levels.append(None if part == "auto" else int(part))
    return levels


def _sizes(written: str) -> list[int]:
    sizes = [part.strip().replace("_", "") for part in written.split(",")]
    for part in sizes:
        if not part.isdecimal() or int(part) < 100:
            raise UsageError(
                f"{part!r} is no number of vectors (100 or more)",
                hint="write for instance --sizes 10000,100000,1000000",
            )
    return [int(part) for part in sizes]


def _questions(wanted: int) -> Sequence[str]:
    if wanted > len(QUESTIONS):
        raise UsageError(
            f"there are {len(QUESTIONS)} questions to ask of each document",
            hint="give more documents instead",
        )
    return QUESTIONS[:wanted]


def _kind(
    cite: str, chunk_tokens: int, max_operations: int, build_tokens: int, order: str
) -> tuple[Any, Any]:
    from mgl import registry

    kind = registry.load("memory", "mindgraph")
    return kind, kind.Config(
        preset="paper",
        cite=cite,
        chunk_tokens=chunk_tokens,
        max_operations=max_operations,
        build_tokens=build_tokens,
        prompt_order=order,
    )


def _works(paths: Sequence[Path], questions: Sequence[str], characters: int | None) -> list[Work]:
    from mgl.text import read_document
    from mgl.types import Document, Question

    documents = [read_document(path) for path in paths]
    if characters is not None:
        documents = [Document.from_text(one.name, one.text[:characters]) for one in documents]
    return [(document, Question(text)) for document in documents for text in questions]
