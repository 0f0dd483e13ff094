"""LooGLE's scores on cases worked by hand, and ROUGE against the package that LooGLE uses."""

from __future__ import annotations

import json
from math import exp
from typing import Any

import nltk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge import Rouge

from mgl.benchmarks.base import Item
from mgl.errors import UsageError
from mgl.evaluation.records import Answered
from mgl.evaluation.scorers import loogle
from mgl.evaluation.scorers.loogle import (
    bleu,
    match_masks,
    meteor,
    meteor_stems,
    read_masks,
    rouge_recall,
)
from mgl.evaluation.scorers.registry import AGGREGATES, Scored, score_answer
from mgl.types import Question

SENTENCES = st.lists(st.sampled_from(["a", "b", "c", "d", "B,", ".", " ", "\n", "e.f"])).map(
    " ".join
)


class TestBleu:
    @pytest.mark.parametrize(
        ("prediction", "gold", "one", "four"),
        [
            ("the cat sat", "the cat sat on it", exp(1 - 5 / 3), 0),
            ("a b c d e", "a b c d x", 4 / 5, 1 / 2),
            ("a b", "a b", 1, 0),
            ("the the the", "the cat", 1 / 3, 0),
            ("The cat", "the cat", 1 / 2, 0),
            ("cat,", "cat", 0, 0),
            ("a\nb c d", "a b c d", 1, 1),
            ("", "cat", 0, 0),
            ("cat", "", 0, 0),
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
            ("a", "a b a", 1 / 2, 0, 1 / 2),
            ("the cat sat", "sat the cat", 1, 1 / 2, 2 / 3),
            ("w1 w2 w6. w1 w3 w5", "w1 w2 w3 w4 w5", 4 / 5, 1 / 4, 4 / 5),
            ("cat,", "cat", 0, 0, 0),
            ("word", "word", 1, 0, 1),
            ("", "cat", 0, 0, 0),
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
            ("dog dog", "dog", 0.5),
            ("the dog", "the dog ran away", 0.5 / 0.95 * (1 - 0.5 / 2**3)),
            ("car", "auto", 0),
            ("", "dog", 0),
            ("dog", "", 0),
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
    names = ("cloze_exact_match_loogle", "cloze_partial_match_loogle")
    exact, partly = (AGGREGATES[name].compute for name in names)
    answers = [
        Scored(item(GOLD), Answered("<mask-0>: Ann\n<mask-1>: Rome")),
        Scored(item("<mask-0>: Bo"), Answered("<mask-0>: Bo")),
    ]
    whole, half = exact(answers), partly(answers)
    assert whole is not None
    assert half is not None
    assert (whole.mean, half.mean) == (2 / 4, 3 / 4)
    failed = exact([*answers, Scored(item("<mask-0>: Cy"), None)])
    assert failed is not None
    assert (failed.mean, failed.n) == (2 / 5, 3)
    assert exact([Scored(item("Ann"), Answered("Ann"))]) is None


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
