from __future__ import annotations

import pytest

from mgl.retrieval.cues import find_speakers, list_queries, remove_names
from mgl.types import Question, Turn


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


def test_a_deleted_question_is_known_in_every_form_it_was_searched_in() -> None:
    turns = [Turn("1", "Ann Lee", "Hello."), Turn("2", "Bo", "Did Ann see Bo's horse?")]
    assert list_queries(turns, [1]) == {
        "Did Ann see Bo's horse?",
        "Did see Bo's horse?",
        "Did see horse?",
    }
    assert remove_names(turns[1].text, ["Bo"]) == "Did Ann see horse?"
