"""Questions about what a person told: which they are, and what may answer them."""

from __future__ import annotations

from datetime import datetime

import pytest

from mgl.llm.base import Completion, TokenUsage
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import Scripted, ScriptedEngine
from mgl.memories.told import UNTOLD, answer_from_statements, asks_for_told, find_assistants
from mgl.types import Conversation, Question, Turn

MAY, JUNE = datetime(2026, 5, 3, 18), datetime(2026, 6, 1, 18)
TALK = Conversation.from_turns(
    "talk",
    [
        Turn("1", "user", "I moved to Lisbon last week!", MAY),
        Turn("1+", "assistant", "You must love London.", MAY),
        Turn("2", "user", "My friend Mara lives in London.", MAY),
        Turn("2+", "assistant", "London is grey.", MAY),
        Turn("3", "user", "I have moved again, to Porto.", JUNE),
    ],
)
OWN = [0, 2, 4]
TOLD = [TALK.turns[number].text for number in OWN]


def check(said: str, logprob: float = -0.1) -> Completion:
    return Completion(said, "stop", TokenUsage(5, 1), logprobs=(logprob,))


def llm(*replies: Scripted) -> tuple[Client, ScriptedEngine]:
    engine = ScriptedEngine(replies)
    return Client(engine, MemoryCallLog()), engine


@pytest.mark.parametrize(
    ("message", "asks"),
    [
        ("Where do I live?", True),
        ("where do i live", True),
        ("Where does Mara live?", True),
        ("What is my sister called?", True),
        ("Do you remember where I live?", True),
        ("How cold is the friend of yours?", False),  # of the assistant
        ("Is the friend well?", True),  # a thing that was told of
        ("I have moved again.", False),
        ("How do I boil an egg?", False),
        ("What should I cook for Mara?", False),
        ("What can I see in Porto?", False),
        ("Can you recommend a book for my friend?", False),
        ("What is the capital of France?", False),
        ("Who wrote Faust?", False),
    ],
)
def test_a_question_about_what_was_told_is_known_by_its_words(message: str, asks: bool) -> None:
    assert asks_for_told(message, TOLD) is asks


def test_assistants_are_those_who_reply() -> None:
    turns = [Turn("1", "Ann", "Hi"), Turn("1+", "Eve", "Hello"), Turn("2", "assistant", "Yes?")]
    assert find_assistants(turns) == {"Eve", "assistant"}
    assert find_assistants(turns[:1]) == frozenset()


async def test_an_answer_is_read_off_the_persons_statements_with_their_days_and_cites_them() -> (
    None
):
    client, engine = llm("You live in Porto.", check("Yes"), check("Yes"))
    question = Question("Where do I live?", datetime(2026, 6, 20), "user")
    answer = await answer_from_statements(client, TALK, OWN, question)
    assert answer is not None
    assert (answer.text, answer.confidence) == ("You live in Porto.", "medium")
    assert [citation.node_id for citation in answer.citations] == ["3"]
    asked, *checked = (request.messages[-1].content for request in engine.requests)
    lines = [
        "The user said on 3 May 2026: I moved to Lisbon last week!",
        "The user said on 3 May 2026: My friend Mara lives in London.",
        "The user said on 1 June 2026: I have moved again, to Porto.",
    ]
    assert "\n".join(lines) in asked
    assert "Today is 20 June 2026" in asked
    assert "love London" not in asked, "what the assistant said is no fact"
    for prompt in checked:
        assert lines[2] in prompt
        assert lines[0] not in prompt, "the answer repeats the last statement alone"
    assert "Proposed answer: You live in Porto." in checked[0]


@pytest.mark.parametrize(
    ("question", "said", "reply"),
    [
        ("Where do I live?", "Your home is Porto.", "The user's home is Porto, 1 June 2026."),
        ("Where do I live?", "You said you live in Porto.", "The user said you live in Porto."),
        ("When did I move?", "You moved to Porto on 1 June 2026.", None),
        ("Where is my exam?", "Your exam in Porto is on 4 July.", None),
        ("Where is my exam?", "Your exam in Porto is on 4 July.", "My exam in Porto is on 4 July."),
        ("Where am I?", "You moved to Porto; you're at home.", "I moved to Porto; I’m at home."),
        ("Where do I live?", 'You said "I moved to Porto".', None),
    ],
)
async def test_an_answer_speaks_to_the_person_and_leaves_out_the_day_on_which_they_said_it(
    question: str, said: str, reply: str | None
) -> None:
    exam = Turn("4", "user", "My exam in Porto is on 4 July.", JUNE)
    talk = Conversation.from_turns("talk", [*TALK.turns, exam])
    client, _ = llm(reply or said, *[check("Yes")] * 4)
    answer = await answer_from_statements(client, talk, [*OWN, 5], Question(question, JUNE, "user"))
    assert answer is not None
    assert answer.text == said


@pytest.mark.parametrize(
    "replies",
    [
        ("You live in Berlin.",),  # a place that was never named
        ("You are 28 years old.",),  # a number
        ("You live there since June.",),  # no place
        ("You live in Porto.", check("No", -0.01), check("Yes")),  # the statement does not say it
        ("You live in Porto.", check("Yes"), check("No", -0.01)),  # or does not answer the question
    ],
)
async def test_what_the_statements_do_not_say_was_not_told(replies: tuple[Scripted, ...]) -> None:
    client, engine = llm(*replies)
    answer = await answer_from_statements(client, TALK, OWN, Question("Where do I live?"))
    assert answer is not None
    assert (answer.text, answer.confidence, answer.citations) == (UNTOLD, "low", ())
    assert len(engine.requests) == len(replies)


async def test_nothing_is_asked_of_a_model_about_a_relative_whom_nobody_named() -> None:
    client, engine = llm()
    answer = await answer_from_statements(client, TALK, OWN, Question("Where does my aunt live?"))
    assert answer is not None
    assert (answer.text, engine.requests) == (UNTOLD, [])


async def test_a_question_of_general_interest_is_left_to_the_ordinary_reply() -> None:
    client, _ = llm("It is a friend of 28 years.")
    asked = Question("How old is the friend?")
    assert await answer_from_statements(client, TALK, OWN, asked) is None


async def test_nothing_is_asked_of_a_model_where_nothing_was_told() -> None:
    client, engine = llm()
    answer = await answer_from_statements(client, TALK, [], Question("What is my name?"))
    assert answer is not None
    assert answer.text == UNTOLD
    assert not engine.requests
