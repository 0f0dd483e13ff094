"""Every kind of memory is deleted whole, and another that shares its text stays as it was."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mgl import registry
from mgl.errors import StoreDeleted
from mgl.lab import Lab
from mgl.llm.base import Completion, Request
from mgl.memories.base import MemoryKind
from mgl.peers import memory as peers
from mgl.peers import process
from mgl.peers.environments import PEERS
from mgl.store import MemoryRecord
from mgl.types import Answer
from tests.lab.deleting import (
    Deaf,
    DeafEmbedder,
    SourceKind,
    count_rows,
    count_unowned,
    list_rows,
    make_question,
    make_source,
    open_lab,
    own_words,
)
from tests.lab.echoing import EchoEngine
from tests.leftovers import find_left
from tests.peers.scripting import TOY

SMALL: dict[str, dict[str, Any]] = {
    "chain-of-agents": {"chunk_tokens": 80, "note_tokens": 40},
    "como-rag": {"chunk_tokens": 40, "summary_tokens": 60, "rounds": 2},
    "deep-rag": {"chunk_tokens": 40, "overlap_tokens": 10},
    "gam": {"buffer_tokens": 48},
    "general-agentic-memory": {"page_tokens": 64, "rounds": 2},
    "graph": {"chunk_tokens": 40, "overlap_tokens": 10},
    "graphrag": {"chunk_tokens": 60, "overlap_tokens": 10},
    "hgmem": {"chunk_tokens": 40, "overlap_tokens": 10, "steps": 2, "floor": -1.0},
    "hipporag": {"chunk_tokens": 40, "overlap_tokens": 10},
    "mindgraph": {"chunk_tokens": 64, "max_rounds": 4},
    "naive-rag": {"chunk_tokens": 40, "overlap_tokens": 10},
    "passages": {"tokens": 40},
    "peer:lightrag": {"chunk_tokens": 60, "overlap_tokens": 10},
    "peer:rlms": {"unsafe": True},
    "read-agent": {"page_tokens": 256, "least_tokens": 100, "gist_tokens": 20},
    "rlm": {"turns": 3, "unsafe": True},
    "sliding-summary": {"chunk_tokens": 80, "summary_tokens": 40},
}
"""Options that make the sources several parts; a kind that is not named takes its own."""


def list_cases() -> list[Any]:
    sources: tuple[SourceKind, ...] = ("document", "conversation")
    return [
        pytest.param(name, source, id=f"{name}-{source}")
        for name in registry.names("memory")
        for source in sources
        if load(name).reads in (source, "either")
    ]


def load(name: str) -> MemoryKind:
    kind: MemoryKind = registry.load("memory", name)
    return kind


@pytest.fixture(autouse=True)
def _toys(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A toy in place of every peer's package."""
    folder = tmp_path_factory.mktemp("adapters")
    for name in PEERS:
        (folder / f"{name}.py").write_text((TOY / "toy.py").read_text())
    monkeypatch.setattr("mgl.peers.kinds.Rlms.retrieves", True)  # as the toy does
    monkeypatch.setattr(peers, "find_python", lambda *_: Path(sys.executable))
    monkeypatch.setattr(process, "ADAPTERS", folder)
    monkeypatch.setattr(process, "_SETTINGS", {**process._SETTINGS, "PYTHONPATH": str(TOY)})


def build(lab: Lab, name: str, source: SourceKind, number: int) -> MemoryRecord:
    kind, question = load(name), make_question(number)
    asked = [question] if kind.question_aware or kind.per_question else []
    given = make_source(source, number)
    return lab.find(lab.build(given, asked, memory=name, **SMALL.get(name, {})).memory_id)


def ask(lab: Lab, record: MemoryRecord, number: int) -> Answer | None:
    """Its answer; a graph is read by another kind."""
    if record.kind == "graph":
        return None
    return lab.ask(record, make_question(number)).answer


