"""What a run hands back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.memories.results import answer_json, say_answer, share_read
from mgl.text.language import ENGLISH, find_phrases
from mgl.types import Answer, Document

TALE = Document.from_text("tale.txt", "Ann lost the ring at sea. Bo wept.")
SPANS = st.tuples(st.integers(0, 33), st.integers(1, 34)).filter(lambda pair: pair[0] < pair[1])


def test_json_has_the_doubt_before_each_guess() -> None:
    said = answer_json(Answer("Who?", "Bo. A pirate.", None, (), guesses=("A pirate.",)))
    assert said["answer"] == "Bo. Not found in the text; the model's guess: A pirate."
    assert said["guesses"] == ["A pirate."]


def test_two_guesses_alike_have_a_doubt_each() -> None:
    """Such as No to both halves of a question."""
    answer = Answer("Did Ann and did Bo?", "Yes. No. No.", None, (), guesses=("No.", "No."))
    doubt = "Not found in the text; the model's guess:"
    assert say_answer(answer) == f"Yes. {doubt} No. {doubt} No."


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("Wie heißt meine Schwester?", "Das wurde im Gespräch nicht erwähnt."),
        ("我的妹妹叫什么名字？", "对话中没有提到。"),
        ("What is my sister's name?", "Not mentioned in the conversation."),
        ("Hvad hedder min søster?", "Not mentioned in the conversation."),
    ],
)
def test_a_decline_is_shown_in_the_language_of_its_question(question: str, shown: str) -> None:
    answer = Answer(question, "Not mentioned in the conversation.", "low", ())
    said = answer_json(answer)
    assert (said["answer"], said["declined"]) == (shown, True)


@pytest.mark.parametrize("question", ["Qardaşım harada yaşayır?", "Waar woon my broer?"])
def test_a_question_in_a_language_near_one_with_phrases_is_met_in_english(question: str) -> None:
    assert find_phrases(question) is ENGLISH


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Is Björn Borg from Södertälje?", "English"),
        ("Do João and Conceição live in Lisboa?", "English"),
        ("Wohnt meine Schwester Anna in New York?", "German"),
        ("Wann hat Oma Geburtstag?", "German"),
        ("WO WOHNT MEIN BRUDER?", "German"),
    ],
)
def test_names_tell_no_language(question: str, name: str) -> None:
    assert find_phrases(question).name == name


def test_an_option_that_says_not_mentioned_stays_as_it_is_written() -> None:
    said = answer_json(Answer("Yes, no, or not mentioned?", "Not mentioned", "low", ()))
    assert (said["answer"], said["declined"]) == ("Not mentioned", True)


def test_a_guess_about_a_document_speaks_of_no_conversation() -> None:
    said = answer_json(Answer("Who?", "Not mentioned.", None, (), guesses=("Not mentioned.",)))
    assert said["answer"] == "Not found in the text; the model's guess: Not mentioned."
    assert not said["declined"]


def test_a_guess_is_doubted_in_the_language_of_its_question() -> None:
    answer = Answer("Wer hat den Ring gestohlen?", "Ein Pirat.", None, (), guesses=("Ein Pirat.",))
    assert say_answer(answer) == "Im Text nicht gefunden; das Modell vermutet: Ein Pirat."


@given(st.lists(SPANS, min_size=1, max_size=6))
def test_the_share_read_counts_each_character_once(pairs: list[tuple[int, int]]) -> None:
    retrieved = tuple(TALE.span(*pair).place for pair in pairs)
    share = share_read(Answer("Who?", "Bo.", None, (), retrieved=retrieved), TALE)
    read = {place for start, end in pairs for place in range(start, end)}
    assert share == pytest.approx(len(read) / len(TALE.text))


def test_no_share_is_known_without_passages() -> None:
    assert share_read(Answer("Who?", "Bo.", None, ()), TALE) is None
