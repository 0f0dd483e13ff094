"""HGMem's edits as rows of the log.

A step of the log is a step of the method: its rows are the judgement (op ``judge``), each subquery
with its case, what each retrieved (``retrieve``), the edits that evolved the memory (``vertex``,
``insert``, ``update``, ``merge``), an answer where one was given, and why the loop ended
(``stop``). Only the edits change the memory; the other rows say how it came to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from mgl.memories.hgmem.proposals import Case
from mgl.memories.hgmem.state import AddVertex, Edit, Insert, Merge, Restart, Update
from mgl.store import EditRecord
from mgl.store.vocabulary import Vocabulary

__all__ = [
    "Failed",
    "Judge",
    "Respond",
    "Retrieve",
    "Row",
    "Stop",
    "StopReason",
    "Subquery",
    "edits_of",
    "read",
    "record",
]

StopReason = Literal["sufficient", "no_concerns", "steps", "unjudged", "failed"]
"""``unjudged``: the judgement could not be had; ``failed``: the answer could not."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Fig. 6: the case that the model judged the memory to be in, open to it or not."""

    case: Case


@dataclass(frozen=True, slots=True)
class Subquery:
    """Fig. 7: a subquery and the concern that it serves; ``point`` is the one that is investigated
    (case 2.1). The first step asks the query itself, which serves none."""

    text: str
    case: Case | None = None
    concern: str | None = None
    point: int | None = None


@dataclass(frozen=True, slots=True)
class Retrieve:
    """What a subquery found, the best first: ids of entities and relations, numbers of chunks.
    ``scope`` is how many entities it was looked for among."""

    subquery: str
    scope: int
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    chunks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Respond:
    """An answer from the memory as it was then, the chunks that it names as its sources, and those
    that were read for it, the best first."""

    text: str
    chunks: tuple[int, ...]
    read: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the loop ended."""

    reason: StopReason


@dataclass(frozen=True, slots=True)
class Failed:
    """A reply that could not be used, and why."""

    what: str
    problem: str


Row = Edit | Failed | Judge | Subquery | Retrieve | Respond | Stop

_WORDS: Final = Vocabulary[Row](
    {
        "judge": Judge,
        "subquery": Subquery,
        "retrieve": Retrieve,
        "vertex": AddVertex,
        "insert": Insert,
        "update": Update,
        "merge": Merge,
        "restart": Restart,
        "answer": Respond,
        "stop": Stop,
        "reply": Failed,
    }
)
_EDITS: Final = (AddVertex, Insert, Update, Merge, Restart)


record: Final = _WORDS.record
read: Final = _WORDS.read


def edits_of(rows: Iterable[EditRecord]) -> Iterator[tuple[int, Edit]]:
    """The edits of a log, each with its step."""
    for row in rows:
        said = read(row)
        if isinstance(said, _EDITS):
            yield row.chunk, said
