"""Core memory, edited a session at a time, and a search by functions."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from mgl.baselines.memgpt import BLOCK_CHARS, EMPTY_CORE, MOST_FUNCTIONS, AppendText, MemGPT, apply
from mgl.store import Store
from mgl.types import Question, Span
from tests.baselines.asking import (
    Model,
    answered,
    asking,
    make_talk,
    only_answering,
    prompts,
    said,
)

LINES = [
    ["I keep bees on the roof", "Since when", "Since spring"],
    ["The bees swarmed", "", "Into the chimney", "I sold all bees", "Bees no more", "No bees"],
    ["Bees again", "Good bees"],
]
TALK = make_talk(LINES)
QUESTION = Question("What happened to the bees?", datetime(2023, 6, 1))


def call(function: str, query: str = "-", page: int = 1, *, heartbeat: bool = True) -> str:
    arguments = {"query": query, "page": page}
    return said(thoughts="Let me see.", function=function, arguments=arguments, heartbeat=heartbeat)


def update(replaced: list[Any], appended: list[Any]) -> str:
    old = [dict(zip(("block", "old", "new"), each, strict=True)) for each in replaced]
    new = [dict(zip(("block", "text"), each, strict=True)) for each in appended]
    return said(replace=old, append=new)


UPDATES = [
    update([], [("first", "Ann keeps bees."), ("others", "Bo asks.")]),
    update([("first", "keeps", "kept"), ("others", "wasps", "flies")], []),
    update([], []),
]


def searching(*steps: str) -> Model:
    """Edits of core memory by session, and the functions given, in turn."""
    updates, calls = iter(UPDATES), iter(steps)

    def reply(prompt: str) -> str:
        if '"append"' in prompt:
            return next(updates)
        return next(calls) if '"heartbeat"' in prompt else answered(prompt)

    return reply


async def test_core_memory_is_edited_a_session_at_a_time_and_each_edit_is_judged(
    store: Store,
) -> None:
    mine, engine = asking(store, searching())
    memory = MemGPT(mine, TALK)
    await memory.build()
    rows = store.edits(memory.id)
    assert [(row.chunk, row.op, row.outcome) for row in rows] == [
        (0, "append", "applied"),
        (0, "append", "applied"),
        (1, "replace", "applied"),
        (1, "replace", "rejected"),
    ]
    assert memory.state.blocks == {"first": "Ann kept bees.", "others": "Bo asks."}
    asked = prompts(engine)
    assert "first, about Ann (0 characters):\n(empty)" in asked[0]
    assert "first, about Ann (15 characters):\nAnn keeps bees." in asked[1]
    shown = "\n".join(asked)
    assert all(line in shown for day in LINES for line in day)
    assert len(engine.requests) == len(LINES)


def test_a_block_has_2000_characters_at_most() -> None:
    span = Span(TALK.id, 0, 1)
    full = apply(EMPTY_CORE, AppendText(span, "first", "x" * (BLOCK_CHARS - 2)))
    full = apply(full, AppendText(span, "first", "y"))
    assert full.blocks["first"].endswith("x\ny")
    with pytest.raises(ValueError, match="the block would have 2002 characters"):
        apply(full, AppendText(span, "first", "z"))
    assert len(full.blocks["first"]) == BLOCK_CHARS


async def test_functions_are_called_until_the_message_is_sent(store: Store) -> None:
    steps = [
        call("conversation_search", "BEES"),
        call("conversation_search", "bees", 2),
        call("conversation_search_date", "from 2023-05-08 to 2023-05-08"),
        call("conversation_search_date", "in May"),
        call("send_message"),
    ]
    mine, engine = asking(store, searching(*steps))
    answer = await MemGPT(mine, TALK).answer(QUESTION)
    assert answer.trace == (
        'conversation_search("BEES", page 1 of 2): 5 messages',
        'conversation_search("bees", page 2 of 2): 2 messages',
        'conversation_search_date("from 2023-05-08 to 2023-05-08", page 1 of 1): 3 messages',
        'conversation_search_date("in May", page 1 of 0): 0 messages',
        "send_message",
    )
    first, *_, last, answering = prompts(engine)[len(LINES) :]
    assert "search 10 messages" in first
    assert "(none)" in first
    assert "Today is Thursday, 01 June 2023." in first
    assert "- (Wednesday, 10 May 2023) Bo: Good bees" in last
    assert "no results" in last
    lines = re.findall(r"^\[\d+\] (.*)$", answering, re.MULTILINE)
    assert lines[:2] == ["about Ann: Ann kept bees.", "about Bo: Bo asks."]
    assert lines[2].endswith("Ann: I keep bees on the roof")
    assert len(lines) == 2 + 9  # each message once, whichever function found it
    assert answer.retrieved[:5] == ("D0:0", "D1:0", "D1:3", "D1:4", "D1:5")
    assert answer.marks == ()


async def test_archival_storage_is_searched_by_meaning_and_no_heartbeat_ends_it(
    store: Store,
) -> None:
    steps = [call("archival_memory_search", "into a chimney", heartbeat=False)]
    mine, _ = asking(store, searching(*steps))
    memory = MemGPT(mine, TALK)
    answer = await memory.answer(QUESTION)
    assert answer.retrieved[0] == "D1:2"
    assert len(answer.retrieved) == 5
    assert answer.trace == ('archival_memory_search("into a chimney", page 1 of 2): 5 messages',)


async def test_ten_functions_are_called_at_most(store: Store) -> None:
    steps = [call("conversation_search", "bees")] * (MOST_FUNCTIONS + 1)
    mine, _ = asking(store, searching(*steps))
    assert len((await MemGPT(mine, TALK).answer(QUESTION)).trace) == MOST_FUNCTIONS


async def test_a_model_that_edits_and_calls_nothing(store: Store) -> None:
    mine, engine = asking(store, only_answering)
    answer = await MemGPT(mine, TALK).answer(QUESTION)
    assert answer.marks == ("sessions_missing", "search_failed")
    assert answer.retrieved == ()
    assert not any('"memories"' in prompt for prompt in prompts(engine))


async def test_a_longer_conversation_goes_on_where_it_ended(store: Store) -> None:
    mine, engine = asking(store, searching())
    await MemGPT(mine, replace(TALK, turns=TALK.turns[:3])).build()
    await MemGPT(mine, TALK).build()
    assert len(prompts(engine)) == len(set(prompts(engine))) == len(LINES)
