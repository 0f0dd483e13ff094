"""System-1: each kind is searched by itself, by meaning and by words."""

from __future__ import annotations

from mgl.memories.mnemis.edits import AddEntity, AddEpisode, Describe, Repeat, replay
from mgl.memories.mnemis.retrieval import Index
from mgl.memories.mnemis.state import Episode, Mention, State
from mgl.retrieval.fakes import WordEmbedder
from mgl.types import Conversation, Turn


def state_of(talk: Conversation) -> State:
    return replay(
        AddEpisode(Episode(number, talk.span(number), (number,)))
        for number in range(len(talk.turns))
    )


def talk_of(*said: str) -> Conversation:
    turns = [Turn(str(n), *text.split(": ")) for n, text in enumerate(said)]
    return Conversation("talk", "talk", tuple(turns))


TALK = talk_of("Ann: I went to Rome.", "Bo: The ring was lost at sea.")


async def test_an_index_that_grows_finds_what_one_that_is_built_at_once_does() -> None:
    names = ("ferry", "ring", "museum")
    at = Mention(0, state_of(TALK).episodes[0].span)
    edits = [
        *(AddEntity(f"e{n}", name, at) for n, name in enumerate(names, 1)),
        Describe("e1", "A boat to Rome.", ("boat",)),
        Describe("e3", "Lost at sea.", ()),
        Repeat("e2", at, "gold ring"),
    ]
    states = [replay(edits[:count], state_of(TALK)) for count in range(len(edits) + 1)]
    growing, whole = Index(WordEmbedder()), Index(WordEmbedder())
    for state in states:
        growing.update(state, TALK)
    whole.update(states[-1], TALK)
    for query in ("boat", "lost ring", "museum"):
        vector = await whole.embed(query)
        for kind in ("episodes", "entities"):
            found = growing.search(kind, query, vector, 9)
            assert found == whole.search(kind, query, vector, 9)


async def test_an_episode_is_found_by_what_stands_around_it() -> None:
    talk = talk_of(
        "Ann: I saw a museum.", "Bo: When?", "Ann: On Monday.", "Bo: The ferry was late."
    )
    index = Index(WordEmbedder(), in_context=True)
    index.update(state_of(talk), talk)
    order = await index.rank_in_context("When did they see the museum?")
    assert sorted(order) == ["0", "1", "2", "3"]
    assert order[-1] == "3"
    assert (await index.rank_in_context("What was said by Bo?"))[0] in ("1", "3")
