from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.retrieval.fakes import WordEmbedder
from mgl.retrieval.turns import TurnIndex, with_previous
from mgl.store import Store

SAID = [
    ("Ann", "Where did you go last summer?"),
    ("Bo", "To Rome, the ferry was late."),
    ("Ann", "And the museum?"),
    ("Bo", "Closed all week."),
    ("Ann", "I painted the harbour."),
    ("Bo", "I painted the harbour."),
]
LINES = [f"{speaker}: {text}" for speaker, text in SAID]
SPOKEN = {
    name: [n for n, (speaker, _) in enumerate(SAID) if speaker == name] for name in ("Ann", "Bo")
}


@pytest.fixture
def turns() -> TurnIndex:
    index = TurnIndex(WordEmbedder(512))
    index.extend(dict(enumerate(LINES)))
    return index


def test_a_turn_is_found_by_those_around_it(turns: TurnIndex) -> None:
    assert sorted(turns.rank("the ferry")) == list(range(len(SAID)))
    assert turns.rank("the ferry")[0] == 1
    assert set(turns.rank("Was the museum closed?")[:2]) == {2, 3}


def test_the_speaker_who_is_named_is_meant(turns: TurnIndex) -> None:
    assert turns.rank("What has Bo painted, the harbour?", SPOKEN)[0] == 5
    assert turns.rank("What has ann painted, the harbour?", SPOKEN)[0] == 4
    assert turns.rank("Rome?", {"": range(6)})[0] == 1


@settings(deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.sets(st.integers(0, 5), max_size=3))
def test_turns_added_in_steps_rank_as_those_added_at_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], gone: set[int]
) -> None:
    with Store.open(tmp_path_factory.mktemp("home") / "mgl.sqlite") as store:
        done = 0
        for step in [*steps, len(LINES)]:
            part = {n: LINES[n] for n in range(done, min(done + step, len(LINES)))}
            index = TurnIndex(WordEmbedder(512), store, "talk")
            index.extend(part, previous=LINES[done - 1] if done else None)
            done += len(part)
        index.remove(gone)
        fresh = TurnIndex(WordEmbedder(512))
        fresh.extend({n: line for n, line in enumerate(LINES) if n not in gone})
        for question in ("Was the museum closed?", "Who went to Rome last summer, Bo?"):
            assert index.rank(question, SPOKEN) == fresh.rank(question, SPOKEN)
        assert len(index) == len(LINES) - len(gone)


def test_a_session_begins_without_a_turn_before() -> None:
    embedder = WordEmbedder()
    index = TurnIndex(embedder)
    index.extend({0: "Rome.", 1: "Bern.", 2: "Oslo."}, starts=[2])
    assert "Rome.\nBern." in embedder.embedded
    assert "Bern.\nOslo." not in embedder.embedded
    assert with_previous(["Rome.", "Bern."]) == ["Rome.", "Rome.\nBern."]
