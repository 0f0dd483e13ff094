"""Deletion from a conversation: nothing of what went is left in the file's bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from mgl.errors import StoreError
from mgl.llm.base import Completion, Message, Request, Sampling, TokenUsage
from mgl.llm.calls import CallRecord, call_key
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.store.redaction import MASK, Redaction, Treated, masked
from mgl.types import Answer, Conversation, Turn

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


def memory(identity: str, talk: Conversation = TALK) -> MemoryRecord:
    return MemoryRecord(identity, "toy", talk.id, (), "m", {}, 0, 0)


def unchanged(
    record: MemoryRecord, step: int, log: Sequence[EditRecord], turns: Sequence[Turn]
) -> Treated:
    del record, step, turns
    return Treated(log)


def call(prompt: str, reply: str = "ok", stage: str = "", error: str | None = None) -> CallRecord:
    request = Request((Message("user", prompt),), sampling=Sampling(seed=7))
    completion = None if error else Completion(reply, "stop", TokenUsage(10, 2), logprobs=(-0.1,))
    outcome = "refused" if error else "ok"
    return CallRecord(
        call_key("m", request),
        stage,
        "m",
        request,
        completion,
        outcome,
        error,
        0.5,  # type: ignore[arg-type]
    )


def holds(path: Path, text: str) -> bool:
    """Whether the database's files have a text, as it is or as JSON escapes it."""
    wanted = [text.encode(), json.dumps(text)[1:-1].encode()]
    files = path.parent.glob(f"{path.name}*")
    return any(form in file.read_bytes() for file in files for form in wanted)


@pytest.fixture
def filled(store: Store) -> Store:
    store.put_conversation(TALK)
    store.put_memory(memory("one"))
    store.put_memory(memory("two"))
    return store


def test_the_text_of_a_turn_goes_and_all_else_stays_in_its_place(filled: Store) -> None:
    assert holds(filled.path, SECRET)
    assert filled.redact(TALK.id, ONLY_TWO, unchanged)
    kept = filled.conversation(TALK.id)
    assert kept.turns == (*TALK.turns[:1], replace(TALK.turns[1], text=MASK * len(SECRET)),
                          *TALK.turns[2:])  # fmt: skip
    assert [kept.span(number) for number in range(4)] == [TALK.span(number) for number in range(4)]
    assert filled.redacted(TALK.id) == {1: "forgotten"}
    assert not holds(filled.path, SECRET)
    assert not holds(filled.path, SECRET[20:])


def test_some_characters_are_masked_and_more_later(filled: Store) -> None:
    filled.redact(TALK.id, Redaction(masked={2: [(13, 20)]}), unchanged)
    assert filled.turns(TALK.id)[2].text == "My number is ·······, call me."
    filled.redact(TALK.id, Redaction(masked={2: [(0, 2), (22, 30)]}), unchanged)
    assert filled.turns(TALK.id)[2].text == "·· number is ·······, ········"
    assert filled.redacted(TALK.id) == {2: "masked"}
    filled.redact(TALK.id, Redaction(frozenset({2})), unchanged)
    filled.redact(TALK.id, Redaction(masked={2: [(0, 1)]}), unchanged)
    assert filled.redacted(TALK.id) == {2: "forgotten"}
    assert filled.redacted(TALK.id, since=3) == {}
    assert not holds(filled.path, "5550199")


def test_a_conversation_that_is_given_again_does_not_bring_it_back(filled: Store) -> None:
    filled.redact(TALK.id, ONLY_TWO, unchanged)
    filled.put_conversation(TALK)
    filled.put_document(TALK.transcript)
    assert not holds(filled.path, SECRET)


def test_a_transcript_that_was_kept_as_a_document_is_emptied(store: Store) -> None:
    store.put_document(TALK.transcript)
    store.put_conversation(TALK)
    store.redact(TALK.id, ONLY_TWO, unchanged)
    assert not holds(store.path, SECRET)
    assert store.document(TALK.id).text.startswith("Ann: Good morning to you.\n")


def test_calls_that_held_it_are_emptied_and_replayed_no_more(filled: Store) -> None:
    quoting = [
        call(f"[0] Ann: {SECRET}\n[1] Bo: Hm"),
        call("other", reply=json.dumps({"answer": SECRET})),
        call(f"cut: Ann: {SECRET[:50]} […]"),
        call("refused", error=f"too long: Ann: {SECRET}"),
    ]
    innocent = call("[0] Ann: Good morning to you.")
    for owner, record in zip(["one", "two", None, "one"], quoting, strict=True):
        filled.add_call(record, owner)
    filled.add_call(innocent, "one")
    filled.redact(TALK.id, ONLY_TWO, unchanged)
    for form in (SECRET, SECRET[:30], SECRET[-30:]):
        assert not holds(filled.path, form)
    assert [filled.find_call(record.key) for record in quoting] == [None] * 4
    assert filled.find_call(innocent.key) == innocent
    first, failed, last = filled.calls("one")
    assert last == innocent
    assert first.completion is not None
    assert (first.completion.text, first.completion.logprobs) == ("", ())
    assert first.completion.usage == TokenUsage(10, 2)
    assert (first.seconds, first.request.sampling, first.outcome) == (0.5, Sampling(seed=7), "ok")
    assert first.request.messages == (Message("user", ""),)
    assert (failed.completion, failed.error, failed.outcome) == (None, "", "refused")
    assert first.key != quoting[0].key


