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


async def test_an_episode_is_found_by_what_stands_around_it() -> None:
    said = ["Ann: I saw a museum.", "Bo: When?", "Ann: On Monday.", "Bo: The ferry was late."]
    numbers = range(len(said))
    texts = Texts(
        {"episodes": {str(n): said[n] for n in numbers}, "entities": {}, "facts": {}},
        {str(n): said[n].partition(":")[0] for n in numbers},
    )
    similarity = await Similarity.open(WordEmbedder(), texts)
    order = await similarity.in_context("When did they see the museum?")
    assert sorted(order) == ["0", "1", "2", "3"]
    assert order[-1] == "3"
    assert (await similarity.in_context("What was said by Bo?"))[0] in ("1", "3")
