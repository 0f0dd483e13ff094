"""LooGLE: long documents with questions of short and of long dependency.

Source: Li et al., LooGLE: Can Long-Context Language Models Understand Long Contexts? (ACL 2024);
MIT. One file a task. The repository has a document a line: ``input``, ``title``, and ``qa_pairs``,
which is a string that holds a Python list of ``{"Q", "A", "S"}`` (``type`` too in the
long-dependency file). It is read as literals; nothing in it is run. The published set has a
question a line: ``context``, ``title``, ``question``, ``answer``.

A document that two tasks share is one source. ``S``, the passage that holds the answer, is not
kept: it is a copy with other line breaks, and names no place. The cloze tests and summaries of the
release are not read.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item, in_memory
from mgl.benchmarks.files import DataFile, first_fault, gold_texts, hash_files, open_file
from mgl.errors import InputError
from mgl.types import Document, Question, Source

TASKS: Final = ("longdep_qa", "shortdep_qa")
HINT: Final = "take LooGLE's own file: a document with its qa_pairs, or a question, in each line"


class _Pair(BaseModel):
    Q: str = Field(min_length=1)
    A: str | int | float | None = None
    type: str = ""


class _Row(BaseModel):
    """A document with its questions; a flat row has one."""

    input: str = Field(min_length=1)
    title: str = ""
    qa_pairs: str | list[_Pair]

    @model_validator(mode="before")
    @classmethod
    def _from_flat(cls, row: Any) -> Any:
        if not isinstance(row, dict) or "question" not in row:
            return row
        pair = {"Q": row["question"], "A": row.get("answer"), "type": row.get("type") or ""}
        text = row.get("context") or row.get("input")
        return {"input": text, "title": row.get("title") or "", "qa_pairs": [pair]}


def _read(path: Path) -> Dataset:
    """Read the tasks that a folder has, or the one of a file with its official name, by task and in
    the files' order. ``category`` is the task; ``labels`` has the ``type`` of a long-dependency
    question.

    InputError, with the document's number in its file, if one is not as described.
    """
    files = _files(path)
    sources: dict[str, Callable[[], Source]] = {}
    items = [item for task, file in files.items() for item in _items(task, file, sources)]
    return Dataset(tuple(items), sources, hash_files(files.values()))


def _files(path: Path) -> dict[str, DataFile]:
    names = [f"{task}.jsonl" for task in TASKS]
    if path.is_dir():
        there = [task for task, name in zip(TASKS, names, strict=True) if (path / name).is_file()]
        found = {task: open_file(path / f"{task}.jsonl") for task in there}
        return found or {TASKS[0]: open_file(path, *names)}
    if path.stem not in TASKS:
        raise InputError(
            f"the name of {path} does not say which task of LooGLE it is",
            hint=f"keep the official name: {', '.join(names)}",
        )
    return {path.stem: open_file(path)}


def _items(task: str, file: DataFile, sources: dict[str, Callable[[], Source]]) -> Iterator[Item]:
    for number, row in enumerate(file.rows(_Row, hint=HINT)):
        document = Document.from_text(row.title or f"{task} {number}", row.input)
        sources.setdefault(document.id, in_memory(document))
        for place, pair in enumerate(_pairs(row.qa_pairs, f"{file.path}, document {number + 1}")):
            yield Item(
                id=f"{task}/{number}/q{place}",
                source=document.id,
                question=Question(pair.Q),
                golds=gold_texts(pair.A),
                category=task,
                labels={"type": pair.type} if pair.type else {},
            )


def _pairs(written: str | list[_Pair], place: str) -> list[_Pair]:
    if not isinstance(written, str):
        return written
    try:
        return TypeAdapter(list[_Pair]).validate_python(ast.literal_eval(written))
    except ValidationError as error:
        raise InputError(f"{place}: qa_pairs: {first_fault(error)}", hint=HINT) from error
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise InputError(
            f"{place}: qa_pairs is not a Python list: {error}",
            hint="the file is damaged or cut off: fetch it again",
        ) from error


LOOGLE: Final = FileBenchmark(
    name="loogle",
    about=About(
        title="LooGLE",
        paper="Li et al., LooGLE: Can Long-Context Language Models Understand Long Contexts?, "
        "ACL 2024, arXiv:2311.04939",
        where="https://github.com/bigai-nlco/LooGLE",
        licence="MIT",
        files="longdep_qa.jsonl, shortdep_qa.jsonl, or one of them",
        items=None,
        folder="loogle",
    ),
    reads="document",
    scorers=("rouge_l_recall", "rouge_1_recall", "bleu_1", "bleu_4", "meteor_stems"),
    judge="correctness",
    read=_read,
)
