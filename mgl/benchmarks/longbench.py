"""LongBench v2: multiple-choice questions over contexts of 8,000 to 2,000,000 words.

Source: Bai et al., LongBench v2 (ACL 2025); MIT; ``data.json``, 503 items. The official file has
a row an item: ``_id``, ``domain``, ``sub_domain``, ``difficulty``, ``length``, ``question``,
``choice_A`` to ``choice_D``, ``answer`` (a letter) and ``context``.

Columns that a file of results adds (a model's response) are passed over. Items with one and the
same context share a source. How the choices are put is ours; the reply is asked for in the sentence
that the official script reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, Field

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.benchmarks.files import hash_files, open_file, refuse_duplicates
from mgl.types import Document, Question, Source

CODE: Final = "Code Repository Understanding"
"""The domain whose questions are about code."""

QUESTION: Final = (
    "{question}\n(A) {a}\n(B) {b}\n(C) {c}\n(D) {d}\n"
    'One of the four is right. Reply: "The correct answer is (X)", where X is its letter.'
)
OPTIONS: Final = tuple(f"The correct answer is ({letter})" for letter in "ABCD")


class _Row(BaseModel):
    id: str = Field(alias="_id", min_length=1)
    domain: str
    sub_domain: str
    difficulty: Literal["easy", "hard"]
    length: Literal["short", "medium", "long"]
    question: str = Field(min_length=1)
    a: str = Field(alias="choice_A")
    b: str = Field(alias="choice_B")
    c: str = Field(alias="choice_C")
    d: str = Field(alias="choice_D")
    answer: Literal["A", "B", "C", "D"]
    context: str = Field(min_length=1)


def _read(path: Path) -> Dataset:
    """The items in the file's order: ``category`` is the domain, ``labels`` are sub_domain,
    difficulty and length, the gold is a letter.

    InputError, with the row, if one is not as described or two have one id.
    """
    file = open_file(path, "data.json", "*.jsonl")
    rows = file.rows(_Row, hint="take LongBench v2's data.json, or rows of it")
    refuse_duplicates(file.path, (row.id for row in rows))
    sources: dict[str, Callable[[], Source]] = {}
    items = []
    for row in rows:
        source = Document.from_text(row.id, row.context).id
        sources.setdefault(source, partial(Document.from_text, row.id, row.context))
        items.append(_item(row, source))
    return Dataset(tuple(items), sources, hash_files([file]))


def _item(row: _Row, source: str) -> Item:
    put = QUESTION.format(question=row.question, a=row.a, b=row.b, c=row.c, d=row.d)
    return Item(
        id=row.id,
        source=source,
        question=Question(put, options=OPTIONS),
        golds=(row.answer,),
        category=row.domain,
        choices=(row.a, row.b, row.c, row.d),
        labels={
            "sub_domain": row.sub_domain,
            "difficulty": row.difficulty,
            "length": row.length,
        },
    )


LONGBENCH_V2: Final = FileBenchmark(
    name="longbench-v2",
    about=About(
        title="LongBench v2",
        paper="Bai et al., LongBench v2: Towards Deeper Understanding and Reasoning on Realistic "
        "Long-context Multitasks, ACL 2025, arXiv:2412.15204",
        where="https://github.com/THUDM/LongBench",
        licence="MIT",
        files="data.json, or its rows in one .jsonl",
        items=503,
        folder="longbench_v2",
    ),
    reads="document",
    scorers=("choice_letter", "choice_letter_longbench"),
    judge=None,
    read=_read,
)
