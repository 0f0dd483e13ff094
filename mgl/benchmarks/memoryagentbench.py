"""MemoryAgentBench: long texts that an agent is given part by part, then asked about many times.

Source: Hu et al., Evaluating Memory in LLM Agents via Incremental Multi-Turn Interactions (ICLR
2026, arXiv:2507.05257), MIT. Each of four competencies has a file; those that are there are read.
Parquet needs pyarrow; JSON and JSON Lines with the same rows do not
(``Conflict_Resolution.jsonl``).

A row's context is cut at its sentences into parts of about ``PART_TOKENS``, estimated at four bytes
each: the turns of a conversation, all said by the user. 512 is ours: the released code's default is
4,096, which an embedder of sentences reads only the beginning of. All questions are asked after the
last part, in the file's own words. ``category`` is the competency, ``labels["set"]`` the data set
that a row was made from.

Films to recommend (``recsys``) are left out, with a note: they are scored by a list of all films.
Summaries are scored here like other answers, in the released code by key points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel, Field

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.benchmarks.files import (
    DataFile,
    gold_texts,
    hash_files,
    open_file,
    parquet_as_json,
    refuse_duplicates,
)
from mgl.benchmarks.lengths import TOKEN_BYTES
from mgl.benchmarks.longmemeval import read_moment
from mgl.errors import InputError
from mgl.text import sentence_spans
from mgl.text.gathering import Gathering
from mgl.types import Conversation, Question, Source, Turn

COMPETENCIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Accurate_Retrieval": "accurate retrieval",
        "Test_Time_Learning": "test-time learning",
        "Long_Range_Understanding": "long-range understanding",
        "Conflict_Resolution": "conflict resolution",
    }
)
PART_TOKENS: Final = 512
UNSCORED: Final = "recsys"


class _Metadata(BaseModel):
    source: str = ""
    qa_pair_ids: list[str] | None = None
    question_dates: list[str] | None = None


class _Row(BaseModel):
    context: str = Field(min_length=1)
    questions: list[str] = Field(min_length=1)
    answers: list[str | list[str]]
    metadata: _Metadata = _Metadata()

    def golds(self) -> list[tuple[str, ...]]:
        """Return the gold answers of each question; a single question has all of the row's."""
        each = [[one] if isinstance(one, str) else one for one in self.answers]
        if len(self.questions) == 1:
            each = [[text for texts in each for text in texts]]
        return [gold_texts(texts) for texts in each]


def _read(path: Path) -> Dataset:
    """Read the rows of every competency that has a file; InputError without any such file, and for
    a row that is not as described, with its place."""
    held = {name: file for name in COMPETENCIES if (file := _open(path, name)) is not None}
    if not held:
        raise InputError(
            f"{path} holds none of the four files", hint=f"put {', '.join(COMPETENCIES)} there"
        )
    items: list[Item] = []
    sources: dict[str, Callable[[], Source]] = {}
    notes = [f"{name}: no file" for name in COMPETENCIES if name not in held]
    for name, file in held.items():
        hint = "each row has context, questions, answers and metadata"
        for number, row in enumerate(
            parquet_as_json(file, f"{name}.jsonl").rows(_Row, hint=hint), start=1
        ):
            source = f"{name}-{number}"
            if UNSCORED in row.metadata.source:
                notes.append(f"{source}: films to recommend: {len(row.questions)} items left out")
                continue
            golds = row.golds()
            if len(golds) != len(row.questions):
                raise InputError(
                    f"{file.path}, item {number}: {len(row.questions)} questions and "
                    f"{len(golds)} answers",
                    hint=hint,
                )
            items += _items(row, source, COMPETENCIES[name], golds, notes)
            sources[source] = partial(_conversation, row.context, source)
    refuse_duplicates(path, (item.id for item in items))
    return Dataset(tuple(items), sources, hash_files(held.values()), tuple(notes))


def _open(path: Path, name: str) -> DataFile | None:
    """Open the file of a competency: the path itself, or one in the folder or in its ``data``; None
    if there is none."""
    if path.is_file():
        return open_file(path) if path.name.startswith(name) else None
    for folder in (path, path / "data"):
        if any(folder.glob(f"{name}*")):
            return open_file(folder, f"{name}.jsonl", f"{name}.json", f"{name}*")
    return None


def _items(
    row: _Row, source: str, competency: str, golds: Sequence[tuple[str, ...]], notes: list[str]
) -> Iterator[Item]:
    ids, dates = row.metadata.qa_pair_ids or [], row.metadata.question_dates or []
    for number, (question, gold) in enumerate(zip(row.questions, golds, strict=True)):
        id = ids[number] if number < len(ids) else f"q{number + 1}"
        date = dates[number] if number < len(dates) else ""
        asked_at = read_moment(date)
        if date and asked_at is None:
            notes.append(f"{source}/{id}: date {date[:40]!r} is not understood: left out")
        yield Item(
            f"{source}/{id}",
            source,
            Question(question, asked_at, "user"),
            gold,
            competency,
            labels={"set": row.metadata.source},
        )


def _conversation(context: str, name: str) -> Conversation:
    turns = Gathering(name)
    for number, part in enumerate(cut_parts(context), start=1):
        turns.add(f"part {number}", Turn(f"P:{number}", "user", part, session="1"))
    return turns.conversation()


def cut_parts(text: str) -> Iterator[str]:
    """Cut a text at its sentences into parts of at most about ``PART_TOKENS``; a longer sentence
    is a part of its own. Together they are the text, but for white space around them."""
    start = end = 0
    for _, after in sentence_spans(text):
        size = len(text[start:after].encode(errors="replace"))
        if end > start and size > PART_TOKENS * TOKEN_BYTES:
            yield text[start:end].strip()
            start = end
        end = after
    if text[start:].strip():
        yield text[start:].strip()


MEMORYAGENTBENCH: Final = FileBenchmark(
    name="memoryagentbench",
    about=About(
        title="MemoryAgentBench",
        paper="Hu et al., Evaluating Memory in LLM Agents via Incremental Multi-Turn Interactions, "
        "ICLR 2026, arXiv:2507.05257",
        where="https://huggingface.co/datasets/ai-hyz/MemoryAgentBench (folder data)",
        licence="MIT; the texts that it was made from have their own",
        files=", ".join(f"{name}.jsonl" for name in COMPETENCIES) + " (or the release's Parquet)",
        items=None,
        folder="memoryagentbench",
    ),
    reads="conversation",
    scorers=("substring_squad", "exact_match", "f1_squad"),
    judge="correctness",
    read=_read,
)
