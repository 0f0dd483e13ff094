from __future__ import annotations

import pytest

from mgl.retrieval.cues import find_speakers, remove_names
from mgl.types import Question


@pytest.mark.parametrize(
    ("question", "asker", "meant"),
    [
        ("When did I move?", None, {"user"}),
        ("What did you tell me?", None, {"user"}),
        ("When was the move?", None, set()),
        ("When did I move?", "assistant", {"assistant"}),
        ("When did I move?", "Cy", set()),
    ],
)
def test_of_a_talk_with_an_assistant_the_person_asks(
    question: str, asker: str | None, meant: set[str]
) -> None:
    assert find_speakers(Question(question, asker=asker), {"user", "assistant"}) == meant


def test_among_persons_nobody_knows_who_asks() -> None:
    assert find_speakers(Question("When did I move?"), {"Ann", "Bo"}) == set()


def test_names_of_speakers_are_removed_from_a_question() -> None:
    assert remove_names("Did Ann see Bo's horse?", ["Bo"]) == "Did Ann see horse?"
