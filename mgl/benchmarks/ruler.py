"""RULER NIAH-S1: one number in a text of one repeated line, made here.

Source: Hsieh et al., RULER: What's the Real Context Size of Your Long-Context Language Models?
(COLM 2024), task ``niah_single_1``: the haystack is one line of five short sentences, again and
again; the needle, a line among them, gives a number of seven digits for a key; 500 samples, seed
42. As in RULER, one generator draws key, number and place of every sample and of every trial by
which the number of lines is found: as many as leave room for a reply of 128 tokens.

The source is RULER's input up to the question, the question is what is asked. RULER's answer
prefix is counted and not shown: methods reply in sentences of their own. RULER's 40 depths are of
its essay haystacks; in S1 the place is drawn among all lines. ``labels`` have the depth in percent,
rounded to those 40.

Tokens are counted by the tokenizer that the run gives, so other tokenizers make other items, and a
file that RULER's own script made is read as well (``--data``).
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.benchmarks.files import hash_files, open_file, refuse_duplicates
from mgl.errors import InputError, UsageError, install_hint
from mgl.text.chunks import Counter
from mgl.types import Document, Question, Source

LINE: Final = (
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
)
INTRODUCTION: Final = (
    "A special magic number is hidden within the following text. Make sure to memorize it. "
    "I will quiz you about the number afterwards."
)
QUESTION: Final = "What is the special magic number for {key} mentioned in the provided text?"
PREFIX: Final = " The special magic number for {key} mentioned in the provided text is"
REPLY_TOKENS: Final = 128
DEPTHS: Final = 40

_ASKED = re.compile(r"\n(What (?:is|are all) the special magic [^\n]* in the provided text\?)")


class NiahConfig(BaseModel):
    """``length`` is in tokens, of input, answer prefix and reply; the rest is as RULER has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    length: int = Field(4096, ge=256)
    samples: int = Field(500, ge=1)
    seed: int = 42


@dataclass(frozen=True, slots=True)
class Needle:
    """A key, its number, before which line it stands (from 0), and how many lines there are."""

    key: str
    number: str
    place: int
    lines: int

    @property
    def text(self) -> str:
        """RULER's input up to the question."""
        before = [INTRODUCTION, *[LINE] * self.place]
        needle = f"One of the special magic numbers for {self.key} is: {self.number}."
        return "\n".join([*before, needle, *[LINE] * (self.lines - self.place)])

    @property
    def question(self) -> str:
        return QUESTION.format(key=self.key)

    @property
    def prompt(self) -> str:
        """All that RULER gives to a model, the answer prefix with it."""
        return f"{self.text}\n{self.question}{PREFIX.format(key=self.key)}"


class _Row(BaseModel):
    index: int
    input: str = Field(min_length=1)
    outputs: list[str | int] = Field(min_length=1)
    length: int | None = None


class RulerNiah(FileBenchmark):
    """``category`` is RULER's name of the task; golds are the numbers that must be found, all of
    which count. ``labels`` have the depth, and the length in tokens."""

    Config: ClassVar = NiahConfig

    @staticmethod
    async def generate(config: NiahConfig, count: Counter) -> Dataset:
        """Draw the items in order; UsageError if ``length`` is too short."""
        needles = await _draw_needles(config, count)
        written = "".join(json.dumps(line) + "\n" for line in _to_rows(needles))
        digest = hashlib.sha256(written.encode()).hexdigest()
        sources: dict[str, Callable[[], Source]] = {
            str(number): partial(_document, number, needle) for number, needle in enumerate(needles)
        }
        items = tuple(
            Item(
                id=str(number),
                source=str(number),
                question=Question(needle.question),
                golds=(needle.number,),
                category="niah_single_1",
                labels={
                    "depth": _depth(needle.place / needle.lines),
                    "length": str(config.length),
                },
            )
            for number, needle in enumerate(needles)
        )
        note = (
            f"made for {config.length} tokens with seed {config.seed}: "
            f"{needles[0].lines} lines in the first sample"
        )
        return Dataset(items, sources, {f"niah_single_1_{config.length}.jsonl": digest}, (note,))


def _read(path: Path) -> Dataset:
    """Read a file that RULER's script made; InputError if it is another."""
    file = open_file(path, "validation.jsonl", "test.jsonl")
    hint = "take a file of RULER's niah task: index, input and outputs in each line"
    rows = file.rows(_Row, hint=hint)
    refuse_duplicates(file.path, (str(row.index) for row in rows))
    sources: dict[str, Callable[[], Source]] = {}
    items = []
    for row in rows:
        asked = list(_ASKED.finditer(row.input))
        if not asked:
            raise InputError(f"{file.path}, index {row.index}: it asks nothing", hint=hint)
        text, id = row.input[: asked[-1].start()], str(row.index)
        golds = tuple(map(str, row.outputs))
        sources[id] = partial(Document.from_text, f"niah {id}", text)
        labels = {"depth": _depth(max(0, text.find(golds[0])) / len(text))}
        if row.length is not None:
            labels["length"] = str(row.length)
        question = Question(asked[-1][1])
        items.append(Item(id, id, question, golds, file.path.parent.name, labels=labels))
    return Dataset(tuple(items), sources, hash_files([file]))


