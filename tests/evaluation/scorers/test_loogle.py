"""LooGLE's scores where its script says nothing, and METEOR by hand."""

from __future__ import annotations

from typing import Any

import pytest

from mgl.evaluation.scorers.loogle import bleu, meteor_stems, rouge_recall


@pytest.mark.parametrize("score", [lambda said, gold: bleu(said, gold, 1), meteor_stems])
@pytest.mark.parametrize("kind", [1, "L"])
def test_an_empty_reply_is_none_in_words(score: Any, kind: Any) -> None:
    gold = "None of them did"
    assert rouge_recall("", gold, kind) == rouge_recall("None", gold, kind) == 1 / 4
    assert score("", gold) == score("None", gold) > 0
    assert score("", "Some of them") == rouge_recall("", "Some of them", kind) == 0


@pytest.mark.parametrize(("prediction", "gold"), [("...", "cat"), ("cat", "...")])
@pytest.mark.parametrize("kind", [1, "L"])
def test_full_stops_alone_recall_nothing(prediction: str, gold: str, kind: Any) -> None:
    """The package refuses them."""
    assert rouge_recall(prediction, gold, kind) == 0


def test_a_long_reply_without_a_full_stop_is_scored() -> None:
    """The package recurses once a word."""
    long = " ".join(f"w{number}" for number in range(1100))
    assert rouge_recall(long, long, "L") == 1


class TestMeteor:
    @pytest.mark.parametrize(
        ("prediction", "gold", "score"),
        [
            ("a b c d", "a b c d", 1 - 0.5 / 4**3),
            ("cats", "cat", 0.5),
            ("Dog", "dog", 0.5),
            ("the dog", "the dog ran away", 0.5 / 0.95 * (1 - 0.5 / 2**3)),
            ("car", "auto", 0),
            ("", "dog", 0),
        ],
    )
    def test_stems_by_hand(self, prediction: str, gold: str, score: float) -> None:
        assert meteor_stems(prediction, gold) == pytest.approx(score)
