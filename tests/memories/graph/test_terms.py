"""A graph of names and nouns, made without a model."""

from __future__ import annotations

from mgl.llm.fakes import ScriptedEngine
from mgl.memories.graph.build import NAME, NOUN
from tests.memories.graph.conftest import TALE, Open

NO_CALLS = ScriptedEngine([])


async def test_names_and_nouns_are_entities_and_sentences_relate_them(graph_of: Open) -> None:
    built = graph_of(TALE, NO_CALLS, extraction="terms")
    await built.build()
    graph = built.graph()
    kinds = {entity.id: entity.type for entity in graph.entities.values()}
    assert kinds == {"ann": NAME, "bo": NAME, "rome": NAME, "ring": NOUN}
    assert graph.neighbours("rome") == {"ann", "bo"}
    assert "Bo gave Ann a ring." in graph.relations["ann|ring"].description


async def test_every_mention_is_a_sentence_that_has_the_name(graph_of: Open) -> None:
    built = graph_of(TALE, NO_CALLS, extraction="terms")
    await built.build()
    for entity in built.graph().entities.values():
        for mention in entity.mentions:
            assert entity.id in TALE[mention.span.start : mention.span.end].lower()
    for chunk in built.chunks():
        assert TALE[chunk.span.start : chunk.span.end] == chunk.text


async def test_a_text_without_terms_has_an_empty_graph(graph_of: Open) -> None:
    built = graph_of("it rained and it rained.", NO_CALLS, extraction="terms")
    await built.build()
    assert built.graph().entities == {}
    assert built.is_built()
    assert (await built.estimate()).calls == 0
