"""No function of ``mgl.text`` takes much longer than its text is long, whatever the text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from mgl.text import times
from mgl.text.chapters import Heading, markdown_headings, sections
from mgl.text.names import find_mentioned, find_names
from mgl.text.private import find_private
from mgl.text.quotes import locate
from mgl.text.sentences import sentence_spans
from mgl.text.support import find_unsaid
from tests.effort import within_cpu_seconds

KB = 1024
SAID = datetime(2023, 5, 8)


def word(number: int) -> str:
    return "".join(chr(97 + int(digit)) for digit in f"{number}")


COMMON = " said to ".join(f"Ann N{word(number)}" for number in range(6_000))
PAIRS = " said to ".join(f"N{word(a)} N{word(b)}" for a in range(80) for b in range(80))

WORK: dict[str, tuple[Callable[[], Any], float]] = {
    "names on one line": (lambda: find_names("Aa met Bb. " * 12 * KB), 4),
    "names in pairs": (lambda: find_names(PAIRS), 4),
    "a list of names": (lambda: find_names("Aa Bb Cc Dd " * 12 * KB), 4),
    "dots on a line": (lambda: find_names("Ann " + ". " * 64 * KB), 4),
    "unsaid names": (lambda: find_unsaid("Ann Bob " * 8 * KB, "x"), 4),
    "a long quote": (lambda: locate("a." * 4 * KB + "zq", "a." * 32 * KB), 4),
    "an elided quote": (lambda: locate("a.a.… " * 750 + "q", "a." * 32 * KB), 6),
    "keys": (lambda: find_private("AKIA" * 96 * KB), 6),
    "addresses": (lambda: find_private("a@b.org " * 8 * KB), 6),
    "sentences": (lambda: sentence_spans("A. " * 64 * KB), 4),
    "short lines": (lambda: markdown_headings("# x\n" * 32 * KB), 4),
    "long headings": (
        lambda: sections(
            [Heading(n, 1 + (n > 1), "a " * 64 * KB if n < 2 else "b") for n in range(2500)], 2500
        ),
        4,
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_what_takes_no_longer_than_its_text(name: str) -> None:
    work, limit = WORK[name]
    with within_cpu_seconds(limit):
        work()


def test_names_that_share_a_word_stay_apart_and_their_places_are_kept() -> None:
    with within_cpu_seconds(4):
        names = find_names("The " + COMMON)
    assert len(names) == len({name.name for name in names}) > 5_000
    assert all(name.spans for name in names)
    (found,) = find_mentioned("She asked Ann Nb.", [n for n in names if n.name == "Ann Nb"])
    assert found.name == "Ann Nb"


@pytest.mark.parametrize("others", [0, 100, 1000])
def test_a_name_takes_in_its_short_form_unless_many_share_it(others: int) -> None:
    text = "We met Irene Adler, and Irene left, and Irene sang. " + "".join(
        f"We met Irene {word(number).title()}. " for number in range(others)
    )
    names = {name.name: name.aliases for name in find_names(text)}
    assert ("Irene" in names["Irene Adler"]) == (others == 0)


def test_times_are_read_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "MOST_EXPRESSIONS", 200)
    with within_cpu_seconds(2):
        assert len(times.time_mentions("May 2 " * 32 * KB, SAID)) == 200


def test_every_address_is_private_however_many() -> None:
    text = "a@b.org " * 500
    assert len(find_private(text)) == 500
