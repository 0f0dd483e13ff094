from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mgl.errors import InputError, UsageError
from mgl.evaluation.measuring.rows import KeptRows, kept_or_made

SETTINGS = {"model": "m", "options": {"steps": 3}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.jsonl"


def test_rows_are_known_to_the_next_run(path: Path) -> None:
    kept = KeptRows(path, SETTINGS)
    assert kept.get("q0") is None
    kept.add({"id": "q0", "answer": "Zürich"})
    kept.add({"id": "q1", "answer": "Rome"})
    assert kept.get("q0") == {"id": "q0", "answer": "Zürich"}
    again = KeptRows(path, SETTINGS)
    assert again.get("q1") == kept.get("q1")
    assert len(path.read_text().splitlines()) == 2


def test_other_settings_have_rows_of_their_own(path: Path) -> None:
    KeptRows(path, SETTINGS).add({"id": "q0", "answer": "Rome"})
    other = KeptRows(path, {**SETTINGS, "options": {"steps": 2}})
    assert other.get("q0") is None
    other.add({"id": "q0", "answer": "Bern"})
    first = KeptRows(path, SETTINGS).get("q0")
    assert first is not None
    assert first["answer"] == "Rome"


def test_the_later_of_two_counts(path: Path) -> None:
    kept = KeptRows(path, SETTINGS)
    kept.add({"id": "q0", "answer": ""})
    kept.add({"id": "q0", "answer": "Rome"})
    assert KeptRows(path, SETTINGS).get("q0") == {"id": "q0", "answer": "Rome"}


def test_settings_and_rows_are_compared_as_json(path: Path) -> None:
    KeptRows(path, {"part": (1, 2)}).add({"id": "q0", "by_step": {0: "Rome"}})
    kept = KeptRows(path, {"part": [1, 2]})
    assert kept.get("q0") == {"id": "q0", "by_step": {"0": "Rome"}}


def test_half_a_character_is_kept_in_a_file_that_can_be_read(path: Path) -> None:
    KeptRows(path, SETTINGS).add({"id": "q0", "answer": "Z\ud800"})
    assert path.read_text(encoding="utf-8")
    assert KeptRows(path, SETTINGS).get("q0") == {"id": "q0", "answer": "Z\ud800"}


@pytest.mark.parametrize(
    "row", ["{", "[]", "5", '"id"', '{"id": "q0"}', '{"settings": {}}', "[" * 9**5]
)
def test_another_file_is_refused_with_its_line(path: Path, row: str) -> None:
    KeptRows(path, SETTINGS).add({"id": "q0"})
    with path.open("a") as file:
        file.write(f"{row}\n")
    with pytest.raises(InputError, match=r"rows\.jsonl, line 2 is no row of a run"):
        KeptRows(path, SETTINGS)


def test_a_place_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        KeptRows(tmp_path / "no" / "rows.jsonl", SETTINGS).add({"id": "q0"})
    with pytest.raises(InputError, match="cannot be read"):
        KeptRows(tmp_path, SETTINGS)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(cut=st.integers(0, 400))
def test_a_run_that_was_killed_at_any_byte_goes_on(path: Path, cut: int) -> None:
    path.unlink(missing_ok=True)
    kept = KeptRows(path, SETTINGS)
    for number in range(3):
        kept.add({"id": f"q{number}", "answer": "Zürich"})
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    resumed = KeptRows(path, SETTINGS)
    for number in range(3):
        if resumed.get(f"q{number}") is None:
            resumed.add({"id": f"q{number}", "answer": "Zürich"})
    assert path.read_bytes() == whole
    assert [json.loads(line)["id"] for line in whole.splitlines()] == ["q0", "q1", "q2"]


def test_a_question_is_asked_again_only_where_it_failed(path: Path) -> None:
    replies = [{"answer": "", "error": "late", "seen": 1}, {"answer": "Rome", "error": None}]
    wanted = [("late", ""), (None, "Rome"), (None, "Rome")]
    for error, answer in wanted:
        row = kept_or_made(KeptRows(path, SETTINGS), "q0", lambda: replies.pop(0))
        assert (row["error"], row["answer"], row["id"]) == (error, answer, "q0")
    assert row["seen"] == 1
    assert not replies
    assert kept_or_made(None, "q0", lambda: {"error": None}) == {"id": "q0", "error": None}
