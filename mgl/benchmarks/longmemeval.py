"""LongMemEval: one question of a long history of chats between a user and an assistant.

Source: Wu et al., LongMemEval (ICLR 2025), MIT; ``longmemeval_s.json`` (or ``_s_cleaned``), 500
questions, each with a haystack of its own of about 115,000 tokens, and ``longmemeval_m.json`` (or
``_m_cleaned``), the same with about 500 sessions each; its file is read whole. ``_oracle`` has the
same schema.

The file's session ids are not used as ids here: those of evidence sessions begin with ``answer_``,
which would tell. A session is ``S`` and its place in the haystack, from 1, a turn ``S37:5``.
``evidence`` has the turns that the file marks (``has_answer``) and, for an evidence session without
a marked turn, the session; what stands before the colon serves for recall by session. Questions of
which the history says nothing (ids ending in ``_abs``, ``labels["abstention"]``) have no evidence,
as in the official recall. Its judge prompts are read if ``evaluate_qa.py`` lies beside the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field, model_validator

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.benchmarks.files import gold_texts, hash_files, open_file, refuse_duplicates
from mgl.benchmarks.official import ABSTENTION, find_judge_prompts
from mgl.text.gathering import Gathering
from mgl.types import Conversation, Question, Turn

_ABSTENTION: Final = "_abs"


class _Turn(BaseModel):
    role: str
    content: str | None = None
    has_answer: bool | None = None


class _Row(BaseModel):
    question_id: str = Field(min_length=1)
    question_type: str
    question: str = Field(min_length=1)
    question_date: str | None = None
    answer: str | int | float | list[str | int | float] | None = None
    answer_session_ids: list[str] | None = None
    haystack_dates: list[str]
    haystack_session_ids: list[str] | None = None
    haystack_sessions: list[list[_Turn]]

    @model_validator(mode="after")
    def _as_long_as_each_other(self) -> _Row:
        sessions, ids = len(self.haystack_sessions), self.haystack_session_ids
        if len(self.haystack_dates) != sessions or (ids is not None and len(ids) != sessions):
            raise ValueError("haystack_sessions, their dates and their ids differ in number")
        return self


def _read(path: Path, size: str) -> Dataset:
    """Read an item and a source for each question."""
    name = f"longmemeval_{size}"
    file = open_file(path, f"{name}.json", f"{name}_cleaned.json", f"{name}*")
    rows = file.rows(_Row, hint=f"take {name}.json of LongMemEval")
    refuse_duplicates(file.path, (row.question_id for row in rows))
    empty = [row.question_id for row in rows if not any(row.haystack_sessions)]
    notes = [f"{id}: no session: left out" for id in empty]
    rows = [row for row in rows if any(row.haystack_sessions)]
    prompts, script = find_judge_prompts(file.path.parent, "evaluate_qa.py")
    items = tuple(_item(row, notes, prompts) for row in rows)
    sources = {row.question_id: partial(_conversation, row) for row in rows}
    return Dataset(items, sources, hash_files([file, *script]), tuple(notes))


def _item(row: _Row, notes: list[str], prompts: Mapping[str, str]) -> Item:
    asked_at = read_moment(row.question_date)
    if asked_at is None:
        notes.append(f"{row.question_id}: date {row.question_date!r} is not understood: left out")
    golds = gold_texts(row.answer)
    if not golds:
        notes.append(f"{row.question_id}: no answer")
    abstention = row.question_id.endswith(_ABSTENTION)
    return Item(
        row.question_id,
        row.question_id,
        Question(row.question, asked_at, "user"),
        golds,
        row.question_type,
        () if abstention else tuple(_evidence(row)),
        labels={"abstention": "yes" if abstention else "no"},
        judge_prompt=prompts.get(ABSTENTION if abstention else row.question_type, ""),
    )


def _evidence(row: _Row) -> Iterator[str]:
    holds = frozenset(row.answer_session_ids or ())
    ids = row.haystack_session_ids or [""] * len(row.haystack_sessions)
    for number, (id, session) in enumerate(zip(ids, row.haystack_sessions, strict=True), start=1):
        marked = [
            f"S{number}:{order}"
            for order, turn in enumerate(session, start=1)
            if turn.has_answer and (turn.content or "").strip()
        ]
        yield from marked or ([f"S{number}"] if id in holds else [])


def _conversation(row: _Row) -> Conversation:
    turns = Gathering(f"history {row.question_id.removesuffix(_ABSTENTION)}")
    haystack = zip(row.haystack_dates, row.haystack_sessions, strict=True)
    for number, (date, session) in enumerate(haystack, start=1):
        time = read_moment(date)
        if time is None:
            turns.note(f"session {number}", f"date {date[:40]!r} is not understood: left out")
        for order, said in enumerate(session, start=1):
            turn = Turn(f"S{number}:{order}", said.role, said.content or "", time, str(number))
            turns.add(f"session {number}, turn {order}", turn)
    return turns.conversation()


def read_moment(date: str | None) -> datetime | None:
    """``2023/05/30 (Tue) 23:40``; the day of the week, which a locale would name, is not read."""
    day, _, rest = (date or "").partition(" (")
    try:
        return datetime.strptime(f"{day} {rest.partition(') ')[2]}", "%Y/%m/%d %H:%M")
    except ValueError:
        return None


LONGMEMEVAL: Final = FileBenchmark(
    name="longmemeval-s",
    about=About(
        title="LongMemEval-S",
        paper="Wu et al., LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive "
        "Memory, ICLR 2025, arXiv:2410.10813",
        where="https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned, or "
        "https://github.com/xiaowu0162/LongMemEval",
        licence="MIT",
        files="longmemeval_s.json or longmemeval_s_cleaned.json; evaluate_qa.py for its judge",
        items=500,
        folder="longmemeval",
    ),
    reads="conversation",
    scorers=(
        "f1_set_amem",
        "bleu1_amem",
        "evidence_recall@10",
        *(
            f"{of}_{measure}@{k}"
            for of in ("evidence", "session")
            for measure in ("recall_any", "recall_all", "ndcg")
            for k in (5, 10)
        ),
    ),
    judge="longmemeval",
    read=partial(_read, size="s"),
)
LONGMEMEVAL_M: Final = replace(
    LONGMEMEVAL,
    name="longmemeval-m",
    about=replace(
        LONGMEMEVAL.about,
        title="LongMemEval-M",
        files="longmemeval_m.json or longmemeval_m_cleaned.json; evaluate_qa.py for its judge",
    ),
    read=partial(_read, size="m"),
)
