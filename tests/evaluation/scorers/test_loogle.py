"""LooGLE's scores on cases worked by hand, and ROUGE against the package that LooGLE uses."""

from __future__ import annotations

from math import exp
from typing import Any

import nltk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge import Rouge

from mgl.errors import UsageError
from mgl.evaluation.scorers import loogle
from mgl.evaluation.scorers.loogle import bleu, meteor, meteor_stems, rouge_recall
from mgl.evaluation.scorers.registry import SCORERS

SENTENCES = st.lists(st.sampled_from(["a", "b", "c", "d", "B,", ".", " ", "\n", "e.f"])).map(
    " ".join
)


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


class TestBleu:
    @pytest.mark.parametrize(
        ("prediction", "gold", "one", "four"),
        [
            ("the cat sat", "the cat sat on it", exp(1 - 5 / 3), 0),
            ("a b c d e", "a b c d x", 4 / 5, 1 / 2),
            ("the the the", "the cat", 1 / 3, 0),
            ("a\nb c d", "a b c d", 1, 1),
            ("", "cat", 0, 0),
        ],
    )
    def test_by_hand(self, prediction: str, gold: str, one: float, four: float) -> None:
        assert bleu(prediction, gold, 1) == pytest.approx(one)
        assert bleu(prediction, gold, 4) == pytest.approx(four)


class TestRougeRecall:
    @pytest.mark.parametrize(
        ("prediction", "gold", "one", "two", "longest"),
        [
            ("the cat sat", "the cat sat on it", 3 / 5, 2 / 4, 3 / 5),
            ("the cat sat", "sat the cat", 1, 1 / 2, 2 / 3),
            ("w1 w2 w6. w1 w3 w5", "w1 w2 w3 w4 w5", 4 / 5, 1 / 4, 4 / 5),
            ("...", "cat", 0, 0, 0),
            ("cat", "...", 0, 0, 0),
        ],
    )
    def test_by_hand(
        self, prediction: str, gold: str, one: float, two: float, longest: float
    ) -> None:
        assert rouge_recall(prediction, gold, 1) == pytest.approx(one)
        assert rouge_recall(prediction, gold, 2) == pytest.approx(two)
        assert rouge_recall(prediction, gold, "L") == pytest.approx(longest)

    @given(SENTENCES, SENTENCES)
    @settings(deadline=None)
    def test_it_is_the_packages(self, prediction: str, gold: str) -> None:
        if not prediction.strip(".") or not gold.strip("."):
            return
        (package,) = Rouge().get_scores(prediction, gold)
        assert rouge_recall(prediction, gold, 1) == pytest.approx(package["rouge-1"]["r"])
        assert rouge_recall(prediction, gold, 2) == pytest.approx(package["rouge-2"]["r"])
        assert rouge_recall(prediction, gold, "L") == pytest.approx(package["rouge-l"]["r"])

    def test_a_long_reply_without_a_full_stop(self) -> None:
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
        nowhere: list[Any] = []
        monkeypatch.setattr(nltk.data, "path", nowhere)
        with pytest.raises(UsageError) as caught:
            meteor("car", "auto")
        assert "meteor_stems" in caught.value.hint
