from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.retrieval.fakes import WordEmbedder
from mgl.retrieval.turns import JUDGED, LONG_CHARS, TurnIndex, rank_turns
from mgl.store import Store
from mgl.types import Question, Turn

MAY = datetime(2023, 5, 8, 9)


def talk(*said: tuple[str, str], session: str = "1") -> list[Turn]:
    return [Turn(str(n), speaker, text, MAY, session) for n, (speaker, text) in enumerate(said)]


TURNS = talk(
    ("Ann", "Where did you go last summer?"),
    ("Bo", "To Rome, the ferry was late."),
    ("Ann", "And the museum?"),
    ("Bo", "Closed all week."),
    ("Ann", "I painted the harbour."),
    ("Bo", "I painted the harbour."),
)


def index_of(turns: list[Turn]) -> TurnIndex:
    index = TurnIndex(WordEmbedder(512))
    index.add_turns(turns, range(len(turns)))
    return index


async def rank(
    turns: list[Turn], question: str | Question, index: TurnIndex | None = None
) -> list[int]:
    asked = Question(question) if isinstance(question, str) else question
    scores = await rank_turns(asked, turns, index or index_of(turns))
    ranked: list[int] = np.argsort(-scores, kind="stable").tolist()
    return ranked


async def test_a_turn_is_found_by_those_around_it() -> None:
    turns = talk(
        *[("Ann", text) for text in ("A museum in Oslo.", "Fine.", "No.", "Yes.", "Fine.")]
    )
    ranked = await rank(turns, "the museum")
    assert ranked[0] == 0
    assert ranked.index(1) < ranked.index(4)


@pytest.mark.parametrize(("length", "reaches"), [(LONG_CHARS, True), (LONG_CHARS + 1, False)])
async def test_a_long_turn_stands_alone(length: int, reaches: bool) -> None:
    said = ("Yes.", "Fine.", "A museum in Oslo. ".ljust(length, "."), "Fine.", "Yes.")
    turns = talk(*[("Ann", text) for text in said])
    words, _ = index_of(turns).scores("the museum", range(5))
    assert words[2] > 0
    assert bool(words[1] > 0) is bool(words[3] > 0) is reaches


async def test_the_speaker_who_is_named_is_meant() -> None:
    assert (await rank(TURNS, "What has Bo painted, the harbour?"))[0] == 5
    assert (await rank(TURNS, "What has ann painted, the harbour?"))[0] == 4
    assert (await rank(TURNS, Question("Have I painted the harbour?", asker="Bo")))[0] == 5


async def test_a_turn_that_speaks_of_time_answers_when() -> None:
    turns = talk(("Ann", "I moved to Rome."), ("Ann", "I moved to Rome yesterday, to my aunt."))
    assert (await rank(turns, "Did Ann move to Rome?"))[0] == 0
    assert (await rank(turns, "When did Ann move to Rome?"))[0] == 1


async def test_among_persons_a_statement_comes_before_a_question() -> None:
    said = [("user", "My horse Bella is ill?"), ("Ann", "My horse Bella is ill.")]
    assert (await rank(talk(*said), "Is the horse Bella ill?"))[0] == 1


async def test_what_a_person_asks_an_assistant_tells_as_much_as_what_they_state() -> None:
    said = [("user", "My horse Bella is ill?"), ("assistant", "My horse Bella is ill.")]
    assert (await rank(talk(*said), "Is the horse Bella ill?"))[0] == 0
    asked = "Is my horse Bella ill?"
    turns = talk(*reversed(said))
    assert (await rank(turns, asked))[0] == 1
    assert (await rank(turns, Question(asked, asker="assistant")))[0] == 0


async def test_no_more_turns_are_marked_than_a_reranker_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marked: list[Turn] = []

    def mark(turn: Turn) -> bool:
        marked.append(turn)
        return True

    monkeypatch.setattr("mgl.retrieval.turns.is_statement", mark)
    await rank(talk(*[("Ann", f"Number {n}.") for n in range(JUDGED + 50)]), "Which number?")
    assert len(marked) == JUDGED


@settings(deadline=None, max_examples=10)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4))
async def test_turns_added_in_steps_rank_as_those_added_at_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int]
) -> None:
    with Store.open(tmp_path_factory.mktemp("home") / "mgl.sqlite") as store:
        done = 0
        for step in [*steps, len(TURNS)]:
            until = min(done + step, len(TURNS))
            index = TurnIndex(WordEmbedder(512), store, "talk")
            index.add_turns(TURNS, range(done, until))
            done = until
        assert len(index) == len(TURNS)
        assert all(number in index for number in range(len(TURNS)))
        for question in ("Was the museum closed?", "Who went to Rome last summer, Bo?"):
            assert await rank(TURNS, question, index) == await rank(TURNS, question)


async def test_of_no_turns_there_is_no_order() -> None:
    assert await rank([], "the ferry") == []


async def test_turns_that_were_added_meanwhile_are_not_ranked() -> None:
    assert sorted(await rank(TURNS[:3], "the ferry", index_of(TURNS))) == [0, 1, 2]
