"""What commands print of an answer."""

from __future__ import annotations

import pytest

from mgl.cli.output import print_answer
from mgl.types import Answer, Citation, Conversation, Turn

TALK = Conversation.from_turns("talk", [Turn("1", "Ann", "I paint."), Turn("2", "Bo", "I see.")])


def test_an_answer_may_cite_a_turn_or_a_passage_of_several(
    capsys: pytest.CaptureFixture[str],
) -> None:
    turn = Citation("1", "talk", TALK.span(0), "I paint.")
    page = Citation("page-1", "talk", TALK.transcript.span(0, 24), "Ann: I paint.\nBo: I see.")
    print_answer(Answer("?", "Ann paints.", "medium", (turn, page)), TALK)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "Ann paints."
    assert "turn 1" in said[1]
    assert "page-1" in said[2]
    assert said[2].endswith("Ann: I paint. Bo: I see.”")
