"""LoCoMo's official F1 on pairs worked by hand: the words that are common, said and wanted.

The words were cut and stemmed by hand after ``task_eval/evaluation.py`` of the benchmark, before
the code was run on them.
"""

from __future__ import annotations

import pytest

from mgl.evaluation.scorers.words import locomo_f1

SINGLE = [
    ("7 May 2023", "7 May 2023", 3, 3, 3),
    ("May 7, 2023", "7 May 2023", 3, 3, 3),
    ("on 7 May 2023", "7 May 2023", 3, 4, 3),
    ("2022", "The year 2022", 1, 1, 2),
    ("adoption agencies", "Adoption agency", 2, 2, 2),
    ("psychology, counseling certification", "Psychology, counseling", 2, 3, 2),
    ("Transgender woman", "woman", 1, 2, 1),
    ("She is single.", "Single", 1, 3, 1),
    ("Sweden", "Norway", 0, 1, 1),
    ("running", "run", 1, 1, 1),
    ("runner", "run", 0, 1, 1),
    ("10 years ago", "10 years", 2, 3, 2),
    ("ten years", "10 years", 1, 2, 2),
    ("self-care is important", "self care", 0, 3, 2),
    ("sunset and sunrise", "sunset, sunrise", 2, 2, 2),
    ("the the the", "the cat", 0, 0, 1),
    ("horse horse", "horse cat horse", 2, 2, 3),
    ("Bach and Mozart", "Bach, Mozart", 2, 2, 2),
    ("Theandros", "andros", 0, 1, 1),
]
OPEN = [
    ("Likely no", "Likely no; because she wants to be a counselor", 2, 2, 2),
    ("Yes, since she collects books", "Yes, since she collects classic children's books", 5, 5, 7),
    ("National park; she likes the outdoors", "National park; she likes the outdoors", 2, 5, 2),
]


@pytest.mark.parametrize(("prediction", "gold", "common", "said", "wanted"), SINGLE)
@pytest.mark.parametrize("category", [2, 4])
def test_temporal_and_single_hop(
    category: int, prediction: str, gold: str, common: int, said: int, wanted: int
) -> None:
    expected = 2 * common / (said + wanted)
    assert locomo_f1(prediction, gold, category) == pytest.approx(expected)


@pytest.mark.parametrize(("prediction", "gold", "common", "said", "wanted"), OPEN)
def test_open_domain_cuts_the_gold_answer_alone(
    prediction: str, gold: str, common: int, said: int, wanted: int
) -> None:
    assert locomo_f1(prediction, gold, 3) == pytest.approx(2 * common / (said + wanted))


@pytest.mark.parametrize(
    ("prediction", "gold", "parts"),
    [
        ("pottery, camping, painting, swimming", "swimming, painting", [1, 1]),
        ("pottery", "pottery, camping, painting", [1, 0, 0]),
        ("beach, the mountains and forest", "beach, mountains, forest", [1, 2 / 3, 2 / 3]),
        ("Nothing", "beach", [0]),
        ("two cats", "cats", [2 / 3]),
        ("1,000 dollars", "1,000 dollars", [2 / 2, 2 / 2]),
    ],
)
def test_multi_hop_is_the_mean_over_the_parts_of_the_gold_answer(
    prediction: str, gold: str, parts: list[float]
) -> None:
    assert locomo_f1(prediction, gold, 1) == pytest.approx(sum(parts) / len(parts))


@pytest.mark.parametrize(
    ("prediction", "score"),
    [
        ("The conversation does not say: Not mentioned.", 1),
        ("There is no information available on that", 1),
        ("NOT MENTIONED", 1),
        ("I don't know", 0),
        ("", 0),
    ],
)
def test_adversarial(prediction: str, score: float) -> None:
    assert locomo_f1(prediction, None, 5) == score
    assert locomo_f1(prediction, "whatever it says", 5) == score


def test_there_are_enough_pairs() -> None:
    assert len(SINGLE) + len(OPEN) >= 20
