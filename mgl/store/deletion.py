"""Deletion from a conversation, and from all that was made of it, in one transaction.

    store.delete(talk.id, Redaction(forgotten=frozenset({3})), rewrite)     # doctest: +SKIP

Deletion goes by lineage, which was recorded when a row was written: the turns that an edit or an
answer is made of, and those that a call's prompt showed. What meets a deleted turn goes:

- the turn's text is overwritten by as many ``·``, so that every other turn keeps its span;
- each memory's log is rewritten by its kind (``rewrite``), whose edits the store cannot read;
- calls lose their words and replay no more, and so does the one that wrote a deleted reply; their
  tokens and seconds stay, for they were spent;
- answers and replies that are left lose their links to calls that another source or a run made;
- answers, reports, snapshots and search indexes of the memories are dropped: they can be made
  again;
- vectors and token counts are dropped by the turns that their texts are made of, unless another
  source has the same texts.

One plain check follows: a row, call or answer of these memories that has a word which only the
deleted text held goes, too; a question may have it. Calls about an evaluation's own copy of a text
are the run's, and stay. What has left the store (an export, a copy of the file) is out of reach.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

from mgl.prompt import words_of
from mgl.store import caches, calls, owners, records
from mgl.store.lineage import meets, record_deletion, release_texts
from mgl.store.records import EditRecord, MemoryRecord
from mgl.types import Conversation, Turn

MASK: Final = "·"
Ranges = Sequence[tuple[int, int]]
"""Character ranges of a text, ends exclusive."""
Fate = Literal["forgotten", "masked"]
_FATES: Final[Mapping[int, Fate]] = {1: "forgotten", 2: "masked"}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d(T[\d:.+-]*Z?)?")
_NUMBER: Final = re.compile(r"\d{1,3}")
_OWN: Final = "document_id = ? AND (memory_id IS NULL OR memory_id NOT LIKE ?)"
"""The calls of a source, without those of evaluation runs."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """Turns to delete, and the ranges to mask in others, by turn number."""

    forgotten: frozenset[int] = frozenset()
    masked: Mapping[int, Ranges] = field(default_factory=dict)

    @property
    def turns(self) -> frozenset[int]:
        """All turns that lose something."""
        return self.forgotten | self.masked.keys()


@dataclass(frozen=True)
class Gone:
    """What a deletion takes; ``before`` and ``after`` have all turns of the conversation."""

    document_id: str
    what: Redaction
    before: Sequence[Turn]

    @property
    def turns(self) -> frozenset[int]:
        return self.what.turns

    @cached_property
    def after(self) -> list[Turn]:
        return [redact_turn(turn, number, self.what) for number, turn in enumerate(self.before)]

    @cached_property
    def source(self) -> Conversation:
        """The conversation as it is left; the spans of turns are those that they were."""
        return Conversation(self.document_id, "", tuple(self.after))

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that nothing but the deleted text holds, casefolded.

        Speakers and times of turns stay, and so do their words. Numbers of up to three digits
        count lines in every prompt, and tell nothing.
        """
        lost = {word for number in self.turns for word in words_of(self.before[number].text)}
        for turn in self.after:
            lost -= words_of(turn.text)
        for speaker in {turn.speaker for turn in self.after}:
            lost -= words_of(speaker)
        for time in {turn.time for turn in self.after if turn.time is not None} if lost else ():
            lost -= words_of(f"{time:%A %d %B %Y %H %M} {time.isoformat()}")
        return frozenset(word for word in lost if not _NUMBER.fullmatch(word))

    def takes(self, row: EditRecord) -> bool:
        """Whether a row is made of a deleted turn, or has a word that only they held."""
        is_made_of = not self.turns.isdisjoint(self.find_turns(row))
        return is_made_of or self.is_told_in([row.payload, row.reason])

    def find_turns(self, row: EditRecord) -> Collection[int]:
        """The turns that a row is made of: all, where it does not say."""
        if row.turns is not None:
            return row.turns
        everything = range(len(self.before))
        return everything if row.span is None else self.source.turns_at(row.span)

    def is_told_in(self, value: Any) -> bool:
        """Whether a JSON value has a word that only the deleted text held; times have none."""
        return bool(self.words) and any(
            not self.words.isdisjoint(words_of(text))
            for text in strings(value)
            if not _TIME.fullmatch(text)
        )


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What becomes of a memory's log.

    ``log`` are its rows, one for one, without what went; ``step`` is what the next step says of
    it, if the kind writes one. With ``cut`` the rows and marks of that step and of all after it
    are removed, so that they are done again. ``turns`` are further turns, of rows that had a
    deleted word: the vectors and counts of their texts go, too.
    """

    log: Sequence[EditRecord]
    step: Sequence[EditRecord] = ()
    cut: int | None = None
    turns: Collection[int] = ()


MemoryLog = tuple[MemoryRecord, int, Sequence[EditRecord]]
"""A memory, its next step, and its log, or what that step is to say."""

Rewrite = Callable[[MemoryRecord, int, Sequence[EditRecord], Gone], Rewritten]
"""(memory, its next step, its log, what goes) → what becomes of the log."""


def mask_text(text: str, ranges: Ranges) -> str:
    """Overwrite some characters; the text keeps its length."""
    for start, end in ranges:
        text = text[:start] + MASK * len(text[start:end]) + text[end:]
    return text


def redact_turn(turn: Turn, number: int, what: Redaction) -> Turn:
    """The turn with this number as a deletion leaves it."""
    whole = number in what.forgotten
    ranges = [(0, len(turn.text))] if whole else what.masked.get(number, ())
    text = mask_text(turn.text, ranges)
    return turn if text == turn.text else Turn(turn.id, turn.speaker, text, turn.time, turn.session)


def find_fates(
    connection: sqlite3.Connection, document_id: str, *, since: int = 0
) -> dict[int, Fate]:
    """The turns of a conversation that were deleted from, from the number ``since`` on."""
    found = connection.execute(
        "SELECT number, redacted FROM turns WHERE document_id = ? AND number >= ? AND redacted > 0",
        (document_id, since),
    )
    return {number: _FATES[fate] for number, fate in found}


def delete(
    connection: sqlite3.Connection,
    gone: Gone,
    logs: Sequence[MemoryLog],
    rewrite: Rewrite,
    digests: Mapping[int, bytes],
) -> list[MemoryLog]:
    """Delete from a conversation, and from the ``logs`` of its memories what was made of it.

    ``digests`` are kept in place of the texts that go. Returns the steps that are to be appended.
    """
    _overwrite_turns(connection, gone, digests)
    record_deletion(connection, gone.document_id, gone.turns)
    renamed, turns = _empty_calls(connection, gone), set(gone.turns)
    _unlink_calls(connection, gone)
    steps: list[MemoryLog] = []
    for memory, step, log in logs:
        rewritten = rewrite(memory, step, log, gone)
        turns.update(rewritten.turns)
        _write_log(connection, memory.id, log, rewritten, renamed)
        if rewritten.step:
            steps.append((memory, step, rewritten.step))
        answers = find_answers(connection, memory.id, gone)
        connection.executemany(
            "DELETE FROM answers WHERE number = ?", [(number,) for number in answers]
        )
        for table in ("reports", "snapshots"):
            connection.execute(f"DELETE FROM {table} WHERE memory_id = ?", (memory.id,))
        caches.forget_turns(connection, memory.id, gone.turns)
    lost = release_texts(connection, gone.document_id, turns)
    caches.drop_texts(connection, owners.release(connection, gone.document_id, lost))
    return steps


def strings(value: Any) -> Iterator[str]:
    """Every text within a JSON value, keys excepted."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, Iterable):
        for item in value:
            yield from strings(item)


