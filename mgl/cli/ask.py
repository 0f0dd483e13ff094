"""``mgl ask``: read a document for a question and answer it from what was read."""

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
from mgl.cli.output import print_answer, print_json, print_stats, print_usage

__all__ = ["ask"]


def ask(
    path: Annotated[Path, typer.Argument(help="A txt, md, html, epub or pdf file, or a chat log.")],
    question: Annotated[str, typer.Argument(help="What you want to know.")],
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
    as_json: AsJson = False,
) -> None:
    """Answer a question about a document.

    The answer comes with the passages that say so. A memory of the document is built first.
    Stopped at any moment, the same command goes on where it was; run again, it answers from
    what is stored.
    """
    runs_on = ModelSettings(
        model, engine, base_url, weights, models, allow_hub, adapter, embedder, reranker
    )
    with opened(runs_on) as lab:
        result = lab.ask(
            path,
            question,
            memory=memory,
            conversation=conversation,
            **chosen(settings, chunk_tokens=chunk_tokens, preset=preset),
        )
        unit = lab.memory(result.memory_id).unit
    if as_json:
        print_json(result.to_json())
        return
    print_answer(result.answer)
    typer.echo("")
    print_stats(result.stats, unit)
    if result.answer.compaction_ratio is not None:
        typer.echo(
            f"compaction: the answer set out from {result.answer.compaction_ratio:.1%} "
            "as many tokens as the document has"
        )
    print_usage(result.usage)
    typer.echo(f"memory: {result.memory_id} (mgl show {result.memory_id})")
