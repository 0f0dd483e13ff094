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
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Final, TypeVar

from pydantic import ValidationError

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
from mgl.prompt import Prompt

__all__ = [
    "RELEASED",
    "Delimiters",
    "MalformedReply",
    "parse_concerns",
    "parse_evolution",
    "parse_merges",
    "parse_subquery",
]

NONE: Final = "<None>"
_INSERTED, _UPDATED = "[Inserted Memory Points]:", "[Updated Memory Points]:"
_MERGED, _JUDGEMENT, _CONCERNS = "[Points_to_Merge]:", "[Judgement]:", "[Concerns]:"
_SUBQUERY = "[Subquery]:"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Delimiters:
    """The four marks of the format."""

    tuple_delimiter: str = "<|>"
    object_delimiter: str = "<&>"
    record_delimiter: str = "##"
    completion_delimiter: str = "<|COMPLETE|>"

    def of(self, prompt: Prompt) -> dict[str, str]:
        """Those that a prompt has placeholders for, to render it with."""
        return {name: mark for name, mark in asdict(self).items() if name in prompt.variables}


RELEASED: Final = Delimiters()


class MalformedReply(ValueError):
    """A reply that is not of the format; ``at`` counts characters from its start.

    Its message says what was expected there and what stands there instead.
    """

    def __init__(self, reply: str, at: int, expected: str) -> None:
        found = reply[at : at + 40]
        line = reply.count("\n", 0, at) + 1
        said = repr(found) if found else "the end"
        super().__init__(f"line {line}, character {at}: expected {expected}, found {said}")
        self.at = at


def parse_evolution(text: str, points: int, marks: Delimiters = RELEASED) -> Evolution:
    """A reply to Fig. 4 for a memory of ``points`` points. Raises MalformedReply.

    An empty object before the description, as the example of Fig. 4 has one, is passed over.
    """
    reply = _Reply(text, marks)
    reply.take(_INSERTED)
    inserted = [reply.inserted(record) for record in reply.records()]
    reply.take(_UPDATED)
    updated = [reply.updated(record, points) for record in reply.records()]
    reply.end()
    return Evolution(inserted=inserted, updated=updated)


def parse_merges(text: str, points: int, marks: Delimiters = RELEASED) -> Merges:
    """A reply to Fig. 5 for a memory of ``points`` points. Raises MalformedReply."""
    reply = _Reply(text, marks)
    reply.take(_MERGED)
    merges = [reply.merged(record, points) for record in reply.records()]
    reply.end()
    return Merges(merges=merges)


def parse_concerns(text: str, points: int, marks: Delimiters = RELEASED) -> Concerns:
    """A reply to Fig. 6 for a memory of ``points`` points. Raises MalformedReply.

    ``<None>`` is no concern whatever the case; case 1 has no other.
    """
    reply = _Reply(text, marks)
    reply.take(_JUDGEMENT)
    case = reply.one_of("2.1", "2.2", "1")
    reply.take(_CONCERNS)
    start = reply.at
    records = list(reply.records())
    if case == "1" and records:
        raise MalformedReply(text, start, f"{NONE} in case 1")
    reply.end()
    local = case == "2.1"
    read = [reply.local(each, points) if local else reply.beyond(each) for each in records]
    return Concerns.model_validate({"judgement": case, "concerns": read})


