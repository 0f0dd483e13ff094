"""Scores of words on cases worked by hand from the published definitions."""

from __future__ import annotations

import pytest

from mgl.evaluation.scorers.words import (
    bleu1,
    exact_match,
    f1_squad,
    locomo_f1,
    nltk_tools,
)


@pytest.mark.parametrize(
    ("prediction", "golds", "exact", "f1"),
    [
        ("The Cat!", ["cat"], 1, 1),
        ("cat sat", ["sat cat"], 0, 1),
        ("salt and pepper", ["salt pepper"], 0, 2 * 2 / (3 + 2)),
        ("well-known", ["wellknown"], 1, 1),
        ("painted", ["paint"], 0, 0),
        ("red queen", ["king", "the queen", "red king queen"], 0, 2 * 2 / (2 + 3)),
        ("", ["the"], 1, 0),
    ],
)
def test_squad_by_hand(prediction: str, golds: list[str], exact: float, f1: float) -> None:
    assert exact_match(prediction, golds) == exact
    assert f1_squad(prediction, golds) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("category", "prediction", "gold", "score"),
    [
        (4, "adoption agencies", "Adoption agency", 1),
        (4, "horse horse", "horse cat horse", 2 * 2 / (2 + 3)),
        (4, "the\u0301", "a\u0301", 0),  # a letter with its accent apart is no article
        (1, "pottery", "pottery, camping, painting", 1 / 3),
        (3, "Likely no", "Likely no; because she wants to be a counselor", 1),
        (5, "The conversation does not say: Not mentioned.", None, 1),
        (5, "I don't know", None, 0),
    ],
)
def test_locomo_by_hand(category: int, prediction: str, gold: str | None, score: float) -> None:
    assert locomo_f1(prediction, gold, category) == pytest.approx(score)


@pytest.mark.parametrize(
    ("prediction", "gold", "score"),
    [
        ("the the the", "the cat", 1 / 3),
        ("the cat", "the cat sat on", 2.718281828459045 ** (1 - 4 / 2)),
        ("didn't he?", "did", 1 / 4),
        ("It rained. He left.", ".", 2 / 6 / 2),
        ("", "cat", 0.0),
        ("cat", "", 0.0),
    ],
)
def test_bleu_is_words_found_times_brevity(prediction: str, gold: str, score: float) -> None:
    assert bleu1(prediction, gold) == pytest.approx(score)


def test_no_clock_ends_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    from nltk import redos

    monkeypatch.setattr(redos, "DEFAULT_TIMEOUT", 1e-9)
    nltk_tools.cache_clear()
    assert bleu1("“a” " * 10_000, "a") > 0
