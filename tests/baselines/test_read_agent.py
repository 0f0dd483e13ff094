"""Pages, gists, and pages that are read again."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mgl.baselines.read_agent import ReadAgent, ReadAgentConfig
from mgl.llm.base import Completion
from mgl.llm.calls import MemoryCallLog
from mgl.store import Store
from tests.baselines.asking import (
    BOOK,
    QUESTION,
    TALK,
    Model,
    answered,
    asking,
    prompts,
    said,
    silent,
)

SMALL = ReadAgentConfig(page_tokens=256, least_tokens=60, gist_tokens=20)


def reading(*pages: int, pause: int = 1) -> Model:
    """Pauses at the same of the places each time; a gist is the first words of its page. Looks up
    these pages."""

    def reply(prompt: str) -> str:
        if '"pause"' in prompt:
            return said(pause=pause)
        if "Shorten this passage" in prompt:
            return said(notes=f"gist: {' '.join(prompt.split('nothing.')[1].split()[:4])}")
        if '"pages"' in prompt:
            return said(pages=pages)
        return answered(prompt)

    return reply


def marks(prompt: str) -> int:
    return len(re.findall(r"^<\d+>$", prompt, re.MULTILINE))


async def test_pages_end_where_the_model_pauses(store: Store) -> None:
    mine, engine = asking(store, reading(pause=2))
    method = ReadAgent(mine, BOOK, (), SMALL)
    await method.build()
    rows = store.edits(method.id)
    pages = [row for row in rows if row.op == "page"]
    spans = [row.span for row in pages if row.span is not None]
    assert "".join(BOOK.quote(span) for span in spans) == BOOK.text
    assert all(row.outcome == "applied" for row in pages)
    asked = [prompt for prompt in prompts(engine) if '"pause"' in prompt]
    for prompt, span in zip(asked, spans, strict=False):
        before, _, _ = prompt.partition("<2>\n")
        assert before.strip().endswith(BOOK.quote(span).strip()[-20:])
        assert marks(prompt) >= 2
    gists = [row for row in rows if row.op == "gist"]
    assert [row.span for row in sorted(gists, key=lambda row: row.chunk)] == spans
    assert len(store.chunks_done(method.id)) == 2 * len(spans)


@pytest.mark.heavy
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pause=st.integers(1, 9),
    sizes=st.tuples(st.integers(256, 700), st.integers(1, 700)).filter(lambda s: s[1] <= s[0]),
)
async def test_pages_keep_to_their_bounds(store: Store, pause: int, sizes: Sequence[int]) -> None:
    """A pause that is no place is no reply; the page is as long as it may be then."""
    mine, _ = asking(store, reading(pause=pause), log=MemoryCallLog())
    config = ReadAgentConfig(page_tokens=sizes[0], least_tokens=sizes[1])
    method = ReadAgent(mine, BOOK, (), config)
    await method.build()
    rows = [row for row in store.edits(method.id) if row.op == "page"]
    texts = [BOOK.quote(row.span) for row in rows if row.span is not None]
    assert "".join(texts) == BOOK.text
    counts = await mine.llm.count_tokens(texts)
    assert all(count <= sizes[0] for count in counts)
    pieces = sizes[0] // 8
    assert all(count >= min(sizes[1], sizes[0] - pieces) - pieces for count in counts[:-1])


async def test_pages_are_looked_up_and_answered_from(store: Store) -> None:
    mine, engine = asking(store, reading(3, 1))
    method = ReadAgent(mine, BOOK, (), SMALL)
    answer = await method.answer(QUESTION)
    rows = store.edits(method.id)
    pages = [BOOK.quote(row.span) for row in rows if row.op == "page" and row.span is not None]
    shown = prompts(engine)[-1].split("\n\nAnswer the question")[0].split("\n\n")
    assert len(shown) == len(pages) > 3
    for number, (text, page) in enumerate(zip(shown, pages, strict=True), 1):
        if number in (1, 3):
            assert text == f"[{number}] {' '.join(page.split())}"
        else:
            assert text == f"[{number}] gist: {' '.join(page.split()[:4])}"
    assert answer.trace == ("page 3 looked up", "page 1 looked up")
    assert (answer.text, answer.marks) == ("Carl.", ())
    (first,) = (r for r in engine.requests if "what you remember" in r.messages[-1].content)
    total = (await mine.llm.count_tokens([BOOK.text]))[0]
    assert answer.compaction_ratio == await engine.count_prompt_tokens(first) / total


async def test_a_conversation_is_paged_and_its_pages_cited(store: Store) -> None:
    mine, engine = asking(store, reading(1))
    answer = await ReadAgent(mine, TALK, (), SMALL).answer(QUESTION)
    (citation,) = answer.citations
    assert citation.node_id == "page-1"
    assert citation.quote == TALK.transcript.quote(citation.span)
    assert "(Monday, 08 May 2023) Bo: I went to town 0" in prompts(engine)[-1]
    gist = await ReadAgent(mine, TALK, (), SMALL.model_copy(update={"look_ups": 0})).answer(
        QUESTION
    )
    assert gist.citations == ()
    assert gist.trace == ()
    assert gist.compaction_ratio is not None


async def test_pages_that_do_not_fit_are_left_out(store: Store) -> None:
    mine, _ = asking(store, reading(1, 2, 3, 4), context=1096)
    answer = await ReadAgent(mine, BOOK, (), SMALL).answer(QUESTION)
    assert "pages_left_out" in answer.marks
    assert "page 1 looked up" in answer.trace


async def test_gists_that_do_not_fit_are_cut(store: Store) -> None:
    def long(prompt: str) -> str | Completion:
        if "Shorten" in prompt:
            return said(notes="gist " * 240)
        return reading()(prompt)

    mine, _ = asking(store, long, context=1500)
    config = ReadAgentConfig(page_tokens=256, least_tokens=60, gist_tokens=240)
    answer = await ReadAgent(mine, BOOK, (), config).answer(QUESTION)
    assert answer.marks == ("gists_cut",)


async def test_what_the_model_does_not_say_is_marked(store: Store) -> None:
    mine, _ = asking(store, silent(answered, "Shorten", '"pause"', "what you remember"))
    method = ReadAgent(mine, BOOK, (), SMALL)
    answer = await method.answer(QUESTION)
    assert answer.marks == ("gists_missing", "look_up_failed")
    assert answer.text == "Carl."
    outcomes = {(row.op, row.outcome) for row in store.edits(method.id)}
    assert {("page", "repaired"), ("gist", "repaired")} <= outcomes