@pytest.mark.parametrize(("name", "source"), list_cases())
def test_nothing_is_left_of_one_and_the_other_is_as_it_was(
    mgl_home: Path, name: str, source: SourceKind
) -> None:
    with open_lab(mgl_home) as lab:
        doomed, kept = (build(lab, name, source, number) for number in (1, 2))
        ask(lab, doomed, 1)
        answer, view = ask(lab, kept, 2), lab.view(kept.id)
        stats = lab.stats(kept.id)
    gone = [*own_words(1), doomed.id, doomed.document_id]
    assert set(find_left(mgl_home, own_words(1)[:4])) == set(own_words(1)[:4])
    assert count_unowned(mgl_home) == dict.fromkeys(("vectors", "token_counts", "llm_calls"), 0)
    with open_lab(mgl_home, Deaf(), embedder=DeafEmbedder()) as lab:
        planned = lab.delete(make_source(source, 1).name, dry_run=True)
        assert find_left(mgl_home, gone)
        deleted = lab.delete(make_source(source, 1).name)
        assert deleted == planned
        assert deleted.takes_source
        assert deleted.is_wiped
        assert find_left(mgl_home, gone) == {}
        assert list_rows(mgl_home, doomed.id, doomed.document_id) == {}
        assert [memory.id for memory in lab.memories() if memory.id == kept.id]
        assert build(lab, name, source, 2) == kept
        assert ask(lab, kept, 2) == answer
        assert (lab.view(kept.id), lab.stats(kept.id)) == (view, stats)
    assert find_left(mgl_home, gone) == {}
    assert count_unowned(mgl_home) == dict.fromkeys(("vectors", "token_counts", "llm_calls"), 0)
    with open_lab(mgl_home, Deaf(), embedder=DeafEmbedder()) as lab:
        lab.delete(make_source(source, 2).name)
    for table in ("documents", "turns", "memories", "steps", "edits", "llm_calls", "reports",
                  "answers", "vectors", "token_counts", "indexes", "owners", "owned"):  # fmt: skip
        assert count_rows(mgl_home, table) == 0, table


class Gated(EchoEngine):
    """Waits in its call number ``stop``, so that something else may happen meanwhile."""

    def __init__(self, stop: int) -> None:
        super().__init__()
        self._stop = stop
        self.reached, self.goes_on = threading.Event(), threading.Event()

    async def generate(self, request: Request) -> Completion:
        completion = await super().generate(request)
        if self.calls == self._stop:
            self.reached.set()
            assert self.goes_on.wait(60)
        return completion


@pytest.fixture(params=[1, 3])
def gated(request: pytest.FixtureRequest) -> Iterator[Gated]:
    engine = Gated(request.param)
    yield engine
    engine.goes_on.set()


@pytest.mark.parametrize(("name", "source"), list_cases())
def test_who_builds_or_asks_what_is_deleted_meanwhile_writes_nothing(
    mgl_home: Path, name: str, source: SourceKind, gated: Gated
) -> None:
    failed: list[BaseException] = []

    def work() -> None:
        try:
            with open_lab(mgl_home, gated) as lab:
                ask(lab, build(lab, name, source, 1), 1)
        except BaseException as error:
            failed.append(error)
        finally:
            gated.reached.set()

    worker = threading.Thread(target=work)
    worker.start()
    assert gated.reached.wait(60)
    if not worker.is_alive() or failed:
        worker.join()
        pytest.skip(f"{name} makes fewer calls of a {source}")
    with open_lab(mgl_home, Deaf(), embedder=DeafEmbedder()) as lab:
        given = make_source(source, 1)
        lab.delete(given.name)
        gated.goes_on.set()
        worker.join()
        assert [type(error) for error in failed] == [StoreDeleted], failed
        assert lab.memories() == []
    assert find_left(mgl_home, [*own_words(1), given.id]) == {}
    for table in ("documents", "memories", "llm_calls", "vectors", "token_counts", "owned"):
        assert count_rows(mgl_home, table) == 0, table
