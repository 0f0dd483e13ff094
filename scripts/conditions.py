#!/usr/bin/env python3
"""List under which conditions each method of the papers' first tables answers.

    python scripts/conditions.py

Each method answers a question of the run's kind over a small text, with a fake model that keeps
what it is asked: the instruction of the answering call, and how that call is sampled, are read off
the request itself. Baselines and packages share one call (``Baseline._answer``), which is made with
a made-up excerpt, since most of them would need model calls or an environment of their own first.
What a method reads are the settings that say so; ``as hgmem`` where HGMem's average replaces one.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from typing import Any, Final

import mgl.baselines
import mgl.memories
from mgl import registry
from mgl.baselines.base import Baseline, Excerpt
from mgl.evaluation.papers.suites import Run, SuiteMethod, load_suites
from mgl.llm.base import Completion, Request, Sampling
from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import Tools
from mgl.memories.options import choose_kind
from mgl.observer import SILENT
from mgl.prompt import Prompt
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import AnswerForm, Conversation, Document, Question, Source, Turn

TABLES: Final = ("hgmem", "gam", "mnemis", "mindgraph")
LEAST_MARK: Final = 12
"""Characters of a prompt's text between two variables, by which the prompt is known."""

CHUNKS: Final = ("k", "chunks", "step_chunks", "answer_chunks", "top_k", "page_tokens", "anchors")
"""Settings that say how many chunks, turns or memories are read, or how large they are."""

TEXT: Final = "Ann lives in Rome with Bo. " * 20
BOOK: Final = Document.from_text("book.txt", TEXT)
TALK: Final = Conversation.from_turns(
    "talk", [Turn(f"D1:{n}", "Ann", "I live in Rome.", datetime(2023, 5, 8), "1") for n in range(4)]
)
OPTIONS: Final = {
    "nocha": ("TRUE", "FALSE"),
    "prelude": ("yes", "no"),
    "longbench-v2": tuple("ABCD"),
}
LONG: Final = ("sensemaking",)
HEAD: Final = "| run | method | instruction | hash | T | top-p | tokens | reads |"


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the answering call of one method of one run is made."""

    run: str
    method: str
    instruction: Prompt
    sampling: Sampling
    reads: str

    @property
    def shared(self) -> tuple[str, Sampling]:
        """What is to be the same for all methods of a run; a seed tells calls apart, no more."""
        return self.instruction.hash, replace(self.sampling, seed=0)

    @property
    def row(self) -> str:
        asked, how = self.instruction, self.sampling
        cells = (self.run, self.method, asked.name, asked.hash[:8], how.temperature, how.top_p)
        return f"| {' | '.join(map(str, (*cells, how.max_tokens, self.reads)))} |"


class Keeper(SchemaEngine):
    """Answers under each schema, and keeps the requests."""

    def __init__(self) -> None:
        super().__init__(context_tokens=200_000)
        self.requests: list[Request] = []

    async def generate(self, request: Request) -> Completion:
        self.requests.append(request)
        return await super().generate(request)


def list_conditions() -> Iterator[Conditions]:
    """List every method of every run of the four first tables."""
    prompts = find_prompts()
    for paper in TABLES:
        entry = load_suites()[paper].entry("table1")
        for run in entry.runs:
            name = f"{paper}/table1/{run.name}" if run.name else f"{paper}/table1"
            for method in run.methods:
                asked = asyncio.run(ask(run, method))
                yield Conditions(
                    name, method.label, name_prompt(asked, prompts), asked.sampling, _reads(method)
                )


def find_prompts() -> list[Prompt]:
    """Find the prompts of memories and baselines."""
    found: dict[str, Prompt] = {}
    for package in (mgl.memories, mgl.baselines):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            values = vars(import_module(module.name)).values()
            found |= {each.name: each for each in values if isinstance(each, Prompt)}
    return list(found.values())


def name_prompt(request: Request, prompts: list[Prompt]) -> Prompt:
    """Return the prompt that a request was made of: the longest whose text it holds."""
    said = "\n".join(message.content for message in request.messages)

    def is_shown(prompt: Prompt) -> bool:
        text = prompt.text
        for variable in prompt.variables:
            text = text.replace("{" + variable + "}", "\0")
        return all(part in said for part in text.split("\0") if len(part) >= LEAST_MARK)

    return max(filter(is_shown, prompts), key=lambda prompt: len(prompt.text))


async def ask(run: Run, method: SuiteMethod) -> Request:
    """Have a method answer, and return the request of the call that answers."""
    talks = registry.load("benchmark", run.benchmark).reads == "conversation"
    source: Source = TALK if talks else BOOK
    form: AnswerForm = "long" if run.benchmark in LONG else "short"
    question = Question("Where is Ann?", form=form, options=OPTIONS.get(run.benchmark, ()))
    # Who extracts a graph is nothing to how it answers, and a package may not be here.
    settings = {name: value for name, value in method.settings.items() if name != "extraction"}
    kind, config = choose_kind(method.memory, settings, lambda: "paper")
    engine = Keeper()
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "mgl.sqlite") as store:
        llm = Client(engine, store.call_log())
        tools = Tools(llm, store, SILENT, WordEmbedder(), WordReranker())
        made: Any = kind
        memory = made(tools, source, [question] if kind.per_question else (), config)
        if isinstance(memory, Baseline):
            memory.source_tokens = _count_nothing  # type: ignore[method-assign]
            await memory._answer(question, [Excerpt("Ann lives in Rome.")])
        else:
            await memory.answer(question)
    return engine.requests[-1]


async def _count_nothing() -> int:
    return 1


def _reads(method: SuiteMethod) -> str:
    _, config = choose_kind(method.memory, method.settings, lambda: "paper")
    values: Mapping[str, Any] = config.model_dump()
    averaged = (method.reads, method.reads_a_step)
    told = [
        f"{name} as hgmem" if name in averaged else f"{name} {values[name]}"
        for name in CHUNKS
        if values.get(name) is not None
    ]
    return ", ".join(told) or "by its own budget"


def render_table() -> str:
    """Render all rows as a Markdown table."""
    rule = "|---" * HEAD.count(" | ") + "|---|"
    return "\n".join([HEAD, rule, *(each.row for each in list_conditions())]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render_table())