async def _draw_needles(config: NiahConfig, count: Counter) -> list[Needle]:
    draw, keys = random.Random(config.seed), load_keys()
    step = 25 if config.length >= 4096 else 5

    async def tokens(needle: Needle) -> int:
        return (await count([needle.prompt]))[0] + REPLY_TOKENS

    most = await _most_lines(
        config.length, step, lambda lines: tokens(_draw_needle(draw, keys, lines))
    )
    needles = []
    for _ in range(config.samples):
        lines = most
        while await tokens(needle := _draw_needle(draw, keys, lines)) > config.length:
            if lines <= step:
                raise UsageError(
                    f"{config.length} tokens leave no room for a text of {step} lines",
                    hint="set a greater length, for instance --set length=4096",
                )
            lines -= step
        needles.append(needle)
    return needles


async def _most_lines(length: int, step: int, trial: Callable[[int], Awaitable[int]]) -> int:
    """The most lines whose trial has no more tokens than ``length``, at least ``step``."""
    a_line = (await trial(step) - REPLY_TOKENS) / step
    low, high, best = step, max(int(length / a_line * 3), step * 2), step
    while low <= high:
        middle = (low + high) // 2
        if await trial(middle) <= length:
            best, low = middle, middle + 1
        else:
            high = middle - 1
    return best


def _draw_needle(draw: random.Random, keys: NeedleKeys, lines: int) -> Needle:
    key = draw.choice(keys)
    number = str(draw.randint(10**6, 10**7 - 1))
    [place] = draw.sample(range(lines), 1)
    draw.sample(range(1), 1)  # RULER draws which of its one key is asked for
    return Needle(key, number, place, lines)


def _to_rows(needles: list[Needle]) -> Iterator[dict[str, object]]:
    for number, needle in enumerate(needles):
        yield {
            "index": number,
            "input": f"{needle.text}\n{needle.question}",
            "outputs": [needle.number],
            "answer_prefix": PREFIX.format(key=needle.key),
        }


def _depth(share: float) -> str:
    """A depth from 0 to 1 as the nearest of RULER's 40, in percent."""
    return str(round(round(share * (DEPTHS - 1)) * 100 / (DEPTHS - 1)))


def _document(number: int, needle: Needle) -> Document:
    return Document.from_text(f"niah {number}", needle.text)


RULER_NIAH_S1: Final = RulerNiah(
    name="ruler-niah-s1",
    about=About(
        title="RULER NIAH-S1",
        paper="Hsieh et al., RULER: What's the Real Context Size of Your Long-Context Language "
        "Models?, COLM 2024, arXiv:2404.06654",
        where="made here: --set length=TOKENS; or by https://github.com/NVIDIA/RULER",
        licence="Apache-2.0",
        files="none, or validation.jsonl of RULER's script",
        items=None,
        folder="ruler",
    ),
    reads="document",
    scorers=("substring_share_ruler",),
    judge=None,
    read=_read,
)


class NeedleKeys:
    """The sorted distinct pairs of some adjectives and nouns, by place."""

    def __init__(self, adjectives: Sequence[str], nouns: Sequence[str]) -> None:
        self._nouns = sorted(set(nouns))
        self._groups = _groups(sorted({f"{word}-" for word in adjectives}))
        sizes = (
            len(self._nouns if len(heads) == 1 else self._pairs(heads)) for heads in self._groups
        )
        self._ends = list(accumulate(sizes))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, place: int) -> str:
        if not 0 <= place < len(self):
            raise IndexError(place)
        number = bisect_right(self._ends, place)
        within = place - (self._ends[number - 1] if number else 0)
        return self._pairs(self._groups[number])[within]

    def _pairs(self, heads: Sequence[str]) -> list[str]:
        return sorted({head + noun for head in heads for noun in self._nouns})


def _groups(heads: Sequence[str]) -> list[list[str]]:
    """Sorted heads in runs that begin with the run's first: only within one can pairs of different
    heads stand between each other (``blue-`` and ``blue-eyed-``)."""
    groups: list[list[str]] = []
    for head in heads:
        if groups and head.startswith(groups[-1][0]):
            groups[-1].append(head)
        else:
            groups.append([head])
    return groups


def load_keys() -> NeedleKeys:
    """Load RULER's keys; UsageError if wonderwords is not installed."""
    try:
        assets = files("wonderwords") / "assets"
    except ModuleNotFoundError as error:
        raise UsageError(
            "RULER's keys come from the package wonderwords, which is not installed",
            hint=install_hint("evaluation"),
        ) from error
    adjectives, nouns = (
        [line.rstrip() for line in (assets / name).read_text("utf-8").splitlines()]
        for name in ("adjectivelist.txt", "nounlist.txt")
    )
    return NeedleKeys(adjectives, nouns)
