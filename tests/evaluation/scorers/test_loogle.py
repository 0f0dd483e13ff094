"""LooGLE's scores where its script says nothing, and METEOR by hand."""

from __future__ import annotations

from typing import Any

import pytest

from mgl.errors import UsageError
from mgl.evaluation.scorers import loogle
from mgl.evaluation.scorers.loogle import bleu, meteor, meteor_stems, rouge_recall
from mgl.evaluation.scorers.registry import SCORERS


@pytest.mark.parametrize("score", [lambda *both: bleu(*both, 1), meteor_stems])
@pytest.mark.parametrize("kind", [1, "L"])
def test_an_empty_reply_is_none_in_words(score: Any, kind: Any) -> None:
    gold = "None of them did"
    assert rouge_recall("", gold, kind) == rouge_recall("None", gold, kind) == 1 / 4
    assert score("", gold) == score("None", gold) > 0
    assert score("", "Some of them") == rouge_recall("", "Some of them", kind) == 0


def test_meteor_is_named_ours_where_the_script_has_no_order() -> None:
    assert SCORERS["meteor"].about.startswith("ours")
    assert SCORERS["meteor_stems"].about.startswith("ours")


@pytest.mark.parametrize(("prediction", "gold"), [("...", "cat"), ("cat", "...")])
@pytest.mark.parametrize("kind", [1, 2, "L"])
def test_full_stops_alone_recall_nothing(prediction: str, gold: str, kind: Any) -> None:
    """The package refuses them."""
    assert rouge_recall(prediction, gold, kind) == 0


def test_a_long_reply_without_a_full_stop_is_scored() -> None:
    """The package recurses once a word."""
    long = " ".join(f"w{number}" for number in range(1100))
    assert rouge_recall(long, long, "L") == 1


class Lemma:
    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name


class Synset:
    def lemmas(self) -> list[Lemma]:
        return [Lemma("car"), Lemma("auto")]


class Synonyms:
    def synsets(self, word: str) -> list[Synset]:
        return [Synset()] if word in ("car", "auto") else []


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

    def test_synonyms_count_where_there_are_some(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(loogle, "wordnet", Synonyms)
        assert meteor("car", "auto") == pytest.approx(0.5)
        assert meteor("car", "dog") == 0

    def test_without_wordnet_it_is_said_what_to_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import nltk

        nowhere: list[Any] = []
        monkeypatch.setattr(nltk.data, "path", nowhere)
        with pytest.raises(UsageError) as caught:
            meteor("car", "auto")
        assert "meteor_stems" in caught.value.hint
