"""Two sources that share most of their text, in labs over one home, and what is left of one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mgl.lab import Lab, OwnModels
from mgl.llm.base import Completion, Engine, Request
from mgl.llm.engines.deferred import DeferredEngine
from mgl.observer import Observer
from mgl.retrieval.base import Embedder, EmbeddingTask
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import Conversation, Document, Source, Turn
from tests.lab.echoing import EchoEngine

SourceKind = Literal["document", "conversation"]

SHARED = [
    f"On day {day} Ann met Bo in Lisbon. Bo gave Ann the lantern {day}. They painted the harbour."
    for day in range(8)
]


def own_words(number: int) -> list[str]:
    """Words that only this source, its name and its questions have."""
    return [f"{word}{number}q" for word in ("zorblat", "Émilieü", "quaxby", "notesof", "askof")]


def make_source(kind: SourceKind, number: int) -> Source:
    thing, maker, buyer, name, _ = own_words(number)
    said = [*SHARED, f"The {thing} of {maker} was sold.", f"Then {buyer} bought it for ten pounds."]
    if kind == "document":
        return Document.from_text(f"{name}.txt", "\n\n".join(said))
    start = datetime(2023, 5, 8, 9)
    turns = [
        Turn(
            f"t{place}",
            "Ann" if place % 2 else "Bo",
            text,
            start + timedelta(days=place // 4, minutes=place),
            f"{place // 4}",
        )
        for place, text in enumerate(said)
    ]
    return Conversation.from_turns(name, turns)


def make_question(number: int) -> str:
    thing, *_, asked = own_words(number)
    return f"Who bought the {thing} of {asked}?"


class Deaf(EchoEngine):
    """A model that must not be asked."""

    async def generate(self, request: Request) -> Completion:
        raise AssertionError(f"the model was asked: {request.messages[-1].content[:200]}")

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        raise AssertionError(f"tokens were counted: {[*texts][:3]}")

    async def count_prompt_tokens(self, request: Request) -> int:
        raise AssertionError(f"a prompt was counted: {request.messages[-1].content[:200]}")


class DeafEmbedder(WordEmbedder):
    """An embedder that must not be asked."""

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        if texts:
            raise AssertionError(f"texts were embedded: {[*texts][:3]}")
        return super().embed(texts, task=task)


@contextmanager
def open_lab(
    home: Path,
    engine: Engine | None = None,
    embedder: Embedder | None = None,
    observer: Observer | None = None,
) -> Iterator[Lab]:
    """A lab whose model keeps its token counts in the store, as one from a profile does."""
    engine = engine or EchoEngine()

    async def start() -> Engine:
        return engine

    known = {
        "model_id": engine.model_id,
        "context_tokens": engine.context_tokens,
        "native_tools": engine.native_tools,
        "concurrency": engine.concurrency,
    }
    with Store.open(home / "mgl.sqlite") as counts:
        deferred = DeferredEngine(start, counts, **known)
        own = OwnModels(deferred, embedder or WordEmbedder(), WordReranker())
        with Lab.open(own, home=home, observer=observer) as lab:
            yield lab


def list_rows(home: Path, *ids: str) -> dict[str, int]:
    """How many rows of each table have one of these ids, or have an owner that has."""
    found: dict[str, int] = {}
    with closing(sqlite3.connect(home / "mgl.sqlite")) as reader:
        for (table,) in reader.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            for row in reader.execute(f"SELECT * FROM {table}").fetchall():
                said = "\n".join(
                    each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each)
                    for each in row
                )
                if any(identity in said for identity in ids):
                    found[table] = found.get(table, 0) + 1
    return found


def count_rows(home: Path, table: str) -> int:
    with closing(sqlite3.connect(home / "mgl.sqlite")) as reader:
        (count,) = reader.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(count)


def count_unowned(home: Path) -> dict[str, int]:
    """How many vectors and token counts nobody owns, and calls of which no source is known."""
    with closing(sqlite3.connect(home / "mgl.sqlite")) as reader:
        counts = {}
        for table, condition in (
            ("vectors", "digest NOT IN (SELECT digest FROM owned)"),
            ("token_counts", "digest NOT IN (SELECT digest FROM owned)"),
            ("llm_calls", "document_id IS NULL"),
        ):
            select = f"SELECT count(*) FROM {table} WHERE {condition}"
            (counts[table],) = reader.execute(select).fetchone()
        return counts
