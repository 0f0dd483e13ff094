"""What a reply decides, by each benchmark's rule and by ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.benchmarks.base import Item
from mgl.evaluation.scorers.choices import (
    find_label,
    find_letter,
    find_verdict,
    gold_label,
    gold_letter,
    letter_longbench,
    right_dialsim,
)
from mgl.types import Question

COLOURS = ("the blue one", "the red one", "a green one", "none of these")
LABELS = ("Consistent", "Contradict")


def item(*golds: str, choices: tuple[str, ...] = COLOURS) -> Item:
    return Item("q", "s", Question("Which?"), golds, choices=choices)


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("The correct answer is (B).", "B"),
        ("So **The correct answer is (C)**", "C"),
        ("The correct answer is D", "D"),
        ("The correct answer is **D**", "D"),
        ("The correct answer is A, or The correct answer is (B)", "B"),
        ("the correct answer is (B)", None),
        ("The correct answer is (E)", None),
        ("The correct answer is: (B)", None),
        ("B", None),
        ("(B)", None),
        ("", None),
    ],
)
def test_longbench_reads_its_two_sentences_and_nothing_else(reply: str, letter: str | None) -> None:
    assert letter_longbench(reply) == letter


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("(B)", True),
        ("(B) Monica. I am sure: (B)", True),
        ("(B) Monica, (b) again", True),
        ("(B) rather than (C)", False),
        ("(B) rather than (c)", False),
        ("(b)", False),
        ("B", False),
        ("(C)", False),
        ("(B) (F)", True),
        ("", False),
    ],
)
def test_dialsim_wants_the_option_and_no_other(reply: str, right: bool) -> None:
    assert right_dialsim(reply, "B", 5) is right


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B", "B"),
        ("b", "B"),
        ("**B**", "B"),
        ("(b) the red one", "B"),
        ("B. the red one", "B"),
        ("B) because of A", "B"),
        ("B\nThe text says so.", "B"),
        ("The correct answer is (C)", "C"),
        ("The answer is C because it rained", "C"),
        ("The answer is A because it rained", "A"),
        ("The correct answer is A, since it rained", "A"),
        ("The correct answer is Brown, the red one", "B"),
        ("B, because it rained", "B"),
        ("B - it rained", "B"),
        ("B because it rained", "B"),
        ("A as it rained", "A"),
        ("Answer: C", "C"),
        ("I take option D.", "D"),
        ("It must be (D), clearly", "D"),
        ("the red one", "B"),
        ("It was the red one.", "B"),
        ("The red one, not the blue one", None),
        ("(A) or (B)", None),
        ("A, B and C are all wrong", None),
        ("A man did it", None),
        ("B-movies did it", None),
        ("The correct answer is Athens", None),
        ("The answer is A man", None),
        ("at 9 a.m. sharp", None),
        ("E", None),
        ("", None),
    ],
)
def test_ours_reads_a_letter_or_a_choice(reply: str, letter: str | None) -> None:
    assert find_letter(reply, COLOURS) == letter


@given(st.text(), st.integers(0, 5))
def test_a_letter_is_always_of_a_choice(reply: str, count: int) -> None:
    said = find_letter(reply, [f"choice number {n}" for n in range(count)])
    assert said is None or said in "ABCDE"[:count]


@pytest.mark.parametrize(
    ("gold", "letter"),
    [("B", "B"), ("(b)", "B"), ("the red one", "B"), ("E", None), ("the pink one", None)],
)
def test_the_gold_answer_is_a_letter_or_a_choice(gold: str, letter: str | None) -> None:
    assert gold_letter(item(gold)) == letter
    assert gold_letter(item()) is None


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("CONSISTENT", "Consistent"),
        ("Contradict. It is not consistent with the book.", "Contradict"),
        ("It contradicts the book.", "Contradict"),
        ("The story is consistent with the book", "Consistent"),
        ("It does not contradict the book", "Consistent"),
        ("It doesn't really contradict it", "Consistent"),
        ("not consistent", "Contradict"),
        ("INCONSISTENT", "Contradict"),
        ("The story is inconsistent with the book.", "Contradict"),
        ("It is not inconsistent", "Consistent"),
        ("consistent? no: they contradict", "Consistent"),
        ("Either they contradict or are consistent", None),
        ("", None),
    ],
)
def test_a_label_is_named_and_not_denied(reply: str, label: str | None) -> None:
    assert find_label(reply, LABELS) == label


def test_of_three_labels_a_denied_one_leaves_two() -> None:
    assert find_label("not consistent", (*LABELS, "Unknown")) is None


def test_the_gold_label_is_that_of_the_choices() -> None:
    assert gold_label(item("contradict ", choices=LABELS)) == "Contradict"
    assert gold_label(item("other", choices=LABELS)) is None
    assert gold_label(item(choices=LABELS)) is None


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("TRUE", True),
        ("False.", False),
        ("**FALSE**: Daisy was driving.", False),
        ("TRUE, because it is false that Gatsby drove.", True),
        ("[Answer]: TRUE [Explanation]: it is supported.", True),
        ("<answer>FALSE</answer>", False),
        ('{"answer": "TRUE"}', True),
        ("Daisy drove the car, so the statement is false.", False),
        ("The claim is true.", True),
        ("Answer: false", False),
        ("The answer is FALSE, not TRUE.", False),
        ("The answer is FALSE. No, TRUE.", None),
        ("The statement is not TRUE.", False),
        ("This isn't true.", False),
        ("I would say that it is NOT FALSE.", True),
        ("Not true.", False),
        ("The statement is **false**.", False),
        ('Answer: "True"', True),
        ("The claim is true. The claim is false.", None),
        ("The claim is not true.", False),
        ("It is true that Daisy drove.", None),
        ("A true friend of Daisy", None),
        ("Truely, falsehoods.", None),
        ("TRUE or FALSE: I cannot tell.", None),
        ("TRUE/FALSE", None),
        ("I cannot tell.", None),
        ("", None),
    ],
)
def test_what_a_reply_decides(reply: str, said: bool | None) -> None:
    assert find_verdict(reply) is said
