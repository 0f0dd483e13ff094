"""Every kind of memory, in little: one line each, over a scripted model and toy peers.

A kind that ``mgl.registry`` has and this table lacks fails the suite.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pytest

from mgl import registry
from mgl.errors import MglError
from mgl.llm.base import Completion, Engine, Request
from mgl.llm.calls import call_key
from mgl.llm.client import Client, Policy
from mgl.llm.concurrency import Portal
from mgl.llm.fakes import SchemaEngine
from mgl.memories import snapshots
from mgl.memories.base import MemoryKind, Tools
from mgl.memories.options import load_kind
from mgl.observer import SILENT
from mgl.peers import memory as peers
from mgl.peers import process
from mgl.peers.environments import PEERS
from mgl.retrieval.embedders import CachedEmbedder
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import Answer, Conversation, Document, Question, Source, Span, Turn
from tests.peers.scripting import TOY

KINDS: dict[str, dict[str, Any]] = {
    "a-mem": {},
    "arigraph": {},
    "chain-of-agents": {"chunk_tokens": 80, "note_tokens": 40},
    "como-rag": {"chunk_tokens": 40, "summary_tokens": 60, "rounds": 2},
    "deep-rag": {"chunk_tokens": 40, "overlap_tokens": 10},
    "direct": {},
    "emem": {},
    "gam": {"buffer_tokens": 48},
    "gam/small": {"preset": "small"},
    "general-agentic-memory": {"page_tokens": 64, "rounds": 2},
    "graph": {"chunk_tokens": 40, "overlap_tokens": 10},
    "graphrag": {"chunk_tokens": 60, "overlap_tokens": 10},
    "hgmem": {"chunk_tokens": 40, "overlap_tokens": 10, "steps": 2, "floor": -1.0},
    "hgmem/small": {"preset": "small", "chunk_tokens": 40, "overlap_tokens": 10},
    "hipporag": {"chunk_tokens": 40, "overlap_tokens": 10},
    "light": {"scratchpad_tokens": 120, "part_tokens": 40, "recent": 2, "k": 2},
    "memgpt": {},
    "memory-bank": {},
    "memoryos": {},
    "mindgraph": {"chunk_tokens": 64, "max_rounds": 4},
    "mindgraph/small": {"preset": "small", "chunk_tokens": 64},
    "mnemis": {},
    "mnemis/small": {"preset": "small"},
    "naive-rag": {"chunk_tokens": 40, "overlap_tokens": 10},
    "nemori": {},
    "passages": {"tokens": 40},
    "peer:graphiti": {},
    "peer:langmem": {},
    "peer:lightrag": {"chunk_tokens": 60, "overlap_tokens": 10},
    "peer:mem0": {},
    "peer:rlms": {"unsafe": True},
    "premem": {},
    "read-agent": {"page_tokens": 256, "least_tokens": 100, "gist_tokens": 20},
    "rlm": {"turns": 3, "unsafe": True},
    "sliding-summary": {"chunk_tokens": 80, "summary_tokens": 40},
    "transcript": {},
    "turns": {},
}

AS_MEM0 = {"peer:graphiti", "peer:langmem"}
"""Mem0's kind but for how a time is written and how many turns are read at once."""

SourceKind = Literal["document", "conversation"]

QUESTION = Question("Who gave Ann the lantern?")
OTHER = Question("What did Bo paint near the harbour?")
PLACES = ("Rome", "Detroit", "Lisbon", "Osaka", "Quito", "Nairobi")
STORY = Document.from_text(
    "story.txt",
    "\n\n".join(
        f"On day {day} Ann met Bo in {PLACES[day % 6]}. Bo gave Ann the lantern {day}. "
        f"They painted the harbour of {PLACES[(day + 1) % 6]}."
        for day in range(14)
    ),
)


def own_word(number: int) -> str:
    """A word that only this turn has."""
    return f"zq{number}vy"


def typeset_word(number: int) -> str:
    """The same word as its turn has it: every third has a soft hyphen, which no model sees."""
    return own_word(number).replace("vy", "\u00advy") if number % 3 == 0 else own_word(number)


