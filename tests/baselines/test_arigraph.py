"""Triplets of sessions, and the sessions that hold those found."""

from __future__ import annotations

from math import log

import pytest

from mgl.baselines.arigraph import AriGraph, AriGraphConfig, Triplet, _search, _weigh
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.types import Conversation, Question, Turn
from tests.baselines.asking import answered, asking, prompts, said, silent

SESSIONS = ["Carl lost the ring", "The ring lies in Rome", "Dora found a coin", "Fog is on the sea"]
TALK = Conversation.from_turns(
    "talk", [Turn(f"t{n}", "Ann", line, None, f"{n}") for n, line in enumerate(SESSIONS)]
)
FACTS = {
    "Carl lost": ("Carl", "lost", "ring"),
    "lies in Rome": ("ring", "lies in", "Rome"),
    "Dora found": ("Dora", "found", "coin"),
}


def writing(prompt: str) -> str:
    if "as triplets" in prompt:
        told = prompt.partition("Ann: ")[2]
        facts = [fact for words, fact in FACTS.items() if words in told]
        named = [dict(zip(("subject", "relation", "object"), fact, strict=True)) for fact in facts]
        return said(triplets=named)
    if "should a search" in prompt:
        return said(entities=[{"name": "Carl", "depth": 2}])
    return answered(prompt)


async def test_triplets_lead_to_the_sessions_that_hold_them(store: Store) -> None:
    mine, engine = asking(store, writing)
    memory = AriGraph(mine, TALK)
    answer = await memory.answer(Question("Where is what he lost?"))
    written = [prompt for prompt in prompts(engine) if "as triplets" in prompt]
    assert "(none yet)" in written[0]
    assert "Carl lost ring" in written[1]
    last = prompts(engine)[-1]
    assert "Carl lost ring" in last
    assert "ring lies in Rome" in last
    assert "Ann: Carl lost the ring" in last
    assert answer.trace == ("search from Carl to depth 2",)
    assert answer.citations[0].quote == f"Ann: {SESSIONS[0]}"


async def test_a_search_goes_as_deep_as_it_is_told() -> None:
    triplets = [Triplet(*fact, n) for n, fact in enumerate(FACTS.values())]
    for depth, found in ((1, triplets[:1]), (2, triplets[:2])):
        assert await _search(WordEmbedder(), triplets, [("Carl", depth)], 0.3) == found
    assert await _search(WordEmbedder(), triplets, [("Carl", 3)], 0.9) == []


def test_a_session_weighs_by_its_share_of_triplets_found() -> None:
    triplets = [Triplet("a", "r", str(n), n % 2) for n in range(6)] + [Triplet("b", "r", "c", 2)]
    weights = _weigh(triplets, [triplets[0], triplets[2], triplets[6]], 4)
    assert weights.tolist() == pytest.approx([2 / 3 * log(3), 0, 0, 0])


async def test_a_session_that_gave_none_is_marked_and_can_be_found(store: Store) -> None:
    mine, _ = asking(store, silent(writing, "as triplets"))
    answer = await AriGraph(mine, TALK, (), AriGraphConfig()).answer(Question("Dora found a coin"))
    assert answer.marks == ("observations_unread",)
    assert "t2" in answer.retrieved
