"""LongDialQA, the questions of DialSim: a character of a television series is asked in the middle
of a scene, about all that was said before.

Source: Kim et al., DialSim (arXiv:2406.13144); for each series a pickle
{episode: {scene: {date, script, hard_q: {kind: [question]}, easy_q: {kind: {n: question}}}}}, a
question being {questions: {asker: text}, options, answer}. Hard ones are made of a graph of facts
with their times, easy ones are from fan quizzes.

    >>> dataset = LONGDIALQA.read(Path("dialsim_v1.1"))          # doctest: +SKIP
    >>> dataset.items[0].question.text                           # doctest: +SKIP
    'You are Ross. On September 22, 1994, Monica asks you: …'

The release holds hundreds of questions a scene; the simulator draws one, and so does this, from a
seed of the scene's own (``mgl.benchmarks.scenes`` says how). An item's source is the series up to
the line at which it is asked: what comes later would answer questions that cannot be answered yet.
Two benchmarks have the same questions: ``longdialqa`` asks openly, ``longdialqa-choice`` with the
options by letter, of which (E) is that one does not know.

Evidence (``*_oracle_*.pickle``) is not read, and names are not swapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import TypeAdapter, ValidationError

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.benchmarks.files import DataFile, data_file, first_fault, hashes
from mgl.benchmarks.pickles import NotPlain, plain_values
from mgl.benchmarks.scenes import Drawn, Line, Scene, drawn, lines
from mgl.errors import InputError
from mgl.text.gathering import Gathering
from mgl.types import Conversation, Question

__all__ = ["AGENTS", "LONGDIALQA", "LONGDIALQA_CHOICE"]

AGENTS: Final = MappingProxyType({"friends": "Ross", "bigbang": "Sheldon", "theoffice": "Michael"})
"""The character who is asked, by the series' name in the release."""

_LETTERS: Final = "ABCDE"
_UNKNOWN: Final = "I don't know."
_SERIES: Final = TypeAdapter(dict[str | int, dict[str | int, Scene]])
_HINT: Final = "take friends_dialsim.pickle, bigbang_ or theoffice_ of DialSim's release"


@dataclass(frozen=True)
class _Placed:
    """A scene with its name, when it plays, and its lines."""

    name: str
    date: str
    time: datetime | None
    lines: tuple[Line, ...]


def _read(path: Path, choice: bool) -> Dataset:
    """One question a scene of each series in a folder, or of one; InputError for another's file."""
    files = _files(path)
    items: list[Item] = []
    sources = {}
    notes: list[str] = []
    for series, file in files.items():
        before: list[_Placed] = []
        silent = 0
        for name, scene in _scenes(file).items():
            placed = _Placed(name, scene.date, _day(scene.date), tuple(lines(scene.script)))
            before.append(placed)
            source = f"{series}/{name}"
            if (found := drawn(scene, placed.lines, AGENTS[series], seed=source)) is None:
                silent += 1
                continue
            items.append(_item(source, found, placed, series, choice))
            sources[source] = partial(_history, series, before, len(before), found.at)
        if silent:
            notes.append(f"{series}: {silent} of {len(before)} scenes have nothing to ask")
    if not items:
        raise InputError(f"{path} has no scene in which a question can be asked", hint=_HINT)
    return Dataset(tuple(items), sources, hashes(files.values()), tuple(notes))


def _files(path: Path) -> dict[str, DataFile]:
    paths = sorted(path.glob("*_dialsim.pickle")) if path.is_dir() else [path]
    found = {own.name.partition("_")[0]: data_file(own) for own in paths}
    if not found or not found.keys() <= AGENTS.keys():
        raise InputError(f"{path} is not DialSim's release", hint=_HINT)
    return found


def _scenes(file: DataFile) -> dict[str, Scene]:
    try:
        series = _SERIES.validate_python(plain_values(file.data))
    except NotPlain as error:
        raise InputError(
            f"{file.path} is not a pickle of texts, lists and dicts: {error}", hint=_HINT
        ) from error
    except ValidationError as error:
        raise InputError(f"{file.path}: {first_fault(error)}", hint=_HINT) from error
    return {
        f"{episode}/{number}": scene
        for episode, scenes in series.items()
        for number, scene in scenes.items()
    }


def _item(source: str, found: Drawn, placed: _Placed, series: str, choice: bool) -> Item:
    agent, date = AGENTS[series], placed.date
    text = f"You are {agent}. On {date}, {found.asker} asks you: {found.text}\n"
    letter = _LETTERS[found.right]
    if choice:
        options = zip(_LETTERS, found.options, strict=True)
        text += "".join(f"({name}) {option}\n" for name, option in options)
        text += "Answer with the letter of one option; with (E) where what was said does not tell."
        golds = (letter,)
    else:
        text += "Where what was said does not tell, say that you do not know."
        golds = (_UNKNOWN if letter == "E" else found.options[found.right],)
    return Item(
        source,
        source,
        Question(text, placed.time, found.asker),
        golds,
        found.kind,
        choices=found.options if choice else (),
        labels={"series": series, "level": found.level},
    )


def _history(series: str, scenes: Sequence[_Placed], count: int, at: int) -> Conversation:
    """The first ``count`` scenes, the last of them up to and with its line ``at`` (from 0)."""
    turns = Gathering(f"{series} up to {scenes[count - 1].name}")
    for place, placed in enumerate(scenes[:count], start=1):
        if placed.time is None:
            turns.note(placed.name, f"date {placed.date[:40]!r} is not understood: left out")
        said = placed.lines[: at + 1] if place == count else placed.lines
        for number, line in enumerate(said, start=1):
            turns.add(
                f"{placed.name}, line {number}",
                text=line.text,
                speaker=line.speaker,
                time=placed.time,
                session=placed.name,
                otherwise=f"{placed.name}:{number}",
            )
    return turns.conversation()


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
    judge="dialsim",
    read=partial(_read, choice=False),
)
LONGDIALQA_CHOICE: Final = replace(
    LONGDIALQA,
    name="longdialqa-choice",
    about=replace(LONGDIALQA.about, title="LongDialQA (DialSim), multiple choice"),
    scorers=("choice_letter_dialsim", "choice_letter"),
    judge=None,
    read=partial(_read, choice=True),
)