TALK = Conversation.from_turns(
    "talk",
    [
        Turn(
            f"t{number}",
            "Ann" if number % 2 else "Bo",
            f"I saw {typeset_word(number)} in {PLACES[number % 6]} and painted the lantern of "
            f"{PLACES[(number + 2) % 6]} with the walker before the letter came.",
            datetime(2023, 5, 8, 9) + timedelta(days=number // 4, minutes=number),
            f"{number // 4}",
        )
        for number in range(16)
    ],
)


class CountingEngine(SchemaEngine):
    """``SchemaEngine`` that keeps the keys, and the prompts with their tokens, of the calls that
    reach it."""

    def __init__(self, seed: int = 0, **properties: Any) -> None:
        super().__init__(seed, **{"concurrency": 2, **properties})
        self.keys: list[str] = []
        self.counts: list[int] = []
        self.prompts: list[str] = []

    async def generate(self, request: Request) -> Completion:
        self.counts.append(await self.count_prompt_tokens(request))
        self.keys.append(call_key(self.model_id, request))
        self.prompts.append("\n".join(message.content for message in request.messages))
        return await super().generate(request)


class RepeatingEngine(CountingEngine):
    """Has a word that only one turn has in what it writes, wherever its prompt shows one."""

    async def generate(self, request: Request) -> Completion:
        completion = await super().generate(request)
        seen = OWN_WORD.findall(" ".join(message.content for message in request.messages))
        if not seen or request.choices:
            return completion
        own = Random(self.keys[-1]).choice(sorted(set(seen)))
        return replace(completion, text=COMMON_WORD.sub(own, completion.text, count=3))


OWN_WORD = re.compile(r"zq\d+vy")
COMMON_WORD = re.compile(r"\b(?:[Ll]antern|[Hh]arbour|[Ii]sland|[Kk]ettle|[Aa]mber|[Cc]edar)\b")


def find_words(store: Store) -> set[int]:
    """The numbers of the turns whose own word the database has anywhere in its bytes."""
    files = store.path.parent.glob(f"{store.path.name}*")
    return find_numbers([file.read_bytes().lower() for file in files])


def find_numbers(texts: Sequence[bytes]) -> set[int]:
    """The numbers of the turns whose own word is in any of some texts, which are in lower case."""
    return {
        number
        for number in range(len(TALK.turns))
        for word in {own_word(number), typeset_word(number)}
        if any(word.encode() in text for text in texts)
    }


@dataclass(frozen=True)
class Case:
    """A line of the table over one kind of source."""

    line: str
    reads: SourceKind

    @property
    def name(self) -> str:
        return self.line.partition("/")[0]

    @property
    def kind(self) -> MemoryKind:
        return load_kind(self.name, KINDS[self.line].get("preset"))

    @property
    def source(self) -> Source:
        return STORY if self.reads == "document" else TALK

    @property
    def questions(self) -> list[Question]:
        """What a memory is built for: a question where its kind takes one."""
        return [QUESTION] if self.kind.per_question or self.kind.question_aware else []

    @property
    def answers(self) -> bool:
        """Whether it answers questions itself; ``graph`` is read by another kind."""
        return self.name != "graph"

    @property
    def is_peer(self) -> bool:
        return self.name.startswith("peer:")

    @property
    def grows(self) -> bool:
        return hasattr(self.kind, "append") and self.reads == "conversation"

    def text_of(self, source: Source) -> str:
        return source.transcript.text if isinstance(source, Conversation) else source.text

    def open(
        self,
        store: Store,
        engine: Engine | None = None,
        source: Source | None = None,
        questions: Sequence[Question] | None = None,
        *,
        usual: bool = False,
    ) -> Any:
        """The memory; with the sizes of its line, or with ``usual`` those that users have."""
        llm = Client(engine or CountingEngine(), store.call_log(), Policy(max_retries=0))
        tools = Tools(llm, store, SILENT, CachedEmbedder(WordEmbedder(), store), WordReranker())
        asked = self.questions if questions is None else questions
        chosen = KINDS[self.line]
        if usual:
            chosen = {name: chosen[name] for name in ("preset", "unsafe") if name in chosen}
        config = self.kind.Config.model_validate(chosen)
        return self.kind(tools, source or self.source, asked, config)


@contextmanager
def open_store() -> Iterator[Store]:
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "mgl.sqlite") as store:
        yield store


