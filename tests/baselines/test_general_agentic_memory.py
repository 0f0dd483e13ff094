"""Abstracts of pages, and research over them."""

from __future__ import annotations

import re
from itertools import count

import pytest

from mgl.baselines.general_agentic_memory import GeneralAgenticMemory, GeneralAgenticMemoryConfig
from mgl.llm.base import Completion
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

CONFIG = GeneralAgenticMemoryConfig(page_tokens=100, k=1)


def researching(*enough: bool, pages: tuple[int, ...] = ()) -> Model:
    """Abstracts name their page's first town; each reflection replies as given."""
    left, rounds = list(enough), count(1)

    def reply(prompt: str) -> str:
        if "Write one paragraph" in prompt:
            page = prompt.split("The next page:")[1]
            return said(notes=f"about {re.findall('town [0-9]+|ring', page)[0]}")
        if "Plan how" in prompt:
            return said(words=["ring"], questions=["Who lost the ring?"], pages=list(pages))
        if "Write down all" in prompt:
            return said(notes=f"Carl lost it, says round {next(rounds)}")
        if "Is that enough" in prompt:
            return said(enough=left.pop(0), requests=["the owner of the ring"])
        return answered(prompt)

    return reply


async def test_each_page_has_an_abstract_that_saw_those_before(store: Store) -> None:
    mine, engine = asking(store, researching())
    memory = GeneralAgenticMemory(mine, BOOK, (), CONFIG)
    await memory.build()
    rows = sorted(store.edits(memory.id), key=lambda row: row.chunk)
    spans = [row.span for row in rows if row.span is not None]
    assert "".join(BOOK.quote(span) for span in spans) == BOOK.text
    asked = prompts(engine)
    assert "(nothing yet)" in asked[0]
    assert f"Page 2: {rows[1].payload['text']}" in asked[2]
    assert len(asked) == len(rows)


async def test_research_goes_on_until_it_is_enough(store: Store) -> None:
    mine, engine = asking(store, researching(False, True))
    answer = await GeneralAgenticMemory(mine, BOOK, (), CONFIG).answer(QUESTION)
    plans = [prompt for prompt in prompts(engine) if "Plan how" in prompt]
    assert f"Wanted: {QUESTION.text}" in plans[0]
    assert "Wanted: the owner of the ring" in plans[1]
    integrated = [prompt for prompt in prompts(engine) if "Write down all" in prompt]
    assert all("Carl lost the ring" in prompt for prompt in integrated)
    assert "Known so far: Carl lost it, says round 1" in integrated[1]
    assert len(answer.trace) == 2
    assert "Carl lost it, says round 2" in prompts(engine)[-1]
    assert answer.compaction_ratio is not None
    assert 0 < answer.compaction_ratio < 1


async def test_it_ends_after_three_rounds_and_reads_pages_that_are_named(store: Store) -> None:
    mine, _ = asking(store, researching(False, False, False, pages=(1,)))
    answer = await GeneralAgenticMemory(mine, BOOK, (), CONFIG).answer(QUESTION)
    assert len(answer.trace) == CONFIG.rounds
    last = max(int(n) for n in re.findall(r"\d+", answer.trace[0].split("pages")[1]))
    assert answer.trace[0] == f"round 1: pages {last}, 0"


async def test_a_session_is_a_page_and_failures_fall_back(store: Store) -> None:
    mine, _ = asking(store, silent(researching(), "one paragraph", "Plan how", "Is that enough"))
    memory = GeneralAgenticMemory(mine, TALK, (), CONFIG)
    answer = await memory.answer(QUESTION)
    rows = store.edits(memory.id)
    assert len(rows) == len({turn.session for turn in TALK.turns})
    assert {row.outcome for row in rows} == {"repaired"}
    assert rows[0].payload["text"].startswith("(Monday, 08 May 2023) Bo: I went to town 0")
    assert answer.trace[0].startswith("round 1: pages 3")  # by the question's own words


@pytest.mark.parametrize(
    ("page", "context", "marks", "reasons"),
    [
        (500, 32_768, (), {None}),
        (500, 2_600, ("pages_cut",), {None}),
        (500, 1_300, ("pages_cut",), {None, "page_cut"}),
        (64, 1_430, ("abstracts_cut",), {None}),
    ],
)
async def test_a_page_that_is_cut_is_marked(
    store: Store, page: int, context: int, marks: tuple[str, ...], reasons: set[str | None]
) -> None:
    others = researching(True)

    def reply(prompt: str) -> str | Completion:
        is_page = "Write one paragraph" in prompt
        return said(notes="about a town and a walker") if is_page else others(prompt)

    mine, _ = asking(store, reply, context)
    config = GeneralAgenticMemoryConfig(page_tokens=page, k=1)
    memory = GeneralAgenticMemory(mine, BOOK, (), config)
    answer = await memory.answer(QUESTION)
    assert answer.marks == marks
    assert {row.reason for row in store.edits(memory.id)} == reasons
