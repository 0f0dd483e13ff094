"""Scores beside the formulas of the official scripts, written out again from their description.

10,000 random cases each with ``--nightly``.
"""

from __future__ import annotations

import string
from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.stem import PorterStemmer

from mgl.benchmarks.base import Item
from mgl.evaluation.records import Record
from mgl.evaluation.scorers.registry import score_answer
from mgl.evaluation.scorers.retrieval import rank_evidence, session_of
from mgl.evaluation.scorers.words import amem_f1, locomo_f1
from mgl.types import Question

WORDS = (
    "a an the and And Ann ann's lakes lake painting, painted 7 May. 1,000 ; no! re-run caf\u00e9 "
    "the\u0301 a\u0301"
)
texts = st.lists(st.sampled_from([*WORDS.split(), ",", "  ", "?"]), max_size=9).map(" ".join)
many = settings(max_examples=10_000, deadline=None)


def locomo(text: str) -> list[str]:
    text = text.replace(",", "").lower()
    text = "".join(letter for letter in text if letter not in string.punctuation)
    kept = [word for word in text.split() if word not in ("a", "an", "the", "and")]
    return [PorterStemmer().stem(word) for word in kept]


def overlap(said: list[str], wanted: list[str]) -> float:
    left, common = list(wanted), 0
    for word in said:
        if word in left:
            left.remove(word)
            common += 1
    if not common:
        return 0.0
    precision, recall = common / len(said), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


@many
@given(texts, texts, st.sampled_from((1, 2, 3, 4)))
def test_locomo_f1(said: str, gold: str, category: int) -> None:
    if category == 3:
        gold = gold.split(";")[0]
    if category == 1:
        parts = [
            max(overlap(locomo(part), locomo(wanted)) for part in said.split(","))
            for wanted in gold.split(",")
        ]
        expected = sum(parts) / len(parts)
    else:
        expected = overlap(locomo(said), locomo(gold))
    assert locomo_f1(said, gold, category) == pytest.approx(expected)


@many
@given(texts, texts)
def test_amem_f1(said: str, gold: str) -> None:
    def words(text: str) -> set[str]:
        for mark in ".,!?":
            text = text.replace(mark, " ")
        return set(text.lower().split())

    one, other = words(said), words(gold)
    expected = 0.0
    if one & other:
        precision, recall = len(one & other) / len(one), len(one & other) / len(other)
        expected = 2 * precision * recall / (precision + recall)
    assert amem_f1(said, gold) == pytest.approx(expected)


turns = [f"S{session}:{turn}" for session in range(1, 6) for turn in range(1, 5)]


@many
@given(st.permutations(turns), st.sets(st.sampled_from(turns), min_size=1), st.integers(1, 25))
def test_longmemeval_recall_and_ndcg(order: list[str], gold: set[str], k: int) -> None:
    def expect(ranking: list[str], correct: set[str]) -> tuple[float, float, float]:
        first = set(ranking[:k])
        gains = [float(one in correct) for one in ranking]
        ideal = sorted(gains, reverse=True)

        def dcg(values: list[float]) -> float:
            head = values[:k]
            return head[0] + sum(gain / log2(n) for n, gain in enumerate(head[1:], start=2))

        return float(bool(first & correct)), float(correct <= first), dcg(gains) / dcg(ideal)

    assert rank_evidence(order, gold, k)[1:] == pytest.approx(expect(order, gold))
    sessions = list(dict.fromkeys(one.split(":")[0] for one in order))
    of_gold = {one.split(":")[0] for one in gold}
    ours = rank_evidence(list(dict.fromkeys(map(session_of, order))), map(session_of, gold), k)
    assert ours[1:] == pytest.approx(expect(sessions, of_gold))


@many
@given(st.lists(st.text("abAB1 ", min_size=1), min_size=1, max_size=4), st.text("abAB12 "))
def test_ruler(golds: list[str], reply: str) -> None:
    found = [1.0 if reply.lower().find(gold.lower()) >= 0 else 0.0 for gold in golds]
    name, item = "substring_share_ruler", Item("q", "s", Question("?"), tuple(golds))
    score = score_answer([name], item, Record("m", {}, answer=reply))
    assert score == {name: pytest.approx(sum(found) / len(found))}
