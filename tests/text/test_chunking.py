from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.text import chunk_document
from mgl.types import Document

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
    with pytest.raises(UsageError, match="hold nothing"):
        await chunk_document(Document.from_text("a.txt", "a"), limit, characters)


async def test_a_character_larger_than_the_limit() -> None:
    with pytest.raises(UsageError, match="which has 4") as caught:
        await chunk_document(Document.from_text("a.txt", "It 🙂"), 3, utf8)
    assert "at least 4" in caught.value.hint


async def test_a_counter_that_changes_its_mind_is_told() -> None:
    calls = 0

    async def rising(texts: Sequence[str]) -> list[int]:
        nonlocal calls
        calls += 1
        return [calls * 4 for _ in texts]

    with pytest.raises(UsageError, match="the same count"):
        await chunk_document(Document.from_text("a.txt", "It rained."), 4, rising)
