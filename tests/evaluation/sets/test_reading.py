from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from mgl.evaluation.sets.reading import SummaryConfig, cut, summarised
from mgl.llm.base import Request
from mgl.observer import SilentObserver
from mgl.types import Document
from tests.evaluation.sets.judging import Judge, client

SIZES = SummaryConfig(chunk_tokens=64, summary_tokens=32)


def refuse(request: Request) -> str:
    raise AssertionError(request.messages[0].content)


@given(st.text("ab .", max_size=400), st.integers(1, 60))
async def test_a_cut_text_fits_and_keeps_both_ends(text: str, tokens: int) -> None:
    llm = client(Judge(refuse))
    kept = await cut(llm, text, tokens)
    assert (await llm.count_tokens([kept]))[0] <= tokens
    if kept != text:
        head, _, tail = kept.partition("\n\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert (await llm.count_tokens([text]))[0] > tokens


async def test_a_text_that_fits_is_not_summarised() -> None:
    document = Document.from_text("a.txt", "It rained. Ann came.")
    read = await summarised(client(Judge(refuse)), document, 40, SIZES, SilentObserver())
    assert read == document.text


async def test_summaries_are_summarised_until_they_fit() -> None:
    document = Document.from_text("a.txt", "Ann came to the old house again. " * 200)
    judge = Judge(lambda _: json.dumps({"summary": "Ann came, " + "and came " * 8 + "again."}))
    llm = client(judge)
    read = await summarised(llm, document, 60, SIZES, SilentObserver())
    assert (await llm.count_tokens([read]))[0] <= 60
    assert read.count("Ann came, and") >= 1
    texts = [prompt.partition("\n\nSummarise the text above")[0] for prompt in judge.prompts]
    assert any(text.startswith("Ann came, and") for text in texts), "a second level"
    assert "".join(texts).startswith("Ann came to the old house again. Ann came")


async def test_summaries_that_do_not_shorten_are_cut() -> None:
    document = Document.from_text("a.txt", "Ann came. " * 60)
    judge = Judge(lambda _: json.dumps({"summary": "word " * 240}))
    llm = client(judge)
    read = await summarised(llm, document, 50, SIZES, SilentObserver())
    assert (await llm.count_tokens([read]))[0] <= 50
    assert set(read) <= set("word \n")
    assert read.startswith("word word ")
