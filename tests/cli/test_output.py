"""What is printed of an answer."""

from __future__ import annotations

import pytest

from mgl.cli.output import print_answer, print_stats
from mgl.memories.results import Stats
from mgl.types import Answer, Document

TALE = Document.from_text("tale.txt", "Ann lost the ring at sea. Bo wept.")


def test_a_passage_that_two_nodes_stand_on_is_printed_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lost, wept = TALE.span(0, 25), TALE.span(26, 34)
    cited = (TALE.cite("ring", lost), TALE.cite("ann", lost), TALE.cite("bo", wept))
    print_answer(Answer("Where?", "At sea.", None, cited))
    said = capsys.readouterr().out
    assert said.count("Ann lost the ring at sea.") == 1
    assert said.index("(ring)") < said.index("(bo)")
    assert "confidence" not in said


def test_doubt_stands_before_the_guess_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    answer = Answer(
        *("Where and who?", "At sea. A pirate stole it.", None),
        (TALE.cite("ring", TALE.span(0, 25)),),
        marks=("unconfirmed",),
        guesses=("A pirate stole it.",),
    )
    print_answer(answer)
    said = capsys.readouterr().out
    assert said.startswith("At sea. Not found in the text; the model's guess: A pirate stole it.\n")
    assert "unconfirmed" not in said


@pytest.mark.parametrize(
    ("applied", "chunks", "turns", "said"),
    [
        (32, 0, None, "32 passages indexed"),
        (0, 1, None, "1 passage indexed"),
        (5, 0, 5, "5 turns indexed"),
        (0, 0, None, "the text is read as it is"),
    ],
)
def test_a_memory_without_a_graph_says_what_it_indexes(
    capsys: pytest.CaptureFixture[str], applied: int, chunks: int, turns: int | None, said: str
) -> None:
    unit = "steps" if turns is None else "turns"
    print_stats(Stats(0, 0, chunks, applied, 0, {}), unit, turns)
    assert capsys.readouterr().out == f"{said}\n"
