"""Sentences and paragraphs of a text, as character ranges.

    >>> text = '"Come, Mr. Holmes!" He came. It was 3.30 p.m. by then.'
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['"Come, Mr. Holmes!"', 'He came.', 'It was 3.30 p.m. by then.']

Rules, not a model: a full stop ends a sentence unless what stands before it is an abbreviation,
an initial or a number of a list, or what follows goes on in lower case. A blank line always ends
one, and so does the full stop of a script that writes without spaces. Every step is linear in
the length of the text. Lists of abbreviations are English ones; in other languages a sentence
may end early after an abbreviation, never late.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import itemgetter

from mgl.prompt import plain_text

_BLANK_LINE = r"(?>\r\n|[\n\r\x85\u2028])[^\S\r\n]*(?>\r\n|[\n\r\x85\u2028])"
_VISIBLE = re.compile(r"\S")
_PARAGRAPH = re.compile(rf"{_BLANK_LINE}|[\f\u2029]")
_BREAK = re.compile(
    rf"{_BLANK_LINE}|[\f\u2029]"
    r"|(?>\r\n|[\n\r])(?=[ \t]{0,8}[-*+•‣▪][ \t]\S|[ \t]{0,3}#{1,6}[ \t])"
    r"|(?m:^)[ \t]{0,3}#{1,6}[ \t][^\r\n]{1,1000}(?=[\r\n])"
)
_SPACE_FREE = "。！？｡．؟۔।॥។"
_CLOSERS = "\"'”’»›)\\]}）」』】〕＂*_"
_OPENERS = "\"'“‘«‹([{（「『【„¿¡*_—–-"
_STOP = re.compile(rf"([.!?…{_SPACE_FREE}]+)([{_CLOSERS}]*)(?:\[\d{{1,4}}\])?")
_QUESTION = re.compile(rf"[?？؟][!?]*[{_CLOSERS}]*$")
_AND = re.compile(
    r",?\s+and\s+(?=(?:who|whom|whose|what|where|when|why|how|which)\b)", re.IGNORECASE
)
_OPENING = re.compile(rf"\s+([{_OPENERS}]*)")
_WORD = re.compile(r"[^\W\d_]+")
_BEFORE = re.compile(r"[\w.&’']+$")
_BEFORE_CHARACTERS = 24


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TITLES = _words(
    "mr mrs ms mx dr prof rev fr hon capt col gen lt sgt maj cpl cmdr adm gov sen rep pres messrs "
    "mme mlle mgr supt insp ste vs viz cf e.g i.e"
)
_SHORTENED = _words(
    "st mt ft jr sr esq inc ltd co corp bros dept est govt univ al approx ave blvd rd "
    "jan feb mar apr jun jul aug sept sep oct nov dec"
)
_NUMBERED = _words("no nos p pp vol vols fig figs ch chap sec art op ed c ca v")
_STARTERS = _words(
    "he she it we they you i the a an this that these those there then but and or so when while "
    "if in on at as his her its my our their what who why how where after before for now yes no "
    "not one some all"
)
_ENUMERATOR = re.compile(r"[(\[]?(?:\d{1,3}(?:\.\d{1,3})*|[IVXLC]{1,6}|[A-Za-z])")


def sentence_spans(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Find the sentences of ``text[start:end]``, trimmed of white space and in order.

    They never overlap and together hold every character that is not white space.
    """
    part = text[start:end]
    spans: list[tuple[int, int]] = []
    for low, high in _blocks(part):
        block = part[low:high]
        caseless = block == block.lower()
        offset = start + low
        position = 0
        for stop in _STOP.finditer(block):
            if stop.end() > position and _ends(block, position, stop, caseless):
                spans.extend(_trim(block, position, stop.end(), offset))
                position = stop.end()
        spans.extend(_trim(block, position, len(block), offset))
    return spans


def only_asks(text: str) -> bool:
    """Whether a text has nothing but questions, by their question marks: there is nothing to cite.

    Turns are ranked by ``mgl.retrieval.cues.is_statement``, which looks at how they end.

    >>> only_asks("Where does Ann live? And Bo?"), only_asks("Ann moved. Did you know?")
    (True, False)
    """
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    return bool(sentences) and all(map(_QUESTION.search, sentences))