def test_what_later_calls_quoted_of_an_emptied_one_goes_too(filled: Store) -> None:
    told = json.dumps({"keywords": ["art"], "summary": "Ann has a secret hobby."})
    filled.add_call(call(f"Ann: {SECRET}", told, stage="summary"), "one")
    later = call("Memory 1: Ann has a secret hobby.", "{}", stage="relation")
    untouched = call("Memory 1: art and keywords of a summary", "{}", stage="relation")
    filled.add_call(later, "one")
    filled.add_call(untouched, "one")
    filled.put_vectors("e", ["Ann has a secret hobby."], np.ones((1, 2), np.float32))
    filled.redact(TALK.id, ONLY_TWO, unchanged, derived={"summary": ("summary",)})
    assert not holds(filled.path, "Ann has a secret hobby.")
    assert filled.find_call(later.key) is None
    assert filled.find_call(untouched.key) == untouched
    assert filled.vectors("e", ["Ann has a secret hobby."]) == [None]


def test_what_a_reply_says_beside_the_quoted_fields_is_no_trace(filled: Store) -> None:
    fact = {"source": "Caroline Smith", "fact": "Caroline  Smith\npaints in secret."}
    told = f"<think>Well.</think>{json.dumps({'facts': [fact]})}"
    cut = json.dumps({"facts": [fact]})[:60]
    for reply in (told, cut):
        filled.add_call(call(f"{reply}: Ann: {SECRET}", reply, stage="edges"), "one")
    named = call("Of Caroline Smith there is more.", json.dumps({"facts": []}), stage="edges")
    asked = call("n1 Caroline Smith paints in secret.")
    filled.add_call(named, "one")
    filled.add_call(asked, "one")
    kept = "Caroline Smith paints in secret."
    filled.put_vectors("e", [kept, "Caroline Smith"], np.ones((2, 2), np.float32))
    filled.redact(TALK.id, ONLY_TWO, unchanged, derived={"edges": ("fact",)})
    assert filled.find_call(asked.key) is None
    assert filled.find_call(named.key) == named
    assert [each is None for each in filled.vectors("e", [kept, "Caroline Smith"])] == [True, False]


def test_vectors_and_token_counts_of_it_go_for_every_model(filled: Store) -> None:
    line = TALK.turns[1].line
    for model in ("e1", "e2"):
        filled.put_vectors(model, [line, SECRET, "other"], np.ones((3, 2), np.float32))
        filled.put_token_counts(model, {line: 9, "other": 1})
    filled.redact(TALK.id, ONLY_TWO, unchanged)
    for model in ("e1", "e2"):
        found = filled.vectors(model, [line, SECRET, "other"])
        assert [vector is None for vector in found] == [True, True, False]
        assert filled.token_counts(model, [line, "other"]) == [None, 1]


def test_answers_and_reports_that_cite_quote_or_read_it_go(filled: Store) -> None:
    def answer(question: str, text: str, cited: str = "1") -> dict[str, object]:
        made = asdict(Answer(question, text, "low", ()))
        return {**made, "citations": [{"node_id": cited, "quote": ""}]}

    for owner, question, payload in [
        ("one", "Who?", answer("Who?", "Ann", cited="2")),
        ("two", "What?", answer("What?", f"She said: {SECRET}")),
        ("one", "Why is that?", answer("Why is that?", "Because.")),
        ("one", "Hello?", answer("Hello?", "Good morning to you.")),
    ]:
        filled.put_answer(owner, question, payload)
    filled.add_call(call(f"Ann: {SECRET}\nQuestion: Why is that?"), "one")
    filled.put_report("r1", "one", json.dumps({"title": SECRET}))
    filled.put_report("r2", "one", "Good morning to you.")
    filled.redact(TALK.id, ONLY_TWO, unchanged)
    assert [payload["question"] for payload in filled.answers("one")] == ["Hello?"]
    assert filled.answers("two") == []
    assert (filled.report("r1"), filled.report("r2")) == (None, "Good morning to you.")
    assert not holds(filled.path, SECRET)


def test_a_short_turn_is_looked_for_with_its_speaker(filled: Store) -> None:
    held, free = call("[0] Bo: Thanks!"), call("Ann: Thanks! Thanks!")
    filled.add_call(held, "one")
    filled.add_call(free, "one")
    filled.redact(TALK.id, Redaction(frozenset({3})), unchanged)
    assert (filled.find_call(held.key), filled.find_call(free.key)) == (None, free)


