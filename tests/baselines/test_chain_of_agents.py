"""Workers in a row, and a manager."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mgl.baselines.chain_of_agents import NOTHING, ChainOfAgents, ChainOfAgentsConfig
from mgl.errors import ContextOverflow
from mgl.llm.base import Completion
from mgl.llm.calls import MemoryCallLog
from mgl.store import Store
from mgl.text import chunk_document
from tests.baselines.asking import BOOK, QUESTION, answered, asking, nothing, prompts, said

SMALL = ChainOfAgentsConfig(chunk_tokens=200, note_tokens=40)


def part(prompt: str) -> str:
    return prompt.partition("You read part ")[2].partition(" ")[0]


def working(prompt: str) -> str:
    """A worker's notes are its number; the manager says what it is shown."""
    return said(notes=f"notes of worker {part(prompt)}") if part(prompt) else answered(prompt)


async def test_each_worker_reads_its_chunk_and_the_notes_before(store: Store) -> None:
    mine, engine = asking(store, working)
    answer = await ChainOfAgents(mine, BOOK, (), SMALL).answer(QUESTION)
    chunks = await chunk_document(BOOK, 200, mine.llm.count_tokens)
    *workers, manager = prompts(engine)
    assert len(workers) == len(chunks) > 2
    for number, (prompt, chunk) in enumerate(zip(workers, chunks, strict=True), 1):
        assert chunk.text.strip() in prompt
        assert (f"notes of worker {number - 1}\n" if number > 1 else NOTHING) in prompt
        assert QUESTION.text in prompt
    assert manager.startswith(f"[1] notes of worker {len(chunks)}\n\n")
    assert manager.endswith(f"\n\nQuestion: {QUESTION.text}")
    assert "walker" not in manager
    assert answer.text == "Carl."
    assert answer.marks == answer.citations == ()
    assert len(answer.trace) == len(chunks)
    read = await engine.count_prompt_tokens(engine.requests[-1])
    assert answer.compaction_ratio == read / (await mine.llm.count_tokens([BOOK.text]))[0]


async def test_a_worker_that_says_nothing_passes_on_what_it_was_given(store: Store) -> None:
    def tired(prompt: str) -> str | Completion:
        return nothing(prompt) if part(prompt) == "2" else working(prompt)

    mine, engine = asking(store, tired)
    answer = await ChainOfAgents(mine, BOOK, (), SMALL).answer(QUESTION)
    third = next(prompt for prompt in prompts(engine) if part(prompt) == "3")
    assert "notes of worker 1\n" in third
    assert answer.marks == ("chunks_unread",)
    assert [("passed notes on" in line) for line in answer.trace][:3] == [True, False, True]


@pytest.mark.heavy
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chunk=st.integers(16, 900), notes=st.integers(16, 200), context=st.integers(500, 1500))
async def test_where_a_call_would_not_fit_the_context_none_is_made(
    store: Store, chunk: int, notes: int, context: int
) -> None:
    def talkative(prompt: str) -> str:
        return said(notes="word " * 300) if part(prompt) else answered(prompt)

    mine, engine = asking(store, talkative, context, log=MemoryCallLog())
    config = ChainOfAgentsConfig(chunk_tokens=chunk, note_tokens=notes)
    try:
        await ChainOfAgents(mine, BOOK, (), config).answer(QUESTION)
    except ContextOverflow:
        assert engine.requests == []
