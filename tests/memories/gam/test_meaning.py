"""P_sem from the words around a turn and from likeness."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.base import Tools
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.reading import Reader, remove_names
from mgl.memories.gam.search import Search
from mgl.memories.gam.state import State
from mgl.observer import SILENT
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.types import Question, Turn

WORDS = st.lists(st.sampled_from("paint horse lake book garden kitchen".split()), min_size=1)


def said(*texts: str, session: str = "1") -> list[Turn]:
    return [Turn(str(n), "Ann", text, session=session) for n, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("When did Ann paint?", "When did paint?"),
        ("What is Ann's horse called?", "What is horse called?"),
        ("Did Anna paint?", "Did Anna paint?"),
        ("Where did Bo Smith go?", "Where did go?"),
    ],
)
def test_names_of_speakers_are_left_out(question: str, left: str) -> None:
    assert remove_names(question, ["Ann", "Bo Smith"]) == left


async def chances(
    turns: list[Turn], question: str, candidates: list[int], gone: Collection[int] = ()
) -> list[float]:
    """P_sem of some turns, the only ones that the buffer holds."""
    tools = Tools(
        llm=Client(ScriptedEngine([]), MemoryCallLog()),
        store=Store.open(Path(":memory:")),
        observer=SILENT,
        clock=lambda: 0.0,
        embedder=WordEmbedder(),
    )
    state = State(turns=len(turns), buffer=tuple(candidates), forgotten=frozenset(gone))
    config = GamConfig(preset="small", k=len(turns))
    reader = Reader(tools, state, turns, config, Search(tools, "test", config))
    events = (await reader.read(Question(question))).events
    likely = {event.turn: event.likely for event in events}
    return [likely[number] for number in candidates]


async def test_a_turn_is_found_by_what_is_said_around_it() -> None:
    turns = [
        *said("I saw a horse.", "Oh yes!", "Something else.", "Much later.", "Oh no!"),
        *said("Oh no!", session="2"),
    ]
    near, *far = await chances(turns, "a horse", [1, 4, 5])
    assert near > max(far)
    assert far[0] == pytest.approx(far[1], abs=1e-6)


async def test_what_is_gone_lends_its_neighbours_nothing() -> None:
    turns = said("I saw a horse.", "Oh no!", "It rained.", "Well.", "Oh no!")
    near, far = await chances(turns, "horse", [1, 4])
    assert near > far
    near, far = await chances(turns, "horse", [1, 4], gone={0})
    assert near == pytest.approx(far, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(WORDS, min_size=1, max_size=8), asked=WORDS)
async def test_the_chances_of_candidates_sum_to_one(
    texts: list[list[str]], asked: list[str]
) -> None:
    turns = said(*(" ".join(words) for words in texts))
    likely = await chances(turns, " ".join(asked), list(range(len(turns))))
    assert min(likely) > 0
    assert sum(likely) == pytest.approx(1)
