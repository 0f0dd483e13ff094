"""Building a graph: what is found, what fails, what is interrupted, what it costs."""

from __future__ import annotations

import asyncio

import pytest

from mgl.errors import EngineTimeout, UsageError
from mgl.llm.base import Completion, Request
from mgl.memories.graph import DocumentGraph, GraphConfig
from mgl.memories.graph.build import NAME, NOUN
from mgl.store import Store
from mgl.types import Conversation, Question
from tests.memories.graph.conftest import (
    NOTHING,
    TALE,
    Answering,
    Hearing,
    Open,
    entity,
    find_failed,
    found,
    relation,
)

PAIR = found([entity("Ann"), entity("Bo", "A sailor.")], [relation("Ann", "Bo")])


def built(graph: DocumentGraph) -> DocumentGraph:
    asyncio.run(graph.build())
    return graph


def text_of(request: Request) -> str:
    return request.messages[0].content.split("The text:\n")[-1]


def test_a_graph_is_built_shown_and_searched(graph_of: Open, store: Store) -> None:
    graph = built(graph_of(TALE, Answering(lambda _: PAIR)))
    made = graph.graph()
    assert list(made.entities) == ["ann", "bo"]
    assert made.relations["ann|bo"].description == "They met."
    chunks = graph.chunks()
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert made.entities["ann"].chunks == tuple(range(len(chunks)))
    document = store.document(store.memory(graph.id).document_id)
    for mention in made.entities["ann"].mentions:
        chunk = chunks[mention.chunk]
        assert chunk.span.start <= mention.span.start < mention.span.end <= chunk.span.end
        assert document.quote(mention.span) in chunk.text
    index = asyncio.run(graph.index())
    vector = asyncio.run(index.embed("a sailor"))
    assert index.entities.nearest(vector, 1)[0][0] == "bo"
    idle = Answering(lambda _: NOTHING)
    again = built(graph_of(TALE, idle))
    assert (again.id, again.graph(), again.chunks()) == (graph.id, made, chunks)
    assert idle.requests == []
    view = graph.view()
    assert {node.kind for node in view.nodes} == {"person"}
    assert [(edge.source, edge.target) for edge in view.edges] == [("ann", "bo")]
    assert view.steps == len(chunks) == store.memory(graph.id).chunks
    assert find_failed(graph) == ()


def test_a_chunk_in_which_nothing_is_found_is_no_failure(graph_of: Open, hearing: Hearing) -> None:
    graph = built(graph_of(TALE, Answering(lambda _: NOTHING)))
    assert graph.is_built()
    assert find_failed(graph) == ()
    assert hearing.notes == []
    assert not graph.graph().entities
    assert graph.view().nodes == ()
    index = asyncio.run(graph.index())
    vector = asyncio.run(index.embed("Ann"))
    assert index.entities.nearest(vector, 5) == []
    assert index.chunks.nearest(vector, 1)


def test_an_invalid_reply_is_asked_for_once_more_then_recorded(
    graph_of: Open, store: Store, hearing: Hearing
) -> None:
    def reply(request: Request) -> object:
        return "no JSON" if "year 3" in text_of(request) else PAIR

    engine = Answering(reply)
    graph = built(graph_of(TALE, engine))
    failed = find_failed(graph)
    assert failed == tuple(c.index for c in graph.chunks() if "year 3" in c.text)
    assert failed
    assert graph.is_built()
    for number in failed:
        rows = [row for row in store.edits(graph.id) if row.chunk == number]
        assert [(row.op, row.outcome, row.reason) for row in rows] == [
            ("chunk", "applied", None),
            ("reply", "rejected", "reply_invalid"),
        ]
    told_at_once, *told_at_the_end = hearing.notes
    assert "read once more at the end" in told_at_once
    assert len(told_at_the_end) == len(failed)
    asked = [r.sampling.seed for r in engine.requests if "year 3" in text_of(r)]
    assert len(asked) == 2 * len(failed)
    assert len(set(asked)) == 2
    assert set(graph.graph().entities) == {"ann", "bo"}


