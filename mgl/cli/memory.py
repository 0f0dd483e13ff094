"""``mgl memory``: conversations that are remembered under a name."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from mgl.cli import control
from mgl.cli.control import Name
from mgl.cli.options import (
    Adapter,
    AllowHub,
    AsJson,
    BaseUrl,
    ConversationName,
    Embedder,
    Engine,
    Model,
    Models,
    ModelSettings,
    Preset,
    Reranker,
    Settings,
    TalkMemory,
    WeightsPath,
    chosen,
    opened,
)
from mgl.cli.output import clean, print_json, print_usage, say
from mgl.cli.talks import made_of, print_sources

__all__ = ["app"]

app = typer.Typer(help="Conversations that are remembered under a name.", no_args_is_help=True)


@app.command()
def add(
    name: Name,
    path: Annotated[
        Path, typer.Argument(help="A chat log: JSON lines, LoCoMo's file, a ChatGPT export.")
    ],
    conversation: ConversationName = None,
    flush: Annotated[
        bool, typer.Option("--flush", help="The stream ends here: consolidate what is left.")
    ] = False,
    memory: TalkMemory = None,
    model: Model = None,
    preset: Preset = None,
    settings: Settings = None,
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
    runs_on = ModelSettings(
        model, engine, base_url, weights, models, allow_hub, adapter, embedder, reranker
    )
    began = time.monotonic()
    with opened(runs_on) as lab:
        source = lab.conversation(path, conversation)
        for note in source.notes:
            say(f"{source.name}: {note}")
        talk = lab.talk(name, memory=memory, **chosen(settings, preset=preset))
        turns = talk.extend(source.turns)
        if flush:
            talk.flush()
        typer.echo(f"{name}: {turns} turns, {made_of(talk)}")
        print_usage(talk.usage(time.monotonic() - began))


@app.command()
def ask(
    name: Name,
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    asker: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Who asks: whose “I” it is.")
    ] = None,
    memory: TalkMemory = None,
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
        talk = lab.known_talk(name, memory=memory)
        result = talk.ask(Question(question.strip(), asker=asker))
        conversation = talk.memory.conversation
    if as_json:
        print_json(result.to_json())
        return
    typer.echo(clean(result.answer.text))
    print_sources(result.answer, conversation)
    print_usage(result.usage)


app.command("list")(control.list_talks)
app.command()(control.topics)
app.command()(control.show)
app.command()(control.forget)
app.command()(control.freeze)
app.command()(control.unfreeze)
app.command()(control.edit)
app.command()(control.unlink)
app.command()(control.export)
