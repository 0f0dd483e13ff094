"""Numbers and dates of a rubric, and the order of events beside the formula of BEAM's script."""

from __future__ import annotations

from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.evaluation.scorers.rubric import Order, list_events, score_order, share_stated


@pytest.mark.parametrize(
    ("wanted", "said", "share"),
    [
        ("LLM response should state: 8 weeks", "You have eight weeks.", 1),
        ("LLM response should state: 8 weeks", "Eight months; in weeks I cannot say.", 1),
        ("LLM response should state: 8 weeks", "8 April. It is some weeks.", 0),
        ("LLM response should state: 250ms", "It is around 250 ms now.", 1),
        ("LLM response should state: 1,350 words", "1350 words a day", 1),
        ("LLM response should state: from March 29 till April 19", "29 March to April 19th", 1),
        ("LLM response should state: from March 29 till April 19", "March 29. April 18.", 0),
        ("LLM response should state: January 15, 2024", "On January 15.", 1),
        ("LLM response should state: January 15, 2024", "In January 2024.", 0),
        ("LLM response should state: Three", "Three of them", 1),
        ("LLM response should state: 12", "No number.", 0),
        ("LLM response should state: 12", "", 0),
    ],
)
def test_a_number_or_date_has_to_stand_in_one_sentence(
    wanted: str, said: str, share: float
) -> None:
    assert share_stated([wanted], said) == share


def test_items_that_are_more_than_a_number_do_not_count() -> None:
    prose = [
        "LLM response should contain: code blocks",
        "LLM response should state: HTML5 and CSS3",
    ]
    assert share_stated(prose, "12 code blocks") is None
    assert share_stated([*prose, "LLM response should state: 78%"], "It is 78 %.") == 1
    assert share_stated(["LLM response should state: 4", "Five"], "4 of 6") == 0.5


@pytest.mark.parametrize(
    ("answer", "events"),
    [
        ("set up\n\ntest", ["set up", "", "test"]),
        ("First 1. set up 2. test", ["First", "set up", "test"]),
        ("(1) set up (2) test", ["set up", "test"]),
        ("You set it up. Then you tested 3 parts.", ["You set it up.", "Then you tested 3 parts."]),
        ("", [""]),
    ],
)
def test_events_are_lines_or_the_parts_of_a_single_line(answer: str, events: list[str]) -> None:
    assert list_events(answer) == events


def official(reference: list[str], said: list[str]) -> Order:
    """The script's formula, written out again from its description, with scipy's tau."""
    from scipy.stats import kendalltau

    right = set(reference) & set(said)
    precision = len(right) / (len(right) + sum(one not in reference for one in said)) if said else 0
    recall = len(right) / (len(right) + sum(one not in said for one in reference))
    union = list(dict.fromkeys(reference + said))
    ranks = []
    for listed in (reference, said):
        last = {one: place for place, one in enumerate(listed, start=1)}
        ranks.append([last.get(one, len(union) + 1) for one in union])
    tau = kendalltau(*ranks, variant="b").statistic if len(union) > 1 else nan
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return Order(f1, None if isnan(tau) else (float(tau) + 1) / 2)


lists = st.lists(st.sampled_from("abcdef"), max_size=7)


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6, unique=True), lists)
def test_order_is_the_scripts(reference: list[str], said: list[str]) -> None:
    found, wanted = score_order(reference, said), official(reference, said)
    assert found.f1 == pytest.approx(wanted.f1)
    assert (found.tau is None) == (wanted.tau is None)
    assert found.tau is None or found.tau == pytest.approx(wanted.tau)
