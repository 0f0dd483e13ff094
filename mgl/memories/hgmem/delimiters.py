"""The paper's delimiter format (HGMem Fig. 4–7), read into what a model proposes.

    >>> reply = "[Points_to_Merge]:\\n(0,2<|>One story.)##\\n<|COMPLETE|>"
    >>> parse_merges(reply, 3).merges
    [ProposedMerge(points=[0, 2], description='One story.')]

The paper prints the names of its delimiters; their values are those of its released code. Parsing
is strict: what the figures do not show is ``MalformedReply``, never guessed at. Beyond what they
show, a delimiter after the last record may be missing (Fig. 6 calls it a separator), and so may
the mark of completion after ``<None>``. A point may be in two merges, as in the example of Fig. 5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from mgl.memories.hgmem.proposals import Concerns, Evolution, FollowUp, Merges
from mgl.memories.propose import ReplyT

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

_TUPLE = re.escape(TUPLE)
_TEXT = rf"(?:(?!{_TUPLE}).)*"
_INDEX = r"[0-9]{1,9}"
_POINT = rf"\(\s*point\s*{_TUPLE}(?P<objects>{_TEXT}){_TUPLE}(?P<description>{_TEXT})\)"
_INDICES = rf"\s*{_INDEX}\s*(?:,\s*{_INDEX}\s*)*"
_RECORDS = {
    "a point": re.compile(_POINT, re.S),
    "an update": re.compile(rf"(?P<point>{_INDEX})\s*,\s*{_POINT}", re.S),
    "a merge": re.compile(rf"\((?P<points>{_INDICES}){_TUPLE}(?P<description>{_TEXT})\)", re.S),
    "a concern about a point": re.compile(
        rf"(?P<point>{_INDEX})\s*{_TUPLE}(?P<concern>{_TEXT})", re.S
    ),
    "a concern": re.compile(rf"(?P<concern>{_TEXT})", re.S),
}
"""The form of each kind of record; its groups are the fields of a proposal."""


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
        inserted=_read_records(inserted, "a point", points),
        updated=_read_records(updated, "an update", points),
    )


def parse_merges(text: str, points: int) -> Merges:
    """A reply to Fig. 5 for a memory of ``points`` points. Raises MalformedReply."""
    (merges,) = _match(_MERGES, text, "a list of merges").groups()
    return _build(Merges, merges=_read_records(merges, "a merge", points))


def parse_concerns(text: str, points: int) -> Concerns:
    """A reply to Fig. 6 for a memory of ``points`` points. Raises MalformedReply.

    ``<None>`` is no concern whatever the case; case 1 has no other.
    """
    case, listed = _match(_CONCERNS, text, "a judgement and a list of concerns").groups()
    if case == "1" and listed is not None:
        raise MalformedReply(f"{NONE} in case 1", listed)
    kind = "a concern about a point" if case == "2.1" else "a concern"
    return _build(Concerns, judgement=case, concerns=_read_records(listed, kind, points))


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


def _read_records(listed: str | None, kind: str, points: int) -> list[dict[str, Any]]:
    """The fields of each record of a list; the delimiter after the last may be missing."""
    records = [] if listed is None else _split(listed, RECORD)
    if len(records) > 1 and not records[-1]:
        records.pop()
    return [_read_fields(record, kind, points) for record in records]


def _read_fields(record: str, kind: str, points: int) -> dict[str, Any]:
    fields: dict[str, Any] = _match(_RECORDS[kind], record, kind).groupdict()
    indices = fields.get("points") or fields.get("point") or ""
    numbers = [int(index) for index in indices.split(",") if index]
    if any(number >= points for number in numbers):
        raise MalformedReply(f"an index of the memory's {points} points", indices)
    if "points" in fields:
        fields["points"] = sorted(set(numbers))
        if len(fields["points"]) < max(2, len(numbers)):
            raise MalformedReply("two points or more, each once", indices)
    if "objects" in fields:
        objects = _split(fields["objects"], OBJECT)
        fields["objects"] = objects[:-1] if len(objects) > 1 and not objects[-1] else objects
    text = "concern" if "concern" in fields else "description"
    return {**fields, text: fields[text].strip()}


def _split(text: str, mark: str) -> list[str]:
    return [part.strip() for part in text.split(mark)]


def _build(kind: type[ReplyT], **fields: Any) -> ReplyT:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise MalformedReply(error.errors()[0]["msg"], str(fields)) from error
