"""Options that several commands share, and the lab they open."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mgl.memories.options import read_settings

if TYPE_CHECKING:
    from mgl.lab import Lab

__all__ = [
    "Adapter",
    "AllowHub",
    "AsJson",
    "BaseUrl",
    "BertScoreModel",
    "ChunkTokens",
    "ConversationName",
    "Embedder",
    "Engine",
    "JudgeLabels",
    "JudgePairs",
    "JudgeRepeats",
    "Judges",
    "Memories",
    "MemoryKind",
    "Model",
    "ModelSettings",
    "Models",
    "Preset",
    "Reranker",
    "Settings",
    "TalkMemory",
    "WeightsPath",
    "chosen",
    "opened",
]

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
MemoryKind = Annotated[str, typer.Option("--memory", help="Kind of memory.")]
Memories = Annotated[
    list[str] | None,
    typer.Option("--memory", metavar="NAME,…", help="What to compare, or LABEL=NAME."),
]
TalkMemory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="KIND",
        help="Kind of memory (gam, mnemis); for one that is there, where several remember it.",
    ),
]
ConversationName = Annotated[
    str | None,
    typer.Option("--conversation", metavar="NAME", help="Which one, where the file holds several."),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="PROFILE", help="Model profile; see `mgl models`.")
]
ChunkTokens = Annotated[
    int | None, typer.Option("--chunk-tokens", min=1, help="Tokens read at a time.")
]
Preset = Annotated[
    Literal["paper", "small"] | None,
    typer.Option("--preset", help="The method as printed, or asking less of one call."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="An option of the memory; repeatable."),
]
Engine = Annotated[
    Literal["openvino", "transformers", "openai"] | None,
    typer.Option("--engine", help="Run the model by this instead of the profile's engine."),
]
Judges = Annotated[
    list[str] | None,
    typer.Option(
        "--judge",
        metavar="[JUDGE=]PROFILE,…",
        help="Models that judge; the first one's verdict is the score.",
    ),
]
BertScoreModel = Annotated[
    str | None,
    typer.Option(
        "--bertscore",
        metavar="MODEL[:LAYER]",
        help="Score by BERTScore, too; LooGLE does by roberta-large:17.",
    ),
]
JudgeRepeats = Annotated[
    int | None,
    typer.Option("--judge-repeats", min=1, help="Ask for each verdict so often again."),
]
JudgePairs = Annotated[
    int | None,
    typer.Option(
        "--judge-pairs",
        min=1,
        metavar="N",
        help="Judges compare so many pairs of answers, in both orders.",
    ),
]
JudgeLabels = Annotated[
    Path | None,
    typer.Option(
        "--judge-labels",
        metavar="FILE",
        help="Judges judge these, too: JSON lines of question, gold, answer, correct.",
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        envvar="MGL_BASE_URL",
        show_envvar=False,
        help="Use this OpenAI-compatible server.",
    ),
]
WeightsPath = Annotated[
    Path | None, typer.Option("--weights", metavar="PATH", help="Use the weights at this path.")
]
Models = Annotated[
    Path | None, typer.Option("--models", metavar="PATH", help="Folder of model profiles.")
]
Adapter = Annotated[
    str | None,
    typer.Option("--adapter", metavar="NAME", help="Use this LoRA adapter of the server."),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="PROFILE[:DIMS]",
        help="Embedding model, or the first DIMS of its dimensions; see `mgl models`.",
    ),
]
Reranker = Annotated[
    str | None,
    typer.Option("--reranker", metavar="PROFILE", help="Reranker; see `mgl models`."),
]
AllowHub = Annotated[
    bool, typer.Option("--allow-hub", help="Allow weights to be fetched from the model hub.")
]


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which model runs, and where it is."""

    model: str | None = None
    engine: Literal["openvino", "transformers", "openai"] | None = None
    base_url: str | None = None
    weights: Path | None = None
    models: Path | None = None
    allow_hub: bool = False
    adapter: str | None = None
    embedder: str | None = None
    reranker: str | None = None


def chosen(settings: Iterable[str] | None, **flags: Any) -> dict[str, Any]:
    """The options of a memory: what was set by name, and the flags that were given."""
    given = {name: value for name, value in flags.items() if value is not None}
    return {**read_settings(settings or ()), **given}


@contextmanager
def opened(settings: ModelSettings | None = None) -> Iterator[Lab]:
    """A lab that reports to stderr."""
    from mgl.cli.progress import observer
    from mgl.lab import Lab

    with observer() as hears, Lab.open(**_arguments(settings), observer=hears) as lab:
        yield lab


def _arguments(settings: ModelSettings | None) -> dict[str, Any]:
    if settings is None:
        return {}
    return {
        "model": settings.model,
        "engine": settings.engine,
        "base_url": settings.base_url,
        "weights": settings.weights,
        "models": settings.models,
        "allow_hub": settings.allow_hub,
        "adapter": settings.adapter,
        "embedder": settings.embedder,
        "reranker": settings.reranker,
        "api_key": os.environ.get("MGL_API_KEY"),
    }
