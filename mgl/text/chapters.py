"""Headings of a text, and the chapters they begin.

    >>> text = "CHAPTER I\\n\\nIt rained.\\n\\nCHAPTER II\\n\\nIt stopped.\\n"
    >>> [section.label for section in sections(text_headings(text), len(text))]
    ['CHAPTER I', 'CHAPTER II']

Markdown and HTML say what a heading is. Plain text does not: there a line counts only if it
stands alone between blank lines and is worded like one ("CHAPTER IV. The Ride", "Chapter 3",
"PREFACE"), or if roman numerals, alone or before a title, count up from I. Titles in capitals
after two blank lines count only where they are more than all other headings. Entries of a table
of contents do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mgl.types import Section

__all__ = ["Heading", "markdown_headings", "sections", "text_headings"]

_LABEL_CHARACTERS = 100
_LINE_CHARACTERS = 100
_CONTENTS_CHARACTERS = 200  # a heading with less below it, that comes again later, is a listing
_FEWEST_TITLES = 3
_PART, _CHAPTER, _NUMERAL, _TITLED = 1, 2, 3, 4

_ROMAN = r"[IVXLCDM]+"
_NUMBER = (
    rf"(?:the\s+)?(?:\d{{1,3}}|{_ROMAN}|[ivxlcdm]+|(?:first|second|third|fourth|fifth|sixth|"
    r"seventh|eighth|ninth|tenth|last|one|two|three|four|five|six|seven|eight|nine|ten|eleven|"
    r"twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|"
    r"fifty)(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?)"
)
_TITLE = r"(?:\s*[.:—–-]+\s*.{0,70}|\s+[A-Z“\"'‘].{0,70})?"
_PART_LINE = re.compile(rf"(?i:part|book|volume|act)\s+(?i:{_NUMBER})\b{_TITLE}")
_ORDINAL_PART_LINE = re.compile(
    r"(?i:the\s+)?(?i:first|second|third|fourth|fifth|last)\s+(?:PART|BOOK|VOLUME|Part|Book|Volume)"
)
_CHAPTER_LINE = re.compile(
    r"(?i:chapter|adventure|stave|canto|letter|scene|episode|section|chapitre|kapitel|cap[íi]tulo)"
    rf"\s+(?P<number>(?i:{_NUMBER}))\b{_TITLE}"
)
_NAMED_LINE = re.compile(
    r"(?:THE |The )?(?:PREFACE|PROLOGUE|EPILOGUE|INTRODUCTION|FOREWORD|AFTERWORD|CONCLUSION|"
    r"Preface|Prologue|Epilogue|Introduction|Foreword|Afterword|Conclusion)\.?"
)
_ROMAN_LINE = re.compile(rf"({_ROMAN})\.?")
_TITLED_LINE = re.compile(rf"({_ROMAN})\.\s+[A-Z“\"'‘].{{0,70}}")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_SETEXT = re.compile(r" {0,3}[^\s\-*>|+=]")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})\s*$")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: where its line starts, how deep it is (1 is highest), and its words."""

    start: int
    level: int
    label: str


def sections(headings: Iterable[Heading], length: int) -> tuple[Section, ...]:
    """Turn headings into chapters: each reaches to the next, the last to the text's end.

    A label includes the headings above it ("PART ONE › CHAPTER I"), except a single heading of the
    highest level: that is the document's title.
    """
    found = [heading for heading in headings if heading.start < length]
    top = min((heading.level for heading in found), default=0)
    titled = len(found) > 1 and sum(heading.level == top for heading in found) == 1
    result: list[Section] = []
    above: list[Heading] = []
    for index, heading in enumerate(found):
        end = found[index + 1].start if index + 1 < len(found) else length
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
        path = above[1:] if titled and above[0].level == top and len(above) > 1 else above
        label = " › ".join(_short(step.label) for step in path)
        if end > heading.start:
            result.append(Section("chapter", label, heading.start, end))
    return tuple(result)


def markdown_headings(text: str) -> Iterator[Heading]:
    """Yield ATX (``# One``) and underlined headings outside fenced code."""
    fence: str | None = None
    previous: _Line | None = None
    for line in _lines(text):
        mark = _FENCE.match(line.text[:8])
        if fence:
            fence = None if mark and mark[1] == fence else fence
            previous = None
        elif mark:
            fence, previous = mark[1], None
        elif len(line.text) <= 1000 and (found := _ATX.match(line.text.rstrip())):
            words = re.sub(r"(^|[ \t])#+$", "", found[2] or "").strip()
            if words:
                yield Heading(line.start, len(found[1]), words)
            previous = None
        elif previous and (found := _UNDERLINE.match(line.text[:200])):
            yield Heading(previous.start, 1 if found[1][0] == "=" else 2, previous.text.strip())
            previous = None
        else:
            previous = line if line.blanks and _SETEXT.match(line.text[:200]) else None


def text_headings(text: str) -> list[Heading]:
    """Find the lines of a plain text that begin a chapter."""
    lines = list(_lines(text))
    found = _keep_counting(_drop_contents(list(_candidates(lines)), len(text)))
    known = {candidate.start for candidate in found}
    titles = [title for title in _titles(lines, text) if title.start not in known]
    if len(titles) >= max(_FEWEST_TITLES, sum(c.kind != _PART for c in found) + 1):
        found = sorted([*found, *titles], key=lambda candidate: candidate.start)
    return [candidate.to_heading() for candidate in found]


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    text: str
    blanks: int  # blank lines right before it; the text's beginning counts as many