def test_each_memorys_log_is_rewritten_and_says_what_went(filled: Store) -> None:
    asked = call("prompt that quotes nothing", "{}")
    filled.add_call(asked, "one")
    row = EditRecord(0, "note", {"text": "a painted horse"}, "applied", call_key=asked.key)
    filled.append_edits("one", 0, [row, replace(row, op="other", payload={}, call_key=None)])

    def treat(
        record: MemoryRecord, step: int, log: Sequence[EditRecord], turns: Sequence[Turn]
    ) -> Treated:
        assert list(turns) == list(TALK.turns)
        blank = [replace(row, payload={}) for row in log]
        return Treated(blank, [EditRecord(step, "gone", {"by": record.id}, "applied")],
                       {"a painted horse"})  # fmt: skip

    filled.redact(TALK.id, ONLY_TWO, treat)
    assert [row.payload for row in filled.edits("one")] == [{}, {}, {"by": "one"}]
    assert filled.chunks_done("one") == {0, 1}
    assert [row.payload for row in filled.edits("two")] == [{"by": "two"}]
    assert filled.find_call(asked.key) is None
    assert filled.edits("one")[0].call_key == filled.calls("one")[0].key
    assert not holds(filled.path, "a painted horse")


def test_one_that_fails_midway_has_deleted_nothing(filled: Store) -> None:
    def breaks(
        record: MemoryRecord, step: int, log: Sequence[EditRecord], turns: Sequence[Turn]
    ) -> Treated:
        del step, log, turns
        if record.id == "two":
            raise StoreError("no", hint="none")
        return Treated((), [EditRecord(0, "gone", {}, "applied")])

    with pytest.raises(StoreError, match="no"):
        filled.redact(TALK.id, ONLY_TWO, breaks)
    assert filled.conversation(TALK.id) == TALK
    assert filled.edits("one") == []


def test_another_conversation_with_the_same_words_keeps_them(filled: Store) -> None:
    other = Conversation.from_turns("other", [Turn("1", "Ann", SECRET)])
    filled.put_conversation(other)
    filled.put_memory(memory("three", other))
    kept = call(f"Ann: {SECRET}")
    filled.add_call(kept, "three")
    filled.redact(TALK.id, ONLY_TWO, unchanged)
    assert filled.turns(other.id) == list(other.turns)
    assert filled.find_call(kept.key) == kept


def test_it_says_where_a_reader_keeps_the_log_from_being_emptied(filled: Store) -> None:
    with Store.open(filled.path, busy_timeout_s=0.05) as writer, Store.open(filled.path) as reader:
        with reader._read() as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM turns").fetchone()
        assert not writer.redact(TALK.id, ONLY_TWO, unchanged)
        assert holds(filled.path, SECRET)
        with reader._read() as connection:
            connection.execute("COMMIT")
    filled.close()
    assert not holds(filled.path, SECRET)


def test_what_was_asked_about_it_meanwhile_is_scrubbed_later(filled: Store) -> None:
    filled.redact(TALK.id, ONLY_TWO, unchanged)
    late = call(f"[3] Ann: {SECRET}")
    filled.add_call(late, "one")
    filled.put_vectors("e", [TALK.turns[1].line], np.ones((1, 2), np.float32))
    bare, numbered, free = call(f"Question: {SECRET}"), call("[2] Hm."), call("[3] Hm.")
    for record in (bare, numbered, free):
        filled.add_call(record, "one")
    assert filled.scrub(TALK.id, [TALK.turns[1]], shown=["[2] Hm."])
    found = [filled.find_call(record.key) for record in (late, bare, numbered, free)]
    assert found == [None, None, None, free]
    assert filled.vectors("e", [TALK.turns[1].line]) == [None]
    assert not holds(filled.path, SECRET)


@pytest.mark.parametrize("seed", range(2))
def test_no_page_of_a_large_file_keeps_a_copy(store: Store, seed: int) -> None:
    draw = random.Random(seed)
    texts = [
        " ".join(f"w{number}x{draw.randrange(10**6)}" for _ in range(draw.randint(1, 300)))
        for number in range(300)
    ]
    talk = Conversation.from_turns("t", [Turn(str(n), "Ann", t) for n, t in enumerate(texts)])
    store.put_conversation(talk)
    store.put_memory(memory("one", talk))
    for number, text in enumerate(texts):
        for _ in range(draw.randint(0, 2)):
            store.add_call(call(f"{draw.random()} Ann: {text}", text), "one")
        store.put_answer("one", f"Q{number}", asdict(Answer(f"Q{number}", text, "low", ())))
    for number in draw.sample(range(300), 40):
        store.redact(talk.id, Redaction(frozenset({number})), unchanged)
        for file in store.path.parent.glob(f"{store.path.name}*"):
            assert f"w{number}x".encode() not in file.read_bytes()


def test_ranges_keep_the_length() -> None:
    assert masked("abcdef", [(1, 3), (2, 4)]) == "a···ef"
