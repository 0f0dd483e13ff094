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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mgl.errors import InputError, UsageError
from mgl.models import shipped

__all__ = [
    "EMPTY",
    "Averaging",
    "Cell",
    "Column",
    "Group",
    "Paper",
    "Table",
    "Unit",
    "load_references",
]

EMPTY: Final = "_"
_NUMBER: Final = re.compile(
    r"(?P<text>(?P<about>~?)(?P<value>[+-]?\d+(?:\.\d+)?)(?:×10\^(?P<power>\d+)|(?P<k>[kK]))?%?)"
    r"(?:\((?P<n>\d+|\?)\))?"
)

Unit = Literal[
    "percent", "fraction", "points", "tokens", "seconds", "count", "correlation", "nodes"
]
"""``percent`` is of 100, ``fraction`` of 1, ``points`` are a judge's of 100."""

Averaging = Literal["questions", "categories", "not said", "none"]
"""What an average is taken over: questions, or categories with equal weights."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Column(_Strict):
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


class Group(_Strict):
    """Rows by name, each a line of printed numbers, of one ``model`` (the paper's name; ``profile``
    is ours) or with one ``setting``. ``averaging`` defaults to the table's."""

    rows: Mapping[str, str] = Field(min_length=1)
    model: str | None = None
    profile: str | None = None
    setting: Mapping[str, str] = {}
    averaging: Averaging | None = None


class Table(_Strict):
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
    groups: tuple[Group, ...] = ()
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.printed == "none") != (not self.groups):
            raise ValueError("printed is none where there are no groups of rows, and only there")
        if self.printed != "all" and not self.notes:
            raise ValueError("what is not printed needs a note that says so")
        if self.groups and self.at is None:
            raise ValueError("printed numbers need the words near which they stand")
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

    @property
    def row_names(self) -> tuple[str, ...]:
        """The names of rows, each once, in the paper's order."""
        return tuple(dict.fromkeys(name for group in self.groups for name in group.rows))


class Paper(_Strict):
    """A paper: ``memories`` maps names of rows to our kinds of memory."""

    name: str
    title: str
    source: str
    memories: Mapping[str, str] = {}
    tables: tuple[Table, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        ids = [table.id for table in self.tables]
        if twice := {id for id in ids if ids.count(id) > 1}:
            raise ValueError(f"there are two entries {', '.join(sorted(twice))}")
        for benchmark, labels in self._categories().items():
            if len(labels) > 1:
                raise ValueError(
                    f"averages over categories of {benchmark} need one label that tells them "
                    f"apart, and there are {', '.join(sorted(labels))}"
                )
        return self

    def _categories(self) -> dict[str | None, set[str]]:
        """The labels that divide each benchmark where averages are over categories, as the columns
        of those tables do: an item's category if none does."""
        found: dict[str | None, set[str]] = {}
        for table in self.tables:
            for column in table.columns if table.averaging == "categories" else ():
                found.setdefault(column.benchmark or table.benchmark, set()).update(column.part)
        return {benchmark: labels or {"category"} for benchmark, labels in found.items()}

    def table(self, id: str) -> Table:
        """Find a table or figure; UsageError, listing all, if there is none of that id."""
        for table in self.tables:
            if table.id == id:
                return table
        raise UsageError(
            f"{self.name} has no {id}",
            hint=f"it has {', '.join(table.id for table in self.tables)}",
        )

    def cells(self, id: str | None = None) -> Iterator[Cell]:
        """Yield the numbers of one table, or of all, row by row, without the empty places.

        UsageError as of ``table``.
        """
        categories = self._categories()
        for table in self.tables if id is None else (self.table(id),):
            for group in table.groups:
                for name, line in group.rows.items():
                    for column, text in zip(table.columns, line.split(), strict=True):
                        if text != EMPTY:
                            yield self._cell(table, group, name, column, text, categories)

    def _cell(
        self,
        table: Table,
        group: Group,
        name: str,
        column: Column,
        text: str,
        categories: Mapping[str | None, set[str]],
    ) -> Cell:
        number = _number(text)
        own_n = column.n if column.n is not None else table.n
        benchmark = column.benchmark or table.benchmark
        averaging = (group.averaging or table.averaging) if not column.part else "questions"
        return Cell(
            paper=self.name,
            table=table.id,
            method=name,
            column=column.name,
            metric=column.metric,
            value=float(number["value"]) * 10 ** int(number["power"] or (3 if number["k"] else 0)),
            text=number["text"],
            unit=column.unit,
            about=bool(number["about"]),
            averaging=averaging,
            categories=next(iter(categories[benchmark])) if averaging == "categories" else None,
            scorer=column.ours,
            benchmark=benchmark,
            judge=column.judge or table.judge,
            model=group.model,
            profile=group.profile,
            memory=self.memories.get(name),
            n=own_n if number["n"] is None else int(number["n"]) if number["n"] != "?" else None,
            part=column.part,
            setting=group.setting,
            stages=table.stages.get(name, ()),
            notes=table.notes,
        )


@dataclass(frozen=True)
class Cell:
    """One printed number with everything that says what it is.

    ``value`` is in ``unit``, ``text`` as printed; ``about`` marks it as approximate. ``categories``
    is the label, or ``category``, whose values it averages over, None if it does not. ``memory`` is
    our kind for the row, ``profile`` our profile for the model, None if there is none.
    """

    paper: str
    table: str
    method: str
    column: str
    metric: str
    value: float
    text: str
    unit: Unit
    about: bool
    averaging: Averaging
    categories: str | None = None
    scorer: str | None = None
    benchmark: str | None = None
    judge: str | None = None
    model: str | None = None
    profile: str | None = None
    memory: str | None = None
    n: int | None = None
    part: Mapping[str, str] = field(default_factory=dict)
    setting: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Its table as people write it: ``Table 3``."""
        kind = self.table.rstrip("0123456789.")
        return f"{'§' if kind == 'section' else kind.title() + ' '}{self.table.removeprefix(kind)}"

    def datum(self) -> dict[str, Any]:
        """Describe it for programs, in the paper's unit."""
        return {
            "kind": "print",
            "quantity": self.scorer or self.metric,
            "value": self.value,
            "method": self.method,
            "model": self.model or "",
            "part": ", ".join(f"{name}: {value}" for name, value in self.part.items()),
            "n": self.n,
            "source": f"{self.paper}, {self.place}: {self.metric} ({self.unit})",
        }


def load_references(override: Path | None = None, *, home: Path | None = None) -> dict[str, Paper]:
    """Load every paper by name; InputError, with file and place, for an invalid one."""
    return shipped.load_all(_PAPERS, override, home=home)


def _number(text: str) -> re.Match[str]:
    """Parse a printed number."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no number")
    return found


_PAPERS: Final = shipped.Shipped(
    "eval", "reference", "mgl reproduce --list", Paper.model_validate, "references", InputError
)
