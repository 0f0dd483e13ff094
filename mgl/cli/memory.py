"""``mgl memory``: conversations that are remembered under a name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mgl.cli.options import (
    Adapter,
    AllowHub,
    AsJson,
    BaseUrl,
    Embedder,
    Engine,
    Model,
    Models,
    ModelSettings,
    Preset,
    Reranker,
    WeightsPath,
    opened,
)
from mgl.cli.output import clean, one_line, print_json, print_table, print_usage, say
from mgl.cli.talks import print_sources, print_topics

if TYPE_CHECKING:
    from mgl.talk import Talk

__all__ = ["app"]

app = typer.Typer(help="Conversations that are remembered under a name.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The conversation's name.")]


@app.command()
def add(
    name: Name,
    path: Annotated[
        Path, typer.Argument(help="A chat log: JSON lines, LoCoMo's file, a ChatGPT export.")
    ],
    conversation: Annotated[
        str | None, typer.Option("--conversation", help="Which one, where the file holds several.")
    ] = None,
    flush: Annotated[
        bool, typer.Option("--flush", help="The stream ends here: consolidate what is left.")
    ] = False,
    model: Model = None,
    preset: Preset = None,
    engine: Engine = None,
    base_url: BaseUrl = None,
    weights: WeightsPath = None,
    adapter: Adapter = None,
    models: Models = None,
    embedder: Embedder = None,
    reranker: Reranker = None,
    allow_hub: AllowHub = False,
) -> None:
    """Take in the turns of a file. Turns that are there already, by their id, change nothing."""
    settings = ModelSettings(
        model, engine, base_url, weights, models, allow_hub, adapter, embedder, reranker
    )
    with opened(settings) as lab:
        source = lab.conversation(path, conversation)
        for note in source.notes:
            say(f"{source.name}: {note}")
        talk = lab.talk(name, preset=preset)
        turns = talk.extend(source.turns)
        if flush:
            talk.flush()
        view = talk.memory.view()
        typer.echo(f"{name}: {turns} turns, {len(view.nodes)} topics, {len(view.edges)} links")
        print_usage(talk.usage())


@app.command()
def ask(
    name: Name,
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    asker: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Who asks: whose “I” it is.")
    ] = None,
    model: Model = None,
    engine: Engine = None,
    base_url: BaseUrl = None,
    weights: WeightsPath = None,
    adapter: Adapter = None,
    models: Models = None,
    embedder: Embedder = None,
    reranker: Reranker = None,
    allow_hub: AllowHub = False,
    as_json: AsJson = False,
) -> None:
    """Answer a question from what was said, with the turns that say so."""
    from mgl.types import Question

    settings = ModelSettings(
        model, engine, base_url, weights, models, allow_hub, adapter, embedder, reranker
    )
    with opened(settings) as lab:
        result = lab.known_talk(name).ask(Question(question, asker=asker))
    if as_json:
        print_json(result.to_json())
        return
    typer.echo(clean(result.answer.text))
    print_sources(result.answer)
    print_usage(result.usage)


@app.command("list")
def list_talks(as_json: AsJson = False) -> None:
    """List the conversations that are remembered."""
    with opened() as lab:
        found = [summary for summary in lab.memories() if summary.record.kind == "gam"]
    if as_json:
        print_json([summary.to_json() for summary in found])
        return
    print_table(
        ("NAME", "MEMORY", "STEPS", "MODEL"),
        [
            (
                one_line(summary.document, 40),
                summary.id,
                str(summary.chunks_done),
                one_line(summary.record.model_id, 40),
            )
            for summary in found
        ],
    )


@app.command()
def topics(name: Name) -> None:
    """Show what the memory has made of the conversation: its topics."""
    with _looked_at(name) as talk:
        print_topics(talk)


@contextmanager
def _looked_at(name: str) -> Iterator[Talk]:
    with opened() as lab:
        yield lab.known_talk(name)