@dataclass(frozen=True, slots=True)
class _Candidate:
    start: int
    label: str
    kind: int
    value: int | None

    def to_heading(self) -> Heading:
        return Heading(self.start, min(self.kind, _NUMERAL), self.label)

    @property
    def key(self) -> str:
        return " ".join(re.findall(r"\w+", self.label.casefold())[:2])


def _lines(text: str) -> Iterator[_Line]:
    """Yield the lines that are not blank."""
    position, blanks = 0, 9
    for line in text.splitlines(keepends=True):
        words = line.rstrip("\r\n")
        if words.strip():
            yield _Line(position, words, blanks)
            blanks = 0
        else:
            blanks += 1
        position += len(line)


def _candidates(lines: Sequence[_Line]) -> Iterator[_Candidate]:
    """Yield lines worded like a heading that stand alone, or with one title line below."""
    end = _Line(0, "", 9)
    for index, line in enumerate(lines):
        if not line.blanks or len(line.text) > _LINE_CHARACTERS:
            continue
        label = line.text.strip()
        kind, value = _kind(label)
        following, after = [*lines[index + 1 : index + 3], end, end][:2]
        if following.blanks == 0:
            title = following.text.strip()
            if kind not in (_PART, _CHAPTER) or len(title) > 70 or after.blanks == 0:
                continue
            label = f"{label} {title}"
        if kind:
            yield _Candidate(line.start, label, kind, value)


def _kind(line: str) -> tuple[int, int | None]:
    """Classify a line by its wording (0: no heading), with its number where it has to count up."""
    if line.endswith((",", ";")):
        return 0, None
    if _PART_LINE.fullmatch(line) or _ORDINAL_PART_LINE.fullmatch(line):
        return _PART, None
    if found := _CHAPTER_LINE.fullmatch(line):
        return _CHAPTER, _number(found["number"])
    if _NAMED_LINE.fullmatch(line):
        return _CHAPTER, None
    if found := _ROMAN_LINE.fullmatch(line):
        return _NUMERAL, _roman(found[1])
    if found := _TITLED_LINE.fullmatch(line):
        return _TITLED, _roman(found[1])
    return 0, None


def _titles(lines: Sequence[_Line], text: str) -> list[_Candidate]:
    """Find lines in capitals that stand apart, where more than a listing follows."""
    kept: list[_Candidate] = []
    following = len(text)
    for line in reversed(lines):
        if _is_title(line, text):
            if following - line.start > _CONTENTS_CHARACTERS:
                kept.append(_Candidate(line.start, line.text.strip(), _CHAPTER, None))
            following = line.start
    return kept[::-1]


def _is_title(line: _Line, text: str) -> bool:
    """A short line in capitals after at least two blank lines, with one below."""
    words = line.text.strip()
    end = line.start + len(line.text)
    below = text[end : end + 4].replace("\r", "")
    alone = line.blanks >= 2 and below.startswith("\n\n") and words.isupper()
    return alone and 4 <= len(words) <= 60 and not words.endswith((".", ",", ";", ":"))


def _drop_contents(found: Sequence[_Candidate], length: int) -> list[_Candidate]:
    """Drop listings: headings with little below them whose words recur."""
    last = {candidate.key: index for index, candidate in enumerate(found)}
    kept: list[_Candidate] = []
    for index, candidate in enumerate(found):
        end = found[index + 1].start if index + 1 < len(found) else length
        short = end - candidate.start < len(candidate.label) + _CONTENTS_CHARACTERS
        if candidate.kind == _NUMERAL or not (short and last[candidate.key] > index):
            kept.append(candidate)
    return kept


def _keep_counting(found: Sequence[_Candidate]) -> list[_Candidate]:
    """Keep numerals only where they count up.

    Alone on their lines they count from I to at least II; with a title they go on from the
    chapter before, or begin at I with II to come.
    """
    kept: list[_Candidate] = []
    run: list[_Candidate] = []
    chapter = 0
    titled = [candidate.value for candidate in found if candidate.kind == _TITLED]

    def close() -> None:
        if len(run) > 1:
            kept.extend(run)
        run.clear()

    for candidate in found:
        if candidate.kind == _NUMERAL:
            if candidate.value == 1:
                close()
            if candidate.value == len(run) + 1:
                run.append(candidate)
            continue
        if candidate.kind == _TITLED and not (
            candidate.value == chapter + 1 and (chapter or 2 in titled)
        ):
            continue
        close()
        chapter = candidate.value or chapter
        kept.append(
            replace(candidate, kind=min(candidate.kind, _CHAPTER))
            if candidate.kind == _TITLED
            else candidate
        )
    close()
    return kept


def _number(words: str) -> int | None:
    if words.isdigit():
        return int(words)
    letters = words.upper()
    return _roman(letters) if set(letters) <= _ROMAN_VALUES.keys() else None


def _roman(numeral: str) -> int:
    values = [_ROMAN_VALUES[letter] for letter in numeral]
    following = [*values[1:], 0]
    return sum(-v if v < n else v for v, n in zip(values, following, strict=True))


def _short(label: str) -> str:
    words = " ".join(label.split())
    return words if len(words) <= _LABEL_CHARACTERS else words[: _LABEL_CHARACTERS - 1] + "…"
