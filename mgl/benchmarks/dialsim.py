"""LongDialQA, the questions of DialSim: a character of a television series is asked in the middle
of a scene, about all that was said before.

Source: Kim et al., DialSim (arXiv:2406.13144); for each series a pickle
{episode: {scene: {date, script, hard_q: {kind: [question]}, easy_q: {kind: {n: question}}}}}, a
question being {questions: {asker: text}, options, answer}. Hard ones are made of a graph of facts
with their times, easy ones are from fan quizzes.

The release holds hundreds of questions a scene; DialSim's simulator draws one, and so does this,
from a seed of the scene's own:

- The character asked (the agent) has just spoken: any of the agent's lines in the scene but the
  first, if there are several. Who asks is one of those who speak within three lines of it.
- Hard questions are drawn with probability 0.7 if there are both; then the kind, then one of it.
- Kinds that nobody can answer yet (``fu`` among the hard ones, ``unans`` among the easy ones) are
  kept below 21.5% and 27% by drawing the others more often, in turn.
- Passed over are hard questions that name the scene's own month or year, and those without a
  wording for the asker or whose answer is not among their five options.

The source of all items is their series, in the order of its scenes. An item is asked after the line
of the agent (``Item.after``): what comes later would answer questions that cannot be answered yet.
It is asked openly, as GAM asks it; the options are not shown. Evidence (``*_oracle_*.pickle``) is
not read, and names are not swapped.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import cycle
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from pydantic import BaseModel, TypeAdapter, ValidationError

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.benchmarks.files import DataFile, first_fault, hash_files, open_file
from mgl.errors import InputError
from mgl.text.gathering import Gathering
from mgl.types import Conversation, Question, Turn

AGENTS: Final = MappingProxyType({"friends": "Ross", "bigbang": "Sheldon", "theoffice": "Michael"})
"""The character who is asked, by the series' name in the release."""

_UNKNOWN: Final = "I don't know."
_HINT: Final = "take friends_dialsim.pickle, bigbang_ or theoffice_ of DialSim's release"


@dataclass(frozen=True)
class _Placed:
    """A scene with its name, when it plays, and its lines."""

    name: str
    date: str
    time: datetime | None
    lines: tuple[Line, ...]


def _read(path: Path) -> Dataset:
    """Read one question a scene of each series in a folder, or of one."""
    files = _files(path)
    items: list[Item] = []
    sources = {}
    notes: list[str] = []
    for series, file in files.items():
        placed: list[_Placed] = []
        silent = 0
        for name, scene in _scenes(file).items():
            own = _Placed(name, scene.date, _day(scene.date), tuple(split_lines(scene.script)))
            placed.append(own)
            seed = f"{series}/{name}"
            if (found := draw_question(scene, own.lines, AGENTS[series], seed=seed)) is None:
                silent += 1
                continue
            items.append(_item(seed, found, own, series))
        sources[series] = partial(_read_series, series, placed)
        if silent:
            notes.append(f"{series}: {silent} of {len(placed)} scenes have nothing to ask")
    if not items:
        raise InputError(f"{path} has no scene in which a question can be asked", hint=_HINT)
    return Dataset(tuple(items), sources, hash_files(files.values()), tuple(notes))


def _files(path: Path) -> dict[str, DataFile]:
    paths = sorted(path.glob("*_dialsim.pickle")) if path.is_dir() else [path]
    found = {own.name.partition("_")[0]: open_file(own) for own in paths}
    if not found or not found.keys() <= AGENTS.keys():
        raise InputError(f"{path} is not DialSim's release", hint=_HINT)
    return found


def _scenes(file: DataFile) -> dict[str, Scene]:
    value = file.unpickle(hint=_HINT)
    try:
        series = TypeAdapter(dict[str | int, dict[str | int, Scene]]).validate_python(value)
    except ValidationError as error:
        raise InputError(f"{file.path}: {first_fault(error)}", hint=_HINT) from error
    return {
        f"{episode}/{number}": scene
        for episode, scenes in series.items()
        for number, scene in scenes.items()
    }


def _item(id: str, found: DrawnQuestion, placed: _Placed, series: str) -> Item:
    question = Question(
        found.text, placed.time, found.asker, asked=AGENTS[series], unknown=_UNKNOWN
    )
    return Item(
        id,
        series,
        question,
        (found.gold,),
        found.kind,
        labels={"series": series, "level": found.level},
        after=_name_line(placed.name, found.at),
    )


def _read_series(series: str, scenes: Sequence[_Placed]) -> Conversation:
    """All that is said in a series, scene by scene, whatever their dates."""
    turns = Gathering(series)
    for placed in scenes:
        if placed.time is None:
            turns.note(placed.name, f"date {placed.date[:40]!r} is not understood: left out")
        for number, line in enumerate(placed.lines):
            id = _name_line(placed.name, number)
            turn = Turn(id, line.speaker, line.text, placed.time, placed.name)
            turns.add(f"{placed.name}, line {number + 1}", turn)
    return turns.conversation(sort=False)


def _name_line(scene: str, number: int) -> str:
    """The id of a scene's line, which is counted from 0."""
    return f"{scene}:{number + 1}"


def _day(date: str) -> datetime | None:
    try:
        return datetime.strptime(date.replace(",", ""), "%B %d %Y")
    except ValueError:
        return None


