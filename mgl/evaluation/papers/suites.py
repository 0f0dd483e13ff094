"""The papers' tables and figures as runs with open models, or why there is none.

    >>> entry = load_suites()["gam"].entry("table3")
    >>> [method.label for method in entry.runs[0].methods][:2]
    ['without-tan', 'without-mfr']

``eval/suites/NAME.yaml`` describes a paper; a file of that name in the home folder overrides it. An
entry is named ``NAME/ID``, as its numbers in ``mgl.evaluation.papers.references``. Whether the
memories, benchmarks and models are on this machine is for ``mgl reproduce --list`` to say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mgl import registry
from mgl.errors import InputError, UsageError
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.papers.references import Cell
from mgl.evaluation.runs.manifest import Method as RunMethod
from mgl.memories.base import MemoryKind
from mgl.memories.options import configure
from mgl.models import shipped

__all__ = ["Entry", "LeftOut", "Method", "Rows", "Run", "Suite", "find_entry", "load_suites"]

_LABEL: Final = r"^[a-z0-9][a-z0-9-]*$"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Method(_Strict):
    """A memory with settings of its ``Config``; ``row`` and ``setting`` name its row of the paper's
    table, None if it is not one of the paper's."""

    label: str = Field(pattern=_LABEL)
    memory: str
    settings: Mapping[str, Any] = {}
    row: str | None = None
    setting: Mapping[str, str] = {}


class Run(_Strict):
    """Methods put to one benchmark with the same retrieval models.

    ``name`` distinguishes the runs of an entry. ``parameters`` are of a generated benchmark,
    ``labels`` those that an item must have. ``scorers`` and ``judges`` are the paper's metrics;
    ``headline`` is the one that methods are compared by, of these the first unless it is named.
    ``repeats`` is how often each item is asked, where the paper samples. ``embedder`` and
    ``reranker`` are profiles, the defaults if None; an embedder's vectors may be cut
    (``NAME:DIMS``).
    """

    name: str = Field("", pattern=f"{_LABEL}|^$")
    benchmark: str
    methods: tuple[Method, ...] = Field(min_length=1)
    parameters: Mapping[str, Any] = {}
    labels: Mapping[str, str] = {}
    scorers: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    headline: str = ""
    repeats: int = Field(1, ge=1)
    embedder: str | None = None
    reranker: str | None = None
    limit: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_unique("method", [method.label for method in self.methods])
        if not self.scorers and not self.judges:
            raise ValueError("a run needs a scorer or a judge")
        if self.headline and self.headline not in (*self.scorers, *self.judges):
            raise ValueError(f"{self.headline} is no metric of the run")
        return self

    @property
    def compared_by(self) -> str:
        """Its headline metric."""
        return self.headline or (*self.judges, *self.scorers)[0]

    def judged_by(self, name: str) -> Run:
        """Return the run with one other judge in place of its own; UsageError for an unknown."""
        if name not in JUDGES:
            raise UsageError(f"there is no judge {name!r}", hint=f"take one of {', '.join(JUDGES)}")
        headline = self.headline if self.compared_by in self.scorers else name
        return self.model_copy(update={"judges": (name,), "headline": headline})

    @property
    def memories(self) -> tuple[str, ...]:
        """The memories as the runner reads them: ``LABEL=KIND``, or the kind alone."""
        return tuple(
            one.memory if one.label == one.memory else f"{one.label}={one.memory}"
            for one in self.methods
        )


class LeftOut(_Strict):
    """Rows of the paper's table that are not run."""

    rows: tuple[str, ...] = Field(min_length=1)
    why: str


class Entry(_Strict):
    """A table or figure.

    It has ``runs``, or is read off those of another entry (``same_as``), or is ``not_made`` for a
    reason. ``models`` are profiles that the paper used, or that stand for closed ones; the first is
    the default. ``varies`` names the settings that differ between methods. ``read_off`` says where
    its values are found if its rows are not methods.
    """

    id: str
    about: str = ""
    runs: tuple[Run, ...] = ()
    same_as: str | None = None
    not_made: str | None = None
    models: tuple[str, ...] = ()
    varies: str | None = None
    read_off: str | None = None
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        ways = [bool(self.runs), self.same_as is not None, self.not_made is not None]
        if sum(ways) != 1:
            raise ValueError("an entry has exactly one of runs, same_as and not_made")
        if bool(self.models) != bool(self.runs):
            raise ValueError("an entry has models if and only if it has runs")
        if self.not_made is None and not self.about:
            raise ValueError("an entry with runs needs a description")
        _check_unique("run", [run.name for run in self.runs])
        return self


