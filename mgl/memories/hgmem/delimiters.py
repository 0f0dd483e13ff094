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

from mgl.memories.hgmem.proposals import Concerns, Evolution, FollowUp, Merges

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

_DONE = re.escape(DONE)
_LIST = rf"(?:{NONE}(?:\s*{_DONE})?|(?!{NONE})((?:(?!{_DONE}).)+){_DONE})"
"""A list of records, up to and with its mark of completion; one group, None for ``<None>``."""

_EVOLUTION = re.compile(
    rf"\s*\[Inserted Memory Points\]:\s*{_LIST}\s*\[Updated Memory Points\]:\s*{_LIST}\s*", re.S
)
_MERGES = re.compile(rf"\s*\[Points_to_Merge\]:\s*{_LIST}\s*", re.S)
_CONCERNS = re.compile(
    rf"\s*\[Judgement\]:\s*(2\.1|2\.2|1)(?!\S)\s*\[Concerns\]:\s*{_LIST}\s*", re.S
)
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
    inserted, updated = _match(_EVOLUTION, text, "two lists of points").groups()
    return _build(
        Evolution,
        inserted=[_parse_point(record) for record in _split_records(inserted)],
        updated=[_parse_update(record, points) for record in _split_records(updated)],
    )


def parse_merges(text: str, points: int) -> Merges:
    """A reply to Fig. 5 for a memory of ``points`` points. Raises MalformedReply."""
    (merges,) = _match(_MERGES, text, "a list of merges").groups()
    return _build(Merges, merges=[_parse_merge(each, points) for each in _split_records(merges)])


def parse_concerns(text: str, points: int) -> Concerns:
    """A reply to Fig. 6 for a memory of ``points`` points. Raises MalformedReply.

    ``<None>`` is no concern whatever the case; case 1 has no other.
    """
    case, listed = _match(_CONCERNS, text, "a judgement and a list of concerns").groups()
    if case == "1" and listed is not None:
        raise MalformedReply(f"{NONE} in case 1", listed)
    records = _split_records(listed)
    concerns = [_parse_concern(each, points, is_local=case == "2.1") for each in records]
    return _build(Concerns, judgement=case, concerns=concerns)


def parse_subquery(text: str) -> FollowUp:
    """A reply to Fig. 7: one line, after ``[Subquery]:`` or alone. Raises MalformedReply."""
    subquery = text.strip().removeprefix(_SUBQUERY).strip()
    if "\n" in subquery:
        raise MalformedReply("a subquery of one line", subquery)
    return _build(FollowUp, subquery=subquery)


def _match(pattern: re.Pattern[str], text: str, expected: str) -> re.Match[str]:
    if (found := pattern.fullmatch(text)) is None:
        raise MalformedReply(expected, text)
    return found


def _split_records(listed: str | None) -> list[str]:
    """The records of one list; the delimiter after the last may be missing."""
    records = [] if listed is None else _split(listed, RECORD)
    return records[:-1] if len(records) > 1 and not records[-1] else records


def _parse_update(record: str, points: int) -> dict[str, Any]:
    index, _, point = record.partition(",")
    return {"point": _parse_index(index.strip(), points), **_parse_point(point.strip())}


def _parse_point(record: str) -> dict[str, Any]:
    word, named, description = _split_fields(_unwrap(record), 3)
    if word != "point":
        raise MalformedReply("point", word)
    objects = _split(named, OBJECT)
    if len(objects) > 1 and not objects[-1]:
        objects.pop()
    return {"objects": objects, "description": description}


def _parse_merge(record: str, points: int) -> dict[str, Any]:
    indices, description = _split_fields(_unwrap(record), 2)
    each = sorted({_parse_index(part, points) for part in _split(indices, ",")})
    if len(each) < max(2, len(_split(indices, ","))):
        raise MalformedReply("two points or more, each once", indices)
    return {"points": each, "description": description}


def _parse_concern(record: str, points: int, *, is_local: bool) -> dict[str, Any]:
    if not is_local:
        (concern,) = _split_fields(record, 1)
        return {"concern": concern}
    index, concern = _split_fields(record, 2)
    return {"point": _parse_index(index, points), "concern": concern}


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


def _build(kind: type[ProposalT], **fields: Any) -> ProposalT:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise MalformedReply(error.errors()[0]["msg"], str(fields)) from error
