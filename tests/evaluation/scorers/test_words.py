"""Scores of words on cases worked by hand from the published definitions."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.evaluation.scorers.words import (
    amem_f1,
    bleu1,
    evidence_recall,
    exact_match,
    f1_squad,
    locomo_f1,
    nltk_tools,
)

squad_texts = st.lists(st.sampled_from("The cat, sat an on! cats well-known".split())).map(" ".join)


@pytest.mark.parametrize(
    ("prediction", "golds", "exact", "f1"),
    [
        ("The Cat!", ["cat"], 1, 1),
        ("cat sat", ["sat cat"], 0, 1),
        ("salt and pepper", ["salt pepper"], 0, 2 * 2 / (3 + 2)),
        ("well-known", ["well known"], 0, 0),
        ("well-known", ["wellknown"], 1, 1),
        ("painted", ["paint"], 0, 0),
        ("yes yes yes", ["yes"], 0, 2 * 1 / (3 + 1)),
        ("a theatre", ["theatre"], 1, 1),
        ("another", ["other"], 0, 0),
        ("  red \n queen ", ["Red Queen"], 1, 1),
        ("red queen", ["king", "the queen", "red king queen"], 0, 2 * 2 / (2 + 3)),
        ("", ["cat"], 0, 0),
        ("", ["the"], 1, 0),
    ],
)
def test_squad_by_hand(prediction: str, golds: list[str], exact: float, f1: float) -> None:
    assert exact_match(prediction, golds) == exact
    assert f1_squad(prediction, golds) == pytest.approx(f1)


@given(squad_texts, st.lists(squad_texts, min_size=1, max_size=3))
def test_what_holds_for_squads(prediction: str, golds: list[str]) -> None:
    f1, exact = f1_squad(prediction, golds), exact_match(prediction, golds)
    assert 0 <= f1 <= 1
    assert exact in (0, 1)
    assert max(f1_squad(prediction, [gold]) for gold in golds) == f1
    assert f1_squad(golds[0], [prediction]) == f1_squad(prediction, golds[:1])


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


words = st.lists(st.sampled_from("Ann went, to the lakes a and painted 7 May.".split()), max_size=8)
texts = words.map(" ".join)


class TestLocomoF1:
    @pytest.mark.parametrize(
        ("prediction", "gold", "score"),
        [
            ("She painted the lakes.", "painting a lake", 4 / 5),
            ("The Painting", "a painting", 1.0),
            ("rock and roll", "rock, roll", 1.0),
            ("1,000 dollars", "1000 dollars!", 1.0),
            ("don't", "dont", 1.0),
            ("yes yes yes", "yes", 2 / 4),
            ("yes", "yes yes yes", 2 / 4),
            ("candy", "can dye", 0.0),
            ("", "lake", 0.0),
            ("the", "the", 0.0),
            ("dying news", "died news", 2 / 4 + 2 / 4),
        ],
    )
    def test_stemmed_words_as_a_multiset(self, prediction: str, gold: str, score: float) -> None:
        for category in (2, 4):
            assert locomo_f1(prediction, gold, category) == pytest.approx(score)

    def test_multi_hop_takes_the_best_part_for_each_part(self) -> None:
        assert locomo_f1("swimming, pottery", "pottery, swimming", 1) == 1.0
        assert locomo_f1("pottery", "pottery, swimming", 1) == pytest.approx(1 / 2)
        assert locomo_f1("pottery swimming", "pottery, swimming", 1) == pytest.approx(2 / 3)
        assert locomo_f1("pottery, and a lot more", "pottery", 1) == 1.0
        assert locomo_f1("pottery, and a lot more", "pottery", 4) == pytest.approx(2 / 4)

    def test_what_has_no_score(self) -> None:
        with pytest.raises(ValueError, match="categories"):
            locomo_f1("a", "b", 6)
        with pytest.raises(ValueError, match="gold"):
            locomo_f1("a", None, 4)


class TestAmemF1:
    @pytest.mark.parametrize(
        ("prediction", "gold", "score"),
        [
            ("She painted lakes.", "painted lakes", 4 / 5),
            ("yes yes yes", "Yes!", 1.0),
            ("the lake", "a lake", 1 / 2),
            ("7.May,2023?", "2023 may 7", 1.0),
            ("don't", "dont", 0.0),
            ("", "lake", 0.0),
            ("", "", 0.0),
        ],
    )
    def test_plain_words_as_a_set(self, prediction: str, gold: str, score: float) -> None:
        assert amem_f1(prediction, gold) == pytest.approx(score)


class TestBleu1:
    @pytest.mark.parametrize(
        ("prediction", "gold", "score"),
        [
            ("The cat sat", "the cat", 2 / 3),
            ("the the the", "the cat", 1 / 3),
            ("the cat", "the cat sat on", 2.718281828459045 ** (1 - 4 / 2)),
            ("didn't he?", "did", 1 / 4),
            ("It rained. He left.", ".", 2 / 6 / 2),
            ("dog", "cat", 0.0),
            ("", "cat", 0.0),
            ("cat", "", 0.0),
        ],
    )
    def test_words_found_and_brevity(self, prediction: str, gold: str, score: float) -> None:
        assert bleu1(prediction, gold) == pytest.approx(score)

    def test_a_full_stop_inside_is_a_word_of_its_own(self) -> None:
        assert bleu1("It rained. He left.", "rained . left") == pytest.approx(3 / 6)


@given(texts, texts)
@settings(deadline=None)
def test_what_holds_for_every_answer_score(one: str, other: str) -> None:
    for category in (1, 2, 3, 4):
        assert 0 <= locomo_f1(one, other, category) <= 1
    assert 0 <= bleu1(one, other) <= 1
    assert amem_f1(one, other) == amem_f1(other, one)
    assert locomo_f1(one, other, 4) == locomo_f1(other, one, 4)
    counted = [word for word in one.split() if word not in ("a", "and", "the")]
    assert locomo_f1(one, one, 4) == float(bool(counted))
    assert amem_f1(one, one) == bleu1(one, one) == float(bool(one))


def test_no_clock_ends_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    from nltk import redos

    monkeypatch.setattr(redos, "DEFAULT_TIMEOUT", 1e-9)
    nltk_tools.cache_clear()
    assert bleu1("“a” " * 10_000, "a") > 0


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    nltk_tools.cache_clear()
    monkeypatch.setitem(sys.modules, "punkt", None)
    with pytest.raises(UsageError) as caught:
        bleu1("a", "b")
    assert "mgl[evaluation]" in caught.value.hint


class TestEvidence:
    def test_share_among_the_first(self) -> None:
        returned = ["D1:1", "D1:2", "D2:1", "D9:9"]
        assert evidence_recall(returned, ["D1:2", "D9:9"], 3) == 0.5
        assert evidence_recall(returned, ("D1:2", "D9:9", "D1:2"), 4) == 1.0
        assert evidence_recall([], ["D1:2"], 10) == 0.0

    def test_without_evidence_there_is_none(self) -> None:
        with pytest.raises(ValueError, match="evidence"):
            evidence_recall(["D1:1"], [], 10)

    @given(st.lists(st.integers(0, 20).map(str)), st.sets(st.integers(0, 20).map(str), min_size=1))
    def test_it_grows_with_k(self, returned: list[str], evidence: set[str]) -> None:
        shares = [evidence_recall(returned, evidence, k) for k in range(len(returned) + 1)]
        assert shares == sorted(shares)
        assert (shares[-1] == 1) == evidence.issubset(returned)