def parse_subquery(text: str) -> FollowUp:
    """A reply to Fig. 7: one line, after ``[Subquery]:`` or alone. Raises MalformedReply."""
    reply = _Reply(text, RELEASED)
    if text.startswith(_SUBQUERY, reply.at):
        reply.take(_SUBQUERY)
    subquery = text[reply.at :].strip()
    if not subquery:
        raise MalformedReply(text, reply.at, "a subquery")
    if "\n" in subquery:
        raise MalformedReply(text, text.index("\n", reply.at), "a subquery of one line")
    return FollowUp.model_construct(subquery=subquery)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the reply without the blanks around it, and where it starts."""

    text: str
    at: int

    @classmethod
    def cut(cls, text: str, at: int) -> _Part:
        return cls(text.strip(), at + len(text) - len(text.lstrip()))

    def split(self, mark: str) -> list[_Part]:
        parts, at = [], self.at
        for text in self.text.split(mark):
            parts.append(_Part.cut(text, at))
            at += len(text) + len(mark)
        return parts


class _Reply:
    """A reply, read from its start; ``at`` is how far."""

    def __init__(self, text: str, marks: Delimiters) -> None:
        self.text, self.marks, self.at = text, marks, 0
        self._blanks()

    def take(self, words: str) -> None:
        if not self.text.startswith(words, self.at):
            raise MalformedReply(self.text, self.at, words)
        self.at += len(words)
        self._blanks()

    def one_of(self, *choices: str) -> str:
        for choice in choices:
            if re.compile(re.escape(choice) + r"(?!\S)").match(self.text, self.at):
                self.take(choice)
                return choice
        raise MalformedReply(self.text, self.at, "one of " + ", ".join(sorted(choices)))

    def end(self) -> None:
        if self.at < len(self.text):
            raise MalformedReply(self.text, self.at, "nothing more")

    def records(self) -> Iterator[_Part]:
        """The records of one list, up to and with its mark of completion."""
        done = self.marks.completion_delimiter
        if self.text.startswith(NONE, self.at):
            self.take(NONE)
            if self.text.startswith(done, self.at):
                self.take(done)
            return
        start, stop = self.at, self.text.find(done, self.at)
        if stop < 0:
            raise MalformedReply(self.text, len(self.text), done)
        self.at = stop
        self.take(done)
        parts = _Part.cut(self.text[start:stop], start).split(self.marks.record_delimiter)
        if len(parts) > 1 and not parts[-1].text:
            parts.pop()
        for part in parts:
            if not part.text:
                raise MalformedReply(self.text, part.at, f"a record, or {NONE}")
            yield part

    def inserted(self, record: _Part) -> NewPoint:
        objects, description = self._point(record)
        return self._made(record, lambda: NewPoint(objects=objects, description=description))

    def updated(self, record: _Part, points: int) -> PointUpdate:
        found = re.match(r"(\d+)\s*,\s*", record.text)
        if found is None:
            raise MalformedReply(self.text, record.at, "the index of a point and a comma")
        point = self._index(found[1], record.at, points)
        rest = _Part.cut(record.text[found.end() :], record.at + found.end())
        objects, description = self._point(rest)
        return self._made(
            record, lambda: PointUpdate(point=point, objects=objects, description=description)
        )

    def merged(self, record: _Part, points: int) -> Merge:
        indices, description = self._fields(self._bracketed(record), 2)
        each = [self._index(part.text, part.at, points) for part in indices.split(",")]
        if len(each) < 2 or len(set(each)) < len(each):
            raise MalformedReply(self.text, indices.at, "two points or more, each once")
        return Merge(points=sorted(each), description=self._filled(description).text)

    def local(self, record: _Part, points: int) -> Concern:
        index, concern = self._fields(record, 2)
        point = self._index(index.text, index.at, points)
        return Concern(point=point, concern=self._filled(concern).text)

    def beyond(self, record: _Part) -> Concern:
        (concern,) = self._fields(record, 1)
        return Concern(concern=concern.text)

    def _point(self, record: _Part) -> tuple[list[str], str]:
        word, named, description = self._fields(self._bracketed(record), 3)
        if word.text != "point":
            raise MalformedReply(self.text, word.at, "point")
        objects = named.split(self.marks.object_delimiter)
        if len(objects) > 1 and not objects[-1].text:
            objects.pop()
        return [self._filled(each).text for each in objects], self._filled(description).text

    def _bracketed(self, record: _Part) -> _Part:
        if not record.text.startswith("("):
            raise MalformedReply(self.text, record.at, "(")
        if not record.text.endswith(")"):
            raise MalformedReply(self.text, record.at + len(record.text), ")")
        return _Part.cut(record.text[1:-1], record.at + 1)

    def _fields(self, record: _Part, count: int) -> list[_Part]:
        fields = record.split(self.marks.tuple_delimiter)
        if len(fields) != count:
            times = f"{count - 1} times, not {len(fields) - 1}"
            expected = f"{self.marks.tuple_delimiter} {times}"
            raise MalformedReply(self.text, record.at, expected)
        return fields

    def _filled(self, part: _Part) -> _Part:
        if not part.text:
            raise MalformedReply(self.text, part.at, "some text")
        return part

    def _index(self, digits: str, at: int, points: int) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", digits) or int(digits) >= points:
            among = f"from 0 to {points - 1}" if points else "of a point, of which there is none"
            raise MalformedReply(self.text, at, f"an index {among}")
        return int(digits)

    def _made(self, record: _Part, make: Callable[[], T]) -> T:
        try:
            return make()
        except ValidationError as refused:
            raise MalformedReply(self.text, record.at, refused.errors()[0]["msg"]) from refused

    def _blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
