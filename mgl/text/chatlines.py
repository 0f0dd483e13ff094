"""Chats as lines of text: "Name: text", and WhatsApp's exports.

    >>> talk = read_lines("Ann: Hi.\\nHow are you?\\nBo: Fine.", "talk")
    >>> [(turn.speaker, turn.text) for turn in talk.turns]
    [('Ann', 'Hi.\\nHow are you?'), ('Bo', 'Fine.')]

A line may begin with its time; one that begins no turn goes on with the turn before. A name that
stands at one line alone is taken for a word of the text ("Note: …"), unless all lines have names,
or it is one of the first two. The colon may be a full-width one, and the name in bold (Markdown).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final

from mgl.text.gathering import Gathering
from mgl.types import Conversation, Turn

_MARKS: Final = str.maketrans({"\u200e": None, "\u200f": None, "\u202f": " ", "\xa0": " "})
_DAY: Final = r"(?P<one>\d{1,4})(?P<sign>[./-])(?P<two>\d{1,2})(?P=sign)(?P<three>\d{2,4})"
_CLOCK: Final = r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?"
_STAMP: Final = re.compile(
    rf"(?P<open>\[)?{_DAY}(?:,\s*|\s+|T){_CLOCK}(?:\s*(?P<half>[AaPp])\.?\s?[Mm]\.?)?"
    r"(?(open)\])\s*(?:[-\u2013]\s*)?"
)
_NAME: Final = re.compile(
    r"(?P<name>[^\W_][^:\uff1a\n.!?;,\"<>{}\[\]/]{0,39}?|\+?[\d ()-]{5,20})"
    r"(?::(?:\s+|$)|\uff1a\s*)"
)
_BOLD: Final = re.compile(r"\*\*(?P<name>[^*:\n]{1,40})(?::\*\*|\*\*:)")
_SAID: Final = re.compile(r"(?P<name>[^:\n]{1,60}?):\s")
"""Who said a line with a time, whose name may be any."""

_Line = tuple[re.Match[str] | None, re.Match[str] | None, str]
"""The time that begins a line, the name after it, and the line."""


def read_lines(text: str, name: str) -> Conversation | None:
    """Read a chat whose turns begin with a name and maybe a time; None for anything else."""
    lines = [_read_line(line) for line in text.translate(_MARKS).split("\n")]
    said = [each for each in lines if each[2].strip()]
    if not said or (said[0][0] is None and said[0][1] is None):
        return None
    stamps = [stamp for stamp, _, _ in said if stamp is not None and said[0][0] is not None]
    speakers = None if said[0][0] is not None else _find_speakers(said)
    turns, order = Gathering(name), _find_order(stamps)
    if stamps and order != "ymd":
        turns.note("times", f"days are read as {'day, month' if order == 'dmy' else 'month, day'}")
    unsaid = _gather(turns, lines, speakers, order)
    if turns.empty:
        return None
    if unsaid:
        turns.note("left out", f"lines that nobody said: {unsaid}")
    return turns.conversation()


def _gather(
    turns: Gathering, lines: Sequence[_Line], speakers: frozenset[str] | None, order: str
) -> int:
    """Gather the turns; returns how many lines nobody said."""
    unsaid = 0
    kept: tuple[int, str, datetime | None, list[str]] | None = None
    for number, (stamp, named, line) in enumerate(lines, start=1):
        begins = stamp is not None if speakers is None else _is_of(named, speakers)
        if not begins:
            if kept is not None:
                kept[3].append(line)
            continue
        _put(turns, kept)
        kept = None
        if named is None:
            unsaid += 1
            continue
        time = None if stamp is None else _read_time(stamp, order)
        kept = (number, named["name"].strip(), time, [line[named.end() :]])
    _put(turns, kept)
    return unsaid


def _put(turns: Gathering, kept: tuple[int, str, datetime | None, list[str]] | None) -> None:
    if kept is not None:
        number, who, time, said = kept
        turn = Turn("", who, "\n".join(said).strip(), time)
        turns.add(f"line {number}", turn, fallback_id=f"L{number}")


def _read_line(line: str) -> _Line:
    line = line.strip("\r")
    stamp = _STAMP.match(line.lstrip())
    if stamp is not None:
        line = line.lstrip()
        return stamp, _SAID.match(f"{line} ", stamp.end()), line
    line = _BOLD.sub(r"\g<name>:", line, count=1) if line.startswith("**") else line
    return None, _NAME.match(line), line


def _is_of(named: re.Match[str] | None, speakers: frozenset[str]) -> bool:
    return named is not None and named["name"].strip() in speakers


def _find_speakers(said: Sequence[_Line]) -> frozenset[str]:
    names = [named["name"].strip() for _, named, _ in said if named is not None]
    if len(names) == len(said):
        return frozenset(names)
    first = [*dict.fromkeys(names)][:2]
    return frozenset([*first, *(name for name, count in Counter(names).items() if count > 1)])


def _find_order(stamps: Sequence[re.Match[str]]) -> str:
    """Whether days are written as year, month, day (``ymd``), ``dmy``, or ``mdy``.

    Where no number of a day is above 12, it is the order in which the fewest turns go back in time;
    of two as good, that of English with AM and PM.
    """
    if any(len(stamp["one"]) == 4 for stamp in stamps):
        return "ymd"
    if any(int(stamp["one"]) > 12 for stamp in stamps):
        return "dmy"
    if any(int(stamp["two"]) > 12 for stamp in stamps):
        return "mdy"
    usual = "mdy" if any(stamp["half"] and stamp["sign"] == "/" for stamp in stamps) else "dmy"
    orders = sorted(("dmy", "mdy"), key=lambda order: order != usual)
    return min(orders, key=lambda order: _count_returns(stamps, order))


def _count_returns(stamps: Sequence[re.Match[str]], order: str) -> int:
    times = [time for stamp in stamps if (time := _read_time(stamp, order)) is not None]
    return sum(later < earlier for earlier, later in pairwise(times))


def _read_time(stamp: re.Match[str], order: str) -> datetime | None:
    day = dict(zip(order, (int(stamp[part]) for part in ("one", "two", "three")), strict=True))
    year = day["y"] + 2000 * (day["y"] < 100)
    hour = int(stamp["hour"])
    if stamp["half"]:
        hour = hour % 12 + 12 * (stamp["half"].lower() == "p")
    clock = hour, int(stamp["minute"]), int(stamp["second"] or 0)
    try:
        return datetime(year, day["m"], day["d"], *clock)
    except ValueError:
        return None
