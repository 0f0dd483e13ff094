"""recall-chat: ten short talks of a person with an assistant, and what the person then asks.

Source: ours, ``eval/recall-chat/dialogues.yaml``, which ships with mgl. Each question is about what
the person said: told once (beside something like it), changed since (the latest holds), or never
said (the answer is that it was not). The assistant's replies are fixed, so that every method reads
the same talk; some are wrong on purpose, since an assistant's guess is not a fact about a person.

Turns have ids like a chat's: ``3`` and its reply ``3+``. An item's passage is what holds its
answer, each turn with its day; it has neither gold nor passage where nothing was said. A dialogue
is right if all of its questions are (``dialogues_right``).
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item, in_memory
from mgl.benchmarks.files import first_fault, hash_files, open_file, refuse_duplicates
from mgl.errors import InputError
from mgl.types import Conversation, Question, Turn

__all__ = ["RECALL_CHAT"]

PERSON: Final = "user"
ASSISTANT: Final = "assistant"
EVENING: Final = time(18)
HINT: Final = "take eval/recall-chat/dialogues.yaml as it ships"


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Session(_Row):
    day: date
    turns: list[str] = Field(min_length=2)


class _Asked(_Row):
    ask: str
    kind: Literal["told", "update", "unsaid"]
    gold: list[str] = []
    evidence: list[str] = []


class _Dialogue(_Row):
    id: str
    asked: date
    says: list[_Session] = Field(min_length=1)
    questions: list[_Asked] = Field(min_length=1)


class _File(_Row):
    dialogues: list[_Dialogue] = Field(min_length=1)


def _read(path: Path) -> Dataset:
    """Read the dialogues; InputError, with the place, if the file does not hold any."""
    file = open_file(path, "dialogues.yaml", "*.yaml")
    try:
        held = _File(dialogues=yaml.safe_load(file.text))
    except yaml.YAMLError as error:
        raise InputError(f"{file.path} is no YAML: {error}", hint=HINT) from error
    except ValidationError as error:
        raise InputError(f"{file.path}: {first_fault(error)}", hint=HINT) from error
    refuse_duplicates(file.path, (dialogue.id for dialogue in held.dialogues))
    items, sources = [], {}
    for dialogue in held.dialogues:
        talk = _conversation(dialogue)
        known = {turn.id: turn for turn in talk.turns}
        for number, asked in enumerate(dialogue.questions, start=1):
            if bool(asked.gold) == (asked.kind == "unsaid") or not known.keys() >= {
                *asked.evidence
            }:
                raise InputError(
                    f"{file.path}: question {number} of {dialogue.id} does not fit its dialogue",
                    hint="a question has gold answers and turns that hold them, or is unsaid",
                )
            question = Question(asked.ask, datetime.combine(dialogue.asked, EVENING), PERSON)
            items.append(
                Item(
                    f"{dialogue.id}/q{number}",
                    talk.name,
                    question,
                    tuple(asked.gold),
                    asked.kind,
                    tuple(asked.evidence),
                    passage="\n".join(_state(known[id]) for id in asked.evidence),
                )
            )
        sources[talk.name] = in_memory(talk)
    return Dataset(tuple(items), sources, hash_files([file]))


def _state(turn: Turn) -> str:
    return f"{turn.time.day} {turn.time:%B %Y}: {turn.text}" if turn.time else turn.text


def _conversation(dialogue: _Dialogue) -> Conversation:
    """The talk as a chat stores it: a minute a turn, a session a day."""
    turns: list[Turn] = []
    for session in dialogue.says:
        begin = datetime.combine(session.day, EVENING)
        for place, text in enumerate(session.turns):
            is_reply = place % 2 == 1
            id = f"{turns[-1].id}+" if is_reply else f"{len(turns) + 1}"
            speaker = ASSISTANT if is_reply else PERSON
            when = begin + timedelta(minutes=place)
            turns.append(Turn(id, speaker, text, when, f"{session.day}"))
    return Conversation.from_turns(dialogue.id, turns)


RECALL_CHAT: Final = FileBenchmark(
    name="recall-chat",
    about=About(
        title="recall-chat: what a person told an assistant",
        paper="ours",
        where="ships with mgl (eval/recall-chat)",
        licence="CC0",
        files="dialogues.yaml",
        items=39,
        folder="recall-chat",
    ),
    reads="conversation",
    scorers=("told_or_unsaid", "dialogues_right", "evidence_recall@10"),
    judge=None,
    read=_read,
)
