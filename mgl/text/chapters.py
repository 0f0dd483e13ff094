"""Headings of a text, and the chapters they begin.

    >>> text = "CHAPTER I\\n\\nIt rained.\\n\\nCHAPTER II\\n\\nIt stopped.\\n"
    >>> [section.label for section in sections(text_headings(text), len(text))]
    ['CHAPTER I', 'CHAPTER II']

Markdown and HTML say what a heading is. Plain text does not: there a line counts only if it
stands alone between blank lines and is worded like one ("CHAPTER IV. The Ride", "Chapter 3",
"PREFACE"), or if roman numerals, alone or before a title, count up. Titles in capitals after two
blank lines count only where they are more than all other headings. Entries of a table of contents
do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mgl.types import Section

_LABEL_CHARACTERS = 100
_LINE_CHARACTERS = 100
_MOST_LINES, _LINE_CHARACTERS_AT_LEAST = (
    10_000,
    8,
)  # of Markdown: what is denser takes long to parse
_CONTENTS_CHARACTERS = 200  # a heading with less below it, that comes again later, is a listing
_FEWEST_TITLES = 3
_PART, _CHAPTER, _NUMERAL = 1, 2, 3  # levels of headings

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
_NUMERAL_LINE = re.compile(rf"({_ROMAN})(?:\.?|\.\s+[A-Z“\"'‘].{{0,70}})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}

_FRONT_MATTER = re.compile(
    r"---[ \t\r]*\n(?:#[^\n]*\n)*[\w\"'][^\n:]*:\s.*?^---[ \t\r]*$", re.MULTILINE | re.DOTALL
)
_LINE_END = re.compile(r"\r\n?|\n")


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
        above.append(replace(heading, label=_short(heading.label)))
        path = above[1:] if titled and above[0].level == top and len(above) > 1 else above
        label = " › ".join(step.label for step in path)
        if end > heading.start:
            result.append(Section("chapter", label, heading.start, end))
    return tuple(result)


def markdown_headings(text: str) -> list[Heading]:
    """Find the headings of CommonMark after its front matter: YAML between ``---`` whose first
    line, but for comments, has a key. What else stands between two rules is text.

    A long text of very short lines has none.
    """
    from markdown_it import MarkdownIt

    if text.count("\n") > max(_MOST_LINES, len(text) // _LINE_CHARACTERS_AT_LEAST):
        return []
    starts = [0, *(found.end() for found in _LINE_END.finditer(text))]
    tokens = MarkdownIt("commonmark").disable("inline").parse(text)
    headings = [
        Heading(starts[opening.map[0]], int(opening.tag[1]), words.content)
        for opening, words in pairwise(tokens)
        if opening.type == "heading_open" and opening.map and words.content
    ]
    front = _FRONT_MATTER.match(text)
    return [heading for heading in headings if front is None or heading.start >= front.end()]


def text_headings(text: str) -> list[Heading]:
    """Find the lines of a plain text that begin a chapter."""
    lines = list(_lines(text))
    found = _keep_counting(_drop_contents(list(_candidates(lines)), len(text)))
    known = {heading.start for heading in found}
    titles = [title for title in _titles(lines, text) if title.start not in known]
    if len(titles) >= max(_FEWEST_TITLES, sum(each.level != _PART for each in found) + 1):
        found = sorted([*found, *titles], key=lambda heading: heading.start)
    return found


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    text: str
    blanks: int  # blank lines right before it; the text's beginning counts as many


@dataclass(frozen=True, slots=True)
class _Candidate(Heading):
    """A line that may be a heading, with its number where it has one."""

    number: int | None = None

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
        level, number = _classify(label)
        following, after = [*lines[index + 1 : index + 3], end, end][:2]
        if following.blanks == 0:
            title = following.text.strip()
            if level not in (_PART, _CHAPTER) or len(title) > 70 or after.blanks == 0:
                continue
            label = f"{label} {title}"
        if level:
            yield _Candidate(line.start, level, label, number)


def _classify(line: str) -> tuple[int, int | None]:
    """Give a line's level by its wording (0: no heading), and its number."""
    if line.endswith((",", ";")):
        return 0, None
    if _PART_LINE.fullmatch(line) or _ORDINAL_PART_LINE.fullmatch(line):
        return _PART, None
    if found := _CHAPTER_LINE.fullmatch(line):
        return _CHAPTER, _number(found["number"])
    if _NAMED_LINE.fullmatch(line):
        return _CHAPTER, None
    if found := _NUMERAL_LINE.fullmatch(line):
        return _NUMERAL, _roman(found[1])
    return 0, None


def _titles(lines: Sequence[_Line], text: str) -> list[Heading]:
    """Find lines in capitals that stand apart, where more than a listing follows."""
    kept: list[Heading] = []
    following = len(text)
    for line in reversed(lines):
        if _is_title(line, text):
            if following - line.start > _CONTENTS_CHARACTERS:
                kept.append(Heading(line.start, _CHAPTER, line.text.strip()))
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
        if candidate.level == _NUMERAL or not (short and last[candidate.key] > index):
            kept.append(candidate)
    return kept


def _keep_counting(found: Sequence[_Candidate]) -> list[Heading]:
    """Keep roman numerals only where they count up.

    One that goes on from the heading before is of that one's level; a count begins at I, below a
    chapter, if a II comes later.
    """
    kept: list[Heading] = []
    counted, level = 0, _NUMERAL
    last_two = max((c.start for c in found if c.level == _NUMERAL and c.number == 2), default=-1)
    for candidate in found:
        if candidate.level != _NUMERAL:
            level = candidate.level
        elif candidate.number == 1 and candidate.start < last_two:
            level = _NUMERAL
        elif candidate.number != counted + 1 or not counted:
            continue
        counted = candidate.number or counted
        kept.append(Heading(candidate.start, level, candidate.label))
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
