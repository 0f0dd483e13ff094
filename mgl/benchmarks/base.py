"""What a benchmark is: sources, and questions about them.

    >>> benchmark = registry.load("benchmark", "locomo")            # doctest: +SKIP
    >>> dataset = benchmark.read(Path("locomo10.json"))             # doctest: +SKIP
    >>> dataset.items[0].question.text                              # doctest: +SKIP
    'When did Caroline go to the LGBTQ support group?'

One module per benchmark reads the official files into this. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from mgl.types import Conversation, Question, Source

if TYPE_CHECKING:
    from pydantic import BaseModel

    from mgl.text.chunks import Counter


@dataclass(frozen=True, slots=True)
class Item:
    """One question of one source; ``id`` is unique in the benchmark.

    ``question`` is what a memory is asked, in the form of the benchmark or paper (a claim, choices
    by letter). ``golds`` are the reference answers, if any. ``category`` is the benchmark's own
    name. ``evidence`` are ids of turns, sessions or passages that hold the answer. ``choices`` are
    the answers to choose from, in the order of their letters. Items with one ``pair`` are scored
    together. ``labels`` are further things to report by (difficulty, length). ``passage`` is the
    text that the question was made from, and ``judge_prompt`` the benchmark's own judge prompt with
    {question}, {gold} and {answer} (``mgl.benchmarks.official``), for judges. ``after`` is the id
    of the turn after which the question is asked: what comes later is not there yet
    (``source_until``); empty: after the last. ``rubric`` lists what an answer should say; a judge
    looks for each point. Only ``question`` is ever shown to the model that answers.
    """

    id: str
    source: str
    question: Question
    golds: tuple[str, ...] = ()
    category: str = ""
    evidence: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    pair: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    passage: str = ""
    judge_prompt: str = ""
    after: str = ""
    rubric: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """What was read: the items in the file's order, and their sources, each read when it is called.

    ``sha256`` is of each file that was read, by its name. ``notes`` tells what was mended or left
    out, and why.
    """

    items: tuple[Item, ...]
    sources: Mapping[str, Callable[[], Source]]
    sha256: Mapping[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class About:
    """A benchmark for users: its title and paper, ``where`` to get its files, their licence, which
    are needed, how many items the official release has (None if that varies), and the file or
    folder of MGL_DATA that holds them."""

    title: str
    paper: str
    where: str
    licence: str
    files: str
    items: int | None
    folder: str


class Benchmark(Protocol):
    """A benchmark by its name in the registry (kind ``benchmark``).

    ``scorers`` are names of ``mgl.evaluation.scorers.registry``, reports show the first one first;
    ``judge`` is a name of ``mgl.evaluation.judges.judging``, None if its papers use none.
    """

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> About: ...

    @property
    def reads(self) -> Literal["document", "conversation"]: ...

    @property
    def scorers(self) -> tuple[str, ...]: ...

    @property
    def judge(self) -> str | None: ...

    def read(self, path: Path) -> Dataset:
        """Read a file or folder; InputError, with the place, if it is not this benchmark's."""
        ...


@runtime_checkable
class GeneratedBenchmark(Protocol):
    """A benchmark that makes its items if no file is given.

    ``Config`` are its parameters, set by their names (``--set length=4096``). A run makes its
    dataset once, counting by the tokenizer of its first model, so that all methods answer the same
    items; it is hashed like a file.
    """

    Config: type[BaseModel]

    async def generate(self, config: Any, count: Counter, /) -> Dataset: ...


@dataclass(frozen=True)
class FileBenchmark:
    """A Benchmark whose dataset one function reads; a module of ``mgl.benchmarks`` ends in one."""

    name: str
    about: About
    reads: Literal["document", "conversation"]
    scorers: tuple[str, ...]
    judge: str | None
    read: Callable[[Path], Dataset]


def source_until(source: Source, turn: str) -> Source:
    """Return a source as it is once the turn of this id has been said; all of it where that is
    empty. It keeps its id. KeyError where a conversation has no such turn."""
    if not turn or not isinstance(source, Conversation):
        return source
    places = {each.id: place for place, each in enumerate(source.turns, 1)}
    return replace(source, turns=source.turns[: places[turn]], ends=None, firsts=None)


def in_memory(source: Source) -> Callable[[], Source]:
    """Wrap a source that is in memory already, for ``Dataset.sources``."""
    return lambda: source