class Suite(_Strict):
    """The entries of a paper, by its short name."""

    name: str
    entries: tuple[Entry, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_unique("entry", [entry.id for entry in self.entries])
        made = {entry.id for entry in self.entries if entry.runs}
        for entry in self.entries:
            if entry.same_as is not None and entry.same_as not in made:
                raise ValueError(f"{entry.id} is the same as {entry.same_as}, which has no runs")
        return self

    def entry(self, id: str) -> Entry:
        """Find an entry; UsageError, listing all, if there is none of that id."""
        for entry in self.entries:
            if entry.id == id:
                return entry
        raise UsageError(
            f"{self.name} has no {id}",
            hint=f"it has {', '.join(entry.id for entry in self.entries)}",
        )

    def made_by(self, entry: Entry) -> Entry:
        """Return the entry whose runs this one is read off: itself, or ``same_as``."""
        return entry if entry.same_as is None else self.entry(entry.same_as)


def load_suites(override: Path | None = None, *, home: Path | None = None) -> dict[str, Suite]:
    """Load every paper's suite by name; InputError, with file and place, for an invalid one."""
    return shipped.load_all(_SUITES, override, home=home)


def find_entry(name: str, override: Path | None = None) -> tuple[Suite, Entry, str]:
    """Find the entry named ``PAPER/ID``, and the name of its run in ``PAPER/ID/RUN``, empty for
    all; UsageError if there is none."""
    paper, *rest = name.split("/")
    if len(rest) not in (1, 2):
        raise UsageError(
            f"{name!r} names no table", hint="for instance gam/table3; --list shows all"
        )
    suite = shipped.load(paper, _SUITES, override)
    entry = suite.entry(rest[0])
    runs = [run.name for run in suite.made_by(entry).runs]
    if rest[1:] and rest[1] not in runs:
        raise UsageError(
            f"{paper}/{rest[0]} has no run {rest[1]!r}", hint=f"it has {', '.join(runs)}"
        )
    return suite, entry, "".join(rest[1:])


def _check_unique(what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"there are two of the {what} {name!r}")


_SUITES: Final = shipped.Shipped(
    "eval", "suite", "mgl reproduce --list", Suite.model_validate, "suites", InputError
)


# Which row of a printed table a method of ours is

_NOT_SETTINGS: Final = ("embedder", "reranker")
"""What an entry may vary that is not a setting of a method."""


class Rows:
    """The rows that suites make, by paper, table and name.

    A suite says by what settings each row of its paper is made. A method is the row whose settings
    it has, among all that the paper varies; in what the paper leaves alone (a preset, an embedder)
    it may differ. A row that no suite makes is our memory of that name with its defaults.
    """

    def __init__(self, suites: Iterable[Suite]) -> None:
        self._made: defaultdict[tuple[str, str, str | None, str | None], list[Method]]
        self._made = defaultdict(list)
        self._varied: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._defaults: dict[tuple[str, str | None], Mapping[str, Any]] = {}
        for suite in suites:
            for entry in suite.entries:
                made = suite.made_by(entry)
                for run in made.runs if made.varies not in _NOT_SETTINGS else ():
                    for one in run.methods:
                        self._made[suite.name, entry.id, one.row, run.benchmark].append(one)
                        self._varied[suite.name, one.memory].update(one.settings)

    def matches(self, method: RunMethod, cell: Cell) -> bool:
        """Whether a printed number is of the row that the method makes."""
        usual = self._default(method.memory, method.config.get("preset"))
        varied = self._varied[cell.paper, method.memory]
        own = {name: method.config.get(name, usual.get(name)) for name in varied}
        made = [
            one
            for one in self._made[cell.paper, cell.table, cell.method, cell.benchmark]
            if not one.setting or dict(one.setting) == dict(cell.setting)
        ]
        if not made:
            return cell.memory == method.memory and own == {name: usual.get(name) for name in own}
        return any(
            one.memory == method.memory
            and own == {name: one.settings.get(name, usual.get(name)) for name in varied}
            for one in made
        )

    def _default(self, memory: str, preset: str | None) -> Mapping[str, Any]:
        """Return the default configuration of a memory; empty if it is not installed."""
        key = memory, preset
        if key not in self._defaults:
            try:
                kind: MemoryKind = registry.load("memory", memory)
            except UsageError:
                self._defaults[key] = {}
            else:
                config = configure(memory, kind, {"preset": preset}, lambda: "paper")
                self._defaults[key] = config.model_dump(mode="json")
        return self._defaults[key]
