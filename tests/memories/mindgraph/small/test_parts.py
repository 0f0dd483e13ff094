from __future__ import annotations

import pytest

from mgl.memories.mindgraph.small.parts import all_parts, split_question


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who is Ann?", ["Who is Ann?"]),
        ("Who is Ann and where is Bo?", ["Who is Ann?", "Where is Bo?"]),
        ("Whom does Ann marry, and what is lost?", ["Whom does Ann marry?", "What is lost?"]),
        ("Why does Bo, who is ill, leave?", ["Why does Bo, who is ill, leave?"]),
        ("Who are Ann and Bo?", ["Who are Ann and Bo?"]),
        ("Tell me about Ann", ["Tell me about Ann"]),
        ("and who?", ["and who?"]),
    ],
)
def test_only_and_before_a_question_word_parts_a_question(question: str, parts: list[str]) -> None:
    assert split_question(question) == parts


def test_a_part_that_two_questions_share_is_read_for_once() -> None:
    parts = all_parts(["Who is Ann and where is Bo?", "Where is Bo?"])
    assert [part.text for part in parts] == ["Who is Ann?", "Where is Bo?"]
