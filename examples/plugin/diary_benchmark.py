"""A benchmark of one file: a diary of one line a day, and questions about it.

    {"says": [["2024-05-01", "I adopted a cat."]], "ask": "Which pet?", "gold": "a cat", "day": 1}

Each line of ``diary.jsonl`` is a diary with one question; ``day`` is the entry that answers it.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.types import Conversation, Question, Turn


class _Line(BaseModel):
    says: list[tuple[datetime, str]]
    ask: str
    gold: str
    day: int


def _make_talk(name: str, line: _Line) -> Conversation:
    says = enumerate(line.says, 1)
    turns = [Turn(str(day), "writer", text, time, str(day)) for day, (time, text) in says]
    return Conversation.from_turns(name, turns)


def _read(path: Path) -> Dataset:
    file = path / "diary.jsonl" if path.is_dir() else path
    lines = [_Line.model_validate_json(line) for line in file.read_text("utf-8").splitlines()]
    items, sources = [], {}
    for number, line in enumerate(lines, 1):
        name = f"diary-{number}"
        sources[name] = partial(_make_talk, name, line)
        asked = Question(line.ask, line.says[-1][0], "writer")
        items.append(Item(name, name, asked, (line.gold,), evidence=(str(line.day),)))
    hashed = {file.name: sha256(file.read_bytes()).hexdigest()}
    return Dataset(tuple(items), sources, hashed)


DIARY = FileBenchmark(
    name="diary",
    about=About("Diary", "ours", "make it", "Apache-2.0", "diary.jsonl", None, "diary"),
    reads="conversation",
    scorers=("f1_squad", "evidence_recall@10"),
    judge=None,
    read=_read,
)
