"""Chunks by their vectors."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mgl.baselines.naive_rag import NaiveRag, NaiveRagConfig
from mgl.errors import ContextOverflow
from mgl.llm.calls import MemoryCallLog
from mgl.store import Store
from mgl.text import window_document
from tests.baselines.asking import BOOK, QUESTION, TALK, answered, asking, prompts


async def test_the_best_chunks_are_read_in_the_order_of_the_text(store: Store) -> None:
    mine, engine = asking(store, answered)
    rag = NaiveRag(mine, BOOK, [QUESTION], NaiveRagConfig(chunk_tokens=40, overlap_tokens=10, k=3))
    answer = await rag.answer(QUESTION)
    windows = await window_document(BOOK, 40, 10, mine.llm.count_tokens)
    assert [row.span for row in store.edits(rag.id)] == [chunk.span for chunk in windows]
    (prompt,) = prompts(engine)
    read = [chunk for chunk in windows if " ".join(chunk.text.split()) in prompt]
    assert len(read) == 3
    assert windows[-1] in read
    places = [prompt.index(" ".join(chunk.text.split())) for chunk in read]
    assert places == sorted(places)
    assert answer.text == "Carl."
    assert "Carl" in answer.citations[0].quote
    assert BOOK.quote(answer.citations[0].span) == answer.citations[0].quote
    assert answer.compaction_ratio is not None
    assert 0 < answer.compaction_ratio < 0.3
    assert f"read 3 of {len(windows)} chunks" in answer.trace[0]


async def test_an_answer_that_declines_cites_nothing_of_a_document(store: Store) -> None:
    mine, _ = asking(store, lambda _prompt: "Carl was not mentioned")
    question = replace(QUESTION, unknown="Carl was not mentioned.")
    answer = await NaiveRag(mine, BOOK, [question]).answer(question)
    assert answer.citations == ()
    assert answer.retrieved


async def test_chunks_are_ranked_by_words_as_well_where_that_is_asked_for(store: Store) -> None:
    mine, _ = asking(store, answered)
    config = NaiveRagConfig(chunk_tokens=40, overlap_tokens=10, k=3, ranking="both")
    answer = await NaiveRag(mine, BOOK, [QUESTION], config).answer(QUESTION)
    assert "Carl" in answer.citations[0].quote
    assert answer.trace[0] == "chunks by words and vectors"


async def test_a_conversation_is_read_in_groups_and_cited(store: Store) -> None:
    mine, engine = asking(store, answered)
    config = NaiveRagConfig(k=1, chunk_tokens=60, overlap_tokens=20)
    rag = NaiveRag(mine, TALK, (), config)
    answer = await rag.answer(QUESTION)
    (prompt,) = prompts(engine)
    assert "(Thursday, 11 May 2023) Ann: Carl lost the ring" in prompt
    assert "town 1 " not in prompt
    (citation,) = answer.citations
    assert citation.quote == TALK.transcript.quote(citation.span)
    assert "Carl lost the ring" in citation.quote
    assert citation.node_id.startswith("chunk-")
    assert answer.compaction_ratio is not None


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(k=st.integers(1, 30), most=st.integers(40, 300), context=st.integers(560, 1200))
async def test_what_is_read_keeps_to_k_and_the_cap_in_any_context(
    store: Store, k: int, most: int, context: int
) -> None:
    mine, engine = asking(store, answered, context, log=MemoryCallLog())
    config = NaiveRagConfig(chunk_tokens=40, overlap_tokens=10, k=k, most_tokens=most)
    rag = NaiveRag(mine, BOOK, (), config)
    try:
        await rag.answer(QUESTION)
    except ContextOverflow:
        assert context < 680 + 8 * k
        return
    (request,) = engine.requests[-1:]
    read = request.messages[-1].content.partition("\n\nAnswer the question")[0].split("\n\n")
    assert 1 <= len(read) <= k
    assert sum(await mine.llm.count_tokens([text.partition("] ")[2] for text in read])) <= most
