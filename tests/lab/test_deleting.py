"""Deleting in a lab: documents, conversations, memories, and the files that tell of them."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import ResourceError, StoreDeleted, StoreError, UsageError
from mgl.lab import Lab
from mgl.models.adapters import list_adapters, write_adapter
from mgl.training.data import Pair
from mgl.training.fitting import FitSettings, Fitted
from mgl.training.records import Base, Trained, Training, keep_training, list_unfinished
from mgl.types import Conversation, Document, Turn
from tests.lab.deleting import count_rows, count_unowned, list_rows, open_lab
from tests.leftovers import find_left
from tests.patience import PATIENCE_S

KINDS: dict[str, dict[str, Any]] = {
    "mindgraph": {"chunk_tokens": 64, "max_rounds": 2},
    "hgmem": {"chunk_tokens": 40, "overlap_tokens": 10, "steps": 1, "floor": -1.0},
    "naive-rag": {"chunk_tokens": 40, "overlap_tokens": 10},
}


def make_document(name: str = "zorblat.txt", said: str = "quaxby") -> Document:
    return Document.from_text(name, f"Ann gave the {said} to Bo in Rome. They met the walker.")


def build(lab: Lab, document: Document, kind: str = "naive-rag", *questions: str) -> str:
    return lab.build(document, questions, memory=kind, **KINDS.get(kind, {})).memory_id


def test_a_talk_that_is_open_elsewhere_ends_and_a_new_one_of_its_name_is_empty(
    mgl_home: Path,
) -> None:
    with open_lab(mgl_home) as lab, open_lab(mgl_home) as other:
        stale = other.talk("zorblat")
        stale.append(Turn("1", "Ann", "I keep a quaxby in Rome."))
        assert not stale.is_deleted
        lab.delete("zorblat")
        assert stale.is_deleted
        for use in (
            lambda: stale.append(Turn("2", "Ann", "The quaxby is well.")),
            lambda: stale.add([Turn("", "Ann", "The quaxby is well.")]),
            lambda: stale.search("quaxby"),
            lambda: stale.ask("Where is the quaxby?"),
            lambda: stale.forget(["1"]),
            stale.settle,
            stale.export,
            lambda: stale.memory.conversation,
        ):
            with pytest.raises(StoreDeleted):
                use()
        assert lab.memories() == []
        assert find_left(mgl_home, ["zorblat", "quaxby"]) == {}
        fresh = lab.talk("zorblat")
        assert fresh.memory.conversation.turns == []
        fresh.append(Turn("1", "Bo", "I never had one."))
        with pytest.raises(StoreDeleted):
            stale.append(Turn("2", "Ann", "The quaxby is well."))
        with pytest.raises(StoreDeleted):
            stale.search("quaxby")
        assert [turn.text for turn in lab.transcript("zorblat").turns] == ["I never had one."]
        assert find_left(mgl_home, ["quaxby"]) == {}


def test_a_conversation_goes_whole_by_its_name_and_one_memory_by_its_id_or_kind(
    mgl_home: Path,
) -> None:
    with open_lab(mgl_home) as lab:
        for kind in ("gam", "mnemis"):
            lab.talk("zorblat", memory=kind).append(Turn(kind, "Ann", f"I like {kind} in Rome."))
        gam, mnemis = (lab.find("zorblat", kind) for kind in ("gam", "mnemis"))
        planned = lab.delete("zorblat", dry_run=True)
        assert {memory.memory_id for memory in planned.memories} == {gam.id, mnemis.id}
        assert (planned.turns, planned.takes_source) == (2, True)
        alone = lab.delete("zorblat", memory="gam", dry_run=True)
        assert alone == lab.delete(gam.id, dry_run=True)
        assert (alone.takes_source, alone.kept) == (False, (mnemis.id,))
        with pytest.raises(UsageError, match="no memory of the kind graph"):
            lab.delete("zorblat", memory="graph")
        with pytest.raises(UsageError, match="no memory of the kind mnemis"):
            lab.delete(gam.id, memory="mnemis")
        assert lab.delete(gam.id).kept == (mnemis.id,)
        assert list_rows(mgl_home, gam.id) == {}
        assert len(lab.transcript(mnemis.id).turns) == 2
        assert lab.delete(mnemis.id).takes_source
        assert find_left(mgl_home, ["zorblat"]) == {}


def test_names_are_exact_and_one_that_several_have_is_refused(mgl_home: Path) -> None:
    with open_lab(mgl_home) as lab:
        ids = [build(lab, make_document(said=said)) for said in ("quaxby", "vintorp")]
        lab.keep(make_document("kept.txt", "unread"))
        lab.talk("kept.txt").append(Turn("1", "Ann", "I said hello."))
        for name in ("zorblat", " zorblat.txt", "ZORBLAT.TXT", "", ids[0][:8], ids[0].upper(),
                     "mem_000000000000"):  # fmt: skip
            with pytest.raises(StoreError, match="there is no"):
                lab.delete(name)
        with pytest.raises(UsageError, match="2 documents or conversations are called") as refused:
            lab.delete("zorblat.txt")
        assert all(identity in refused.value.hint for identity in ids)
        with pytest.raises(UsageError, match="2 documents or conversations"):
            lab.delete("kept.txt")
        lab.delete(Conversation.from_name("kept.txt"))
        assert lab.delete("kept.txt").memories == ()  # it was only kept
        lab.delete(ids[0])
        assert lab.delete("zorblat.txt").memories[0].memory_id == ids[1]
        assert count_rows(mgl_home, "documents") == 0


def test_a_graph_takes_along_what_is_read_from_it(mgl_home: Path) -> None:
    document = make_document()
    with open_lab(mgl_home) as lab:
        asked = [build(lab, document, "hgmem", f"Who has {what}?") for what in ("it", "more")]
        other = build(lab, document)
        (graph,) = (each.id for each in lab.memories() if each.record.kind == "graph")
        assert lab.delete(asked[0]).kept == (other, asked[1], graph)
        assert lab.view(asked[1])
        gone = lab.delete(graph)
        assert {memory.memory_id for memory in gone.memories} == {graph, asked[1]}
        assert gone.kept == (other,)
        assert not gone.takes_source
        options = {**KINDS["hgmem"], "preset": "small"}
        read = lab.build(document, ["Who has it?"], memory="hgmem", **options).memory_id
        (graph,) = (each.id for each in lab.memories() if each.record.kind == "graph")
        assert {memory.memory_id for memory in lab.delete(graph).memories} == {graph, read}


def train(home: Path, name: str, *sources: str, meanwhile: Any = None) -> None:
    def work(folder: Path) -> Trained:
        (folder / "checkpoint").write_text("weights of quaxby")
        if meanwhile is not None:
            meanwhile()
        (folder / "lora").write_text("weights of quaxby")
        return Trained(Fitted([], []), {}, [folder / "lora"], ["what of the quaxby?"])

    base = home / "base"
    base.mkdir(exist_ok=True)
    (base / "model.safetensors").write_text("base")
    rows = [Pair("What of the quaxby?", "It is.", (), source, "own", "own") for source in sources]
    keep_training(Training(name, FitSettings(), home), "retriever", rows, work, Base("b", base))


def test_adapters_and_trainings_on_it_go_and_the_rest_stay(mgl_home: Path) -> None:
    doomed, other = make_document(), make_document("other.txt", "nothing")

    def stop() -> None:
        raise KeyboardInterrupt

    with open_lab(mgl_home) as lab:
        build(lab, doomed)
        memory = build(lab, doomed, "hgmem", "Who?")
        for name, sources in (("both", [doomed.id, other.id]), ("other", [other.id])):
            train(mgl_home, name, *sources)
            with pytest.raises(KeyboardInterrupt):
                train(mgl_home, f"half-{name}", *sources, meanwhile=stop)
        merged = mgl_home / "converted" / "both@0123"
        merged.mkdir(parents=True)
        (merged / "model").write_text("quaxby")
        assert lab.delete(memory, dry_run=True).adapters == ()
        planned = lab.delete("zorblat.txt", dry_run=True)
        assert (planned.adapters, planned.trainings) == (("both",), ("half-both",))
        assert set(list_adapters(mgl_home)) >= {"both", "other"}
        assert lab.delete("zorblat.txt") == planned
    assert "both" not in list_adapters(mgl_home)
    assert "other" in list_adapters(mgl_home)
    assert list_unfinished(mgl_home) == ["half-other"]
    assert not merged.exists()


def test_a_training_whose_source_is_deleted_meanwhile_leaves_nothing(mgl_home: Path) -> None:
    with open_lab(mgl_home) as lab:
        document = make_document()
        build(lab, document)
        with pytest.raises(ResourceError, match="deleted meanwhile"):
            train(mgl_home, "mine", document.id, meanwhile=lambda: lab.delete("zorblat.txt"))
    assert list_unfinished(mgl_home) == []
    assert "mine" not in list_adapters(mgl_home)
    assert find_left(mgl_home, ["quaxby"]) == {}


def test_an_adapter_whose_removal_was_interrupted_is_still_found(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = make_document()
    weights = mgl_home / "lora"
    weights.write_text("quaxby")
    with open_lab(mgl_home) as lab:
        build(lab, document)
        given = {"kind": "retriever", "licence": "own", "sources": [document.id]}
        write_adapter("mine", mgl_home, given, [weights])
        weights.unlink()
        with monkeypatch.context() as patch:
            unlink, removed = Path.unlink, []

            def die(path: Path, missing_ok: bool = False) -> None:
                if removed:
                    raise KeyboardInterrupt
                removed.append(path)
                unlink(path, missing_ok)

            patch.setattr(Path, "unlink", die)
            with pytest.raises(KeyboardInterrupt):
                lab.delete("zorblat.txt")
        assert lab.delete("zorblat.txt").adapters == ("mine",)
    assert find_left(mgl_home, ["quaxby"]) == {}


@pytest.mark.parametrize("is_talk", [True, False], ids=["conversation", "document"])
def test_questions_that_were_written_about_it_go_with_it(mgl_home: Path, is_talk: bool) -> None:
    said = "In the year of the flood Ann gave the quaxby to Bo, who kept it in Rome."
    with open_lab(mgl_home) as lab:
        if is_talk:
            talk = lab.talk("zorblat")
            talk.append(Turn("1", "Ann", said))
            name, memory = "zorblat", talk.id
        else:
            name, memory = "zorblat.txt", build(lab, make_document(said=said))
        before = count_rows(mgl_home, "llm_calls")
        lab.write_questions(memory)
        written = count_rows(mgl_home, "llm_calls") - before
        assert written
        assert count_unowned(mgl_home) == {"vectors": 0, "token_counts": 0, "llm_calls": 0}
        assert lab.delete(name).calls == before + written
        for table in ("llm_calls", "token_counts", "owned"):
            assert count_rows(mgl_home, table) == 0
    assert find_left(mgl_home, ["quaxby"]) == {}


def test_job_files_go_with_what_they_built(mgl_home: Path) -> None:
    document, other = make_document(), make_document("other.txt", "nothing")
    with open_lab(mgl_home) as lab:
        ids = {kind: build(lab, document, kind, "Who?") for kind in ("mindgraph", "hgmem")}
        jobs = {
            "made": {"document_id": document.id, "memory": "mindgraph", "questions": ["Who?"],
                     "memory_id": ids["mindgraph"]},
            "begun": {"document_id": document.id, "memory": "hgmem", "questions": ["Who?"],
                      "memory_id": None},
            "waits": {"document_id": document.id, "memory": "graph", "questions": [],
                      "memory_id": None},
            "other": {"document_id": other.id, "memory": "hgmem", "questions": [],
                      "memory_id": None},
        }  # fmt: skip
        folder = mgl_home / "jobs"
        folder.mkdir()
        for name, job in jobs.items():
            (folder / f"{name}.json").write_text(json.dumps({"document": "zorblat.txt", **job}))
        (folder / "made.json.77").write_text('{"document": "zorbl')  # its writer was killed
        (folder / "strange.json").write_text("{}")
        assert lab.delete(ids["mindgraph"]).jobs == ("made",)
        assert lab.delete("zorblat.txt").jobs == ("begun", "waits")
        assert sorted(path.name for path in folder.iterdir()) == ["other.json", "strange.json"]


def test_who_deletes_is_told_when_somebody_reads_the_store(mgl_home: Path) -> None:
    notes: list[str] = []

    class Noting:
        def progress(self, stage: str, done: int, total: int) -> None: ...

        def note(self, text: str) -> None:
            notes.append(text)

    with open_lab(mgl_home, observer=Noting()) as lab, open_lab(mgl_home) as other:
        build(lab, make_document())
        lab._store._connection.execute("PRAGMA busy_timeout = 50")
        with other._store._read() as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM documents").fetchone()
            notes.clear()
            assert not lab.delete("zorblat.txt").is_wiped
            assert "leaves the store's file" in notes[0]
            assert find_left(mgl_home, ["quaxby"])
            connection.execute("COMMIT")
    assert find_left(mgl_home, ["quaxby"]) == {}


def test_a_document_that_is_deleted_after_it_was_loaded_does_not_come_back(mgl_home: Path) -> None:
    """As a job does: it loads the document, and begins to build it."""
    with open_lab(mgl_home) as lab:
        lab.keep(make_document())
        loaded = lab.load(make_document().id)
        lab.delete("zorblat.txt")
        with pytest.raises(StoreDeleted):
            lab.build_stored(loaded, memory="naive-rag")
        assert count_rows(mgl_home, "documents") == 0
        record = lab.find(build(lab, loaded))  # from the user's own hands it may
        lab.delete("zorblat.txt")
        with pytest.raises(StoreDeleted):
            lab.ask(record, "Who gave it?")
        with pytest.raises(StoreDeleted):
            lab.ask(record, "Who gave it?", top_k=3)
        assert count_rows(mgl_home, "documents") == 0


def test_two_processes_delete_the_same(mgl_home: Path) -> None:
    with open_lab(mgl_home) as lab, open_lab(mgl_home) as other:
        build(lab, make_document())
        ready = threading.Barrier(2)
        failed: list[StoreError] = []

        def delete(one: Lab) -> None:
            ready.wait(PATIENCE_S)
            try:
                one.delete("zorblat.txt")
            except StoreError as error:
                failed.append(error)

        workers = [threading.Thread(target=delete, args=(one,)) for one in (lab, other)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(failed) <= 1
        assert lab.memories() == []
    assert find_left(mgl_home, ["quaxby", "zorblat"]) == {}