def _overwrite_turns(
    connection: sqlite3.Connection, gone: Gone, digests: Mapping[int, bytes]
) -> None:
    connection.executemany(
        """UPDATE turns SET text = ?, redacted = CASE redacted WHEN 1 THEN 1 ELSE ? END,
        digest = coalesce(digest, ?) WHERE document_id = ? AND number = ?""",
        [
            (
                records.pack(gone.after[number].text),
                1 if number in gone.what.forgotten else 2,
                digests[number],
                gone.document_id,
                number,
            )
            for number in gone.turns
        ],
    )
    connection.execute("UPDATE documents SET text = x'' WHERE id = ?", (gone.document_id,))


def _write_log(
    connection: sqlite3.Connection,
    memory_id: str,
    log: Sequence[EditRecord],
    rewritten: Rewritten,
    renamed: Mapping[str, str],
) -> None:
    numbers = connection.execute(
        "SELECT number FROM edits WHERE memory_id = ? ORDER BY number", (memory_id,)
    ).fetchall()
    connection.executemany(
        "UPDATE edits SET payload = ?, outcome = ?, reason = ?, call_key = ? WHERE number = ?",
        [
            (
                records.dump(new.payload),
                new.outcome,
                None if new.reason is None else records.pack(new.reason),
                renamed.get(new.call_key or "", new.call_key),
                number,
            )
            for (number,), old, new in zip(numbers, log, rewritten.log, strict=True)
            if new != old or new.call_key in renamed
        ],
    )
    if rewritten.cut is not None:
        for table in ("edits", "steps"):
            connection.execute(
                f"DELETE FROM {table} WHERE memory_id = ? AND chunk >= ?",
                (memory_id, rewritten.cut),
            )


