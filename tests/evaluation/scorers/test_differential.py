"""Scores beside the formulas of the official scripts, written out again from their description.

Of LooGLE, BLEU is NLTK's own and ROUGE that of the package ``rouge``, as in its script.

10,000 random cases each with ``--nightly``.
"""

from __future__ import annotations

import string
import warnings
from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.benchmarks.base import Item
from mgl.evaluation.records import Record
from mgl.evaluation.scorers.choices import letter_longbench
from mgl.evaluation.scorers.registry import score_answer
from mgl.evaluation.scorers.retrieval import rank_evidence, session_of
from mgl.evaluation.scorers.words import amem_f1, locomo_f1
from mgl.types import Question

WORDS = (
    "a an the and And Ann ann's lakes lake painting, painted 7 May. 1,000 ; no! re-run caf\u00e9 "
    "the\u0301 a\u0301"
)
texts = st.lists(
    st.sampled_from([*WORDS.split(), ",", "  ", "?", ".", "\n", "e.f"]), max_size=9
).map(" ".join)
many = settings(max_examples=10_000, deadline=None)


def locomo(text: str) -> list[str]:
    from nltk.stem import PorterStemmer

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


def official_locomo(said: str, gold: str, category: int) -> float:
    if category == 5:
        lowered = said.lower()
        return float("no information available" in lowered or "not mentioned" in lowered)
    if category == 3:
        gold = gold.split(";")[0]
    if category != 1:
        return overlap(locomo(said), locomo(gold))
    parts = [
        max(overlap(locomo(part), locomo(wanted)) for part in said.split(","))
        for wanted in gold.split(",")
    ]
    return sum(parts) / len(parts)


def official_amem(said: str, gold: str) -> float:
    def words(text: str) -> set[str]:
        for mark in ".,!?":
            text = text.replace(mark, " ")
        return set(text.lower().split())

    one, other = words(said), words(gold)
    if not one & other:
        return 0.0
    precision, recall = len(one & other) / len(one), len(one & other) / len(other)
    return 2 * precision * recall / (precision + recall)


def official_longbench(reply: str) -> str | None:
    """The letter in brackets after "The correct answer is", else the one without brackets."""
    reply = reply.replace("*", "")
    for begins, ends in (("The correct answer is (", ")"), ("The correct answer is ", "")):
        at = reply.find(begins)
        while at >= 0:
            rest = reply[at + len(begins) :]
            if rest[:1] in ("A", "B", "C", "D") and rest[1:].startswith(ends):
                return rest[0]
            at = reply.find(begins, at + 1)
    return None


def official_loogle(said: str, gold: str) -> dict[str, float]:
    from nltk.translate.bleu_score import sentence_bleu
    from rouge import Rouge

    said = said or "None"
    reference, hypothesis = [text.replace("\n", " ").split() for text in (gold, said)]
    weights = {"bleu_1": (1, 0, 0, 0), "bleu_4": (0, 0, 0, 1)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {
            name: float(sentence_bleu([reference], hypothesis, weights=each))
            for name, each in weights.items()
        }
    if said.strip(".") and gold.strip("."):
        (rouge,) = Rouge().get_scores(said, gold)
        found |= {f"rouge_{n}_recall": rouge[f"rouge-{n}"]["r"] for n in ("1", "l")}
    return found


def official_ruler(reply: str, golds: list[str]) -> float:
    found = [1.0 if reply.lower().find(gold.lower()) >= 0 else 0.0 for gold in golds]
    return sum(found) / len(found)


def score(name: str, reply: str, golds: list[str]) -> float | None:
    item = Item("q", "s", Question("?"), tuple(golds))
    return score_answer([name], item, Record("m", {}, answer=reply))[name]


phrases = st.sampled_from(["", "Not mentioned.", "no information available", "It is not mentioned"])


@many
@given(texts, phrases, texts, st.sampled_from((1, 2, 3, 4, 5)))
def test_locomo_f1(said: str, phrase: str, gold: str, category: int) -> None:
    said = f"{said} {phrase}".strip()
    assert locomo_f1(said, gold, category) == pytest.approx(official_locomo(said, gold, category))


@many
@given(texts, texts)
def test_amem_f1(said: str, gold: str) -> None:
    assert amem_f1(said, gold) == pytest.approx(official_amem(said, gold))


ANSWERS = (
    "The correct answer is|the correct answer is |(A)|(B)|B|D|(E)|*|**|(|)| |.|, since|The|A) |"
    "correct answer is"
)
pieces = ANSWERS.split("|")


@many
@given(st.lists(st.sampled_from(pieces), max_size=7), st.sampled_from(["", " "]))
def test_longbench_letter(parts: list[str], joint: str) -> None:
    reply = joint.join(parts)
    assert letter_longbench(reply) == official_longbench(reply)


@many
@given(texts, texts.filter(str.strip))
def test_loogle(said: str, gold: str) -> None:
    for name, expected in official_loogle(said, gold).items():
        assert score(name, said, [gold]) == pytest.approx(expected), name


turns = [f"S{session}:{turn}" for session in range(1, 6) for turn in range(1, 5)]


@many
@given(st.permutations(turns), st.sets(st.sampled_from(turns), min_size=1), st.integers(1, 25))
def test_recall_and_longmemevals_ndcg(order: list[str], gold: set[str], k: int) -> None:
    def expect(ranking: list[str], correct: set[str]) -> tuple[float, ...]:
        first = set(ranking[:k]) & correct
        gains = [float(one in correct) for one in ranking]
        ideal = sorted(gains, reverse=True)

        def dcg(values: list[float]) -> float:
            head = values[:k]
            return head[0] + sum(gain / log2(n) for n, gain in enumerate(head[1:], start=2))

        share = len(first) / len(correct)
        return share, float(bool(first)), float(share == 1), dcg(gains) / dcg(ideal)

    assert rank_evidence(order, gold, k) == pytest.approx(expect(order, gold))
    sessions = list(dict.fromkeys(one.split(":")[0] for one in order))
    of_gold = {one.split(":")[0] for one in gold}
    ours = rank_evidence(list(dict.fromkeys(map(session_of, order))), map(session_of, gold), k)
    assert ours == pytest.approx(expect(sessions, of_gold))


@many
@given(st.lists(st.text("abAB1 ", min_size=1), min_size=1, max_size=4), st.text("abAB12 "))
def test_ruler(golds: list[str], reply: str) -> None:
    found = score("substring_share_ruler", reply, golds)
    assert found == pytest.approx(official_ruler(reply, golds))
