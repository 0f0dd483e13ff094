"""BEAM: long chats of a user with an assistant, and twenty questions about each, of ten abilities.

Source: Tavakoli et al., Beyond a Million Tokens (ICLR 2026, arXiv:2510.27246), CC BY-SA 4.0; the
folder ``chats`` of its repository: SIZE/N/chat.json, with probing_questions/probing_questions.json
beside it. Where there is a ``chat_trunecated.json`` (sic), that is read, as the official script
does. The output of the repository's ``download_dataset.py``, which has the same names and fewer
levels, is read as well.

A batch is a session. A turn is ``S`` and the number of its session, and the message's own id:
``S2:114``; ids of the file begin anew in some chats of 1M, where an id of the evidence stands for
every message that has it. Every message of a session has the day of the session's time anchor. The
marks ``->-> 1,1`` that end messages number the plan that the chat was written by, and are removed.
A chat of 10M is ten plans, joined here in their order.

``rubric`` has what an answer should say, one by one; for event ordering, the events in their
order. The gold answer is the file's; instructions and preferences have none. ``evidence`` is
``source_chat_ids``; abstention has none.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.benchmarks.files import DataFile, first_fault, gold_texts, hash_files, open_file
from mgl.errors import InputError
from mgl.text.gathering import Gathering
from mgl.text.timewords import MONTHS
from mgl.types import Conversation, Question, Source, Turn

QUESTIONS: Final = Path("probing_questions", "probing_questions.json")
CHATS: Final = ("chat_trunecated.json", "chat.json")
HINT: Final = "take the folder chats of BEAM's repository"
_MARK: Final = re.compile(r"\s*->->[\s\d,NA/)]*$")
_ANCHOR: Final = re.compile(r"([A-Za-z]+)-(\d{1,2})-(\d{4})")


class _Message(BaseModel):
    role: str
    content: str | None = None
    id: int | None = None
    time_anchor: str | None = None


class _Batch(BaseModel):
    turns: list[list[_Message]]


class _Question(BaseModel):
    question: str = Field(min_length=1)
    rubric: list[str] = []
    source_chat_ids: Any = None
    answer: str | int | float | None = None
    ideal_answer: str | None = None
    ideal_response: str | None = None
    ideal_summary: str | None = None


_SESSIONS: Final = TypeAdapter(list[_Batch | list[_Message]])
_QUESTIONS: Final = TypeAdapter(dict[str, list[_Question]])


def _read(path: Path, size: str) -> Dataset:
    """Read the chats of one size; InputError, with the place, if they are not BEAM's."""
    items: list[Item] = []
    notes: list[str] = []
    sources: dict[str, Callable[[], Source]] = {}
    sha256: dict[str, str] = {}
    for folder in _find_chats(path, size):
        said, asked = open_file(folder, *CHATS), open_file(folder / QUESTIONS)
        name = f"{size}-{folder.name}"
        items += _items(asked, name, _places(_read_chat(said, name)), notes)
        sources[name] = partial(_open_chat, said.path, name)
        hashes = hash_files([said, asked])
        sha256 |= {f"{folder.name}/{file}": sha for file, sha in hashes.items()}
    return Dataset(tuple(items), sources, sha256, tuple(notes))


def _find_chats(path: Path, size: str) -> list[Path]:
    """List the folders of the chats of a size, in the order of their numbers. ``path`` is the
    repository, its folder of sizes, a folder of chats, or a single chat."""
    if _is_chat(path):
        return [path]
    for folder in (path / "chats" / size, path / size, path):
        if folder.is_dir():
            held = [each for each in folder.iterdir() if each.name.isdigit() and _is_chat(each)]
            if held:
                return sorted(held, key=lambda each: int(each.name))
    raise InputError(f"{path} holds no chat of {size}", hint=HINT)


def _is_chat(folder: Path) -> bool:
    return any((folder / name).is_file() for name in CHATS)


def _open_chat(path: Path, name: str) -> Conversation:
    return _read_chat(open_file(path), name)


