"""Scores by their names: what each gives for an item, and for which items it gives none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mgl.benchmarks.base import Item
from mgl.errors import UsageError
from mgl.evaluation.records import Record
from mgl.evaluation.scorers.registry import AGGREGATES, SCORERS, Scored, find_scorers, score_answer
from mgl.evaluation.scorers.words import nltk_tools
from mgl.evaluation.statistics import Interval
from mgl.types import Question

COLOURS = ("the blue one", "the red one")
LABELS = ("Consistent", "Contradict")


def item(*golds: str, **fields: Any) -> Item:
    return Item("q", "s", Question("What?"), golds, **fields)


def macro_f1(answers: list[Scored]) -> Interval | None:
    compute = AGGREGATES["macro_f1"].compute
    assert compute is not None
    return compute(answers)


def category(number: int) -> dict[str, str]:
    return {"category": str(number)}


def make_record(
    text: str, retrieved: tuple[str, ...] = (), citations: Any = (), **memory: Any
) -> Record:
    told = {"retrieved": retrieved, "citations": citations, "memory": memory}
    return Record("m", {}, answer=text, **told)


FAILED = Record("m", {}, reason="EngineTimeout: slow")
RED, TRUE = item("B", choices=COLOURS), item("TRUE", pair="p")
READ = ("D1:3", "D9:1", "D1:1", "D7:7", "D7:8", "D2:2")
TURNS = item("x", evidence=("D1:3", "D2:2"))

WORKED: list[tuple[str, Item, Record, float]] = [
    ("exact_match", item("Rome", "Paris"), make_record("The Paris."), 1),
    ("substring_squad", item("The Rome", "Oslo"), make_record("It is in Rome, I think."), 1),
    ("f1_squad", item("Rome", "old Rome"), make_record("in old Rome"), 2 * 2 / 5),
    ("f1_locomo_official", item("pot, paint", labels=category(1)), make_record("pots"), 1 / 2),
    ("f1_locomo_official", item(labels=category(5)), make_record("Not mentioned."), 1),
    ("f1_set_amem", item("red red lakes"), make_record("Red lakes, two."), 2 * 2 / 5),
    ("bleu1_amem", item("the cat"), make_record("The cat sat"), 2 / 3),
    ("cascade_mindgraph", item("Rome"), make_record("It was Rome."), 1),
    ("cascade_mindgraph", item("Rome"), make_record(" "), 0),
    ("cascade_mindgraph", RED, make_record("(b)"), 1),
    ("told_or_unsaid", item("Lisbon"), make_record("You live in Lisbon."), 1),
    ("told_or_unsaid", item(category="unsaid"), make_record("You have not told me."), 1),
    ("told_or_unsaid", item(category="unsaid"), make_record("Perhaps Oslo."), 0),
    ("choice_letter", RED, make_record("the red one"), 1),
    ("choice_letter", RED, make_record("(A)"), 0),
    ("choice_letter_longbench", RED, make_record("The correct answer is (B)"), 1),
    ("choice_letter_longbench", RED, make_record("B"), 0),
    ("label_accuracy", item("contradict", choices=LABELS), make_record("Contradicts."), 1),
    ("claim_accuracy", TRUE, make_record("TRUE, since"), 1),
    ("substring_share_ruler", item("123", "456"), make_record("It is 1234."), 1 / 2),
    ("rouge_1_recall", item("a b c d", "a"), make_record("a b"), 1),
    ("rouge_l_recall", item("a b c d"), make_record("d a b"), 2 / 4),
    ("bleu_1", item("a b"), make_record("a c"), 1 / 2),
    ("bleu_4", item("a b c d"), make_record("a b c d e"), 1 / 2),
    ("meteor_stems", item("a b c d"), make_record("a b c d"), 1 - 0.5 / 4**3),
    ("evidence_recall@5", TURNS, make_record("", READ), 1 / 2),
    ("evidence_recall@10", TURNS, make_record("", READ), 1),
    ("evidence_recall@5", item(evidence=("D9", "D2")), make_record("", READ), 1 / 2),
    ("session_recall@5", TURNS, make_record("", READ), 1),
    ("session_recall@5", item(evidence=("D8", "D1:9")), make_record("", READ), 1 / 2),
    ("evidence_recall_any@5", TURNS, make_record("", READ), 1),
    ("evidence_recall_all@5", TURNS, make_record("", READ), 0),
    ("evidence_ndcg@5", TURNS, make_record("", READ), 1 / 2),
    ("session_recall_any@5", TURNS, make_record("", READ), 1),
    ("session_recall_all@5", TURNS, make_record("", READ), 1),
    ("session_ndcg@5", TURNS, make_record("", READ), (1 + 1 / 2) / 2),
    ("rubric_values", item(rubric=("8 weeks", "12")), make_record("It is 12."), 1 / 2),
    ("compaction_ratio", item(), make_record("x", compaction_ratio=0.07), 0.07),
]


@pytest.mark.parametrize(("name", "of", "answered", "value"), WORKED)
def test_by_hand(name: str, of: Item, answered: Record, value: float) -> None:
    assert score_answer([name], of, answered) == {name: pytest.approx(value)}


def test_every_scorer_is_worked() -> None:
    tested = {name for name, *_ in WORKED}
    untried = {name for name in SCORERS if name.rpartition("@")[2] in ("10", "20", "30", "50")}
    assert tested | untried == SCORERS.keys()
    assert SCORERS.keys().isdisjoint(AGGREGATES)
    for name, _, _, value in WORKED:
        assert value in (0, 1) or SCORERS[name].kind == "mean"


def test_an_item_without_what_it_needs_has_no_score() -> None:
    assert score_answer(SCORERS.keys(), item(), make_record("Rome")) == {}


@pytest.mark.parametrize(
    ("name", "of", "said"),
    [
        ("choice_letter", RED, "I do not know"),
        ("choice_letter", RED, "(A) is incorrect. (B) is correct."),
        ("choice_letter_longbench", RED, "I do not know"),
        ("cascade_mindgraph", RED, "I do not know"),
        ("label_accuracy", item("contradict", choices=LABELS), "It cannot be consistent"),
        ("claim_accuracy", TRUE, "Perhaps"),
        ("claim_accuracy", item("FALSE"), ""),
    ],
)
def test_a_reply_that_cannot_be_read_is_wrong(name: str, of: Item, said: str) -> None:
    assert score_answer([name], of, make_record(said)) == {name: 0}


@pytest.mark.parametrize("said", ["He refused to go to Rome.", "He stayed."])
def test_a_reply_that_no_rule_decides_has_no_score(said: str) -> None:
    found = score_answer(["cascade_mindgraph"], item("Rome"), make_record(said))
    assert found == {"cascade_mindgraph": None}


def test_what_read_every_turn_in_order_has_no_recall_at_ten() -> None:
    turns = tuple(f"D1:{n}" for n in range(1, 40))
    of = item("x", evidence=("D1:3", "D1:30"))
    names = ["evidence_recall@10", "evidence_recall_any@10", "session_recall@10"]
    assert score_answer(names, of, make_record("x", turns)) == {}
    assert score_answer(names[:1], of, make_record("x", turns[::-1])) == {names[0]: 1 / 2}
    assert score_answer(names[:1], of, make_record("x", turns[:11])) == {}
    assert score_answer(names[:1], of, make_record("x", turns[:10])) == {names[0]: 1 / 2}
    whole = make_record("x", turns, read_all=True)
    assert score_answer(["evidence_recall@50"], of, whole) == {}
    assert score_answer(["evidence_recall@5"], of, make_record("x", ("D5:5",))) == {
        "evidence_recall@5": 0
    }


def test_recall_by_session_goes_by_a_name_that_is_not_longmemevals() -> None:
    """Its turn2session has 1 / log2(4) / 1 here: the only marked turn is the fourth."""
    of = item("x", evidence=("D1:4",))
    turns = make_record("x", ("D1:1", "D9:1", "D1:2", "D1:4"))
    assert score_answer(["session_ndcg@5"], of, turns) == {"session_ndcg@5": 1}
    assert not any(name.startswith("evidence_session") for name in SCORERS)
    by_session = [each.about for name, each in SCORERS.items() if name.startswith("session_")]
    assert by_session
    assert all(about.startswith("ours, not LongMemEval's") for about in by_session)


def test_a_category_that_locomo_has_not_has_no_score() -> None:
    for of in (item("x", labels=category(6)), item(labels=category(4))):
        assert score_answer(["f1_locomo_official"], of, make_record("x")) == {}


def test_the_order_is_that_of_the_names_and_a_name_that_is_none_is_told_before_a_run() -> None:
    names = ["substring_share_ruler", "pair_accuracy", "exact_match"]
    assert list(score_answer(names, item("Rome"), make_record("Rome"))) == names[::2]
    with pytest.raises(UsageError) as caught:
        find_scorers(["f1_squad", "f2_squad"])
    assert "pair_accuracy" in caught.value.hint


def test_what_is_not_installed_is_told_before_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    nltk_tools.cache_clear()
    monkeypatch.setitem(sys.modules, "punkt", None)
    for name in ("f1_locomo_official", "bleu1_amem", "bleu_4"):
        with pytest.raises(UsageError):
            find_scorers([name])
    nltk_tools.cache_clear()


def answered(items: list[Item], replies: Sequence[str | None]) -> list[Scored]:
    return [
        Scored(of, FAILED if text is None else make_record(text))
        for of, text in zip(items, replies, strict=True)
    ]


def test_macro_f1_by_hand() -> None:
    """Consistent: 2 hit of 3 said and 3 wanted; Contradict: 1 of 1 said and 3 wanted. Of the third
    nothing can be read, and the last failed."""
    told: list[tuple[str, str | None]] = [
        ("Consistent", "consistent"),
        ("Consistent", "Consistent."),
        ("Consistent", "perhaps"),
        ("Contradict", "consistent"),
        ("Contradict", "contradict"),
        ("Contradict", None),
    ]
    items = [item(gold, choices=LABELS) for gold, _ in told]
    interval = macro_f1(answered(items, [reply for _, reply in told]))
    assert interval is not None
    assert interval.mean == pytest.approx((2 * 2 / (3 + 3) + 2 * 1 / (1 + 3)) / 2)
    assert interval.n == 6
    assert interval.low < interval.mean < interval.high
    items = [item(gold, choices=LABELS) for gold in ("Consistent",) * 6 + ("Contradict",) * 2]
    one_label_of_all = macro_f1(answered(items, ["Consistent"] * 8))
    assert one_label_of_all is not None
    assert one_label_of_all.mean == pytest.approx(2 * 6 / (8 + 6) / 2)
    by_book = [replace(one, source=f"book {n // 2}") for n, one in enumerate(items)]
    nearly_all_right = macro_f1(answered(by_book, ["Consistent"] * 6 + ["Contradict"] * 2))
    assert nearly_all_right is not None
    assert 0 <= nearly_all_right.low <= nearly_all_right.high <= 1
    assert macro_f1(answered([item("x")], ["x"])) is macro_f1([]) is None
