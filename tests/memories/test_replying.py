"""The call that answers from turns, and the one that replies in a talk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

import pytest

from mgl.errors import ReplyInvalid
from mgl.llm.base import Completion, Request, Sampling, TokenUsage
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import Scripted, ScriptedEngine
from mgl.llm.progress import find_listener
from mgl.memories.calls import answer_from_passages
from mgl.memories.turns import (
    LIST,
    PARAGRAPH,
    SHORT,
    SUGGESTION,
    UNMENTIONED,
    Form,
    Shown,
    Speaker,
    Voice,
    answer_from_lines,
    cite_shown,
    cite_turn,
    find_assistants,
    find_form,
    find_replied,
    order_for_reply,
    read_answer,
    reply_to_turn,
    request_answer,
    show_turns,
)
from mgl.text.groups import format_turn
from mgl.types import Answer, Conversation, Question, Turn

MAY = datetime(2023, 5, 8, 9, 0)
TALK = Conversation.from_turns(
    "talk",
    [
        Turn("a", "Ann", "I have got the job", MAY, "1"),
        Turn("b", "Bo", "Good!\n[1] Ann: I have lost it", None, "1"),
        Turn("c", "", "The horse is ill", MAY, "2"),
    ],
)
QUESTION = Question("What is ill?")


def llm(*replies: Scripted, context: int = 32_768) -> tuple[Client, ScriptedEngine]:
    engine = ScriptedEngine(replies, context_tokens=context)
    return Client(engine, MemoryCallLog()), engine


def said(answer: str, *memories: int) -> str:
    return json.dumps({"memories": memories, "answer": answer})


async def answered(
    client: Client, memories: list[Shown], question: Question = QUESTION, tokens: int = 256
) -> Answer:
    lines, sampling = cite_shown(TALK, memories), Sampling(max_tokens=tokens)
    return await answer_from_lines(client, lines, question, sampling)


def test_turns_are_shown_in_order_a_line_each_with_their_day() -> None:
    assert show_turns(TALK.turns, [2, 0, 1]) == [
        ((0,), "(Monday, 08 May 2023) Ann: I have got the job"),
        ((1,), "Bo: Good! [1] Ann: I have lost it"),
        ((2,), "(Monday, 08 May 2023) The horse is ill"),
    ]


def test_a_plus_at_the_end_of_an_id_makes_no_reply() -> None:
    """Of a turn that has one itself, nor of one that the same person said."""
    said = [
        ("C", "Ann"),
        ("C+", "Ann"),
        ("C++", "mgl"),
        ("3", "Ann"),
        ("3+", "mgl"),
        ("3++", "mgl"),
    ]
    said += [("7+", "Bo")]
    turns = [Turn(identity, speaker, "Hello") for identity, speaker in said]
    speakers = dict(said)
    replied = {turn.id: heard for turn in turns if (heard := find_replied(turn, speakers))}
    assert replied == {"C++": "C+", "3+": "3", "3++": "3"}
    assert find_assistants(turns, speakers) == {"mgl"}


async def test_an_answer_cites_the_turns_of_the_memories_it_names() -> None:
    client, engine = llm(said(" the horse ", 2, 3))
    memories = [((0,), "zero"), ((1, 2), "one and two"), ((2,), "two")]
    answer = await answered(client, memories, tokens=50)
    assert (answer.text, answer.confidence) == ("the horse", "medium")
    assert [citation.node_id for citation in answer.citations] == ["b", "c"]
    prompt = engine.requests[0].messages[-1].content
    assert "[1] zero\n[2] one and two\n[3] two\n\nQuestion: What is ill?" in prompt
    assert engine.requests[0].sampling.max_tokens == 50


async def test_the_day_and_the_asker_of_a_question_are_shown() -> None:
    client, engine = llm(said("x", 1), said("x", 1))
    asked = Question("Who was ill yesterday?", datetime(2023, 5, 9, 21), "Ann")
    memories = show_turns(TALK.turns, [2])
    for question in (asked, QUESTION):
        await answered(client, memories, question)
    shown, plain = (request.messages[-1].content for request in engine.requests)
    assert "\n\nToday is Tuesday, 09 May 2023.\nQuestion by Ann: Who was ill" in shown
    assert "Today" not in plain


@pytest.mark.parametrize(
    ("question", "form"),
    [
        ("Where do I live?", SHORT),
        ("What is the name of the dress?", SHORT),
        ("What was the address?", SHORT),
        ("How many books does Ann own?", SHORT),
        ("What does Ann like?", SHORT),
        ("What activities does Ann do?", LIST),
        ("Which musical instruments has Ann played?", LIST),
        ("What are the names of her pets?", LIST),
        ("What advice did Bo give?", SHORT),
        ("Can you recommend some books on film?", SUGGESTION),
        ("I bake for my colleagues. Any tips?", SUGGESTION),
        ("What should I serve for dinner?", SUGGESTION),
        ("Tell me about Ann's horse.", PARAGRAPH),
        ("Please summarize what Bo said.", PARAGRAPH),
    ],
)
async def test_the_form_of_an_answer_follows_the_question(question: str, form: Form) -> None:
    assert find_form(Question(question)) is form
    client, engine = llm(said("x", 1))
    await answered(client, show_turns(TALK.turns, [0]), Question(question), tokens=16)
    assert form.said in engine.requests[0].messages[-1].content
    assert engine.requests[0].sampling.max_tokens == form.tokens


@pytest.mark.parametrize(
    ("question", "options", "asked"),
    [
        ("Wo wohnt mein Bruder jetzt?", (), "answer in German, in as few words as you can"),
        ("你之前建议我晚饭吃什么?", (), "answer in Chinese, in as few words as you can"),
        ("Where does my brother live now?", (), "answer in as few words as you can"),
        ("Wo wohnt mein Bruder jetzt?", ("Rom", "Riga"), "answer with one of these"),
    ],
)
def test_an_answer_is_asked_for_in_the_language_of_its_question(
    question: str, options: tuple[str, ...], asked: str
) -> None:
    prompt, _ = request_answer(["Ann: Hello."], Question(question, options=options))
    assert f"then {asked}" in prompt


@pytest.mark.parametrize(
    ("shown", "replies", "cited"),
    [
        (3, [(3, 1, 3)], ["a", "c"]),  # in any order
        (3, [(4,), (0,), (3,)], ["c"]),  # of those that there are
        (50, [range(1, 12), (50, 3, 3)], ["c", "b"]),  # and of many ten at most
    ],
)
async def test_numbers_are_held_to_the_memories_there_are(
    shown: int, replies: Sequence[Sequence[int]], cited: list[str]
) -> None:
    client, engine = llm(*(said("x", *numbers) for numbers in replies))
    answer = await answered(client, [((number % 3,), "a line") for number in range(shown)])
    assert [citation.node_id for citation in answer.citations] == cited
    assert len(engine.requests) == len(replies)


@pytest.mark.parametrize(
    ("text", "named", "cited"),
    [
        ("She has got the job", [3], ["a"]),  # another line says it
        ("The job", [], ["a"]),  # none was named
        ("The horse", [3], ["c"]),
        ("Bananas", [3], ["c"]),  # no line says it: what was named stays
        (UNMENTIONED, [], []),
        (UNMENTIONED, [1, 3], []),
        ("Not mentioned", [3], []),
    ],
)
async def test_what_an_answer_repeats_is_cited_where_other_lines_were_named(
    text: str, named: list[int], cited: list[str]
) -> None:
    client, engine = llm(said(text, *named))
    answer = await answered(client, show_turns(TALK.turns, [0, 1, 2]))
    assert [citation.node_id for citation in answer.citations] == cited
    assert answer.confidence == ("medium" if cited else "low")
    assert UNMENTIONED in engine.requests[0].messages[-1].content


async def test_a_question_is_abstained_from_in_its_own_words() -> None:
    question = Question("Who won?", asker="Joey", asked="Ross", unknown="I don't know.")
    client, engine = llm(said("I don't know."))
    answer = await answered(client, show_turns(TALK.turns, [0, 1, 2]), question)
    assert (answer.text, answer.citations) == ("I don't know.", ())
    prompt = engine.requests[0].messages[-1].content
    assert "Question by Joey to Ross: Who won?\n" in prompt
    assert 'If no memory answers it, the answer is "I don\'t know."' in prompt
    assert UNMENTIONED not in prompt
    reader, engine = llm("I don't know.")
    await answer_from_passages(reader, ["It rains."], question)
    asked = 'Question: Who won?\nIf the text does not tell, the answer is "I don\'t know."'
    assert engine.requests[0].messages[-1].content.endswith(asked)


def test_a_reply_is_shown_the_speakers_statements_first_and_its_own_remarks_last() -> None:
    shown = order_for_reply(
        TALK.turns,
        [((1,), format_turn(TALK.turns[1])), ((0, 2), "Summary"), *show_turns(TALK.turns, [0])],
        Turn("d", "Ann", "Hm"),
        Voice("Bo"),
    )
    assert shown == [
        ((0,), "Ann said on 8 May 2023: I have got the job"),
        ((0, 2), "Summary"),
        ((1,), "You said: Good! [1] Ann: I have lost it"),
    ]


def test_what_a_person_asked_stands_after_what_they_stated() -> None:
    heard = Turn("4", "user", "What do I play?")
    shown = order_for_reply(ASKED.turns, show_turns(ASKED.turns, [1, 2, 0]), heard, Voice())
    assert [numbers for numbers, _ in shown] == [(0,), (2,), (1,)]


async def test_memories_that_are_too_long_are_cut_and_keep_their_numbers() -> None:
    client, engine = llm(said("x", 2), context=1000)
    memories = [((0,), "word " * 3000), ((1,), "short")]
    answer = await answered(client, memories, tokens=50)
    assert [citation.node_id for citation in answer.citations] == ["b"]
    prompt = engine.requests[0].messages[-1].content
    assert " […]\n[2] short\n" in prompt
    assert await client.count_prompt_tokens(engine.requests[0].messages) < 1000 - 50


async def test_a_reply_follows_the_last_turns_and_knows_what_was_said_earlier() -> None:
    client, engine = llm("<think>Ill?</think>You have got the job. ")
    turns = (*TALK.turns, Turn("d", "Ann", "What job?", MAY, "2"))
    talk = Conversation.from_turns("talk", turns)
    bo = Voice("Bo", "Bo is a grumpy cook.")
    say = Speaker(turns[1:], bo, Sampling()).say
    answer = await reply_to_turn(client, talk, show_turns(TALK.turns, [0]), turns[-1], bo, say)
    assert (answer.text, answer.question) == ("You have got the job.", "What job?")
    assert [citation.node_id for citation in answer.citations] == ["a"]
    (request,) = engine.requests
    system, *others = request.messages
    assert system.role == "system"
    for shown in ("You are Bo,", "with Ann. Today is Monday, 08 May 2023. Bo is a grumpy cook."):
        assert shown in system.content
    assert "[1] Ann said on 8 May 2023: I have got the job" in system.content
    assert [(message.role, message.content) for message in others] == [
        ("assistant", "Bo: Good!\n[1] Ann: I have lost it"),
        ("user", "The horse is ill\nAnn: What job?"),
    ]
    assert request.sampling.max_tokens >= 1000


@pytest.mark.parametrize(("speaker", "cited"), [("mgl", []), ("Ann", ["1"])])
async def test_what_the_voice_said_itself_is_no_source_of_its_reply(
    speaker: str, cited: list[str]
) -> None:
    client, _ = llm("Your sister is called Klara.")
    said = [Turn("1", speaker, "The sister is called Klara."), Turn("2", "Ann", "Who is she?")]
    talk, mgl = Conversation.from_turns("talk", said), Voice("mgl")
    say = Speaker(said[1:], mgl, Sampling()).say
    answer = await reply_to_turn(client, talk, show_turns(said, [0]), said[1], mgl, say)
    assert [citation.node_id for citation in answer.citations] == cited


async def test_a_reply_needs_no_memories_and_is_given_as_far_as_it_was_written() -> None:
    client, engine = llm(Completion("Hello, hello, hello", "length", TokenUsage(9, 1024)))
    eve = Voice("Eve")
    say = Speaker(TALK.turns[:1], eve, Sampling()).say
    answer = await reply_to_turn(client, TALK, [], TALK.turns[0], eve, say)
    assert (answer.text, answer.citations) == ("Hello, hello, hello", ())
    assert "earlier talks, each" not in engine.requests[0].messages[0].content
    assert engine.requests[0].messages[1].content == "I have got the job"


async def test_who_hears_a_reply_does_not_hear_the_model_think() -> None:
    def speak(_: Request) -> str:
        hear = find_listener()
        assert hear is not None
        for end in range(0, len(written) + 1):
            hear(written[:end])
        return written

    written, heard = "<think>Ill?</think>\nIt is ill.", list[str]()
    client, _ = llm(speak)
    said = await Speaker(TALK.turns, Voice(), Sampling(), heard.append).say(client, "")
    assert said == heard[-1] == "It is ill."
    assert all(said.startswith(part) or "<think>".startswith(part) for part in heard)


async def test_a_reply_of_no_words_is_an_error() -> None:
    client, _ = llm("<think>Hm</think> ")
    with pytest.raises(ReplyInvalid, match="no reply"):
        await Speaker(TALK.turns, Voice(), Sampling()).say(client, "")


@pytest.mark.parametrize(("number", "session"), [(0, "1"), (1, "1"), (2, "2")])
def test_a_citation_is_the_words_of_a_turn_in_its_session(number: int, session: str) -> None:
    citation = cite_turn(TALK, number)
    assert citation.quote == TALK.turns[number].text == TALK.transcript.quote(citation.span)
    assert (citation.node_id, citation.document) == (TALK.turns[number].id, "talk")
    assert citation.section is not None
    assert (citation.section.kind, citation.section.label) == ("session", session)


@pytest.mark.parametrize("answer", ["Plain.", 'He said "no"\\', "é 👩‍👧 \n\t", ""])
def test_an_answer_is_read_as_it_is_written(answer: str) -> None:
    for reply in (json.dumps({"memories": [1], "answer": answer}),
                  json.dumps({"memories": [], "answer": answer}, ensure_ascii=False)):  # fmt: skip
        read = [read_answer(reply[:end]) for end in range(len(reply) + 1)]
        assert read[-1] == answer
        assert all(answer.startswith(part) for part in read)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ('{"answer": "two\nlines\tof', "two\nlines\tof"),
        ('{"answer": "a\\q b"}', "a"),
        ('{"answer": "a\\u12', "a"),
        ('{"memories": [1]', ""),
    ],
)
def test_an_answer_that_is_no_json_is_read_as_far_as_it_is(reply: str, answer: str) -> None:
    assert read_answer(reply) == answer


ASKED = Conversation.from_turns(
    "asked",
    [
        Turn("1", "user", "I play the cello in an orchestra."),
        Turn("2", "user", "Do I play the cello or the trumpet?"),
        Turn("3", "user", "Is the trumpet loud? I wonder."),
    ],
)


@pytest.mark.parametrize(
    ("answer", "named", "cited"),
    [
        ("the cello", (1, 2), ["1"]),  # a statement and a question: the statement
        ("the cello", (2,), ["1"]),  # the question alone
        ("the cello", (3,), ["1"]),  # neither
        ("a trumpet", (2,), ["3"]),  # said beside a question
        ("the cello or the trumpet", (), ["1", "3"]),
    ],
)
async def test_what_somebody_asked_is_not_cited_where_something_states_it(
    answer: str, named: tuple[int, ...], cited: list[str]
) -> None:
    client, _ = llm(said(answer, *named))
    lines = cite_shown(ASKED, show_turns(ASKED.turns, [0, 1, 2]))
    question = Question("What do I play?")
    found = await answer_from_lines(client, lines, question, Sampling())
    assert [citation.node_id for citation in found.citations] == cited


async def test_a_question_is_cited_where_it_alone_says_what_is_answered() -> None:
    client, _ = llm(said("the trumpet", 1))
    lines = cite_shown(ASKED, show_turns(ASKED.turns, [1]))
    question = Question("What did I ask about?")
    found = await answer_from_lines(client, lines, question, Sampling())
    assert [citation.node_id for citation in found.citations] == ["2"]
