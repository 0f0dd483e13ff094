from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.text import chunk_document
from mgl.text.chunks import window_document
from mgl.types import Chunk, Document

PIECES = st.sampled_from(
    [
        "It rained",
        ". ",
        "! ",
        "\n",
        "\r\n",
        "\n\n",
        "\r\n\r\n",
        " ",
        "e\u0301",
        "👩‍👩‍👧",
        "。",
        "x" * 40,
    ]
)
TEXTS = st.one_of(st.text(max_size=120), st.lists(PIECES, max_size=60).map("".join))


class Words:
    """Counts words (a run of white space counts with the word before it) and notes its batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    async def __call__(self, texts: Sequence[str]) -> list[int]:
        self.batches.append(list(texts))
        return [max(1, len(text.split())) if text else 0 for text in texts]


async def characters(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


async def utf8(texts: Sequence[str]) -> list[int]:
    return [len(text.encode("utf-8", "surrogatepass")) for text in texts]


async def more_than_their_sum(texts: Sequence[str]) -> list[int]:
    """Joined texts have more tokens than their parts."""
    return [len(text) + len(text) // 10 for text in texts]


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, limit=st.integers(4, 40))
@pytest.mark.parametrize("count", [characters, utf8, more_than_their_sum])
async def test_chunks_are_the_text_and_within_the_limit(text: str, limit: int, count) -> None:
    document = Document.from_text("a.txt", text)
    chunks = await chunk_document(document, limit, count)
    assert "".join(chunk.text for chunk in chunks) == text
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert all(document.quote(chunk.span) == chunk.text for chunk in chunks)
    assert [chunk.tokens for chunk in chunks] == await count([chunk.text for chunk in chunks])
    assert all(chunk.tokens <= limit for chunk in chunks)


async def ends(text: str, limit: int) -> list[str]:
    chunks = await chunk_document(Document.from_text("a.txt", text), limit, Words())
    return [chunk.text for chunk in chunks]


async def test_a_text_that_fits_is_one_chunk() -> None:
    assert await ends("It rained.\n\nIt stopped.", 4) == ["It rained.\n\nIt stopped."]


async def test_chunks_end_at_a_paragraph_rather_than_at_a_later_sentence() -> None:
    text = "One two three. Four five six.\n\nSeven eight. Nine ten eleven twelve thirteen."
    assert await ends(text, 9) == [
        "One two three. Four five six.\n\n",
        "Seven eight. Nine ten eleven twelve thirteen.",
    ]


async def test_chunks_end_at_a_sentence_where_no_paragraph_ends() -> None:
    text = "One two three. Four five six. Seven eight nine. Ten eleven."
    assert await ends(text, 7) == [
        "One two three. Four five six. ",
        "Seven eight nine. Ten eleven.",
    ]


async def test_an_early_paragraph_does_not_leave_a_chunk_half_empty() -> None:
    text = "One.\n\n" + "Two three four. Five six seven. Eight nine ten."
    assert (await ends(text, 8))[0] == "One.\n\nTwo three four. Five six seven. "


async def test_a_chunk_does_not_end_with_a_heading() -> None:
    text = "One two three four.\n\nCHAPTER II\n\nFive six seven eight nine."
    assert await ends(text, 7) == [
        "One two three four.\n\n",
        "CHAPTER II\n\nFive six seven eight nine.",
    ]


async def test_an_endless_sentence_is_cut_between_words() -> None:
    chunks = await ends("word " * 100, 8)
    assert all(chunk.endswith("word ") and chunk.startswith("word") for chunk in chunks)
    assert len(chunks) <= 25


async def test_a_word_without_end_is_cut_between_characters() -> None:
    text = "e\u0301" * 30
    chunks = await chunk_document(Document.from_text("a.txt", text), 9, characters)
    assert all(not chunk.text.startswith("\u0301") for chunk in chunks)


async def test_counts_are_asked_for_in_few_batches_of_few_texts() -> None:
    count = Words()
    text = "\n\n".join("It rained on and on. It stopped." for _ in range(500))
    chunks = await chunk_document(Document.from_text("a.txt", text), 100, count)
    assert len(count.batches) <= 3
    assert len(count.batches[0]) == 500
    assert count.batches[-1] == [chunk.text for chunk in chunks]


async def test_nothing_gives_no_chunks() -> None:
    assert await chunk_document(Document.from_text("a.txt", ""), 8, characters) == []


async def test_white_space_is_kept() -> None:
    assert "".join(await ends(" \n\n\t ", 1)) == " \n\n\t "


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_that_holds_nothing(limit: int) -> None:
    with pytest.raises(UsageError):
        await chunk_document(Document.from_text("a.txt", "a"), limit, characters)


async def test_a_character_larger_than_the_limit() -> None:
    with pytest.raises(UsageError) as caught:
        await chunk_document(Document.from_text("a.txt", "It 🙂"), 3, utf8)
    assert "at least 4" in caught.value.hint


async def test_a_counter_that_changes_its_mind_is_told() -> None:
    calls = 0

    async def rising(texts: Sequence[str]) -> list[int]:
        nonlocal calls
        calls += 1
        return [calls * 4 for _ in texts]

    with pytest.raises(UsageError):
        await chunk_document(Document.from_text("a.txt", "It rained."), 4, rising)


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
    with pytest.raises(UsageError):
        windows(TALE, most, shared)


def test_a_character_of_too_many_tokens_is_named() -> None:
    async def heavy(texts: Sequence[str]) -> list[int]:
        return [9 * len(text) for text in texts]

    with pytest.raises(UsageError):
        windows("x", 8, 2, heavy)


def test_a_counter_that_contradicts_itself_is_refused() -> None:
    calls: list[int] = []

    async def moody(texts: Sequence[str]) -> list[int]:
        calls.append(1)
        return [1 if len(calls) == 1 else 100 for _ in texts]

    with pytest.raises(UsageError):
        windows(TALE, 20, 5, moody)


def test_each_word_is_counted_once_and_time_grows_with_the_text_alone() -> None:
    asked: list[str] = []

    async def counting(texts: Sequence[str]) -> list[int]:
        asked.extend(texts)
        return await words(texts)

    found = windows(TALE * 20, 60, 20, counting)
    assert len(asked) < 2 * len(found) + 40
