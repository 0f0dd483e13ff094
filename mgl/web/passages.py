"""A document's text as HTML paragraphs, with every cited passage marked.

The text stays the document's, character by character (control characters as their pictures).
Paragraphs broken to a fixed width flow with the page; verse and tables keep their lines. Blocks of
about ``BLOCK`` characters let a browser skip what is out of sight.

    >>> document = Document.from_text("note.txt", "Ann met Bo.")
    >>> mark = Mark("n0", 0, 3, "k0")
    >>> "<mark" in text_html(document, [mark])
    True

Marks may overlap: the text is cut at every boundary, and each piece lists the marks that cover it,
short before long, and those that stay behind last.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mgl.types import Document, Section
from mgl.web.escape import html_text

__all__ = ["BLOCK", "Mark", "section_label", "text_html"]

BLOCK: Final = 3000

_PARAGRAPH: Final = 4000
_WRAPPED: Final = range(50, 101)
_BLANK_LINES = re.compile(r"(?:\r\n|\n|\r)(?:[ \t]*(?:\r\n|\n|\r))+")
_SIZES: Final = 8


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


def section_label(section: Section | None) -> str | None:
    """Name the page or chapter as a reader would; None if there is none."""
    if section is None:
        return None
    return f"page {section.label}" if section.kind == "page" else section.label


def text_html(document: Document, marks: Sequence[Mark]) -> str:
    """Render the document as blocks of paragraphs, with page and chapter headings."""
    text = document.text
    heads = {section.start: section for section in document.sections}
    pieces = _Pieces(text, marks)
    out: list[str] = []
    block: list[str] = []
    opened = 0

    def close(end: int) -> None:
        if block:
            size = min(_SIZES, 1 + (end - opened) * _SIZES // _PARAGRAPH)
            out.append(f'<div class="block s{size}" data-start="{opened}">{"".join(block)}</div>')
            block.clear()

    for start, end, follows in _paragraphs(text, sorted(heads)):
        if start in heads or start - opened >= BLOCK:
            close(start)
            opened = start
        if start in heads:
            block.append(_render_heading(heads[start]))
        block.append(_render_paragraph(text, start, end, follows, pieces))
    close(len(text))
    return "".join(out)


def _render_heading(section: Section) -> str:
    label = html_text(section_label(section) or "")
    return f'<h3 class="section {section.kind}" data-start="{section.start}">{label}</h3>'


def _render_paragraph(text: str, start: int, end: int, follows: bool, pieces: _Pieces) -> str:
    body = text[start:end]
    inner = len(body.rstrip())
    classes = [name for name, on in (("flow", _is_wrapped(body)), ("follows", follows)) if on]
    name = f' class="{" ".join(classes)}"' if classes else ""
    shown = pieces.html(start, start + inner)
    if inner:
        shown = f'<p dir="auto"{name}>{shown}</p>'
    return shown + pieces.html(start + inner, end)


def _is_wrapped(body: str) -> bool:
    """Whether lines end where a fixed width ended them, not where their author did."""
    lines = body.rstrip().splitlines()
    return (
        len(lines) > 1
        and all(len(line) in _WRAPPED for line in lines[:-1])
        and len(lines[-1]) <= _WRAPPED.stop
        and not any(line[:1].isspace() for line in lines[1:])
    )


def _paragraphs(text: str, cuts: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
    """Cut the text into ranges, each with its trailing blank lines and whether it continues one."""
    ends = [match.end() for match in _BLANK_LINES.finditer(text)]
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

    def html(self, start: int, end: int) -> str:
        out = []
        index = bisect_left(self._bounds, start + 1)
        while start < end:
            stop = min(end, self._bounds[index]) if index < len(self._bounds) else end
            over = self._covering[index - 1] if 0 < index < len(self._bounds) else ()
            out.append(_render_piece(html_text(self._text[start:stop]), over))
            start = stop
            index += 1
        return "".join(out)


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


def _render_piece(shown: str, over: Sequence[Mark]) -> str:
    if not over or not shown:
        return shown
    refs = " ".join(mark.ref for mark in over)
    many = " many" if sum(not mark.behind for mark in over) > 1 else ""
    return f'<mark class="{over[0].look}{many}" data-refs="{refs}">{shown}</mark>'
