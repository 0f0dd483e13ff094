"""``mgl build``: read a document into a memory, for one question, several, or none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mgl.cli.options import (
    Adapter,
    AllowHub,
    AsJson,
    BaseUrl,
    ChunkTokens,
    ConversationName,
    Embedder,
    Engine,
    MemoryKind,
    Model,
    Models,
    ModelSettings,
    Preset,
    Reranker,
    Settings,
    WeightsPath,
    chosen,
    opened,
)
from mgl.cli.output import print_estimate, print_json, print_stats, print_usage
from mgl.errors import UsageError

__all__ = ["build"]


def build(
    path: Annotated[Path, typer.Argument(help="A txt, md, html, epub or pdf file, or a chat log.")],
    question: Annotated[
        list[str] | None,
        typer.Option("--question", "-q", help="A question to read it for; repeatable."),
    ] = None,
    memory: MemoryKind = "mindgraph",
    conversation: ConversationName = None,
    model: Model = None,
    chunk_tokens: ChunkTokens = None,
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost, and do nothing.")
    ] = False,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="Of a graph: what failed is read again, too."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read a document into a memory, to ask it later.

    Without --question it is read for whatever may be asked. Stopped at any moment, the same
    command goes on where it was.
    """
    runs_on = ModelSettings(
        model, engine, base_url, weights, models, allow_hub, adapter, embedder, reranker
    )
    options = chosen(settings, chunk_tokens=chunk_tokens, preset=preset)
    with opened(runs_on) as lab:
        if dry_run and retry_failed:
            raise UsageError("--dry-run does nothing", hint="leave out --retry-failed")
        if dry_run:
            print_estimate(lab.estimate(path, memory=memory, **options), as_json)
            return
        result = lab.build(
            path,
            question or (),
            memory=memory,
            conversation=conversation,
            retry_failed=retry_failed,
            **options,
        )
        unit = lab.memory(result.memory_id).unit
    if as_json:
        print_json(result.to_json())
        return
    print_stats(result.stats, unit)
    print_usage(result.usage)
    typer.echo(f"memory: {result.memory_id} (mgl show {result.memory_id})")
