"""Compare the tokens a second of mgl's builds with what a vLLM server can do.

    python scripts/bench/serving.py document.txt --model smollm2-135m

Without --base-url, a server that `mgl serve` started is used.
"""

from __future__ import annotations

import asyncio
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from throughput import Level, Throughput
from traffic import RecordingEngine, Work

from mgl import registry
from mgl.cli.output import print_json, say
from mgl.cli.progress import open_observer
from mgl.errors import MglError, UsageError
from mgl.lab.engines import model_id
from mgl.lab.model import ModelChoice
from mgl.llm.capabilities import ServerEndpoint
from mgl.models import shipped
from mgl.serving.probe import probe_once
from mgl.text import read_document
from mgl.types import Document, Question

ResultT = TypeVar("ResultT")

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


def measure_throughput(arguments: Namespace) -> None:
    """Compare the tokens a second of mgl's builds with what the server can do.

    Every document and question is a memory of its own. The ceiling is the same prompts with
    replies of the same length, sent as fast as the server takes them: unconstrained, and under
    the same constraints.
    """
    levels, rounds = parse_levels(arguments.concurrency), arguments.rounds
    kind, config = choose_memory(arguments)
    works = read_works(arguments, QUESTIONS[: arguments.questions])

    async def measure(engine: RecordingEngine, url: str, key: str | None) -> list[Level]:
        throughput = Throughput(engine, url, key, kind, config, works, rounds)
        measured = []
        for level in levels:
            say(f"concurrency {level or 'auto'}: {len(works)} memories, {rounds} rounds")
            measured.append(await throughput.measure(level))
        return measured

    measured = run_on_server(arguments, measure)
    print_json({"memories": len(works), "levels": [level.to_json() for level in measured]})


def run_on_server(
    arguments: Namespace, measure: Callable[[RecordingEngine, str, str | None], Awaitable[ResultT]]
) -> ResultT:
    """Run a measurement on the named server, or on one that `mgl serve` started."""
    home = shipped.home()
    with open_observer() as progress:
        choice = ModelChoice(
            profile=arguments.model,
            engine="openai",
            base_url=arguments.base_url,
            api_key=os.environ.get("MGL_API_KEY"),
            models=arguments.models,
        ).with_server(home, progress)
        profile = choice.load_profile(home)
        choice.engine_for(profile)
        url = choice.base_url or ""

        async def run() -> ResultT:
            found = await probe_once(url, choice.api_key, profile.served_names, home, progress.note)
            engine = await RecordingEngine.record(
                ServerEndpoint(url, choice.api_key, capabilities=found),
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


def choose_memory(arguments: Namespace) -> tuple[Any, Any]:
    kind = registry.load("memory", "mindgraph")
    return kind, kind.Config(
        preset="paper",
        cite=arguments.cite,
        chunk_tokens=arguments.chunk_tokens,
        max_operations=arguments.max_operations,
        build_tokens=arguments.build_tokens,
    )


def read_works(arguments: Namespace, questions: Sequence[str]) -> list[Work]:
    """Each document, or its first characters, with each question."""
    documents = [read_document(path) for path in arguments.paths]
    if arguments.characters is not None:
        documents = [
            Document.from_text(one.name, one.text[: arguments.characters]) for one in documents
        ]
    return [(document, Question(text)) for document in documents for text in questions]


def build_parser() -> ArgumentParser:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="documents to read")
    parser.add_argument("--questions", type=int, default=8, help="memories per document")
    parser.add_argument("--concurrency", default="1,4,16", help="calls at once; or auto")
    parser.add_argument("--rounds", type=int, default=2, help="rounds at each level")
    parser.add_argument("--chunk-tokens", type=int, default=512, help="tokens per chunk")
    parser.add_argument("--max-operations", type=int, default=6, help="maximum edits per reply")
    parser.add_argument("--build-tokens", type=int, default=768, help="maximum tokens per reply")
    parser.add_argument("--characters", type=int, help="read only the first N characters")
    parser.add_argument("--cite", choices=("sentence", "quote"), default="sentence")
    parser.add_argument("--model", help="model profile")
    parser.add_argument("--models", type=Path, help="folder of further model profiles")
    parser.add_argument("--base-url", help="the server")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    try:
        measure_throughput(build_parser().parse_args(words))
    except MglError as error:
        say(f"error: {error.message}\nhint: {error.hint}")
        return 2 if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
