"""Sets of questions built by ``scripts/sets/sets.py``, each in a folder with its documents.

``items.jsonl`` has an ``Item`` a line, ``documents.jsonl`` the id and name of each document,
``documents/ID.txt`` its text, byte for byte. An id is made of the text, so a text that was changed
is noticed. ``manifest.json`` says what built it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.benchmarks.files import hash_files, open_file, refuse_duplicates
from mgl.benchmarks.longbench import OPTIONS
from mgl.errors import InputError
from mgl.models.permissions import make_private_folder
from mgl.text.reading import read_bytes
from mgl.types import AnswerForm, Document, Question, Source

HINT = "build it again with scripts/sets/sets.py, or restore a copy"


class _ItemRow(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str = Field(min_length=1)
    source: str = Field(min_length=1)
    question: str = Field(min_length=1)
    golds: tuple[str, ...] = ()
    category: str = ""
    evidence: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    pair: str = ""
    labels: Mapping[str, str] = {}
    passage: str = ""


class _DocumentRow(BaseModel):
    id: str = Field(pattern=r"^[0-9a-f]+$")
    name: str


def _read(path: Path, *, form: AnswerForm = "short") -> Dataset:
    """Read the items of a folder, whose questions want answers of this form; those with choices,
    which are LongBench v2's, want one of its sentences. InputError if it is no such folder, or is
    damaged."""
    folder = path if path.is_dir() else path.parent
    file = open_file(folder, "items.jsonl")
    listed = open_file(folder, "documents.jsonl")
    documents = {row.id: row.name for row in listed.rows(_DocumentRow, hint=HINT)}
    items = []
    rows = file.rows(_ItemRow, hint=HINT)
    refuse_duplicates(file.path, (row.id for row in rows))
    for number, row in enumerate(rows, start=1):
        if row.source not in documents:
            raise InputError(
                f"{file.path}, item {number}: {row.source} is not in documents.jsonl", hint=HINT
            )
        options = OPTIONS[: len(row.choices)]
        question = Question(row.question, form=form, options=options)
        items.append(Item(**{**dict(row), "question": question}))
    sources: dict[str, Callable[[], Source]] = {
        id: partial(_document, folder / "documents" / f"{id}.txt", id, name)
        for id, name in documents.items()
    }
    return Dataset(tuple(items), sources, hash_files([file, listed]))


def write_made(folder: Path, items: Sequence[Item], documents: Mapping[str, Document]) -> None:
    """Write such a folder; ``documents`` by the sources that items name, which are kept as the
    ids of the documents."""
    make_private_folder(folder / "documents")
    used = {documents[item.source].id: documents[item.source] for item in items}
    for document in used.values():
        text = document.text.encode("utf-8", "surrogatepass")
        (folder / "documents" / f"{document.id}.txt").write_bytes(text)
    rows = []
    for item in items:
        row = {**asdict(item), "question": item.question.text}
        # of documents nothing is asked after a turn
        del row["judge_prompt"], row["after"], row["rubric"]
        rows.append({**row, "source": documents[item.source].id})
    names = [{"id": document.id, "name": document.name} for document in used.values()]
    _write_rows(folder / "documents.jsonl", names)
    _write_rows(folder / "items.jsonl", rows)


def _write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8", newline="")


def _document(path: Path, id: str, name: str) -> Document:
    try:
        text = read_bytes(path).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is damaged: {error}", hint=HINT) from error
    document = Document.from_text(name, text)
    if document.id != id:
        raise InputError(f"{path} is not the text that the questions were made for", hint=HINT)
    return document


LONGREASON: Final = FileBenchmark(
    name="longreason",
    about=About(
        title="LongReason (MindGraph's procedure)",
        paper="MindGraph, §4.1 and Appendix C",
        where="made here of LongBench v2, NarrativeQA and LooGLE: scripts/sets/sets.py longreason",
        licence="that of each of the three",
        files="items.jsonl, documents.jsonl, documents/",
        items=None,
        folder="longreason",
    ),
    reads="document",
    scorers=("cascade_mindgraph", "compaction_ratio"),
    judge="mindgraph",
    read=_read,
)

SENSEMAKING: Final = FileBenchmark(
    name="sensemaking",
    about=About(
        title="Generative sense-making QA (HGMem's criteria)",
        paper="HGMem, §4.1 and Appendices A and F",
        where="made here of documents of LongBench v2: scripts/sets/sets.py sensemaking",
        licence="that of the documents",
        files="items.jsonl, documents.jsonl, documents/",
        items=None,
        folder="sensemaking",
    ),
    reads="document",
    scorers=(),
    judge="hgmem_comprehensiveness",
    read=partial(_read, form="long"),
)
