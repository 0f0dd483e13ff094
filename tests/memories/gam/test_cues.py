"""What is known of events and of questions: time, role and confidence (Eq. 11)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import Scripted, ScriptedEngine
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.cues import Marked, find_implied, mark_events
from mgl.retrieval.cues import Implied, Marks, mark_turn, matches_time
from mgl.text.times import TimeMention, time_mentions
from mgl.types import Question, Turn

MAY = datetime(2023, 5, 8, 13, 56)
RULES = GamConfig(indicators="rules")
PROMPT = GamConfig(indicators="prompt")
SPEAKERS = {"Ann Lee", "Bo"}


def said(text: str, speaker: str = "Ann Lee", at: datetime | None = MAY) -> Turn:
    return Turn("1", speaker, text, at)


def llm(*replies: Scripted) -> tuple[Client, ScriptedEngine]:
    engine = ScriptedEngine(replies)
    return Client(engine, MemoryCallLog()), engine


def sure_of(word: str, logprob: float) -> Scripted:
    def reply(request: Request) -> Completion:
        assert request.choices
        return Completion(word, "stop", TokenUsage(1, 1), logprobs=(logprob,))

    return reply


# Events


@pytest.mark.parametrize(
    ("text", "consistent"),
    [
        ("My horse is brown.", True),
        ("Is your horse brown?", False),
        ("I like it. Is it yours?", False),
        ("Is it yours? [image: a brown horse]", False),
        ("It is mine. [image: a sign that says why?]", True),
        ("[image: a brown horse]", False),
    ],
)
def test_what_ends_in_a_question_states_nothing(text: str, consistent: bool) -> None:
    assert mark_turn(said(text)).consistent is consistent


async def test_by_rules_no_model_is_asked() -> None:
    turns = [said("It is mine."), said("Yesterday?")]
    client, engine = llm()
    marks = await mark_events(client, (0, 1), turns, RULES)
    assert marks == Marked({0: mark_turn(turns[0]), 1: mark_turn(turns[1])})
    what = await find_implied(client, Question("When?"), SPEAKERS, RULES)
    assert what.time_sensitive
    assert engine.requests == []


async def test_by_prompt_cues_are_the_models_and_ranges_the_librarys() -> None:
    turns = [said("zero"), said("Yesterday it rained."), said("It is mine.")]
    client, engine = llm(json.dumps({"temporal": [1], "consistent": [0]}))
    marks = await mark_events(client, (1, 2), turns, PROMPT)
    times = tuple(time_mentions(turns[1].text, MAY))
    assert marks.marks == {1: Marks(False, True, times), 2: Marks(True, False, ())}
    prompt = engine.requests[0].messages[-1].content
    assert "[0] Ann Lee: Yesterday it rained.\n[1] Ann Lee: It is mine." in prompt


async def test_a_reply_that_stays_invalid_leaves_events_without_cues_but_with_their_times() -> None:
    turns = [said("Yesterday it rained.")]
    client, _ = llm(*["no"] * 6)
    marks = await mark_events(client, (0,), turns, PROMPT)
    assert marks.problem
    assert marks.marks == {0: Marks(False, False, tuple(time_mentions(turns[0].text, MAY)))}


# Questions


@pytest.mark.parametrize(
    ("question", "sensitive"),
    [
        ("When did Bo leave?", True),
        ("How long was Bo away?", True),
        ("What did Bo do on 8 May 2023?", True),
        ("What colour is the horse?", False),
        ("Whenever is a word", False),
    ],
)
async def test_by_rules_a_question_is_time_sensitive_where_it_asks_for_or_names_a_time(
    question: str, sensitive: bool
) -> None:
    client, _ = llm()
    what = await find_implied(client, Question(question), SPEAKERS, RULES)
    assert what.time_sensitive is sensitive


@pytest.mark.parametrize(("word", "sensitive"), [("Yes", True), ("No", False)])
async def test_by_prompt_the_model_says_whether_time_matters(word: str, sensitive: bool) -> None:
    client, engine = llm(sure_of(word, -0.1))
    what = await find_implied(client, Question("What colour is it?"), SPEAKERS, PROMPT)
    assert what.time_sensitive is sensitive
    assert "Question: What colour is it?" in engine.requests[0].messages[-1].content


@pytest.mark.parametrize(
    ("question", "asker", "meant"),
    [
        ("What does Ann like?", None, {"Ann Lee"}),
        ("What does Ann Lee's horse eat?", None, {"Ann Lee"}),
        ("Did ann and bo meet?", None, {"Ann Lee", "Bo"}),
        ("What do I like?", "Bo", {"Bo"}),
        ("Where is my horse?", "Bo", {"Bo"}),
        ("What does Ann think of me?", "Bo", {"Ann Lee", "Bo"}),
        ("Who likes it?", "Bo", set()),
        ("What do I like?", "Cy", set()),
        ("What do I like?", None, set()),
        ("Was Annie at the Boat?", None, set()),
    ],
)
async def test_speakers_are_meant_by_name_or_by_the_askers_i(
    question: str, asker: str | None, meant: set[str]
) -> None:
    client, _ = llm()
    what = await find_implied(client, Question(question, asker=asker), SPEAKERS, RULES)
    assert what.speakers == meant


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("What will Ann do in may?", set()),
        ("What did Will do in May?", {"Will", "May"}),
        ("what did will do when I left?", {"Will"}),
    ],
)
async def test_a_speaker_may_be_called_as_other_words_are(question: str, meant: set[str]) -> None:
    client, _ = llm()
    what = await find_implied(client, Question(question), {"Will", "May"}, RULES)
    assert what.speakers == meant


# Both


def mention(begin: date, until: date) -> TimeMention:
    return TimeMention("then", 0, 4, begin, until)


ANY_TIME = Implied(True, (), frozenset())


DAYS = st.dates(date(2020, 1, 1), date(2025, 1, 1))
RANGES = st.tuples(DAYS, DAYS).map(sorted).map(lambda ends: mention(ends[0], ends[1]))


@given(asks=RANGES, speaks=st.lists(RANGES, max_size=3), at=st.none() | DAYS)
def test_where_a_question_names_a_time_the_event_shares_a_day_with_it(
    asks: TimeMention, speaks: list[TimeMention], at: date | None
) -> None:
    turn = said("x", at=None if at is None else datetime(at.year, at.month, at.day, 23, 59))
    ranges = [(time.begin, time.until) for time in speaks] + ([] if at is None else [(at, at)])
    shares = any(max(begin, asks.begin) <= min(until, asks.until) for begin, until in ranges)
    what = replace(ANY_TIME, times=(asks,))
    assert matches_time(Marks(bool(speaks), times=tuple(speaks)), turn, what) is shares
