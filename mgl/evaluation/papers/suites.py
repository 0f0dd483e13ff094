"""The papers' tables and figures as runs that open models can make, or why one is not made.

    >>> entry = load_suites()["gam"].entry("table3")
    >>> [method.label for method in entry.runs[0].methods][:2]
    ['without-tan', 'without-mfr']

``eval/suites/NAME.yaml`` has a paper; a file of that name in the home folder goes before it. An
entry is known by ``NAME/ID``, as its numbers in ``mgl.evaluation.papers.references`` are. What it
does not know: whether memories, benchmarks and models of these names are here (``mgl reproduce
--list`` says so).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mgl.errors import InputError, UsageError
from mgl.models import shipped

__all__ = ["Entry", "LeftOut", "Method", "Run", "Suite", "entry", "load_suites"]

_LABEL: Final = r"^[a-z0-9][a-z0-9-]*$"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Method(_Strict):
    """A memory with settings, those of its ``Config``; ``row`` and ``setting`` say which row of the
    paper's table it is, None where it is none of the paper's."""

    label: str = Field(pattern=_LABEL)
    memory: str
    settings: Mapping[str, Any] = {}
    row: str | None = None
    setting: Mapping[str, str] = {}


class Run(_Strict):
    """Methods put to one benchmark with the same retrieval models.

    ``name`` tells the runs of an entry apart. ``parameters`` are of a benchmark that is made for a
    run. ``labels`` are those that an item must have. ``scorers`` and ``judges`` are those that the
    paper's metrics are, the first of them the table's. ``embedder`` and ``reranker`` are profiles,
    the defaults where None; an embedder's may be cut (``NAME:DIMS``).
    """

    name: str = Field("", pattern=f"{_LABEL}|^$")
    benchmark: str
    methods: tuple[Method, ...] = Field(min_length=1)
    parameters: Mapping[str, Any] = {}
    labels: Mapping[str, str] = {}
    scorers: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    embedder: str | None = None
    reranker: str | None = None
    limit: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _sound(self) -> Self:
        _once("method", [method.label for method in self.methods])
        if not self.scorers and not self.judges:
            raise ValueError("a run needs a scorer or a judge")
        return self

    @property
    def memories(self) -> tuple[str, ...]:
        """What is compared, as the runner reads it: ``LABEL=KIND``, or the kind alone."""
        return tuple(
            one.memory if one.label == one.memory else f"{one.label}={one.memory}"
            for one in self.methods
        )


class LeftOut(_Strict):
    """Rows of the paper's table that are not made."""

    rows: tuple[str, ...] = Field(min_length=1)
    why: str


class Entry(_Strict):
    """A table or figure.

    It has ``runs``, or is read off those of another entry (``same_as``), or is ``not_made`` for a
    reason. ``models`` are profiles that the paper used, or stand for closed ones: the first is run
    where none is named. ``varies`` names the settings that differ between methods. ``read_off``
    says where its values are found, if its rows are not methods.
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
    def _sound(self) -> Self:
        ways = [bool(self.runs), self.same_as is not None, self.not_made is not None]
        if sum(ways) != 1:
            raise ValueError("an entry has runs, or same_as, or not_made, and one of them only")
        if bool(self.models) != bool(self.runs):
            raise ValueError("models go with runs, and runs need one")
        if self.not_made is None and not self.about:
            raise ValueError("what is made needs to say what it is about")
        _once("run", [run.name for run in self.runs])
        return self


class Suite(_Strict):
    """The entries of a paper, which ``name`` is short for."""

    name: str
    entries: tuple[Entry, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _sound(self) -> Self:
        _once("entry", [entry.id for entry in self.entries])
        made = {entry.id for entry in self.entries if entry.runs}
        for entry in self.entries:
            if entry.same_as is not None and entry.same_as not in made:
                raise ValueError(f"{entry.id} is the same as {entry.same_as}, which has no runs")
        return self

    def entry(self, id: str) -> Entry:
        """The entry of that id; UsageError, with those that there are, if none is."""
        for entry in self.entries:
            if entry.id == id:
                return entry
        raise UsageError(
            f"{self.name} has no {id}",
            hint=f"it has {', '.join(entry.id for entry in self.entries)}",
        )

    def made_by(self, entry: Entry) -> Entry:
        """The entry whose runs it is read off: itself, or the one that it is the same as."""
        return entry if entry.same_as is None else self.entry(entry.same_as)


def load_suites(override: Path | None = None, *, home: Path | None = None) -> dict[str, Suite]:
    """Every paper's suite by name; InputError, with the file and the place, for an invalid one."""
    return shipped.load_all(_SUITES, override, home=home)


def entry(name: str, override: Path | None = None) -> tuple[Suite, Entry]:
    """The entry that ``PAPER/ID`` names; UsageError where there is none."""
    paper, separator, id = name.partition("/")
    if not separator:
        raise UsageError(
            f"{name!r} names no table", hint="for instance gam/table3; --list shows all"
        )
    suite = shipped.load(paper, _SUITES, override)
    return suite, suite.entry(id)


def _once(what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"there are two of the {what} {name!r}")


_SUITES: Final = shipped.Shipped(
    "eval", "suite", "mgl reproduce --list", Suite.model_validate, "suites", InputError
)
