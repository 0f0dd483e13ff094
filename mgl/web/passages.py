"""A document's text as blocks of paragraphs, with every cited passage marked.

The text stays the document's, character by character. Paragraphs broken to a fixed width flow with
the page; verse and tables keep their lines, and each turn of a conversation is a paragraph. Blocks
of about ``BLOCK`` characters let a browser skip what is out of sight.

    >>> document = Document.from_text("note.txt", "Ann met Bo.")
    >>> cut_text(document, [Mark("n0", 0, 3, "k0")])[0]["parts"][0]["pieces"]
    [['Ann', 'k0', ['n0']], ' met Bo.']

Marks may overlap: the text is cut at every boundary, and each piece lists the marks that cover it,
short before long, and those that stay behind last.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from mgl.types import CONVERSATION, Document, Section

__all__ = ["BLOCK", "Mark", "cut_text", "section_label"]

BLOCK: Final = 3000

_PARAGRAPH: Final = 4000
_WRAPPED: Final = range(50, 101)
_LINES = re.compile(r"(?>\r\n|\n|\r)")
_BLANK_LINES = re.compile(r"(?>\r\n|\n|\r)(?:[ \t]*(?>\r\n|\n|\r))+")
_SIZES: Final = 8
_NUMBERED: Final = re.compile(r"(?i)(session)[ _-]*(\d+)")
_HEADING: Final = 120
"""Characters of a paragraph that may be a heading, at most."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A marked passage: ``ref`` names it in the page, ``look`` is its class.

    One that stays ``behind`` gives its look only to what nothing else covers.
    """

    ref: str
    start: int
    end: int
    look: str
    behind: bool = False


def section_label(section: Section) -> str:
    """Name the page, chapter or session as a reader would.

        >>> section_label(Section("session", "session_3", 0, 9, "Monday, 06 May 2024"))
        'Session 3, Monday, 6 May 2024'

    A session that is called by its time alone is named by its day.
    """
    if section.kind != "session":
        return f"page {section.label}" if section.kind == "page" else section.label
    day = re.sub(r"\b0(?=\d )", "", section.day)
    if day and _is_time(section.label):
        return day
    return ", ".join(filter(None, (_NUMBERED.sub(r"Session \2", section.label), day)))


def _is_time(label: str) -> bool:
    try:
        datetime.fromisoformat(label)
    except ValueError:
        return False
    return True


def cut_text(document: Document, marks: Sequence[Mark]) -> list[dict[str, Any]]:
    """Cut the document into blocks of headings and paragraphs, as JSON values.

    A piece of a paragraph is its text, with look and marks where it is marked; ``tail`` has the
    blank lines that follow. A section whose text begins with its name has that as its heading,
    another has its name above. ``size`` (1 to 8) says how high a block is likely to be.
    """
    text, pieces = document.text, _Pieces(document.text, marks)
    heads = {section.start: section for section in document.sections}
    ends = _LINES if document.media_type == CONVERSATION else _BLANK_LINES
    blocks: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    opened = 0

    def close(end: int) -> None:
        nonlocal parts
        if parts:
            size = min(_SIZES, 1 + (end - opened) * _SIZES // _PARAGRAPH)
            blocks.append({"start": opened, "size": size, "parts": parts})
            parts = []

    for start, end, follows in _paragraphs(text, ends, sorted(heads)):
        if start in heads or start - opened >= BLOCK:
            close(start)
            opened = start
        if start in heads:
            parts.append({"start": start, "head": section_label(heads[start])})
        body = text[start:end]
        inner = start + len(body.rstrip())
        if start in heads and _is_heading(body, heads[start].label):
            parts[-1] = {
                "start": start,
                "heading": pieces.cut(start, inner),
                "tail": pieces.cut(inner, end),
            }
            continue
        parts.append(
            {
                "start": start,
                "flow": _is_wrapped(body),
                "follows": follows,
                "pieces": pieces.cut(start, inner),
                "tail": pieces.cut(inner, end),
            }
        )
    close(len(text))
    return blocks


def _is_heading(body: str, label: str) -> bool:
    """Whether a paragraph is the heading that its section is called by."""
    said, called = (" ".join(each.split()).casefold() for each in (body, label))
    first = " ".join(body.strip().partition("\n")[0].split()).casefold()
    return bool(called) and called in (said, first) and len(said) <= _HEADING


def _is_wrapped(body: str) -> bool:
    """Whether lines end where a fixed width ended them, not where their author did."""
    lines = body.rstrip().splitlines()
    return (
        len(lines) > 1
        and all(len(line) in _WRAPPED for line in lines[:-1])
        and len(lines[-1]) <= _WRAPPED.stop
        and not any(line[:1].isspace() for line in lines[1:])
    )


def _paragraphs(
    text: str, last: re.Pattern[str], cuts: Sequence[int]
) -> Iterator[tuple[int, int, bool]]:
    """Cut the text into ranges, each with what ends it and whether it continues one."""
    ends = [match.end() for match in last.finditer(text)]
    bounds = sorted({*ends, *(cut for cut in cuts if cut < len(text)), len(text)} - {0})
    start = 0
    for bound in bounds:
        follows = False
        while bound - start > _PARAGRAPH:
            cut = _cut(text, start, start + _PARAGRAPH)
            yield start, cut, follows
            start, follows = cut, True
        if bound > start:
            yield start, bound, follows
        start = bound


def _cut(text: str, start: int, limit: int) -> int:
    """Where to break a long paragraph: after a line, else after a space, else at the limit."""
    for sign in ("\n", " "):
        found = text.rfind(sign, start + 1, limit)
        if found > start:
            return found + 1
    return limit


class _Pieces:
    """The text cut at the boundaries of its marks."""

    def __init__(self, text: str, marks: Sequence[Mark]) -> None:
        self._text = text
        self._bounds = sorted({bound for mark in marks for bound in (mark.start, mark.end)})
        self._covering = _find_covering(self._bounds, marks)

    def cut(self, start: int, end: int) -> list[Any]:
        out: list[Any] = []
        index = bisect_left(self._bounds, start + 1)
        while start < end:
            stop = min(end, self._bounds[index]) if index < len(self._bounds) else end
            over = self._covering[index - 1] if 0 < index < len(self._bounds) else ()
            piece = self._text[start:stop]
            out.append([piece, _look(over), [mark.ref for mark in over]] if over else piece)
            start = stop
            index += 1
        return out


def _find_covering(bounds: Sequence[int], marks: Sequence[Mark]) -> list[tuple[Mark, ...]]:
    """Find the marks over each range between two neighbouring bounds, the shortest first."""
    opening: dict[int, list[Mark]] = {}
    for mark in sorted(marks, key=lambda each: (each.behind, each.end - each.start, each.ref)):
        opening.setdefault(mark.start, []).append(mark)
    over: list[Mark] = []
    covering = []
    for bound in bounds:
        over = [mark for mark in over if mark.end > bound] + opening.get(bound, [])
        over.sort(key=lambda each: (each.behind, each.end - each.start, each.ref))
        covering.append(tuple(over))
    return covering


def _look(over: Sequence[Mark]) -> str:
    many = " many" if sum(not mark.behind for mark in over) > 1 else ""
    return f"{over[0].look}{many}"