def split_question(text: str) -> list[str]:
    """The questions that a question is made of: itself, where it asks one thing.

    Only "and" before a question word parts it: a comma alone may begin a relative clause. Pronouns
    are not resolved.

        >>> split_question("Whom does Ann marry, and where is the ring?")
        ['Whom does Ann marry?', 'Where is the ring?']
    """
    parts = [part.strip() for part in _AND.split(text.strip().rstrip("?").rstrip()) if part.strip()]
    if len(parts) < 2:
        return [text.strip()]
    return [f"{part[0].upper()}{part[1:]}?" for part in parts]


def numbered_sentences(
    text: str,
    sentences: Sequence[tuple[int, int]],
    start: int,
    end: int,
    *,
    marks: Sequence[tuple[int, str]] = (),
) -> str:
    """Number the sentences of ``text[start:end]``, as a model reads it: ``[n]``, from 1, before
    each.

    ``marks`` are put in besides, each before the sentence that begins at its place.
    """
    numbers = [(begins, f"[{number}] ") for number, (begins, _) in enumerate(sentences, 1)]
    parts, position = [], start
    for begins, mark in sorted([*marks, *numbers], key=itemgetter(0)):
        parts.append(f"{text[position:begins]}{mark}")
        position = begins
    parts.append(text[position:end])
    return plain_text("".join(parts))


def paragraph_starts(text: str) -> list[int]:
    """Find where paragraphs begin, at their first visible character; the first is always 0."""
    starts = [0]
    seen = len(text) - len(text.lstrip())
    for blank in _PARAGRAPH.finditer(text):
        if blank.end() > seen:
            seen = _visible(text, blank.end())
            if seen < len(text):
                starts.append(seen)
    return starts


def _visible(text: str, position: int) -> int:
    """Find the next position that is not white space, or the text's end."""
    found = _VISIBLE.search(text, position)
    return found.start() if found else len(text)


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    position = 0
    for found in _BREAK.finditer(text):
        visible = not found[0].isspace()  # a heading line is a block of its own
        yield position, found.start()
        if visible:
            yield found.start(), found.end()
        position = found.end()
    yield position, len(text)


def _trim(block: str, start: int, end: int, offset: int) -> Iterator[tuple[int, int]]:
    piece = block[start:end]
    words = piece.strip()
    if words:
        low = offset + start + len(piece) - len(piece.lstrip())
        yield low, low + len(words)


def _ends(block: str, start: int, stop: re.Match[str], caseless: bool) -> bool:
    """Whether a run of full stops, with the quotes that close after it, ends the sentence."""
    marks, closers = stop[1], stop[2]
    after = stop.end()
    if after == len(block):
        return True
    following = block[after]
    if marks[-1] in _SPACE_FREE:
        return not following.isdigit()
    opening = _OPENING.match(block, after)
    if opening is None:
        return marks[-1] in "!?" and following > "\u2e7f"  # an ideograph, kana or hangul
    position = opening.end()
    if position == len(block):
        return True
    first = block[position]
    if first in ".!?…" and not opening[1]:
        return False
    if first.islower() and not caseless:
        return False
    if marks != "." or closers:
        return True
    return _stop_ends(block, start, stop.start(), position)


def _stop_ends(block: str, start: int, stop: int, position: int) -> bool:
    """Whether the single full stop at ``stop`` ends the sentence that goes on at ``position``."""
    before = _BEFORE.search(block[max(start, stop - _BEFORE_CHARACTERS) : stop])
    if before is None:
        return True
    word = before[0].strip("’'")
    lower = word.lower()
    found = _WORD.match(block, position, position + 12)
    starts_anew = found is not None and found[0].lower() in _STARTERS
    if found is not None and len(found[0]) == 1 and block[found.end() : found.end() + 1] == ".":
        starts_anew = False  # an initial, as in J. A. Hill
    if lower in _TITLES:
        return False
    if stop - start <= _BEFORE_CHARACTERS and _ENUMERATOR.fullmatch(block[start:stop].strip()):
        return False
    if lower in _NUMBERED:
        return not (block[position].isdigit() or len(word) == 1)
    if lower in _SHORTENED:
        return starts_anew
    if word == "I":
        previous = block[max(start, stop - _BEFORE_CHARACTERS) : stop - 1].split()
        return starts_anew or not (previous and previous[-1][:1].isupper())
    if len(word) == 1 and word.isupper():
        return starts_anew
    if "." in word and word.replace(".", "").isupper():
        return starts_anew
    return True
