"""System-1: each kind is searched by itself, by meaning and by words."""

from __future__ import annotations

from mgl.memories.mnemis.similarity import Similarity, Texts
from mgl.retrieval.fakes import WordEmbedder

TEXTS = Texts(
    {
        "episodes": {"0": "Ann: I went to Rome.", "1": "Bo: The ring was lost at sea."},
        "entities": {"e1": "Ann (person): went to Rome", "e2": "ring: was lost at sea"},
        "facts": {},
    }
)


async def test_each_kind_is_searched_by_itself() -> None:
    similarity = await Similarity.open(WordEmbedder(), TEXTS)
    query = "Who lost the ring?"
    vector = await similarity.vector(query)
    assert similarity.search("episodes", query, vector, 1) == ["1"]
    assert similarity.search("entities", query, vector, 2) == ["e2", "e1"]


async def test_a_kind_without_items_finds_nothing() -> None:
    similarity = await Similarity.open(WordEmbedder(), TEXTS)
    vector = await similarity.vector("ring")
    assert similarity.search("facts", "ring", vector, 5) == []