LONGDIALQA: Final = FileBenchmark(
    name="longdialqa",
    about=About(
        title="LongDialQA (DialSim), open-ended",
        paper="Kim et al., DialSim: A Real-Time Simulator for Evaluating Long-Term Multi-Party "
        "Dialogue Understanding of Conversation Systems, arXiv:2406.13144",
        where="https://github.com/jiho283/Simulator (links to dialsim_v1.1.zip)",
        licence="none that its repository names; the scripts are of television series",
        files="friends_dialsim.pickle, bigbang_dialsim.pickle, theoffice_dialsim.pickle, or some",
        items=None,
        folder="dialsim",
    ),
    reads="conversation",
    scorers=("f1_set_amem", "bleu1_amem", "exact_match"),
    judge=None,
    read=_read,
)

Level = Literal["hard", "easy"]

HARD_SHARE: Final = 0.7
UNANSWERABLE: Final = {"hard": ("fu", 0.215), "easy": ("unans", 0.27)}
NEAR: Final = 3
OPTIONS: Final = 5
_SPEAKER: Final = re.compile(r"\s*([^:]*?)\s*:\s*(.*)", re.DOTALL)
_CREDITS: Final = ("Teleplay: ", "Story: ")


class Scene(BaseModel):
    """A scene as the release has it; its questions are looked at when they are drawn."""

    date: str
    script: str
    hard_q: dict[str, list[Any]] | None = None
    easy_q: dict[str, dict[str | int, Any]] | None = None


class _Asked(BaseModel):
    questions: dict[str, str]
    options: list[str]
    answer: str


@dataclass(frozen=True, slots=True)
class Line:
    """What one speaker says; ``speaker`` is empty before the first."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class DrawnQuestion:
    """A question, who asks it after which line of the scene, and its answer."""

    level: Level
    kind: str
    asker: str
    at: int
    text: str
    gold: str


def split_lines(script: str) -> Iterator[Line]:
    """Split a script; a line without a speaker continues the one before."""
    speaker, said = "", []
    for line in script.split("\n"):
        if not line.strip() or any(credit in line for credit in _CREDITS):
            continue
        if (found := _SPEAKER.fullmatch(line)) is None:
            said.append(line.strip())
            continue
        if said:
            yield Line(speaker, "\n".join(said))
        speaker, said = found[1], [found[2].strip()]
    if said:
        yield Line(speaker, "\n".join(said))


def draw_question(
    scene: Scene, said: Sequence[Line], agent: str, *, seed: str
) -> DrawnQuestion | None:
    """Draw a scene's question; None if the agent says nothing, is alone, or nothing fits."""
    random_source = random.Random(seed)
    spoken = [number for number, line in enumerate(said) if line.text.strip()]
    own = [number for number in spoken if said[number].speaker.endswith(agent)]
    if not own:
        return None
    at = random_source.choice(own[1:] or own)
    near = said[max(0, at - NEAR) : at + NEAR]
    others = {line.speaker for line in near if not _same(line.speaker, agent)} - {""}
    if not others:
        return None
    asker = random_source.choice(sorted(others))
    levels: dict[Level, Mapping[str, list[Any]]] = {
        "hard": {kind: asked for kind, asked in (scene.hard_q or {}).items() if asked},
        "easy": {kind: [*asked.values()] for kind, asked in (scene.easy_q or {}).items() if asked},
    }
    order = [*levels] if random_source.random() < HARD_SHARE else [*reversed(levels)]
    level = next((level for level in order if levels[level]), None)
    if level is None:
        return None
    kind = random_source.choice(_balance(list(levels[level]), *UNANSWERABLE[level]))
    asked = levels[level][kind]
    for value in random_source.sample(asked, len(asked)):
        if (found := _find_wording(value, asker)) is not None:
            text, gold = found
            if level == "easy" or not _names_its_date(text, scene.date):
                return DrawnQuestion(level, kind, asker, at, text, gold)
    return None


def _find_wording(value: Any, asker: str) -> tuple[str, str] | None:
    """Return a question as its asker puts it, and its answer; None if it is not as described."""
    try:
        asked = _Asked.model_validate(value)
    except ValidationError:
        return None
    text = asked.questions.get(asker) or asked.questions.get("default")
    options, answer = [option.casefold() for option in asked.options], asked.answer.casefold()
    if text is None or len(options) != OPTIONS or answer not in options:
        return None
    right = options.index(answer)
    return text, _UNKNOWN if right == OPTIONS - 1 else asked.options[right]


def _balance(kinds: list[str], mark: str, share: float) -> list[str]:
    """Repeat the answerable kinds until the others are fewer than ``share``."""
    answerable = [kind for kind in kinds if mark not in kind]
    marked = len(kinds) - len(answerable)
    for kind in cycle(answerable):
        if marked / len(kinds) < share:
            break
        kinds = [*kinds, kind]
    return kinds


def _names_its_date(text: str, date: str) -> bool:
    month, *_, year = date.replace(",", "").split() or [""]
    return f"n {year}" in text or f"{month} {year}" in text


def _same(speaker: str, agent: str) -> bool:
    return agent.lower() in speaker.lower() or speaker.lower() == "all"
