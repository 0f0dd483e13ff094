"""The paper's delimiter format (HGMem Fig. 4–7), read into what a model proposes.

    >>> reply = "[Points_to_Merge]:\\n(0,2<|>One story.)##\\n<|COMPLETE|>"
    >>> parse_merges(reply, 3).merges
    [Merge(points=[0, 2], description='One story.')]

The paper prints the names of its delimiters; their values are those of its released code. Parsing
is strict: what the figures do not show is ``MalformedReply``, never guessed at. Beyond what they
show, a delimiter after the last record may be missing (Fig. 6 calls it a separator), and so may
the mark of completion after ``<None>``. That no point is in two merges, which the example of
Fig. 5 breaks, is not checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from mgl.memories.hgmem.proposals import (
    Concern,
    Concerns,
    Evolution,
    FollowUp,
    Merge,
    Merges,
    NewPoint,
    PointUpdate,
)

__all__ = [
    "MARKS",
    "MalformedReply",
    "parse_concerns",
    "parse_evolution",
    "parse_merges",
    "parse_subquery",
]

NONE: Final = "<None>"
TUPLE, OBJECT, RECORD, DONE = "<|>", "<&>", "##", "<|COMPLETE|>"
MARKS: Final[Mapping[str, str]] = {
    "tuple_delimiter": TUPLE,
    "object_delimiter": OBJECT,
    "record_delimiter": RECORD,
    "completion_delimiter": DONE,
}
"""The four marks by the names of their placeholders."""

_SUBQUERY = "[Subquery]:"

ProposalT = TypeVar("ProposalT", bound=BaseModel)


class MalformedReply(ValueError):
    """A reply that is not of the format: what was expected, and what was found instead."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"expected {expected}, found {found[:40]!r}")


def parse_evolution(text: str, points: int) -> Evolution:
    """A reply to Fig. 4 for a memory of ``points`` points. Raises MalformedReply.

    An empty object before the description, as the example of Fig. 4 has one, is passed over.
    """
    reply = _Reply(text)
    reply.take("[Inserted Memory Points]:")
    inserted = [_build(NewPoint, **_parse_point(record)) for record in reply.take_records()]
    reply.take("[Updated Memory Points]:")
    updated = [_parse_update(record, points) for record in reply.take_records()]
    reply.check_end()
    return Evolution(inserted=inserted, updated=updated)


def parse_merges(text: str, points: int) -> Merges:
    """A reply to Fig. 5 for a memory of ``points`` points. Raises MalformedReply."""
    reply = _Reply(text)
    reply.take("[Points_to_Merge]:")
    merges = [_parse_merge(record, points) for record in reply.take_records()]
    reply.check_end()
    return Merges(merges=merges)


def parse_concerns(text: str, points: int) -> Concerns:
    """A reply to Fig. 6 for a memory of ``points`` points. Raises MalformedReply.

    ``<None>`` is no concern whatever the case; case 1 has no other.
    """
    reply = _Reply(text)
    reply.take("[Judgement]:")
    case = reply.take_one_of("2.1", "2.2", "1")
    reply.take("[Concerns]:")
    records = reply.take_records()
    if case == "1" and records:
        raise MalformedReply(f"{NONE} in case 1", records[0])
    reply.check_end()
    concerns = [_parse_concern(record, points, is_local=case == "2.1") for record in records]
    return Concerns.model_validate({"judgement": case, "concerns": concerns})


def parse_subquery(text: str) -> FollowUp:
    """A reply to Fig. 7: one line, after ``[Subquery]:`` or alone. Raises MalformedReply."""
    subquery = text.strip().removeprefix(_SUBQUERY).strip()
    if not subquery or "\n" in subquery:
        raise MalformedReply("a subquery of one line", subquery)
    return FollowUp.model_construct(subquery=subquery)


class _Reply:
    """A reply that is read from its start; ``rest`` is what is left."""

    def __init__(self, text: str) -> None:
        self.rest = text.lstrip()

    def take(self, words: str) -> None:
        if not self.rest.startswith(words):
            raise MalformedReply(words, self.rest)
        self.rest = self.rest[len(words) :].lstrip()

    def take_one_of(self, *choices: str) -> str:
        for choice in choices:
            if re.match(re.escape(choice) + r"(?!\S)", self.rest):
                self.take(choice)
                return choice
        raise MalformedReply("one of " + ", ".join(sorted(choices)), self.rest)

    def take_records(self) -> list[str]:
        """The records of one list, up to and with its mark of completion."""
        if self.rest.startswith(NONE):
            self.take(NONE)
            if self.rest.startswith(DONE):
                self.take(DONE)
            return []
        before, done, after = self.rest.partition(DONE)
        if not done:
            raise MalformedReply(DONE, "")
        self.rest = after.lstrip()
        records = _split(before.strip(), RECORD)
        if len(records) > 1 and not records[-1]:
            records.pop()
        if not all(records):
            raise MalformedReply(f"records, or {NONE}", before)
        return records

    def check_end(self) -> None:
        if self.rest:
            raise MalformedReply("nothing more", self.rest)


def _parse_update(record: str, points: int) -> PointUpdate:
    found = re.match(r"(\d+)\s*,\s*", record)
    if found is None:
        raise MalformedReply("the index of a point and a comma", record)
    index = _parse_index(found[1], points)
    return _build(PointUpdate, point=index, **_parse_point(record[found.end() :]))


def _parse_point(record: str) -> dict[str, Any]:
    word, named, description = _split_fields(_unwrap(record), 3)
    if word != "point":
        raise MalformedReply("point", word)
    objects = _split(named, OBJECT)
    if len(objects) > 1 and not objects[-1]:
        objects.pop()
    return {"objects": list(map(_check_text, objects)), "description": _check_text(description)}


def _parse_merge(record: str, points: int) -> Merge:
    indices, description = _split_fields(_unwrap(record), 2)
    each = [_parse_index(part, points) for part in _split(indices, ",")]
    if len(each) < 2 or len(set(each)) < len(each):
        raise MalformedReply("two points or more, each once", indices)
    return Merge(points=sorted(each), description=_check_text(description))


def _parse_concern(record: str, points: int, *, is_local: bool) -> Concern:
    if not is_local:
        (concern,) = _split_fields(record, 1)
        return Concern(concern=concern)
    index, concern = _split_fields(record, 2)
    return Concern(point=_parse_index(index, points), concern=_check_text(concern))


def _parse_index(digits: str, points: int) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", digits) or int(digits) >= points:
        raise MalformedReply(f"an index of the memory's {points} points", digits)
    return int(digits)


def _unwrap(record: str) -> str:
    if not (record.startswith("(") and record.endswith(")")):
        raise MalformedReply("a record in brackets", record)
    return record[1:-1].strip()


def _split(text: str, mark: str) -> list[str]:
    return [part.strip() for part in text.split(mark)]


def _split_fields(record: str, count: int) -> list[str]:
    fields = _split(record, TUPLE)
    if len(fields) != count:
        raise MalformedReply(f"{count} fields", record)
    return fields


def _check_text(text: str) -> str:
    if not text:
        raise MalformedReply("some text", text)
    return text


def _build(kind: type[ProposalT], **fields: Any) -> ProposalT:
    try:
        return kind(**fields)
    except ValidationError as error:
        raise MalformedReply(error.errors()[0]["msg"], str(fields)) from error
