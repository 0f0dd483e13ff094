"""The papers' tables and figures as runs with open models, or why there is none.

    >>> entry = load_suites()["gam"].entry("table3")
    >>> [method.label for method in entry.runs[0].methods][:2]
    ['without-tan', 'without-mfr']

``eval/suites/NAME.yaml`` describes a paper; a file of that name in the home folder overrides it. An
entry is named ``NAME/ID``, as its numbers in ``mgl.evaluation.papers.references``. Whether the
memories, benchmarks and models are on this machine is for ``mgl reproduce --list`` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from mgl.errors import InputError, UsageError
from mgl.evaluation.judges.judging import find_judge
from mgl.evaluation.papers.references import Strict
from mgl.models import shipped

_LABEL: Final = r"^[a-z0-9][a-z0-9-]*$"


@dataclass(frozen=True, slots=True)
class Reads:
    """How many chunks a method reads on average: for an answer, and in each step on the way."""

    chunks: int
    step_chunks: int


class SuiteMethod(Strict):
    """A memory with settings of its ``Config``; ``row`` and ``setting`` name its row of the paper's
    table, None if it is not one of the paper's. ``reads`` names the setting that says how many
    chunks it reads, ``reads_a_step`` the one that says how many it reads in each of its steps.
    ``counted``: the row averages over all questions, or over those with ``results``."""

    label: str = Field(pattern=_LABEL)
    memory: str
    settings: Mapping[str, Any] = {}
    row: str | None = None
    setting: Mapping[str, str] = {}
    reads: str | None = None
    reads_a_step: str | None = None
    counted: Literal["all", "results"] = "all"

    def set_chunks(self, reads: Reads) -> SuiteMethod:
        """Return the method with so many chunks to read, if it reads any."""
        own = ((self.reads, reads.chunks), (self.reads_a_step, reads.step_chunks))
        given = {name: chunks for name, chunks in own if name is not None}
        return self.model_copy(update={"settings": {**self.settings, **given}})


class Run(Strict):
    """Methods put to one benchmark with the same retrieval models.

    ``name`` distinguishes the runs of an entry. ``parameters`` are of a generated benchmark,
    ``labels`` those that an item must have, ``asks`` single items by their ids or the text of their
    questions. ``judges`` and ``scorers`` are the paper's metrics; the first, judges before
    scorers, is the headline. ``answering`` holds the sampling settings of the answering call, the
    same for all methods. ``measured`` is the label of a method that runs first: the others read as
    many chunks as it does on average. ``embedder`` and ``reranker`` are profiles, the defaults if
    None; an embedder's vectors may be cut (``NAME:DIMS``).
    """

    name: str = Field("", pattern=f"{_LABEL}|^$")
    benchmark: str
    methods: tuple[SuiteMethod, ...] = Field(min_length=1)
    parameters: Mapping[str, Any] = {}
    labels: Mapping[str, str] = {}
    asks: tuple[str, ...] = ()
    scorers: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    answering: Mapping[str, Any] = {}
    measured: str | None = None
    embedder: str | None = None
    reranker: str | None = None
    limit: int | None = Field(None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _share_answering(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        shared, methods = given.get("answering", {}), given.get("methods", ())
        own = [{**one, "settings": {**shared, **one.get("settings", {})}} for one in methods]
        return {**given, "methods": own}

    @property
    def compared_by(self) -> str:
        """Its headline metric."""
        return (*self.judges, *self.scorers)[0]

    def judged_by(self, name: str) -> Run:
        """Return the run with this judge as its only one; UsageError if unknown."""
        return self.model_copy(update={"judges": (find_judge(name).name,)})

    def set_chunks(self, reads: Reads) -> Run:
        """Return the run with this number of chunks for the methods that read chunks."""
        methods = tuple(method.set_chunks(reads) for method in self.methods)
        return self.model_copy(update={"methods": methods})

    def only(self, *, measured: bool) -> Run:
        """Return the run of the measured method alone, or of all others."""
        methods = (one for one in self.methods if (one.label == self.measured) == measured)
        return self.model_copy(update={"methods": tuple(methods)})

    @property
    def memories(self) -> tuple[str, ...]:
        """The memories as the runner reads them: ``LABEL=KIND``, or the kind alone."""
        return tuple(
            one.memory if one.label == one.memory else f"{one.label}={one.memory}"
            for one in self.methods
        )


class LeftOut(Strict):
    """Rows of the paper's table that are not run."""

    rows: tuple[str, ...] = Field(min_length=1)
    why: str


class Entry(Strict):
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
        if sum(map(bool, (self.runs and self.models, self.same_as, self.not_made))) != 1:
            raise ValueError("an entry has exactly one of runs with models, same_as and not_made")
        return self


class Suite(Strict):
    """The entries of a paper, by its short name."""

    name: str
    entries: tuple[Entry, ...] = Field(min_length=1)

    def entry(self, id: str) -> Entry:
        """Find an entry; UsageError, listing all, if there is none of that id."""
        known = {entry.id: entry for entry in self.entries}
        if id not in known:
            raise UsageError(f"{self.name} has no {id}", hint=f"it has {', '.join(known)}")
        return known[id]

    def made_by(self, entry: Entry) -> Entry:
        """Return the entry whose runs this one is read off: itself, or ``same_as``."""
        return entry if entry.same_as is None else self.entry(entry.same_as)


def load_suites() -> dict[str, Suite]:
    """Load every paper's suite by name; InputError, with file and place, for an invalid one."""
    return shipped.load_all(_SUITES)


def find_entry(name: str) -> tuple[Suite, Entry, str]:
    """Find the entry named ``PAPER/ID``, and the name of its run in ``PAPER/ID/RUN``, empty for
    all; UsageError if there is none."""
    paper, *rest = name.split("/")
    if len(rest) not in (1, 2):
        raise UsageError(
            f"{name!r} names no table", hint="for instance gam/table3; --list shows all"
        )
    suite = shipped.load(paper, _SUITES)
    entry = suite.entry(rest[0])
    runs = [run.name for run in suite.made_by(entry).runs]
    if rest[1:] and rest[1] not in runs:
        raise UsageError(
            f"{paper}/{rest[0]} has no run {rest[1]!r}", hint=f"it has {', '.join(runs)}"
        )
    return suite, entry, "".join(rest[1:])


_SUITES: Final = shipped.Shipped(
    "eval", "suite", "mgl reproduce --list", Suite.model_validate, "suites", InputError
)
