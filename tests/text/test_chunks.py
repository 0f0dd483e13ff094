"""Chunks are the text; windows overlap. Both hold under any way of counting tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.text import chunk_document, window_document
from mgl.types import Chunk, Document
from tests.effort import within_cpu_seconds

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
TALE = "Ann met Bo in Rome.\n\nBo gave Ann a ring with a green stone. " * 40


async def words(texts: Sequence[str]) -> list[int]:
    """White space counts with the word before it."""
    return [max(1, len(text.split())) if text else 0 for text in texts]


async def characters(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


async def merging(texts: Sequence[str]) -> list[int]:
    """Fewer tokens together than alone, as most tokenizers."""
    return [-(-len(text.encode(errors="replace")) // 3) for text in texts]


async def clashing(texts: Sequence[str]) -> list[int]:
    """More tokens together than alone: what a sum of words does not tell."""
    return [len(text) + len(text.split()) // 3 for text in texts]


async def chunks(text: str, limit: int, count: Any = words) -> list[Chunk]:
    return await chunk_document(Document.from_text("a.txt", text), limit, count)


async def windows(text: str, most: int, shared: int, count: Any = words) -> list[Chunk]:
    return await window_document(Document.from_text("t", text), most, shared, count)


@given(text=TEXTS, limit=st.integers(4, 40))
@pytest.mark.parametrize("count", [characters, clashing])
async def test_chunks_are_the_text_and_within_the_limit(text: str, limit: int, count: Any) -> None:
    document, found = Document.from_text("a.txt", text), await chunks(text, limit, count)
    assert "".join(chunk.text for chunk in found) == text
    assert [chunk.index for chunk in found] == list(range(len(found)))
    assert all(document.quote(chunk.span) == chunk.text for chunk in found)
    assert [chunk.tokens for chunk in found] == await count([chunk.text for chunk in found])
    assert all(chunk.tokens <= limit for chunk in found)


@pytest.mark.parametrize(
    ("limit", "parts"),
    [
        (4, ["It rained.\n\nIt stopped."]),
        # at a paragraph rather than at a later sentence
        (9, ["One two three. Four five six.\n\n", "Seven eight. Nine ten eleven twelve thirteen."]),
        # at a sentence where no paragraph ends
        (7, ["One two three. Four five six. ", "Seven eight nine. Ten eleven."]),
        # an early paragraph does not leave a chunk half empty
        (8, ["One.\n\nTwo three four. Five six seven. ", "Eight nine ten."]),
        # not with a heading
        (7, ["One two three four.\n\n", "CHAPTER II\n\nFive six seven eight nine."]),
        (8, []),
    ],
)
async def test_where_chunks_end(limit: int, parts: list[str]) -> None:
    assert [chunk.text for chunk in await chunks("".join(parts), limit)] == parts


async def test_an_endless_sentence_is_cut_between_words_and_an_endless_word_between_letters() -> (
    None
):
    found = await chunks("word " * 100, 8)
    assert all(re.fullmatch(r"(word )+", chunk.text) for chunk in found)
    assert len(found) <= 25
    accented = await chunks("e\u0301" * 30, 9, characters)
    assert all(not chunk.text.startswith("\u0301") for chunk in accented)


@pytest.mark.parametrize("overlap", [None, 20])
async def test_counts_are_asked_for_in_few_batches_of_few_texts(overlap: int | None) -> None:
    batches: list[int] = []

    async def noting(texts: Sequence[str]) -> list[int]:
        batches.append(len(texts))
        return await words(texts)

    text = "\n\n".join("It rained on and on. It stopped." for _ in range(500))
    if overlap is None:
        found = await chunks(text, 100, noting)
        assert batches == [500, len(found)]
    else:
        found = await windows(text, 100, overlap, noting)
        assert sum(batches) < 2 * len(found) + 40


@given(
    text=st.text(st.sampled_from("ab é火。 \n\u0301\U0001f44d"), max_size=300) | TEXTS,
    most=st.integers(8, 40),
    shared=st.integers(0, 7),
)
@pytest.mark.parametrize("count", [words, characters, merging, clashing])
async def test_every_character_is_in_a_window_and_no_window_is_too_large(
    text: str, most: int, shared: int, count: Any
) -> None:
    found, covered = await windows(text, most, shared, count), 0
    assert [window.index for window in found] == list(range(len(found)))
    for window in found:
        assert window.span.start <= covered < window.span.end
        assert window.text == text[window.span.start : window.span.end]
        assert [window.tokens] == await count([window.text])
        assert window.tokens <= most
        covered = window.span.end
    assert covered == len(text)
    for before, after in pairwise(found):
        assert before.span.start < after.span.start
        common = text[after.span.start : before.span.end]
        assert not common or await count([common]) <= [shared]


@pytest.mark.parametrize("count", [words, characters, merging, clashing])
async def test_prose_is_cut_between_words_and_the_overlap_is_used(count: Any) -> None:
    found = await windows(TALE, 60, 20, count)
    for before, after in pairwise(found):
        assert TALE[after.span.start].isspace()
        assert before.span.end > after.span.start
    assert sum(window.tokens for window in found[:-1]) > 0.75 * 60 * (len(found) - 1)


async def test_the_papers_windows_overlap_by_fifty_of_two_hundred() -> None:
    found = await windows(" ".join(f"w{n}" for n in range(2000)), 200, 50)
    assert [window.tokens for window in found[:-1]] == [200] * (len(found) - 1)
    assert len(found) == -(-(2000 - 50) // 150)


@pytest.mark.parametrize(
    "text", ["火星に行った。" * 300, "x" * 2000, "\n" * 2000, "ab " * 3 + "y" * 999]
)
async def test_scripts_without_spaces_and_giants_are_divided(text: str) -> None:
    found = await windows(text, 40, 10, characters)
    assert all(window.tokens > 20 for window in found[:-1])


async def heavy(texts: Sequence[str]) -> list[int]:
    return [9 * len(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "most", "shared", "count"),
    [(TALE, 10, 10, words), (TALE, 0, 0, words), (TALE, 10, -1, words), ("x", 8, 2, heavy)],
)
async def test_sizes_that_cannot_work_are_refused(
    text: str, most: int, shared: int, count: Any
) -> None:
    with pytest.raises(UsageError):
        await windows(text, most, shared, count)
    if shared == 2 or not most:
        with pytest.raises(UsageError):
            await chunks(text, most, count)


async def test_a_counter_that_contradicts_itself_is_refused() -> None:
    calls = 0

    async def rising(texts: Sequence[str]) -> list[int]:
        nonlocal calls
        calls += 1
        return [1 if calls == 1 else 100 for _ in texts]

    with pytest.raises(RuntimeError):
        await chunks("It rained.", 4, rising)
    calls = 0
    with pytest.raises(RuntimeError):
        await windows(TALE, 20, 5, rising)


@pytest.mark.parametrize("shared", [0, 5])
async def test_a_tokenizer_that_marks_where_a_text_begins_ends_in_windows(shared: int) -> None:
    async def marking(texts: Sequence[str]) -> list[int]:
        return [1 + len(text.split()) for text in texts]

    with within_cpu_seconds(10):
        found = await windows(TALE, 20, shared, marking)
    assert "".join(TALE[each.span.start : each.span.end] for each in found).startswith(TALE[:40])
    assert max(1 + len(each.text.split()) for each in found) <= 20
