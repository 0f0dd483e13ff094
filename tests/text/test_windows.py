from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.text.windows import window_document
from mgl.types import Chunk, Document

TALE = "Ann met Bo in Rome.\n\nBo gave Ann a ring with a green stone. " * 40


async def words(texts: Sequence[str]) -> list[int]:
    return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


async def characters(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


async def merging(texts: Sequence[str]) -> list[int]:
    """Fewer tokens together than alone, as most tokenizers."""
    return [-(-len(text.encode(errors="replace")) // 3) for text in texts]


async def clashing(texts: Sequence[str]) -> list[int]:
    """More tokens together than alone: what a sum of words does not tell."""
    return [len(text) + len(text.split()) // 3 for text in texts]


def windows(text: str, most: int, shared: int, count: Any = words) -> list[Chunk]:
    document = Document.from_text("t", text)
    return asyncio.run(window_document(document, most, shared, count))


def check(text: str, most: int, shared: int, count: Any) -> None:
    found = windows(text, most, shared, count)
    assert [w.index for w in found] == list(range(len(found)))
    covered = 0
    for window in found:
        assert window.span.start <= covered < window.span.end
        assert window.text == text[window.span.start : window.span.end]
        assert [window.tokens] == asyncio.run(count([window.text]))
        assert window.tokens <= most
        covered = window.span.end
    assert covered == len(text)
    for before, after in pairwise(found):
        assert before.span.start < after.span.start
        common = text[after.span.start : before.span.end]
        assert not common or asyncio.run(count([common])) <= [shared]


@given(
    st.text(st.sampled_from("ab é火。 \n\u0301\U0001f44d"), max_size=300),
    st.integers(8, 40),
    st.integers(0, 7),
    st.sampled_from([words, characters, merging, clashing]),
)
def test_every_character_is_in_a_window_and_no_window_is_too_large(
    text: str, most: int, shared: int, count: Any
) -> None:
    check(text, most, shared, count)


@pytest.mark.parametrize("count", [words, characters, merging, clashing])
def test_prose_is_cut_between_words_and_the_overlap_is_used(count: Any) -> None:
    check(TALE, 60, 20, count)
    found = windows(TALE, 60, 20, count)
    for before, after in pairwise(found):
        assert TALE[after.span.start].isspace()
        assert before.span.end > after.span.start
    assert sum(w.tokens for w in found[:-1]) > 0.75 * 60 * (len(found) - 1)


def test_the_papers_windows_overlap_by_about_fifty_of_two_hundred() -> None:
    text = " ".join(f"w{n}" for n in range(2000))
    found = windows(text, 200, 50)
    assert [w.tokens for w in found[:-1]] == [200] * (len(found) - 1)
    assert all(a.span.end - b.span.start > 0 for a, b in pairwise(found))
    assert len(found) == -(-(2000 - 50) // 150)


@pytest.mark.parametrize(
    "text", ["火星に行った。" * 300, "x" * 2000, "\n" * 2000, "ab " * 3 + "y" * 999]
)
def test_scripts_without_spaces_and_giants_are_divided(text: str) -> None:
    check(text, 40, 10, characters)
    assert all(w.tokens > 20 for w in windows(text, 40, 10, characters)[:-1])


def test_a_short_text_is_one_window_and_an_empty_one_none() -> None:
    (only,) = windows("One sentence.", 200, 50)
    assert only.text == "One sentence."
    assert windows("", 200, 50) == []
    (blank,) = windows(" \n ", 200, 50)
    assert blank.text == " \n "


@pytest.mark.parametrize(("most", "shared"), [(10, 10), (0, 0), (10, -1)])
def test_windows_that_cannot_be_are_refused(most: int, shared: int) -> None:
    with pytest.raises(UsageError, match="cannot share"):
        windows(TALE, most, shared)


def test_a_character_of_too_many_tokens_is_named() -> None:
    async def heavy(texts: Sequence[str]) -> list[int]:
        return [9 * len(text) for text in texts]

    with pytest.raises(UsageError, match="the character 'x'"):
        windows("x", 8, 2, heavy)


def test_a_counter_that_contradicts_itself_is_refused() -> None:
    calls: list[int] = []

    async def moody(texts: Sequence[str]) -> list[int]:
        calls.append(1)
        return [1 if len(calls) == 1 else 100 for _ in texts]

    with pytest.raises(UsageError, match="counted as more"):
        windows(TALE, 20, 5, moody)


def test_each_word_is_counted_once_and_time_grows_with_the_text_alone() -> None:
    asked: list[str] = []

    async def counting(texts: Sequence[str]) -> list[int]:
        asked.extend(texts)
        return await words(texts)

    found = windows(TALE * 20, 60, 20, counting)
    assert len(asked) < 2 * len(found) + 40
