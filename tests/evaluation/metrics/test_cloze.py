"""LooGLE's cloze match on cases worked by hand."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.benchmarks.base import Item
from mgl.evaluation.records import Answered
from mgl.evaluation.scorers.loogle import match_masks, read_masks
from mgl.evaluation.scorers.registry import Scored, aggregated, score_answer
from mgl.types import Question

GOLD = "<mask-0>: Ann Lee\n<mask-1>: Rome\n<mask-2>: the Red House"
NAMES = st.text("abcdefg ", min_size=1, max_size=12).filter(str.strip).map(str.strip)


def item(gold: str | None) -> Item:
    return Item("q", "s", Question("…"), () if gold is None else (gold,))


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        ("<mask-0>: Ann Lee\n<mask-1>: Rome", {"<mask-0>": "Ann Lee", "<mask-1>": "Rome"}),
        (
            "{'<mask-0>': 'Ann Lee', '<mask-1>': \"Bo's\"}",
            {"<mask-0>": "Ann Lee", "<mask-1>": "Bo's"},
        ),
        (
            '```json\n{\n  "<mask-0>": "Ann Lee",\n  "<mask-10>": "Rome"\n}\n```',
            {"<mask-0>": "Ann Lee", "<mask-10>": "Rome"},
        ),
        ("The names:\n- **<mask-0>**: Ann Lee\n", {"<mask-0>": "Ann Lee"}),
        (
            "<mask-0>: Ann, <mask-1>: Bo; <mask-2>: Cy",
            dict(zip(("<mask-0>", "<mask-1>", "<mask-2>"), ("Ann", "Bo", "Cy"), strict=True)),
        ),
        ("<mask-0> : Paris, France", {"<mask-0>": "Paris, France"}),
        ("<mask-0>: Bo\nNo: <mask-0>: Ann", {"<mask-0>": "Ann"}),
        ("<mask-0> is Ann and <mask-1> is Bo", {}),
        ("<mask-0>:\nAnn", {}),
        ("<mask-0>: ''", {}),
        ("mask-0: Ann", {}),
        ("Ann, Rome", {}),
        ("", {}),
    ],
)
def test_names_are_found_by_their_masks(reply: str, names: dict[str, str]) -> None:
    assert read_masks(reply) == names


@pytest.mark.parametrize(
    ("reply", "exact", "partly"),
    [
        (GOLD, 3, 3),
        ("<mask-0>: Ann\n<mask-1>: Rome\n<mask-2>: House", 1, 3),
        ("<mask-0>: ann lee\n<mask-1>: ROME", 0, 0),
        ("<mask-0>: Lee, Ann\n<mask-1>: Rome.", 0, 1),
        ("<mask-0>: Rome\n<mask-1>: Ann Lee", 0, 0),
        ("<mask-0>: the Red Lion\n<mask-2>: the Blue Inn", 0, 1),
        ("<mask-1>: Rome\n<mask-7>: Ann Lee", 1, 1),
        ("Ann Lee, Rome, the Red House", 0, 0),
    ],
)
def test_masks_are_matched_one_by_one(reply: str, exact: int, partly: int) -> None:
    assert match_masks(reply, GOLD, partial=False) == (exact, 3)
    assert match_masks(reply, GOLD, partial=True) == (partly, 3)


def test_a_test_has_the_share_of_its_masks() -> None:
    names = ("cloze_exact_match", "cloze_partial_match")
    found = score_answer(names, item(GOLD), Answered("<mask-0>: Ann\n<mask-1>: Rome"))
    assert found == {"cloze_exact_match": pytest.approx(1 / 3), "cloze_partial_match": 2 / 3}
    assert score_answer(names, item("Ann"), Answered("Ann")) == {}
    assert score_answer(names, item(None), Answered("<mask-0>: Ann")) == {}


def test_a_run_has_the_share_of_all_masks_whatever_tests_they_are_in() -> None:
    """1 of 3 and 1 of 1 are 2 of 4, not two thirds; a failed test has its masks missed."""
    names = ("cloze_exact_match_loogle", "cloze_partial_match_loogle", "cloze_exact_match")
    answers = [
        Scored(item(GOLD), Answered("<mask-0>: Ann\n<mask-1>: Rome")),
        Scored(item("<mask-0>: Bo"), Answered("<mask-0>: Bo")),
    ]
    found = aggregated(names, answers)
    assert {name: one.mean for name, one in found.items()} == {names[0]: 2 / 4, names[1]: 3 / 4}
    failed = aggregated(names, [*answers, Scored(item("<mask-0>: Cy"), None)])
    assert (failed[names[0]].mean, failed[names[0]].n) == (2 / 5, 3)
    assert aggregated(names, [Scored(item("Ann"), Answered("Ann"))]) == {}


@given(st.lists(NAMES, min_size=1, max_size=5))
def test_lines_and_dictionaries_are_read_alike(names: list[str]) -> None:
    wanted = {f"<mask-{number}>": name for number, name in enumerate(names)}
    lines = "\n".join(f"{mask}: {name}" for mask, name in wanted.items())
    for written in (lines, json.dumps(wanted), json.dumps(wanted, indent=1), str(wanted)):
        assert read_masks(written) == wanted
        assert match_masks(written, lines, partial=False) == (len(names), len(names))


@given(st.lists(NAMES, min_size=1, max_size=4), st.lists(NAMES, max_size=4))
def test_what_matches_exactly_matches_in_part(wanted: list[str], said: list[str]) -> None:
    gold, reply = (
        "\n".join(f"<mask-{number}>: {name}" for number, name in enumerate(names))
        for names in (wanted, said)
    )
    exact, partly = (match_masks(reply, gold, partial=each) for each in (False, True))
    assert 0 <= exact.right <= partly.right <= partly.masks == len(wanted)
