"""The papers' own numbers as data: every table and figure as printed, to stand beside ours.

    >>> cells = load_references()["gam"].cells("table3")
    >>> [(cell.method, cell.value) for cell in cells if cell.scorer == "f1_set_amem"][:2]
    [('w/o TAN', 35.07), ('w/o MFR', 35.94)]

``eval/references/NAME.yaml`` describes a paper; a file of that name in the home folder overrides
it. A row's numbers are on one line, as the paper prints them: ``~99`` is about 99, ``266k`` is
266,000, ``87.7(1387)`` is of another number of items than the column's, ``78.5(?)`` of an unknown
number; ``_`` is a place that the paper leaves empty, or whose value is only drawn. Nothing is here
that the paper's text does not print: for a figure without printed values the entry says just that.

Whether a number of ours may be held against one of these is not decided here: metric, judge, model
and averaging rule are shown beside both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mgl.errors import InputError
from mgl.models import shipped

EMPTY: Final = "_"
_NUMBER: Final = re.compile(
    r"(?P<text>~?(?P<value>[+-]?\d+(?:\.\d+)?)(?:×10\^(?P<power>\d+)|(?P<k>[kK]))?%?)"
    r"(?:\((?P<n>\d+|\?)\))?"
)

Unit = Literal[
    "percent", "fraction", "points", "tokens", "seconds", "count", "correlation", "nodes"
]
"""``percent`` is of 100, ``fraction`` of 1, ``points`` are a judge's of 100."""

Averaging = Literal["questions", "categories", "not said", "none"]
"""What an average is taken over: questions, or categories with equal weights."""


class Strict(BaseModel):
    """What a YAML file holds: no other fields, and nothing changes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Column(Strict):
    """What one number of a row is.

    ``metric`` is the paper's word, ``ours`` the scorer, judge or cost that measures the same.
    ``part`` selects items by a label, or by ``category``. ``benchmark``, ``judge`` and ``n``
    default to the table's.
    """

    name: str
    metric: str
    unit: Unit = "percent"
    ours: str | None = None
    part: Mapping[str, str] = {}
    benchmark: str | None = None
    judge: str | None = None
    n: int | None = None


class PrintedGroup(Strict):
    """Rows by name, each a line of printed numbers, of one ``model`` (the paper's name; ``profile``
    is ours) or with one ``setting``. ``averaging`` defaults to the table's."""

    rows: Mapping[str, str] = Field(min_length=1)
    model: str | None = None
    profile: str | None = None
    setting: Mapping[str, str] = {}
    averaging: Averaging | None = None


class PrintedTable(Strict):
    """A table, a figure, or numbers that a section gives in words.

    ``printed`` says which of its values the text has, ``at`` are words near them. ``judge`` is the
    paper's judging model, ``averaging`` what its averages are over, ``n`` how many questions, None
    if the paper does not say. ``stages`` are those of our calls that a row counts.
    """

    id: str = Field(pattern=r"^(table|figure|section)[0-9.]+$")
    about: str
    printed: Literal["all", "some", "none"] = "all"
    at: str | None = None
    benchmark: str | None = None
    judge: str | None = None
    averaging: Averaging = "none"
    n: int | None = None
    stages: Mapping[str, tuple[str, ...]] = {}
    columns: tuple[Column, ...] = ()
    groups: tuple[PrintedGroup, ...] = ()
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        for group in self.groups:
            for name, line in group.rows.items():
                texts = line.split()
                if len(texts) != len(self.columns):
                    raise ValueError(
                        f"row {name!r} has {len(texts)} numbers for {len(self.columns)} columns"
                    )
                for text in texts:
                    if text != EMPTY and _NUMBER.fullmatch(text) is None:
                        raise ValueError(f"row {name!r}: {text!r} is no number")
        return self


class Paper(Strict):
    """A paper: ``memories`` maps names of rows to our kinds of memory."""

    name: str
    title: str
    source: str
    memories: Mapping[str, str] = {}
    tables: tuple[PrintedTable, ...] = Field(min_length=1)

    @property
    def categories(self) -> Mapping[str | None, str]:
        """The label that divides each benchmark where averages are over categories, as the columns
        of those tables do: an item's category if none does."""
        found: dict[str | None, str] = {}
        for table in self.tables:
            for column in table.columns if table.averaging == "categories" else ():
                benchmark = column.benchmark or table.benchmark
                found[benchmark] = next(iter(column.part), found.get(benchmark, "category"))
        return found

    def cells(self, id: str | None = None) -> Iterator[PrintedCell]:
        """Yield the numbers of one table, or of all, row by row, without the empty places."""
        categories = self.categories
        for table in self.tables:
            for group in table.groups if id in (None, table.id) else ():
                averaging = group.averaging or table.averaging
                for name, line in group.rows.items():
                    for column, text in zip(table.columns, line.split(), strict=True):
                        number = _NUMBER.fullmatch(text)
                        if number is None:  # an empty place
                            continue
                        benchmark = column.benchmark or table.benchmark
                        is_averaged = averaging == "categories" and not column.part
                        n = column.n if column.n is not None else table.n
                        if (own := number["n"]) is not None:
                            n = None if own == "?" else int(own)
                        power = int(number["power"] or (3 if number["k"] else 0))
                        yield PrintedCell(
                            paper=self.name,
                            table=table.id,
                            method=name,
                            column=column.name,
                            metric=column.metric,
                            value=float(number["value"]) * 10**power,
                            text=number["text"],
                            unit=column.unit,
                            categories=categories[benchmark] if is_averaged else None,
                            scorer=column.ours,
                            benchmark=benchmark,
                            judge=column.judge or table.judge,
                            model=group.model,
                            profile=group.profile,
                            memory=self.memories.get(name),
                            n=n,
                            part=column.part,
                            setting=group.setting,
                            stages=table.stages.get(name, ()),
                        )


@dataclass(frozen=True)
class PrintedCell:
    """One printed number with everything that says what it is.

    ``value`` is in ``unit``, ``text`` as printed. ``categories`` is the label, or ``category``,
    whose values it averages over, None if it does not. ``memory`` is our kind for the row,
    ``profile`` our profile for the model, None if there is none.
    """

    paper: str
    table: str
    method: str
    column: str
    metric: str
    value: float
    text: str
    unit: Unit
    categories: str | None
    scorer: str | None
    benchmark: str | None
    judge: str | None
    model: str | None
    profile: str | None
    memory: str | None
    n: int | None
    part: Mapping[str, str]
    setting: Mapping[str, str]
    stages: tuple[str, ...]

    @property
    def place(self) -> str:
        """Its table as people write it: ``Table 3``."""
        kind = self.table.rstrip("0123456789.")
        return f"{'§' if kind == 'section' else kind.title() + ' '}{self.table.removeprefix(kind)}"

    @property
    def made_with(self) -> str:
        """Its model, its judge, its number of items and its setting, as far as they are printed."""
        parts = [self.model or "model not named"]
        parts += [f"judge {self.judge}"] if self.judge else []
        parts += [f"n {self.n:,}"] if self.n else []
        return ", ".join([*parts, *(f"{name} {value}" for name, value in self.setting.items())])


def load_references() -> dict[str, Paper]:
    """Load every paper by name; InputError, with file and place, for an invalid one."""
    return shipped.load_all(_PAPERS)


_PAPERS: Final = shipped.Shipped(
    "eval", "reference", "mgl reproduce --list", Paper.model_validate, "references", InputError
)
