"""What a reply decides: one field is read, and a reply that does not answer is unreadable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.benchmarks.base import Item
from mgl.evaluation.scorers.choices import (
    declines,
    find_label,
    find_letter,
    find_verdict,
    gold_label,
    gold_letter,
    letter_longbench,
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
        ("The correct answer is **D**", "D"),
        ("The correct answer is A, or The correct answer is (B)", "B"),
        ("the correct answer is (B)", None),
        ("The correct answer is (E)", None),
        ("The correct answer is: (B)", None),
        ("B", None),
    ],
)
def test_longbench_reads_its_two_sentences_and_nothing_else(reply: str, letter: str | None) -> None:
    assert letter_longbench(reply) == letter


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("b", "B"),
        ("**B**", "B"),
        ("(b) the red one", "B"),
        ("B) because of A", "B"),
        ("B\nThe text says so.", "B"),
        ("<answer>B</answer>", "B"),
        ("(A) looks right.\n<answer>(B) the red one</answer>", "B"),
        ("So it is \\boxed{B}.", "B"),
        ('{"answer": "B"}', "B"),
        ("The answer is A because it rained", "A"),
        ("The correct answer is A, since it rained", "A"),
        ("Not A.\nAnswer: C", "C"),
        ("B, because it rained", "B"),
        ("B - it rained", "B"),
        ("The red one.", "B"),
        ("The correct answer is (B) the red one [12].", "B"),
        ("The correct answer is (B) the blue one [12].", None),
        ("B. The red one, because it rained", "B"),
        ("(A) is incorrect. (B) is correct.", None),
        ("Not (B)", None),
        ("The answer is not B", None),
        ("(A) or (B)", None),
        ("A, B and C are all wrong", None),
        ("A man did it", None),
        ("The red one, not the blue one", None),
        ("The correct answer is Athens", None),
        ("<answer>none that is given</answer> B", None),
        ("E", None),
        ("", None),
    ],
)
def test_ours_reads_the_answer_field_alone(reply: str, letter: str | None) -> None:
    assert find_letter(reply, COLOURS) == letter


@given(st.text(), st.integers(0, 5))
def test_a_letter_is_always_of_a_choice(reply: str, count: int) -> None:
    said = find_letter(reply, [f"choice number {n}" for n in range(count)])
    assert said is None or said in "ABCDE"[:count]


@given(st.text(), st.sampled_from("ABCD"))
def test_a_tag_is_read_whatever_stands_around_it(text: str, letter: str) -> None:
    assert find_letter(f"{text}\n<answer>{letter}</answer>", COLOURS) == letter


def test_the_gold_answer_is_a_letter_or_a_choice() -> None:
    golds = {"(b)": "B", "the red one": "B", "E": None, "the pink one": None}
    assert {gold: gold_letter(item(gold)) for gold in golds} == golds
    assert gold_label(item("contradict ", choices=LABELS)) == "Contradict"
    assert gold_label(item("other", choices=LABELS)) is None
    assert gold_letter(item()) is gold_label(item()) is None


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("CONSISTENT", "Consistent"),
        ("Contradict. It is not consistent with the book.", "Contradict"),
        ("<answer>contradicts</answer>", "Contradict"),
        ("It cannot be consistent", None),
        ("not consistent", None),
        ("INCONSISTENT", None),
        ("consistent? no: they contradict", None),
        ("", None),
    ],
)
def test_a_label_is_named_at_the_beginning(reply: str, label: str | None) -> None:
    assert find_label(reply, LABELS) == label


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("TRUE", True),
        ("**FALSE**: Daisy was driving.", False),
        ("TRUE, because it is false that Gatsby drove.", True),
        ("Answer: False … it is TRUE that she was there.", False),
        ("[Answer]: TRUE [Explanation]: it is not false.", True),
        ("<explanation>It is TRUE that she drove.</explanation>\n<answer>FALSE</answer>", False),
        ('{"answer": true}', True),
        ("The claim is true.", True),
        ("Based on the context provided, the statement is FALSE.", False),
        ("According to chapter 3, which she wrote, the claim is TRUE.", True),
        ("The above statement is FALSE.", False),
        ("Based on the book, the statement is not FALSE.", None),
        ("The statement is not TRUE.", None),
        ("Not true.", None),
        ("It is true that Daisy drove.", None),
        ("A true friend of Daisy", None),
        ("TRUE or FALSE: I cannot tell.", None),
        ("TRUE/FALSE", None),
        ("", None),
    ],
)
def test_a_verdict_is_the_answer_and_no_word_of_the_explanation(
    reply: str, said: bool | None
) -> None:
    assert find_verdict(reply) is said


@pytest.mark.parametrize(
    ("reply", "declined"),
    [
        ("You have not told me.", True),
        ("You haven’t told me what she is called.", True),
        ("I don't know it.", True),
        ("Not mentioned in the conversation.", True),
        ("Her name is unknown.", True),
        ("There is no information about it.", True),
        ("You have not told me, but she is probably called Anna.", False),
        ("She is called Anna.", False),
        ("No, she lives in Ghent.", False),
        ("No, you told me you live in Rome.", False),
        ("No you told me you live in Rome.", False),
        ("It was not mentioned; Anna.", False),
        ("It was not mentioned: she is a cook.", False),
        ("It was not mentioned. She is a cook.", False),
        ("You did not say Rome, you said Paris.", False),
        ("I don't know — Anna?", False),
        ("She is not known for her cakes.", False),
        ("I have no record of that.", True),
        ("That hasn't come up.", True),
        ("That never came up in our talks.", True),
        ("That isn't something you mentioned.", True),
        ("No one told me.", True),
        ("I'm sorry, I don't have any information about that.", True),
        ("You haven't told me. Would you like to?", True),
        ("I don't know; you have not told me. Please tell me.", True),
        ("", False),
    ],
)
def test_a_reply_declines_where_it_says_so_and_guesses_nothing(reply: str, declined: bool) -> None:
    assert declines(reply) is declined
