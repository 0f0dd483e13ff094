"""A run's manifest: what was asked for, what it was made with, and when.

What decides the records (``arguments``, ``methods``, ``models``, ``dataset``) stays as it was when
the run began; a run that goes on adds a session with its own code and machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from mgl.errors import InputError
from mgl.evaluation.judges.panel import Seat, panel
from mgl.evaluation.runs.lines import replace_file
from mgl.evaluation.runs.methods import Method
from mgl.llm.engines.recorded import ModelFacts

__all__ = [
    "MANIFEST",
    "Arguments",
    "DatasetFacts",
    "ExecutorName",
    "Manifest",
    "OtherJudge",
    "Session",
    "now",
]

MANIFEST = "manifest.json"

ExecutorName = Literal["local", "ray"]
"""Where units are worked on: in the process of the run, or on a Ray cluster."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Arguments(_Strict):
    """What was asked for, as it was written; ``data`` is None for what was made for the run.

    ``questions`` says what a memory whose build depends
    on its questions is built for: each question by itself, or all of a source at once. A judge is
    PROFILE or JUDGE=PROFILE, BERTScore's model MODEL or MODEL:LAYER. ``judge_labels`` is the file
    of answers that people have judged, ``judge_pairs`` how many pairs of answers are compared."""

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
    questions: Literal["each", "all"] = "each"
    judge: str | None = None
    other_judges: tuple[str, ...] = ()
    judge_repeats: int = 0
    judge_labels: Path | None = None
    judge_pairs: int = 0
    bertscore: str | None = None


class OtherJudge(_Strict):
    """A judge besides the first, and the profile of its model."""

    judge: str
    model: str


class DatasetFacts(_Strict):
    """The files by their hashes, and the ids of the items that the run takes, in their order.

    ``made_with`` are the parameters of a dataset that was made for the run, None where it was read.
    """

    made_with: Mapping[str, Any] | None = None
    sha256: Mapping[str, str]
    items: tuple[str, ...]
    of: int
    notes: tuple[str, ...] = ()


class Session(_Strict):
    """One process that worked on the run; ``ended`` is None where it was killed, or works still."""

    code: Mapping[str, Any]
    packages: Mapping[str, str]
    prompts: Mapping[str, str]
    machine: Mapping[str, Any]
    concurrency: int
    executor: ExecutorName = "local"
    started: str
    ended: str | None = None


class Manifest(_Strict):
    """``judge`` is the first judge's name, and ``judge_model`` its profile, of which ``models``
    tells, as of those of ``other_judges``; ``labels_sha256`` is of the file of answers that people
    have judged. ``ended`` is when the run was complete.
    """

    arguments: Arguments
    reads: Literal["document", "conversation"]
    scorers: tuple[str, ...]
    judge: str | None
    judge_model: str | None
    other_judges: tuple[OtherJudge, ...] = ()
    labels_sha256: str | None = None
    methods: tuple[Method, ...]
    models: Mapping[str, ModelFacts]
    dataset: DatasetFacts
    sessions: tuple[Session, ...] = ()
    started: str
    ended: str | None = None

    @property
    def panel(self) -> tuple[Seat, ...]:
        """Every verdict that is asked for of an answer."""
        others = [(one.judge, one.model) for one in self.other_judges]
        repeats = self.arguments.judge_repeats
        return panel(self.judge, self.judge_model, others, repeats=repeats)

    @property
    def judges(self) -> tuple[str, ...]:
        """By what the records have the verdicts that are scores."""
        return tuple(seat.key for seat in self.panel if not seat.repeat)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The manifest of a run's folder; InputError where there is none that can be read."""
        path = folder / MANIFEST
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise InputError(
                f"{folder} holds no run: {error.strerror}: {path.name}",
                hint="name the folder that `mgl eval --out` wrote",
            ) from error
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, fault["loc"]))
            raise InputError(
                f"{path} is no manifest of a run: {place}: {fault['msg']}",
                hint="restore the file, or begin the run anew",
            ) from error

    def as_left(self, folder: Path) -> Self:
        """The manifest with what another process has written of sessions since it was read."""
        left = Manifest.read(folder)
        return self.model_copy(update={"sessions": left.sessions, "ended": left.ended})

    def write(self, folder: Path) -> None:
        """Put it into a run's folder, in place of the one that is there."""
        replace_file(folder / MANIFEST, (self.model_dump_json(indent=1) + "\n").encode())


def now() -> str:
    """The time, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