def _empty_calls(connection: sqlite3.Connection, gone: Gone) -> dict[str, str]:
    """Empty the calls that showed a deleted turn, wrote it as a reply, or have a word of it, as a
    question may; return their new keys by the old. Calls of an evaluation run are the run's, and
    stay."""
    found = connection.execute(
        f"SELECT number, turns, request, reply, error FROM llm_calls WHERE {_OWN}",
        (gone.document_id, f"{owners.RUN}%"),
    ).fetchall()
    behind = connection.execute(
        """SELECT call, turn FROM reply_calls
        WHERE document_id = ? AND turn IN (SELECT value FROM json_each(?))""",
        (gone.document_id, json.dumps([*gone.turns])),
    )
    wrote = {number: words_of(gone.before[turn].text) for number, turn in behind}
    hit: list[int] = []
    for number, shown, request, *said in found:
        reply, error = (records.unpack(each or b"") for each in said)
        if (
            meets(shown, gone.turns)
            or gone.is_told_in([json.loads(request)["messages"], reply, error])
            or (number in wrote and wrote[number] <= words_of(reply))
        ):
            hit.append(number)
    return dict(calls.empty_call(connection, number) for number in hit)


def _unlink_calls(connection: sqlite3.Connection, gone: Gone) -> None:
    """Drop the links of deleted replies, and those of all answers and replies to calls that were
    replayed from another source or a run: these keep their words, and whether this source
    still has those is not known."""
    source = gone.document_id
    connection.executemany(
        "DELETE FROM reply_calls WHERE document_id = ? AND turn = ?",
        [(source, number) for number in gone.what.forgotten],
    )
    others = f"call NOT IN (SELECT number FROM llm_calls WHERE {_OWN})"
    own = (source, f"{owners.RUN}%")
    connection.execute(
        f"DELETE FROM reply_calls WHERE document_id = ? AND {others}", (source, *own)
    )
    connection.execute(
        f"""DELETE FROM answer_calls WHERE {others} AND answer IN (
            SELECT answers.number FROM answers JOIN memories ON memories.id = answers.memory_id
            WHERE memories.document_id = ?)""",
        (*own, source),
    )


def find_answers(connection: sqlite3.Connection, memory_id: str, gone: Gone) -> dict[int, str]:
    """Find the answers that are made of a deleted turn, cite it, or have a word of it: their
    questions by row number."""
    ids = {gone.before[number].id for number in gone.turns}
    found: dict[int, str] = {}
    for number, shown, *texts in connection.execute(
        "SELECT number, turns, question, payload FROM answers WHERE memory_id = ?", (memory_id,)
    ).fetchall():
        question, payload = map(json.loads, texts)
        named = {citation.get("node_id") for citation in payload.get("citations", ())}
        named.update(payload.get("retrieved", ()))
        if (
            meets(shown, gone.turns)
            or not named.isdisjoint(ids)
            or gone.is_told_in([question, payload])
        ):
            found[number] = question
    return found
