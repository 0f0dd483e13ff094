"""Removal of memories and their sources: what goes, what others keep, and who can still write."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mgl.errors import StoreDeleted, StoreError
from mgl.llm.calls import note_made_of
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.store.deletion import Gone, Redaction, Rewritten
from mgl.store.owners import RUN, owned_by
from mgl.types import Conversation, Document, Source, Turn
from tests.leftovers import find_left
from tests.patience import PATIENCE_S
from tests.store.conftest import make_call, make_memory

SHARED = "They met in Rome and painted the harbour."


def make_document(name: str, text: str = "") -> Document:
    return Document.from_text(f"{name}.txt", f"{SHARED} {text or f'The {name} is a secret.'}")


def use(store: Store, memory: MemoryRecord, texts: Sequence[str], calls: Sequence[str]) -> None:
    """Embed and count texts and make calls, or use what is there, as a memory does."""
    with owned_by(store.own(memory.id, memory.document_id)):
        found = store.vectors("e", texts)
        new = [text for text, vector in zip(texts, found, strict=True) if vector is None]
        store.put_vectors("e", new, np.ones((len(new), 2), np.float32))
        if None in store.token_counts("m", texts):
            store.put_token_counts("m", {text: len(text) for text in texts})
        log = store.call_log(memory.id)
        for prompt in calls:
            call = make_call(prompt)
            if log.replay(call.key) is None:
                log.record(call)


def fill(store: Store, source: Source, identity: str, *questions: str) -> MemoryRecord:
    """A memory with a row in every table."""
    memory = make_memory(identity, source, *questions)
    own = f"of {source.name}"
    with owned_by(store.own(memory.id, source.id)):
        if isinstance(source, Document):
            store.put_document(source)
        else:
            store.put_conversation(source)
        store.put_memory(memory)
        store.append_edits(memory.id, 0, [EditRecord(0, "note", {"text": own}, "applied")])
        store.put_report(f"report {own} {identity}", memory.id, own)
        store.put_answer(memory.id, f"What {own}?", {"question": f"What {own}?", "text": own})
        store.put_stems(f"{memory.id}/turns", [(1, True, b"12345678")])
        store.put_index_vectors(f"{memory.id}/turns", "e", {1: own}, np.ones((1, 2), np.float32))
    use(store, memory, [SHARED, own], [f"Summarize: {SHARED}", f"Summarize: {own}"])
    return memory


def count(store: Store) -> dict[str, int]:
    with closing(sqlite3.connect(store.path)) as reader:
        names = [name for (name,) in reader.execute("SELECT name FROM sqlite_master "
                 "WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]  # fmt: skip
        return {
            name: reader.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in names
            if name != "migrations"
        }


def test_all_of_a_document_goes_and_what_another_uses_stays(store: Store) -> None:
    one, two = make_document("zorblat"), make_document("quaxby")
    doomed, kept = fill(store, one, "mem_a", "Who?"), fill(store, two, "mem_b")
    shared, own = (make_call(f"Summarize: {text}") for text in (SHARED, "of quaxby.txt"))
    planned = store.plan_removal(one.id)
    assert (planned.name, planned.takes_source, planned.kept) == ("zorblat.txt", True, ())
    assert (planned.questions, planned.answers, planned.edits, planned.calls) == (2, 1, 1, 2)
    assert (planned.characters, planned.turns) == (len(one.text), None)
    removed, is_wiped = store.remove(one.id)
    assert (removed, is_wiped) == (planned, True)
    assert removed.memories == (doomed,)
    assert find_left(store.path.parent, ["zorblat", one.id, doomed.id]) == {}
    assert store.memories() == [kept]
    assert store.find_call(shared.key) == shared
    assert store.calls(kept.id) == [shared, own]
    assert all(each is not None for each in store.vectors("e", [SHARED, "of quaxby.txt"]))
    assert None not in store.token_counts("m", [SHARED, "of quaxby.txt"])
    assert store.vectors("e", ["of zorblat.txt"])[0] is None
    assert len(store.read_index_vectors(f"{kept.id}/turns")) == 1
    store.remove(two.id)
    assert set(count(store).values()) == {0}


def test_a_call_that_failed_is_nobody_elses(store: Store) -> None:
    one, two = make_document("one"), make_document("two")
    fill(store, one, "mem_a")
    fill(store, two, "mem_b")
    failed = replace(make_call(f"Summarize: {SHARED}"), completion=None, error="zorblat is long")
    store.add_call(failed, "mem_a")
    store.remove(one.id)
    assert find_left(store.path.parent, ["zorblat"]) == {}
    assert store.find_call(failed.key) is not None


def test_one_memory_goes_alone_while_another_needs_the_document(store: Store) -> None:
    document = make_document("zorblat")
    fill(store, document, "mem_a", "Who painted quaxby?")
    kept = fill(store, document, "mem_b")
    removed, _ = store.remove(document.id, {"mem_a"})
    assert (removed.takes_source, removed.kept) == (False, ("mem_b",))
    assert store.document(document.id) == document
    assert store.memories() == [kept]
    assert find_left(store.path.parent, ["quaxby", "mem_a"]) == {}
    assert len(store.calls("mem_b")) == 2
    assert store.remove(document.id, {"mem_b"})[0].takes_source
    assert set(count(store).values()) == {0}


def test_a_memory_goes_with_the_digests_of_what_it_alone_embedded(store: Store) -> None:
    talk = replace(Conversation.from_name("talk"), turns=(Turn("1", "Ann", SHARED),))
    for memory in (fill(store, talk, "mem_a"), fill(store, talk, "mem_b")):
        with owned_by(store.own(memory.id, talk.id)), note_made_of({f"by {memory.id}": {0}}):
            store.put_vectors("e", [f"by {memory.id}"], np.ones((1, 2), np.float32))
    before = count(store)["text_lineage"]
    store.remove(talk.id, {"mem_a"})
    assert count(store)["text_lineage"] == before - 1
    store.delete(talk.id, Redaction(frozenset({0})), lambda _, __, log, ___: Rewritten(log))
    assert (count(store)["text_lineage"], count(store)["vectors"]) == (0, 0)


def test_a_conversation_goes_with_its_name_and_begins_anew(store: Store) -> None:
    talk = Conversation.from_name("zorblat")
    turns = (Turn("id1", "quaxby", f"{SHARED} And the vintorp.", None, "session7"),)
    said = replace(talk, turns=turns)
    fill(store, said, "mem_a")
    store.delete(talk.id, Redaction(frozenset({0})), lambda _, __, log, ___: Rewritten(log))
    planned = store.plan_removal(talk.id)
    assert planned.turns == 0, "its turn was deleted before"
    store.remove(talk.id)
    assert find_left(store.path.parent, ["zorblat", "quaxby", "vintorp", "session7", talk.id]) == {}
    store.put_conversation(talk)
    assert store.conversation(talk.id).turns == ()
    assert store.count_deletions(talk.id) == 0


def test_runs_keep_what_they_measured_and_are_named(store: Store) -> None:
    document = make_document("zorblat")
    fill(store, document, "mem_a")
    own = make_call("Summarize: of zorblat.txt")
    with owned_by(store.own(f"{RUN}/runs/one", document.id)):
        log = store.call_log(f"{RUN}/runs/one")
        assert log.replay(own.key) is not None
        log.record(make_call("How good is zorblat?"))
        store.vectors("e", ["of zorblat.txt"])
    assert store.plan_removal(document.id).runs == ("/runs/one",)
    assert store.remove(document.id)[0].runs == ("/runs/one",)
    assert store.find_call(own.key) is not None
    (vector,) = store.vectors("e", ["of zorblat.txt"])
    assert vector is not None
    assert store.memories() == []


@pytest.mark.parametrize("other", ["mem_other", f"{RUN}/runs/one"])
def test_turns_that_are_deleted_leave_others_what_they_use(store: Store, other: str) -> None:
    """A vector and a token count go with the turn that they are of, unless somebody else has it."""
    talk = replace(Conversation.from_name("talk"), turns=(Turn("1", "Ann", SHARED),))
    fill(store, talk, "mem_a")
    for user, text in ((other, SHARED), ("mem_a", f"Ann: {SHARED}")):
        with owned_by(store.own(user, talk.id if user == "mem_a" else "another")):
            store.put_vectors("e", [text], np.ones((1, 2), np.float32))
            store.put_token_counts("m", {text: 9})
    store.delete(talk.id, Redaction(frozenset({0})), lambda _, __, log, ___: Rewritten(log))
    kept, gone = store.vectors("e", [SHARED, f"Ann: {SHARED}"])
    assert (kept is not None, gone) == (True, None)
    assert store.token_counts("m", [SHARED, f"Ann: {SHARED}"]) == [len(SHARED), None]
    store.remove(talk.id)
    assert store.vectors("e", [SHARED])[0] is not None


def test_a_document_that_is_not_there_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError, match="no document"):
        store.plan_removal("nowhere")
    with pytest.raises(StoreError, match="no document"):
        store.remove("nowhere")


# Who still works on it


@pytest.mark.parametrize("whole", [True, False], ids=["source", "memory"])
@pytest.mark.parametrize("again", [True, False], ids=["made again", "gone"])
def test_whoever_still_works_on_what_went_can_write_nothing(
    store: Store, whole: bool, again: bool
) -> None:
    document = make_document("zorblat")
    memory = fill(store, document, "mem_a", "What of zorblat?")
    fill(store, document, "mem_b")
    with Store.open(store.path) as other:
        owner = other.own(memory.id, document.id, requires="memory")
        log = other.call_log(memory.id)
        store.remove(document.id, None if whole else {"mem_a"})
        if again:
            fill(store, document, "mem_a", "What of zorblat?")
        before = count(store)
        calls = (
            lambda: other.put_document(document),
            lambda: other.put_memory(memory),
            lambda: other.append_edits("mem_a", 1, [EditRecord(1, "x", {}, "applied")]),
            lambda: other.put_answer("mem_a", "zorblat?", {}),
            lambda: other.put_report("zorblat", "mem_a", "zorblat"),
            lambda: other.put_vectors("e", ["zorblat"], np.ones((1, 2), np.float32)),
            lambda: other.put_token_counts("m", {"zorblat": 1}),
            lambda: other.put_stems("mem_a/turns", [(2, True, b"zorblat!")]),
            lambda: log.record(make_call("zorblat")),
        )
        with owned_by(owner):
            for write in calls:
                with pytest.raises(StoreDeleted):
                    write()
        assert not other.has_owner(owner)
    assert count(store) == before
    assert bool(find_left(store.path.parent, ["zorblat"])) == (again or not whole)


def test_without_an_owner_rows_of_a_memory_that_went_are_refused(store: Store) -> None:
    document = make_document("zorblat")
    memory = fill(store, document, "mem_a")
    store.remove(document.id)
    row = EditRecord(1, "x", {"text": "zorblat", "quote": "They"}, "applied")
    with pytest.raises(StoreDeleted):
        store.append_edits(memory.id, 1, [replace(row, span=document.span(0, 4))])
    with pytest.raises(StoreDeleted):
        store.put_report("zorblat", memory.id, "zorblat")
    with pytest.raises(StoreDeleted):
        store.put_answer(memory.id, "zorblat?", {})
    with pytest.raises(StoreDeleted):
        store.append_turns(memory.id, 0, [Turn("1", "", "zorblat")], [row])
    with pytest.raises(StoreDeleted):
        store.own(memory.id, document.id, requires="memory")
    with pytest.raises(StoreDeleted):
        store.own("mem_new", document.id, requires="source")
    assert set(count(store).values()) == {0}


def test_an_incarnation_is_never_given_again(store: Store) -> None:
    document = make_document("one")
    seen = []
    for _ in range(3):
        fill(store, document, "mem_a")
        seen.append(store.incarnation("mem_a"))
        store.remove(document.id)
    assert None not in seen
    assert len({*seen}) == 3
    assert store.incarnation("mem_a") is None


# The bytes of the file


def find_words(store: Store, words: Sequence[str]) -> list[str]:
    files = [path.read_bytes() for path in store.path.parent.iterdir()]
    return [word for word in words if any(word.encode() in file for file in files)]


class Growing:
    """Two conversations that grow side by side by turns of all lengths, each with its own word."""

    def __init__(self, store: Store, seed: int) -> None:
        self.draw = random.Random(seed)
        self.words: dict[str, list[str]] = {"one": [], "two": []}
        self._store = store
        self._step = 0
        for name in self.words:
            store.put_conversation(Conversation.from_name(name))
            store.put_memory(make_memory(f"mem_{name}", Conversation.from_name(name)))

    def grow(self, turns: int, most: int) -> None:
        for _ in range(turns):
            name = self.draw.choice(["one", "two"])
            word = "".join(self.draw.choices("bcdfghjk", k=9))
            text = f"{word} " * self.draw.choice([1, 3, 10, 20, most])
            row = EditRecord(self._step, "note", {"text": text[:2000]}, "applied", turns=())
            turn, place = Turn(f"{self._step}", "Ann", text), len(self.words[name])
            self._store.append_turns(f"mem_{name}", place, [turn], [row])
            self.words[name].append(word)
            self._step += 1

    def forget(self, numbers: frozenset[int]) -> bool:
        said = {f"{self.words['one'][number]} " for number in numbers}

        def drop(memory: object, step: int, log: Sequence[EditRecord], gone: Gone) -> Rewritten:
            del memory, step, gone
            return Rewritten(
                [
                    replace(row, payload={})
                    if row.payload.get("text", "").startswith(tuple(said))
                    else row
                    for row in log
                ]
            )

        return self._store.delete(Conversation.from_name("one").id, Redaction(numbers), drop)


PROPERTY = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.heavy
@PROPERTY
@given(seed=st.integers(0, 1_000_000))
def test_sqlite_leaves_no_copy_of_what_was_removed(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    with Store.open(tmp_path_factory.mktemp("removed") / "mgl.sqlite") as store:
        talks = Growing(store, seed)
        talks.grow(talks.draw.randint(60, 240), 400)
        assert store.remove(Conversation.from_name("one").id)[1]
        assert find_words(store, talks.words["one"]) == []
        assert find_words(store, talks.words["two"]) == talks.words["two"]


@pytest.mark.heavy
@PROPERTY
@given(seed=st.integers(0, 1_000_000))
@example(seed=28)  # SQLite has moved a row that is deleted later
def test_sqlite_leaves_no_copy_of_turns_that_were_deleted(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    with Store.open(tmp_path_factory.mktemp("deleted") / "mgl.sqlite") as store:
        talks, gone = Growing(store, seed), set[int]()
        draw, said = talks.draw, talks.words["one"]
        talks.grow(draw.randint(60, 200), 40)
        for _ in range(6):
            left = [number for number in range(len(said)) if number not in gone]
            numbers = frozenset(draw.sample(left, min(len(left), draw.randint(1, 6))))
            gone |= numbers
            assert talks.forget(numbers)
            assert find_words(store, [said[number] for number in gone]) == []
            talks.grow(draw.randint(0, 20), 40)


def test_a_reader_in_the_way_is_reported_and_the_file_is_wiped_later(store: Store) -> None:
    document = make_document("zorblat")
    fill(store, document, "mem_a")
    with closing(sqlite3.connect(store.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM documents").fetchone()
        store._connection.execute("PRAGMA busy_timeout = 50")
        _, is_wiped = store.remove(document.id)
        assert not is_wiped
        assert store.memories() == []
        assert find_left(store.path.parent, ["zorblat"])
    Store.open(store.path).close()
    assert find_left(store.path.parent, ["zorblat"]) == {}


@contextmanager
def killed(work: object, *arguments: object) -> Iterator[int]:
    """Run something in a process that is forked, which may kill itself; its exit code."""
    process = multiprocessing.get_context("fork").Process(target=work, args=arguments)  # type: ignore[arg-type]
    process.start()
    process.join(PATIENCE_S)
    assert process.exitcode is not None
    yield process.exitcode
    process.close()


def _remove_and_die(path: Path, document_id: str, after: int) -> None:
    store = Store.open(path)
    left = after

    def count_down(_: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    store._connection.set_trace_callback(count_down)
    store.remove(document_id)
    os._exit(0)


@pytest.mark.parametrize("step", range(7))
def test_a_removal_that_is_killed_leaves_all_or_nothing(tmp_path: Path, step: int) -> None:
    """It is killed at every seventh statement, from one on that differs."""
    whole, document = tmp_path / "whole", make_document("zorblat")
    whole.mkdir()
    with Store.open(whole / "mgl.sqlite") as store:
        fill(store, document, "mem_a")
        fill(store, make_document("other"), "mem_b")
        before = count(store)
        store.remove(document.id)
        after = count(store)
        fill(store, document, "mem_a")
    seen = set()
    for place in range(step, 1000, 7):
        folder = tmp_path / f"{place}"
        shutil.copytree(whole, folder)
        with killed(_remove_and_die, folder / "mgl.sqlite", document.id, place) as code:
            assert code in (0, -signal.SIGKILL)
        with Store.open(folder / "mgl.sqlite") as store:
            is_there = store.has_document(document.id)
            seen.add(is_there)
            assert count(store) == (before if is_there else after)
            if not is_there:
                assert find_left(folder, ["zorblat", document.id]) == {}
        if code == 0:
            break
    assert seen == {True, False}
