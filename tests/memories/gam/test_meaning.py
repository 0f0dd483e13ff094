"""P_sem from the words around a turn and from likeness."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.memories.gam.reading import Contexts, remove_names
from mgl.retrieval.fakes import WordEmbedder
from mgl.types import Turn

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


async def test_a_turn_is_found_by_what_is_said_around_it() -> None:
    turns = [
        *said("I saw a horse.", "Oh yes!", "Something else.", "Much later.", "Oh no!"),
        *said("Oh no!", session="2"),
    ]
    likely = await Contexts(turns, ()).likely(WordEmbedder(), "a horse", ["Ann"], [1, 4, 5])
    assert likely.argmax() == 0
    beyond = await Contexts(turns, ()).likely(WordEmbedder(), "a horse", ["Ann"], [4, 5])
    assert beyond[0] == pytest.approx(beyond[1], abs=1e-6)


async def test_what_is_gone_lends_its_neighbours_nothing() -> None:
    turns = said("I saw a horse.", "Oh no!", "It rained.", "Well.", "Oh no!")
    there = await Contexts(turns, ()).likely(WordEmbedder(), "horse", [], [1, 4])
    gone = await Contexts(turns, {0}).likely(WordEmbedder(), "horse", [], [1, 4])
    assert there[0] > there[1]
    assert gone[0] == pytest.approx(gone[1], abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(WORDS, min_size=1, max_size=8), asked=WORDS)
async def test_the_chances_of_candidates_sum_to_one(
    texts: list[list[str]], asked: list[str]
) -> None:
    turns = said(*(" ".join(words) for words in texts))
    numbers = list(range(len(turns)))
    likely = await Contexts(turns, ()).likely(WordEmbedder(), " ".join(asked), [], numbers)
    assert likely.shape == (len(turns),)
    assert np.all(likely > 0)
    assert likely.sum() == pytest.approx(1)