def test_a_chunk_that_fails_once_is_read_at_the_end(graph_of: Open, hearing: Hearing) -> None:
    tried: set[str] = set()

    def reply(request: Request) -> object:
        text = text_of(request)
        if text not in tried:
            tried.add(text)
            raise EngineTimeout("too late", hint="wait")
        return PAIR

    engine = Answering(reply)
    graph = built(graph_of(TALE, engine))
    assert find_failed(graph) == ()
    assert len(hearing.notes) == 1
    assert len(engine.requests) == 2 * len(tried)
    assert graph.graph().entities["ann"].chunks == tuple(range(len(graph.chunks())))


def test_a_chunk_that_does_not_fit_the_context_is_recorded(graph_of: Open, store: Store) -> None:
    engine = Answering(lambda _: PAIR, context_tokens=1100)
    graph = built(graph_of(TALE, engine))
    assert find_failed(graph) == tuple(range(len(graph.chunks())))
    reasons = {row.reason for row in store.edits(graph.id) if row.op == "reply"}
    assert reasons == {"context_overflow"}


class Watched(Answering):
    """Counts how many requests are under way at once, at most."""

    now = most = 0

    async def generate(self, request: Request) -> Completion:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(3):
            await asyncio.sleep(0)
        self.now -= 1
        return await super().generate(request)


@pytest.mark.parametrize("at_once", [1, 5])
def test_so_many_chunks_are_read_at_once(graph_of: Open, at_once: int) -> None:
    engine = Watched(lambda _: NOTHING, concurrency=64)
    graph = built(graph_of(TALE, engine, in_flight=at_once))
    assert engine.most == at_once
    assert len(engine.requests) == len(graph.chunks())


def test_what_it_costs_is_told_without_a_call(graph_of: Open) -> None:
    engine = Answering(lambda _: PAIR)
    graph = graph_of(TALE, engine)
    before = asyncio.run(graph.estimate())
    assert engine.requests == []
    assert (before.output_tokens, before.seconds, before.basis) == (None, None, ())
    built(graph)
    assert before.calls == before.chunks == len(engine.requests)
    counts = [asyncio.run(engine.count_prompt_tokens(request)) for request in engine.requests]
    assert before.input_tokens == sum(counts)
    after = asyncio.run(graph.estimate())
    assert (after.done, after.calls, after.input_tokens) == (before.chunks, 0, 0)
    other = asyncio.run(graph_of(TALE * 2, engine).estimate())
    assert other.basis == (f"{before.calls} calls of this model on this machine",)
    assert (other.output_tokens or 0) > 0
    assert other.seconds is not None


def test_a_graph_takes_no_question_and_no_conversation(graph_of: Open) -> None:
    graph = graph_of(TALE, Answering(lambda _: PAIR))
    with pytest.raises(UsageError, match="same for every question") as refused:
        DocumentGraph(graph._tools, graph._document, [Question("Who?")])
    assert "hgmem" in refused.value.hint
    with pytest.raises(UsageError, match="conversation"):
        DocumentGraph(graph._tools, Conversation.from_name("talk"))
    with pytest.raises(UsageError, match="answers nothing by itself"):
        asyncio.run(graph.answer(Question("Who?")))


@pytest.mark.parametrize("wrong", [{"chunk_tokens": 50, "overlap_tokens": 50}, {"chunks": 3}])
def test_configurations_that_cannot_work_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"overlap|extra"):
        GraphConfig.model_validate(wrong)


def test_names_and_nouns_are_entities_and_sentences_relate_them(graph_of: Open) -> None:
    idle = Answering(lambda _: PAIR)
    made = built(graph_of(TALE, idle, extraction="terms"))
    assert not idle.requests
    graph = made.graph()
    kinds = {entity.id: entity.type for entity in graph.entities.values()}
    assert kinds == {"ann": NAME, "bo": NAME, "rome": NAME, "ring": NOUN}
    assert graph.neighbours("rome") == {"ann", "bo"}
    assert "Bo gave Ann a ring." in graph.relations["ann|ring"].description
    for each in graph.entities.values():
        for mention in each.mentions:
            assert each.id in TALE[mention.span.start : mention.span.end].lower()
    assert all(TALE[c.span.start : c.span.end] == c.text for c in made.chunks())
