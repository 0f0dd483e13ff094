from __future__ import annotations

import pytest

from mgl.evaluation.floors import TurnFloors
from mgl.retrieval.fakes import WordEmbedder
from mgl.types import Turn

SAID = [
    ("Ann", "Where did you go last summer?"),
    ("Bo", "To Rome, the ferry was late."),
    ("Ann", "And the museum?"),
    ("Bo", "Closed all week."),
    ("Ann", "I painted the harbour."),
    ("Bo", "I painted the harbour."),
]
TURNS = [Turn(f"t{n}", speaker, text) for n, (speaker, text) in enumerate(SAID)]


@pytest.fixture
def floors() -> TurnFloors:
    return TurnFloors(WordEmbedder(512), TURNS)


def test_all_turns_are_ranked(floors: TurnFloors) -> None:
    for ranked in (floors.embedding("the ferry"), floors.fused("the ferry")):
        assert sorted(ranked) == [turn.id for turn in TURNS]
        assert ranked[0] == "t1"


def test_a_turn_is_found_by_those_around_it(floors: TurnFloors) -> None:
    by_itself = floors.embedding("Was the museum closed?")
    around = floors.fused("Was the museum closed?")
    assert set(around[:2]) == {"t2", "t3"}
    assert by_itself.index("t2") < 2


def test_the_speaker_who_is_named_is_meant(floors: TurnFloors) -> None:
    assert floors.fused("What has Bo painted, the harbour?")[0] == "t5"
    assert floors.fused("What has ann painted, the harbour?")[0] == "t4"


def test_a_turn_without_a_speaker_is_nobodys() -> None:
    floors = TurnFloors(WordEmbedder(512), [Turn("t0", "", "Rome."), Turn("t1", "", "Bern.")])
    assert floors.fused("Bern?")[0] == "t1"
