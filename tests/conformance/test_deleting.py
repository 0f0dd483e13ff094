"""Every kind of memory is deleted whole, and another that shares its text stays as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgl.errors import StoreDeleted
from mgl.lab import Lab
from mgl.llm.base import Completion, Request
from mgl.store import MemoryRecord
from mgl.types import Answer
from tests.conformance.kinds import KINDS, Case, list_cases
from tests.lab.deleting import (
    Deaf,
    DeafEmbedder,
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
from tests.patience import PATIENCE_S

each_case = pytest.mark.parametrize("case", list_cases())


@pytest.fixture(autouse=True)
def _embeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mgl.peers.kinds.Rlms.retrieves", True)  # as the toy does


def build(lab: Lab, case: Case, number: int) -> MemoryRecord:
    asked = [make_question(number)] if case.questions else []
    given = make_source(case.reads, number)
    return lab.find(lab.build(given, asked, memory=case.name, **KINDS[case.line]).memory_id)


def ask(lab: Lab, case: Case, record: MemoryRecord, number: int) -> Answer | None:
    return lab.ask(record, make_question(number)).answer if case.answers else None


@each_case
def test_nothing_is_left_of_one_and_the_other_is_as_it_was(mgl_home: Path, case: Case) -> None:
    with open_lab(mgl_home) as lab:
        doomed, kept = (build(lab, case, number) for number in (1, 2))
        ask(lab, case, doomed, 1)
        answer, view = ask(lab, case, kept, 2), lab.view(kept.id)
        stats = lab.stats(kept.id)
    gone = [*own_words(1), doomed.id, doomed.document_id]
    assert set(find_left(mgl_home, own_words(1)[:4])) == set(own_words(1)[:4])
    assert count_unowned(mgl_home) == dict.fromkeys(("vectors", "token_counts", "llm_calls"), 0)
    with open_lab(mgl_home, Deaf(), embedder=DeafEmbedder()) as lab:
        planned = lab.delete(make_source(case.reads, 1).name, dry_run=True)
        assert list_rows(mgl_home, doomed.id)
        deleted = lab.delete(make_source(case.reads, 1).name)
        assert deleted == planned
        assert deleted.takes_source
        assert deleted.is_wiped
        assert find_left(mgl_home, gone) == {}
        assert list_rows(mgl_home, doomed.id, doomed.document_id) == {}
        assert [memory.id for memory in lab.memories() if memory.id == kept.id]
        assert build(lab, case, 2) == kept
        assert ask(lab, case, kept, 2) == answer
        assert (lab.view(kept.id), lab.stats(kept.id)) == (view, stats)
    assert find_left(mgl_home, gone) == {}
    assert count_unowned(mgl_home) == dict.fromkeys(("vectors", "token_counts", "llm_calls"), 0)
    with open_lab(mgl_home, Deaf(), embedder=DeafEmbedder()) as lab:
        lab.delete(make_source(case.reads, 2).name)
    for table in ("documents", "turns", "memories", "steps", "edits", "llm_calls", "reports",
                  "answers", "vectors", "token_counts", "indexes", "owners", "owned",
                  "snapshots"):  # fmt: skip
        assert count_rows(mgl_home, table) == 0, table


class Gated(EchoEngine):
    """Waits in its call number ``stop``, so that something else may happen meanwhile."""

    def __init__(self, stop: int) -> None:
        super().__init__()
        self._stop = stop
        self.has_stopped = False
        self.reached, self.goes_on = threading.Event(), threading.Event()

    async def generate(self, request: Request) -> Completion:
        completion = await super().generate(request)
        if self.calls == self._stop:
            self.has_stopped = True
            self.reached.set()
            assert self.goes_on.wait(PATIENCE_S)
        return completion


FEW_CALLS = {"direct", "gam/small", "naive-rag", "passages", "peer:rlms", "transcript", "turns"}


@pytest.fixture
def gated(case: Case) -> Iterator[Gated]:
    """Waits in the first call of a kind that makes few, and of others in the third."""
    engine = Gated(1 if case.line in FEW_CALLS else 3)
    yield engine
    engine.goes_on.set()


@each_case
def test_who_builds_or_asks_what_is_deleted_meanwhile_writes_nothing(
    mgl_home: Path, case: Case, gated: Gated
) -> None:
    failed: list[BaseException] = []

    def work() -> None:
        try:
            with open_lab(mgl_home, gated) as lab:
                ask(lab, case, build(lab, case, 1), 1)
        except BaseException as error:
            failed.append(error)
        finally:
            gated.reached.set()

    worker = threading.Thread(target=work)
    worker.start()
    assert gated.reached.wait(PATIENCE_S)
    assert gated.has_stopped, failed
    with open_lab(mgl_home, Deaf(), embedder=DeafEmbedder()) as lab:
        given = make_source(case.reads, 1)
        lab.delete(given.name)
        gated.goes_on.set()
        worker.join()
        assert [type(error) for error in failed] == [StoreDeleted], failed
        assert lab.memories() == []
    assert find_left(mgl_home, [*own_words(1), given.id]) == {}
    for table in ("documents", "memories", "llm_calls", "vectors", "token_counts", "owned"):
        assert count_rows(mgl_home, table) == 0, table
