from __future__ import annotations

import pytest

from mgl.retrieval.fakes import WordEmbedder
from mgl.retrieval.in_context import InContext

SAID = [
    ("Ann", "Where did you go last summer?"),
    ("Bo", "To Rome, the ferry was late."),
    ("Ann", "And the museum?"),
    ("Bo", "Closed all week."),
    ("Ann", "I painted the harbour."),
    ("Bo", "I painted the harbour."),
]


@pytest.fixture
def turns() -> InContext:
    lines = [f"{speaker}: {text}" for speaker, text in SAID]
    return InContext(WordEmbedder(512), lines, [speaker for speaker, _ in SAID])


def test_all_pieces_are_ranked(turns: InContext) -> None:
    for ranked in (turns.alike("the ferry"), turns.fused("the ferry")):
        assert sorted(ranked) == list(range(len(SAID)))
        assert ranked[0] == 1


def test_a_piece_is_found_by_those_around_it(turns: InContext) -> None:
    by_itself = turns.alike("Was the museum closed?")
    around = turns.fused("Was the museum closed?")
    assert set(around[:2]) == {2, 3}
    assert by_itself.index(2) < 2


def test_the_speaker_who_is_named_is_meant(turns: InContext) -> None:
    assert turns.fused("What has Bo painted, the harbour?")[0] == 5
    assert turns.fused("What has ann painted, the harbour?")[0] == 4


def test_a_piece_without_a_speaker_is_nobodys() -> None:
    pieces = InContext(WordEmbedder(512), ["Rome.", "Bern."], ["", ""])
    assert pieces.fused("Bern?")[0] == 1
