"""A run's manifest: what was asked for, what it was made with, and when.

What decides the records (``arguments``, ``methods``, ``models``, ``dataset``) never changes after
the start; each process that works on the run adds a ``Session`` with its own code and machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from mgl.errors import InputError, UsageError, describe_fault
from mgl.evaluation.judges.panel import Seat, seat_panel
from mgl.llm.engines.recorded import ModelFacts
from mgl.models.files import write_whole

MANIFEST = "manifest.json"

ExecutorName = Literal["local", "ray"]
"""Where units are worked on: in the process of the run, or on a Ray cluster."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Arguments(_Strict):
    """What was asked for, as it was written; ``data`` is None for a generated dataset.

    ``asks`` names single items by their ids or the text of their questions, all if it is empty.
    ``questions`` says what a question-aware memory is built for: each question by itself, or all of
    a source at once; ``repeats`` how often each is asked. ``scorers`` are asked for besides the
    benchmark's own, and ``headline`` is the score or judge that methods are compared by. A judge is
    PROFILE or JUDGE=PROFILE, BERTScore's model MODEL or MODEL:LAYER. ``judge_labels`` is a file of
    answers that people have judged. ``allow_leak`` measures adapters on what they were trained on,
    too.
    """

    benchmark: str
    data: Path | None
    memories: tuple[str, ...]
    models: tuple[str, ...]
    settings: tuple[str, ...] = ()
    limit: int | None = None
    seed: int = 0
    sources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    asks: tuple[str, ...] = ()
    questions: Literal["each", "all"] = "each"
    repeats: int = Field(1, ge=1)
    scorers: tuple[str, ...] = ()
    headline: str | None = None
    judges: tuple[str, ...] = ()
    judge_repeats: int = 0
    judge_labels: Path | None = None
    bertscore: str | None = None
    allow_leak: bool = False


@dataclass(frozen=True)
class Method:
    """One memory with one model: its label, kind and model.

    ``settings`` are those that were given, ``config`` is the whole configuration.
    """

    label: str
    memory: str
    model: str
    settings: Mapping[str, Any]
    config: Mapping[str, Any]


class JudgedBy(_Strict):
    """A judge, and the profile of its model."""

    judge: str
    model: str


class DatasetFacts(_Strict):
    """Hashes of the files, and the ids of the run's items in order, out of ``of``.

    ``made_with`` are the parameters of a generated dataset, None if it was read from files.
    """

    made_with: Mapping[str, Any] | None = None
    sha256: Mapping[str, str]
    items: tuple[str, ...]
    of: int
    notes: tuple[str, ...] = ()


class Session(_Strict):
    """One process that worked on the run; ``ended`` is None if it was killed or still works."""

    code: Mapping[str, Any]
    packages: Mapping[str, str]
    prompts: Mapping[str, str]
    machine: Mapping[str, Any]
    concurrency: int
    executor: ExecutorName = "local"
    started: str
    ended: str | None = None


class Manifest(_Strict):
    """``headline`` is the scorer, or the key of the verdict, that methods are compared by. The
    first of ``judged_by`` gives the score; ``models`` has the facts of every profile, judges' too.
    ``labels_sha256`` is of the file of labelled answers. ``adapters`` has the identity of each that
    is used, by name. ``ended`` is when the run was complete.
    """

    arguments: Arguments
    reads: Literal["document", "conversation"]
    scorers: tuple[str, ...]
    headline: str
    judged_by: tuple[JudgedBy, ...] = ()
    labels_sha256: str | None = None
    methods: tuple[Method, ...]
    models: Mapping[str, ModelFacts]
    dataset: DatasetFacts
    adapters: Mapping[str, str] = {}
    sessions: tuple[Session, ...] = ()
    started: str
    ended: str | None = None

    @field_validator("arguments", mode="before")
    @classmethod
    def _leave_out_unused(cls, given: Any) -> Any:
        """Leave out arguments that only the version knows which wrote the run, unless it used
        them: one that is None, zero or empty decided nothing."""
        if not isinstance(given, dict):
            return given
        known = Arguments.model_fields
        return {name: value for name, value in given.items() if name in known or value}

    @property
    def panel(self) -> tuple[Seat, ...]:
        """Every verdict that is asked for on an answer."""
        judges = [(one.judge, one.model) for one in self.judged_by]
        return seat_panel(judges, repeats=self.arguments.judge_repeats)

    @property
    def one_by_one(self) -> bool:
        """Whether no two items were in work at once, so that none had to wait for another."""
        return all(session.concurrency == 1 for session in self.sessions)

    @property
    def self_judged(self) -> list[str]:
        """The models that judge answers of their own."""
        return sorted({one.model for one in self.judged_by} & {one.model for one in self.methods})

    @property
    def judges(self) -> tuple[str, ...]:
        """The keys of the verdicts that are scores."""
        return tuple(seat.key for seat in self.panel if not seat.repeat)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest in a run's folder; InputError if there is none that is valid."""
        path = folder / MANIFEST
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise InputError(
                f"{folder} holds no run: {error.strerror}: {path.name}",
                hint="name a folder that `mgl eval` wrote",
            ) from error
        except ValidationError as error:
            fault = describe_fault(dict(error.errors()[0]))
            raise InputError(
                f"{path} is not a valid manifest: {fault}",
                hint="restore the file, use the code that wrote it, or start a new run",
            ) from error

    def write(self, folder: Path) -> None:
        """Write the manifest into a run's folder, replacing the one there; UsageError if it cannot
        be written."""
        try:
            write_whole(folder / MANIFEST, (self.model_dump_json(indent=1) + "\n").encode())
        except OSError as error:
            raise UsageError(
                f"cannot write {folder}: {error}", hint="name another place"
            ) from error


def utc_now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