def dump(store: Store) -> dict[str, Any]:
    """All that the memories hold and stand on; of rows not when, nor by which call."""
    found: dict[str, Any] = {}
    with closing(sqlite3.connect(f"file:{store.path}?mode=ro", uri=True)) as reader:
        for table, columns in HELD.items():
            found[table] = sorted(reader.execute(f"SELECT {columns} FROM {table}"))
    for record in store.memories():
        rows = sorted(store.edits(record.id), key=lambda row: row.chunk)
        found[record.id] = [replace(row, call_key=None) for row in rows]
    return found


async def run(case: Case, memory: Any) -> Answer | None:
    """Build a memory and ask it."""
    await memory.build()
    return await memory.answer(QUESTION) if case.answers else None


@contextmanager
def open_built(case: Case) -> Iterator[tuple[Store, Any]]:
    """A store that has the memory built, and the memory as it is opened now."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "mgl.sqlite"
        path.write_bytes(build_once(case))
        with Store.open(path) as store:
            yield store, case.open(store)


@cache
def build_once(case: Case) -> bytes:
    """The file of a store in which the memory was built, once for all tests of this process."""
    with TemporaryDirectory() as folder, Portal() as portal:
        path = Path(folder) / "mgl.sqlite"
        with Store.open(path) as store:
            portal.run(lambda: case.open(store).build())
        return path.read_bytes()


@cache
def run_whole(case: Case) -> tuple[dict[str, Any], Answer | None, tuple[str, ...]]:
    """What a run that nothing disturbs leaves in the store, its answer, and its calls."""
    engine = CountingEngine()
    with open_store() as store, Portal() as portal:
        answer = portal.run(lambda: run(case, case.open(store, engine)))
        return dump(store), answer, tuple(engine.keys)


def check_answer(case: Case, memory: Any, answer: Answer) -> None:
    """Its citations are exact, and what it names is there."""
    view = memory.view()
    document = view.document
    assert memory.measure() == view.size
    assert answer.text.strip()
    for citation in answer.citations:
        assert document.quote(citation.span) == citation.quote
    if case.reads == "document":
        for place in answer.retrieved:
            assert document.quote(Span.at(document.id, place))
    else:
        assert set(answer.retrieved) <= {turn.id for turn in memory._source.turns}


@contextmanager
def hinting() -> Iterator[None]:
    """Allow errors that say what to do, and no others."""
    try:
        yield
    except MglError as error:
        if not error.hint:
            raise


HELD = {
    "documents": "id, name, text, sections, media_type, notes",
    "turns": "document_id, number, id, speaker, text, time, session, redacted",
    "memories": "id, kind, document_id, questions, model_id, config, chunks, tokens",
    "steps": "memory_id, chunk",
    "deletions": "document_id, turns",
}


def list_cases(*, reads: SourceKind | None = None, alike: bool = False) -> list[Any]:
    """All cases, or those of one kind of source, as parameters.

    Those of ``AS_MEM0`` run with --nightly alone, unless ``alike``.
    """
    found = []
    for line in KINDS:
        wanted = registry.load("memory", line.partition("/")[0]).reads
        for source in ("document", "conversation"):
            if wanted in (source, "either") and reads in (source, None):
                marks = [pytest.mark.slow] if line in AS_MEM0 and not alike else []
                case = pytest.param(Case(line, source), id=f"{line}-{source}", marks=marks)
                found.append(case)
    return found


def keep_snapshots(patch: pytest.MonkeyPatch, every: int = 2) -> None:
    """Have each log write a snapshot with one step in so many."""
    patch.setattr(snapshots, "LEAST", every)


def write_toys(folder: Path) -> None:
    """Write the toy adapter as that of every peer."""
    for name in PEERS:
        (folder / f"{name}.py").write_text((TOY / "toy.py").read_text())


def install_toys(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have the toy adapters in a folder stand in for the packages of all peers."""
    patch.setattr(peers, "find_python", lambda *_: Path(sys.executable))
    patch.setattr(process, "ADAPTERS", folder)
    patch.setattr(process, "_SETTINGS", {**process._SETTINGS, "PYTHONPATH": str(TOY)})
