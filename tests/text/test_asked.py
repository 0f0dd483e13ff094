"""What a question asks for, and whether an answer gives it."""

from __future__ import annotations

import pytest

from mgl.text.asked import asks_when, gives_what_is_asked, names_unknown_relative


@pytest.mark.parametrize(
    ("question", "given", "missed"),
    [
        ("How much is my rent?", "Your rent is 900 euros.", "Your rent has gone up."),
        ("How many hens do I keep?", "You keep six hens.", "You keep hens in the yard."),
        ("How many eggs did I buy?", "You bought a dozen.", "You bought eggs."),
        ("How old is Ruth?", "Ruth is ninety.", "Ruth is older than you."),
        ("What did the boat cost?", "It was free.", "The boat cost a lot of money."),
        ("What is the horse's name?", "The horse is Bella.", "The horse is a brown mare."),
        ("What is my street called?", "It is called “Elm Row”.", "Your street is quiet."),
        ("Where is the key?", "The key is under the mat.", "The key is there every Monday."),
        ("Who fixed my roof?", "Your uncle fixed it.", "You fixed your roof yesterday."),
        ("Which bus do I take?", "You take bus 9.", "You take the bus each morning."),
        ("What do I play?", "You play the harp.", "You play every evening."),
    ],
)
def test_an_answer_gives_what_the_question_asks_for(question: str, given: str, missed: str) -> None:
    assert gives_what_is_asked(given, question)
    assert not gives_what_is_asked(missed, question)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("On what day is the match?", "The match is on Thursday."),
        ("When do I start?", "You start in May."),
        ("Did I sell the car?", "You sold the car."),
        ("Why did I leave?", "You left."),
        ("Who is older, Tim or Ann?", "Ann is older."),
    ],
)
def test_a_question_that_asks_for_no_thing_takes_any_answer(question: str, answer: str) -> None:
    assert gives_what_is_asked(answer, question)


def test_a_question_for_a_time_is_known_by_its_words() -> None:
    assert asks_when("How long have I lived here?")
    assert not asks_when("Where do I live?")


@pytest.mark.parametrize(
    ("question", "told", "unknown"),
    [
        ("What does my niece play?", "My sister has a son, Tim.", True),
        ("What does my mother do?", "Mum is a pilot.", False),
        ("What does my husband do?", "Tom and I married in May. He is a pilot.", False),
        ("Where do my parents live?", "My dad lives in Cork.", False),
        ("Where does my aunt live?", "", True),
        ("Where does Ruth live?", "", False),
    ],
)
def test_a_relative_is_unknown_where_no_word_for_one_was_said(
    question: str, told: str, unknown: bool
) -> None:
    assert names_unknown_relative(question, told) is unknown