def _read_chat(file: DataFile, name: str) -> Conversation:
    """Read a chat as a conversation, a batch a session."""
    gathered = Gathering(f"chat {name}")
    for number, session in enumerate(_sessions(file), start=1):
        day = None
        for order, message in enumerate(session, start=1):
            place = f"session {number}, message {order}"
            if message.time_anchor:
                day = _read_anchor(message.time_anchor)
                if day is None:
                    anchor = message.time_anchor[:40]
                    gathered.note(place, f"time anchor {anchor!r} is not understood: left out")
            id = f"S{number}:{message.id if message.id is not None else f'n{order}'}"
            text = _MARK.sub("", message.content or "")
            gathered.add(place, Turn(id, message.role, text, day, str(number)))
    if gathered.empty:
        raise InputError(f"{file.path} holds no message", hint=HINT)
    return gathered.conversation(sort=False)


def _sessions(file: DataFile) -> Iterator[list[_Message]]:
    """Yield the messages of each batch; of 10M, those of the plans one after the other."""
    value = file.json()
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(part, Mapping) and "turns" not in part for part in parts):
        plans = [plan for part in parts if isinstance(part, Mapping) for plan in part.values()]
        parts = [batch for plan in plans if isinstance(plan, list) for batch in plan]
    try:
        held = _SESSIONS.validate_python(parts)
    except ValidationError as error:
        raise InputError(f"{file.path}: {first_fault(error)}", hint=HINT) from error
    for batch in held:
        yield batch if isinstance(batch, list) else [one for turn in batch.turns for one in turn]


def _read_anchor(anchor: str) -> datetime | None:
    """``March-15-2024``; the name of a month is English, whatever the locale."""
    found = _ANCHOR.fullmatch(anchor.strip())
    if found is None or found[1].lower() not in MONTHS:
        return None
    try:
        return datetime(int(found[3]), MONTHS.index(found[1].lower()) + 1, int(found[2]))
    except ValueError:
        return None


def _places(talk: Conversation) -> Mapping[str, Sequence[str]]:
    """Map each id of the file to the turns that have it."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for turn in talk.turns:
        found[turn.id.partition(":")[2].partition("#")[0]].append(turn.id)
    return found


def _items(
    file: DataFile, source: str, places: Mapping[str, Sequence[str]], notes: list[str]
) -> Iterator[Item]:
    try:
        held = _QUESTIONS.validate_python(file.json())
    except ValidationError as error:
        raise InputError(f"{file.path}: {first_fault(error)}", hint=HINT) from error
    if not any(held.values()):
        raise InputError(f"{file.path} holds no question", hint=HINT)
    for ability, questions in held.items():
        for number, asked in enumerate(questions, start=1):
            id = f"{source}/{ability}-{number}"
            named = dict.fromkeys(map(str, _atoms(asked.source_chat_ids)))
            if lost := [name for name in named if name not in places]:
                notes.append(f"{id}: evidence that names no message left out: {', '.join(lost)}")
            if not asked.rubric:
                notes.append(f"{id}: no rubric")
            evidence = [turn for name in named for turn in places.get(name, ())]
            answers = (asked.answer, asked.ideal_answer, asked.ideal_response, asked.ideal_summary)
            yield Item(
                id,
                source,
                Question(asked.question, asker="user", form="long"),
                gold_texts(answers),
                ability,
                tuple(evidence),
                rubric=tuple(asked.rubric),
            )


def _atoms(value: object) -> Iterator[object]:
    """Yield the ids of a list, of lists in a list, or of lists by name."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _atoms(each)
    elif value is not None:
        yield value


def _of_size(name: str, size: str, chats: int) -> FileBenchmark:
    return FileBenchmark(
        name=name,
        about=About(
            title=f"BEAM, chats of {size} tokens",
            paper="Tavakoli et al., Beyond a Million Tokens: Benchmarking and Enhancing Long-Term "
            "Memory in LLMs, ICLR 2026, arXiv:2510.27246",
            where="https://github.com/mohammadtavakoli78/BEAM (folder chats)",
            licence="CC BY-SA 4.0",
            files=f"chats/{size}/N/ with chat.json or chat_trunecated.json, and "
            "probing_questions/probing_questions.json",
            items=20 * chats,
            folder="beam",
        ),
        reads="conversation",
        scorers=("rubric_values", "evidence_recall@10", "evidence_ndcg@10"),
        judge="beam",
        read=partial(_read, size=size),
    )


BEAM: Final = _of_size("beam", "100K", 20)
BEAM_500K: Final = _of_size("beam-500k", "500K", 35)
BEAM_1M: Final = _of_size("beam-1m", "1M", 35)
BEAM_10M: Final = _of_size("beam-10m", "10M", 10)
