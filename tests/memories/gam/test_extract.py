"""Summaries and keywords that need no model."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from mgl.memories.gam.consolidate import KEYWORDS
from mgl.memories.gam.small import UTTERANCE_CHARACTERS, UTTERANCES, WordSpread, extract_summary
from mgl.prompt import plain_text
from mgl.types import Turn

EARLIER = [f"Ann: I went to the market on day {day}" for day in range(20)]
HORSE = ["Ann: I went to the market", "Bo: Your horse is ill", "Ann: The horse needs a vet"]


def spread_of(lines: list[str]) -> WordSpread:
    spread = WordSpread()
    spread.extend([Turn(str(n), "", line) for n, line in enumerate(lines)], len(lines))
    return spread


def test_keywords_are_frequent_here_and_rare_elsewhere() -> None:
    keywords = extract_summary(HORSE, spread_of([*EARLIER, *HORSE])).keywords
    assert keywords[0] == "horse"
    assert keywords.index("vet") < keywords.index("market")


def test_the_summary_is_the_most_telling_utterances_in_their_order() -> None:
    for lines in (HORSE, HORSE[::-1]):
        made = extract_summary(lines, spread_of([*EARLIER, *lines]))
        assert made.summary == " ".join(line for line in lines if "horse" in line)


def test_lines_of_equally_rare_words_are_equal() -> None:
    """A sum of floats in the order of a set would depend on how Python hashes text."""
    for trial in range(20):
        lines = [" ".join(f"w{trial}x{line}x{n}" for n in range(30)) for line in range(4)]
        earlier = [" ".join(line.split()[:n]) for n in range(30) for line in lines]
        made = extract_summary(lines, spread_of([*earlier, *lines]))
        assert made.summary == " ".join(lines[:UTTERANCES])


@example(lines=["horse " * 2_000], earlier=[])
@given(
    lines=st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=6),
    earlier=st.lists(st.text(max_size=20), max_size=6),
)
def test_whatever_was_said_there_is_a_bounded_summary_of_it(
    lines: list[str], earlier: list[str]
) -> None:
    made = extract_summary(lines, spread_of([*earlier, *lines]))
    assert made.summary.strip()
    assert len(made.summary) <= UTTERANCES * (UTTERANCE_CHARACTERS + 1)
    assert len(made.keywords) <= KEYWORDS
    said = plain_text(" ".join(lines)).lower()
    assert all(word in said for word in made.keywords)


@given(lines=st.lists(st.text(), max_size=8), cuts=st.lists(st.integers(0, 8), max_size=5))
def test_the_spread_of_words_is_the_same_however_it_is_counted(
    lines: list[str], cuts: list[int]
) -> None:
    turns = [Turn(str(n), "", line) for n, line in enumerate(lines)]
    stepwise = WordSpread()
    for cut in cuts:
        stepwise.extend(turns, min(cut, len(turns)))
    stepwise.extend(turns, len(turns))
    said = [" ".join(lines)]
    assert extract_summary(said, stepwise) == extract_summary(said, spread_of(lines))
