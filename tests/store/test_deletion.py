"""Deletion from a conversation: nothing of what went is left in the file's bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import StoreConflict, StoreError
from mgl.llm.base import Message, Sampling, TokenUsage
from mgl.llm.calls import CallRecord, Lineage, note_made_of, note_shown
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.store.deletion import MASK, Gone, Redaction, Rewritten, mask_text
from mgl.store.lineage import decode_turns, encode_turns, meets
from mgl.store.owners import RUN, owned_by
from mgl.store.turns import ReplySources
from mgl.types import Answer, Conversation, Turn
from tests.leftovers import left
from tests.store.conftest import make_call, make_memory

SECRET = "I painted a horsé by the “lake” and told nobody but you."
TALK = Conversation.from_turns(
    "talk",
    [
        Turn("1", "Ann", "Good morning to you."),
        Turn("2", "Ann", SECRET),
        Turn("3", "Bo", "My number is 5550199, call me."),
        Turn("4", "Bo", "Thanks!"),
    ],
)
ONLY_TWO = Redaction(frozenset({1}))


def keep(memory: MemoryRecord, step: int, log: Sequence[EditRecord], gone: Gone) -> Rewritten:
    del memory, step, gone
    return Rewritten(log)


def call(
    prompt: str, reply: str = "ok", *, shows: Sequence[int] | None = (), error: str | None = None
) -> CallRecord:
    lineage = None if shows is None else Lineage(TALK.id, frozenset(shows))
    return make_call(prompt, reply, lineage, error=error)


@pytest.fixture
def filled(store: Store) -> Store:
    store.put_conversation(TALK)
    store.put_memory(make_memory("one", TALK))
    store.put_memory(make_memory("two", TALK))
    return store


@pytest.mark.parametrize("turns", [None, (), (3,), (0, 1, 2, 7, 9, 10)])
def test_turns_are_kept_as_ranges(turns: tuple[int, ...] | None) -> None:
    column = encode_turns(turns)
    assert decode_turns(column) == turns
    assert meets(column, {2}) == (turns is None or 2 in turns)


def test_a_turn_goes_and_all_else_stays_in_its_place(filled: Store) -> None:
    assert left(filled.path, [SECRET])
    assert filled.delete(TALK.id, ONLY_TWO, keep)
    kept = filled.conversation(TALK.id)
    masked = replace(TALK.turns[1], text=MASK * len(SECRET))
    assert kept.turns == (TALK.turns[0], masked, *TALK.turns[2:])
    assert [kept.span(number) for number in range(4)] == [TALK.span(number) for number in range(4)]
    assert filled.find_fates(TALK.id) == {1: "forgotten"}
    filled.put_conversation(TALK)  # given again, it does not come back
    filled.put_document(TALK.transcript)
    assert left(filled.path, [SECRET]) == []
    assert left(filled.path, [SECRET[20:]]) == []


def test_some_characters_are_masked_and_more_later(filled: Store) -> None:
    filled.delete(TALK.id, Redaction(masked={2: [(13, 20)]}), keep)
    assert filled.turns(TALK.id)[2].text == "My number is ·······, call me."
    assert filled.find_fates(TALK.id) == {2: "masked"}
    filled.delete(TALK.id, Redaction(frozenset({2})), keep)
    filled.delete(TALK.id, Redaction(masked={2: [(0, 1)]}), keep)
    assert filled.find_fates(TALK.id) == {2: "forgotten"}
    assert filled.find_fates(TALK.id, since=3) == {}
    assert left(filled.path, ["5550199"]) == []
    assert mask_text("abcdef", [(1, 3), (2, 4)]) == "a···ef"


def test_calls_that_showed_it_or_have_a_word_of_it_are_emptied(filled: Store) -> None:
    gone = [
        (call("a summary of turns", shows=[0, 1]), "one"),
        (call("nobody said what it shows", shows=None), "two"),
        (call("other", reply=json.dumps({"answer": "a painted thing"})), None),
        (call("refused", error="too long: painted"), "one"),
    ]
    kept = [
        (call("[0] Ann: Good morning to you.", shows=[0]), "one"),
        (call("of no memory", shows=None), None),
    ]
    for record, owner in [*gone, *kept]:
        filled.add_call(record, owner)
    filled.delete(TALK.id, ONLY_TWO, keep)
    assert [filled.find_call(record.key) for record, _ in gone] == [None] * 4
    assert [filled.find_call(record.key) for record, _ in kept] == [record for record, _ in kept]
    first, failed, _ = filled.calls("one")
    assert first.completion is not None
    assert (first.completion.text, first.completion.logprobs) == ("", ())
    assert first.completion.usage == TokenUsage(10, 2)
    assert (first.seconds, first.request.sampling, first.outcome) == (0.5, Sampling(seed=7), "ok")
    assert first.request.messages == (Message("user", ""),)
    assert (failed.completion, failed.error, failed.outcome) == (None, "", "refused")
    assert left(filled.path, ["painted"]) == []


def test_the_call_that_wrote_a_deleted_reply_is_emptied(filled: Store) -> None:
    """Though its prompt showed no deleted turn, and every word of it stands elsewhere. Another call
    behind the reply, which chose what to show, keeps its words."""
    said = "Good number, call you."
    wrote, chose = call("Reply to Bo.", said, shows=[2]), call("Which?", "[2]", shows=[2])
    for record in (wrote, chose):
        filled.add_call(record, "one")
    sources = ReplySources(frozenset({2}), frozenset({2}), (chose.key, wrote.key))
    edit = EditRecord(0, "reply", {}, "applied")
    assert filled.append_reply("one", 4, Turn("3+", "mgl", said), edit, sources, since=0)
    assert filled.put_answer("one", "Who?", {"text": "Ann"}, turns={0}, calls=[chose.key])
    assert filled.reply_calls(TALK.id, 4) == [wrote, chose]
    filled.delete(TALK.id, Redaction(masked={4: [(5, 11)]}), keep)
    assert filled.reply_calls(TALK.id, 4) == [chose]
    filled.delete(TALK.id, Redaction(frozenset({4})), keep)
    assert filled.reply_calls(TALK.id, 4) == []
    assert filled.find_call(wrote.key) is None
    assert filled.answer_calls("one", "Who?") == [chose]
    assert left(filled.path, [said]) == []


@pytest.mark.parametrize("maker", ["theirs", f"{RUN}/runs/one"])
def test_no_answer_or_reply_leads_to_a_deleted_word_in_a_call_of_somebody_else(
    filled: Store, maker: str
) -> None:
    """Who told two conversations the same replays the calls of the first in the second."""
    other = replace(TALK, id="other", name="other")
    filled.put_conversation(other)
    filled.put_memory(make_memory("theirs", other))
    source = other.id if maker == "theirs" else TALK.id
    shown = call("Good morning. Painted?")
    record = replace(shown, lineage=Lineage(source, frozenset({0, 1})))
    filled.add_call(record, maker)
    sources = ReplySources(frozenset({0}), frozenset({0, 1}), (record.key,))
    for owner in ("one", "theirs"):
        edit, reply = EditRecord(0, "reply", {}, "applied"), Turn("1+", "mgl", "Hello.")
        assert filled.append_reply(owner, 4, reply, edit, sources, since=0)
        assert filled.put_answer(owner, "Who?", {"text": "Ann"}, turns={0}, calls=[record.key])
    filled.delete(TALK.id, ONLY_TWO, keep)
    assert filled.answers("one")
    assert filled.reply_calls(TALK.id, 4) == filled.answer_calls("one", "Who?") == []
    assert filled.reply_calls(other.id, 4) == filled.answer_calls("theirs", "Who?") == [record]


def test_calls_that_an_evaluation_run_made_or_replayed_are_its_own(filled: Store) -> None:
    run = filled.call_log(f"{RUN}/runs/one")
    theirs, ours = call("Ann painted.", shows=[1]), call("What was painted?", shows=[1])
    filled.add_call(theirs, "one")
    assert run.replay(theirs.key) == theirs
    run.record(ours)
    filled.delete(TALK.id, ONLY_TWO, keep)
    assert filled.find_runs(TALK.id, {1}) == ["/runs/one"]
    assert filled.find_runs(TALK.id, {0}) == []
    (emptied,) = filled.calls("one")
    assert emptied.request.messages == (Message("user", ""),)
    for record in (theirs, ours):
        found = run.replay(record.key)
        assert found is not None
        assert found.completion == record.completion
    assert run.replay(theirs.key) is not None
    assert len(filled.calls(f"{RUN}/runs/one")) == 2


def test_what_is_recorded_after_a_deletion_that_it_did_not_know_of_has_no_words(
    filled: Store,
) -> None:
    before = filled.count_deletions(TALK.id)
    filled.delete(TALK.id, ONLY_TWO, keep)
    after = filled.count_deletions(TALK.id)
    late, timely, other = call("late"), call("timely"), call("other")
    for record, turns, since in [(late, {1}, before), (timely, {1}, after), (other, {0}, before)]:
        filled.add_call(replace(record, lineage=Lineage(TALK.id, frozenset(turns), since)), "one")
    found = [filled.find_call(record.key) for record in (late, timely, other)]
    assert found == [None, timely, other]
    assert not filled.put_answer("one", "Q", {"text": "a"}, turns={1}, since=before)
    assert filled.put_answer("one", "Q", {"text": "b"}, turns={0}, since=before)
    with pytest.raises(StoreConflict):
        filled.append_edits("one", 0, [], since=before)
    filled.append_edits("one", 0, [], since=after)


def test_vectors_token_counts_answers_and_reports_of_it_go(filled: Store) -> None:
    line = TALK.turns[1].line
    with note_shown(TALK.id, {1}), note_made_of({"other": {0}}):
        for model in ("e1", "e2"):
            filled.put_vectors(model, [line, SECRET, "other"], np.ones((3, 2), np.float32))
            filled.put_token_counts(model, {line: 9, "other": 1})
    cited = {"citations": [{"node_id": "2", "quote": ""}], "retrieved": []}
    for question, made, turns in [
        ("Who?", {}, {0}),
        ("Which?", cited, {0}),
        ("What?", {"retrieved": ["2"]}, {0}),
        ("Painted?", {}, {0}),
        ("How?", {}, {0, 1}),
        ("Nobody said?", {}, None),
    ]:
        payload = asdict(Answer(question, "Ann", "low", ())) | made
        filled.put_answer("one", question, payload, turns=turns)
    filled.put_report("r", "one", "any")
    filled.delete(TALK.id, ONLY_TWO, keep)
    for model in ("e1", "e2"):
        found = filled.vectors(model, [line, SECRET, "other"])
        assert [vector is None for vector in found] == [True, True, False]
        assert filled.token_counts(model, [line, "other"]) == [None, 1]
    assert [payload["question"] for payload in filled.answers("one")] == ["Who?"]
    assert filled.report("r") is None


SETS = st.lists(st.frozensets(st.integers(0, 3), max_size=3), min_size=1, max_size=4)


@given(stated=SETS, gone=st.frozensets(st.integers(0, 3), min_size=1))
def test_a_vector_goes_when_a_deletion_has_met_all_that_its_text_can_be_made_of(
    stated: list[frozenset[int]], gone: frozenset[int]
) -> None:
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "s.sqlite") as store:
        store.put_conversation(TALK)
        for turns in stated:  # the first embeds it, the others find it
            with note_shown(TALK.id), note_made_of({"a text": turns}):
                if store.vectors("e", ["a text"])[0] is None:
                    store.put_vectors("e", ["a text"], np.ones((1, 2), np.float32))
        for number in sorted(gone):
            store.delete(TALK.id, Redaction(frozenset({number})), keep)
        is_left = any(gone.isdisjoint(turns) for turns in stated)
        assert (store.vectors("e", ["a text"])[0] is not None) == is_left


def test_what_nobody_stated_is_made_of_all_turns_unless_a_run_has_it(filled: Store) -> None:
    texts = ["one's", "two's", "both's", "exact"]
    vectors = np.ones((1, 2), np.float32)
    memory_one, run = filled.own("one", TALK.id), filled.own(f"{RUN}/runs/one", TALK.id)
    for owner, own in [(memory_one, ["one's", "both's"]), (run, ["two's", "both's"])]:
        with owned_by(owner):
            for text in own:
                filled.put_vectors("e", [text], vectors)
    with owned_by(memory_one), note_shown(TALK.id):
        with note_made_of({"exact": {0}}):
            filled.put_vectors("e", ["exact"], vectors)
        filled.vectors("e", ["exact"])  # as part of a prompt: it is still made of turn 0
    filled.delete(TALK.id, ONLY_TWO, keep)
    assert [one is None for one in filled.vectors("e", texts)] == [True, False, False, False]


def test_what_is_embedded_after_a_deletion_that_it_did_not_know_of_is_not_kept(
    filled: Store,
) -> None:
    before = filled.count_deletions(TALK.id)
    filled.delete(TALK.id, ONLY_TWO, keep)
    texts = {0: "late", 1: "other"}
    with note_shown(TALK.id, since=before), note_made_of({"late": {1}, "other": {0}}):
        filled.put_index_vectors("one/turns", "e", texts, np.ones((2, 2), np.float32))
        filled.put_token_counts("e", {"late": 1, "other": 2})
    assert [identity for identity, _ in filled.read_index_vectors("one/turns")] == [1]
    assert filled.token_counts("e", ["late", "other"]) == [None, 2]


def test_what_was_made_beside_a_turn_and_has_its_words_goes_too(filled: Store) -> None:
    with note_shown(TALK.id), note_made_of({"a note": {3}, "another": {2}}):
        filled.put_vectors("e", ["a note", "another"], np.ones((2, 2), np.float32))

    def lose_a_row(memory: MemoryRecord, step: int, log: Sequence[EditRecord], gone: Gone) -> Any:
        del memory, step, gone
        return Rewritten(log, turns={3})

    filled.delete(TALK.id, ONLY_TWO, lose_a_row)
    assert [one is None for one in filled.vectors("e", ["a note", "another"])] == [True, False]


def test_each_memorys_log_is_rewritten_cut_and_says_what_went(filled: Store) -> None:
    asked = call("prompt", "{}", shows=[1])
    filled.add_call(asked, "one")
    row = EditRecord(0, "note", {"text": "a painted horse"}, "applied", call_key=asked.key)
    filled.append_edits("one", 0, [row, replace(row, op="other", payload={})])
    for step in range(3):
        filled.append_edits("two", step, [EditRecord(step, "x", {}, "applied")])

    def rewrite(
        record: MemoryRecord, step: int, log: Sequence[EditRecord], gone: Gone
    ) -> Rewritten:
        assert gone.before == list(TALK.turns)
        assert gone.words == {"painted", "a", "horsé", "by", "the", "lake", "and", "told", "nobody",
                              "but", "i"}  # fmt: skip
        if record.id == "two":
            return Rewritten(log, cut=1)
        blank = [replace(row, payload={}) for row in log]
        return Rewritten(blank, [EditRecord(step, "gone", {}, "applied")])

    filled.delete(TALK.id, ONLY_TWO, rewrite)
    assert [row.payload for row in filled.edits("one")] == [{}, {}, {}]
    assert filled.chunks_done("one") == {0, 1}
    assert [row.chunk for row in filled.edits("two")] == [0]
    assert filled.chunks_done("two") == {0}
    assert filled.edits("one")[0].call_key == filled.calls("one")[0].key != asked.key


def test_one_that_fails_midway_has_deleted_nothing(filled: Store) -> None:
    def fail(record: MemoryRecord, step: int, log: Sequence[EditRecord], gone: Gone) -> Rewritten:
        del step, log, gone
        if record.id == "two":
            raise StoreError("no", hint="none")
        return Rewritten((), [EditRecord(0, "gone", {}, "applied")])

    with pytest.raises(StoreError):
        filled.delete(TALK.id, ONLY_TWO, fail)
    assert filled.conversation(TALK.id) == TALK
    assert filled.edits("one") == []
    assert filled.count_deletions() == 0


def test_it_says_where_a_reader_keeps_the_log_from_being_emptied(filled: Store) -> None:
    with Store.open(filled.path, busy_timeout_s=0.05) as writer, Store.open(filled.path) as reader:
        with reader._read() as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM turns").fetchone()
        assert not writer.delete(TALK.id, ONLY_TWO, keep)
        assert left(filled.path, [SECRET])
        with reader._read() as connection:
            connection.execute("COMMIT")
    filled.close()
    assert left(filled.path, [SECRET]) == []
