"""GAM as a whole: triggers, boundaries, consolidation, and what a restart finds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from mgl.errors import InputError
from mgl.llm.base import Completion, Request
from mgl.llm.fakes import SchemaEngine, ScriptedEngine
from mgl.memories.gam import Gam
from mgl.memories.gam.state import VOCABULARY, Append, Link
from mgl.store import Store
from mgl.types import Conversation, Turn

Open = Callable[..., Gam]
DAY = datetime(2023, 5, 8, 13, 56)
WORDS = "paint horse lake book garden kitchen train music letter bridge".split()


def speaker(place: int) -> str:
    return "Ann" if place % 2 else "Bo"


def talk(*sessions: Sequence[str]) -> Conversation:
    turns = [
        Turn(f"D{session}:{place}", speaker(place), text, DAY + timedelta(session), str(session))
        for session, texts in enumerate(sessions, 1)
        for place, text in enumerate(texts, 1)
    ]
    return Conversation.from_turns("talk", turns)


def reply_by_stage(
    boundaries: Callable[[str], list[int]], relation: str = "semantic", confidence: float = 0.9
) -> Callable[[Request], str]:
    """An engine's replies by what the prompt asks."""

    def reply(request: Request) -> str:
        prompt = request.messages[-1].content
        if "identify where topic changes occur" in prompt:
            return json.dumps({"boundaries": boundaries(prompt)})
        if "structured analysis" in prompt:
            return json.dumps(
                {
                    "keywords": ["key"],
                    "summary": prompt.split("Content for analysis:")[1].strip()[:60],
                }
            )
        if "Determine the relationship" in prompt:
            return json.dumps({"relation": relation, "confidence": confidence})
        if '"temporal"' in prompt:
            return json.dumps({"temporal": [0], "consistent": []})
        raise AssertionError(prompt)

    return reply


def always(indices: list[int]) -> Callable[[str], list[int]]:
    return lambda _: indices


def engine(boundaries: Callable[[str], list[int]], **options: object) -> ScriptedEngine:
    return ScriptedEngine([reply_by_stage(boundaries, **options)] * 500)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("relation", "confidence", "kept"),
    [("support", 0.9, 1), ("unrelated", 0.9, 0), ("support", 0.5, 0), ("support", 0.51, 1)],
)
async def test_an_edge_needs_a_relation_and_more_than_the_threshold(
    memory_of: Open, store: Store, relation: str, confidence: float, kept: int
) -> None:
    asked = engine(always([0]), relation=relation, confidence=confidence)
    memory = memory_of(talk(["a b", "c d"], ["e f"]), asked, indicators="rules")
    await memory.build()
    await memory.flush()
    links = [row for row in store.edits(memory.id) if row.op == "link"]
    assert links
    assert len(memory.state.links) == kept * len(links)
    if kept:
        assert memory.state.links[0] == Link("t2", "t1", relation, confidence)  # type: ignore[arg-type]


async def test_a_topic_is_linked_to_at_most_five_others_and_never_to_itself(
    memory_of: Open,
) -> None:
    memory = memory_of(
        talk([f"{word} walks here" for word in WORDS]),
        engine(always([])),
        without="ssm",
        indicators="rules",
    )
    await memory.build()
    assert len(memory.state.topics) == len(WORDS)
    ends = [(link.source, link.target) for link in memory.state.links]
    assert all(source != target for source, target in ends)
    assert max(sum(source == name for source, _ in ends) for name in memory.state.topics) == 5


async def test_appending_one_by_one_gives_what_building_gives(memory_of: Open) -> None:
    whole = talk(["a b c", "d e f", "g h i"], ["j k l", "m n o"], ["p q r"])
    built = memory_of(whole, SchemaEngine(3))
    await built.build()
    grown = memory_of(Conversation.from_name("grown"), SchemaEngine(3))
    for turn in whole.turns:
        await grown.append(turn)
    assert grown.state == built.state
    assert grown.conversation.turns == whole.turns


@pytest.mark.parametrize("fold", [0, 1])
async def test_a_turn_of_the_hour_that_comes_twice_is_the_one_that_was_kept(
    memory_of: Open, fold: int
) -> None:
    memory = memory_of(Conversation.from_name("autumn"))
    zone = ZoneInfo("Europe/Lisbon")
    turn = Turn("1", "Ann", "Still awake.", datetime(2023, 10, 29, 1, 30, tzinfo=zone, fold=fold))
    for _ in range(2):
        await memory.append(turn)
    assert memory.state.turns == 1
    assert turn.time is not None
    with pytest.raises(InputError, match="another turn"):
        await memory.append(replace(turn, time=turn.time.replace(fold=1 - fold)))


async def test_a_reply_that_stays_invalid_loses_no_turn(memory_of: Open, store: Store) -> None:
    memory = memory_of(
        talk(["a b c", "d e f"], ["g h i"]), ScriptedEngine(["no JSON at all"] * 100)
    )
    await memory.build()
    await memory.flush()
    assert sorted(n for topic in memory.state.topics.values() for n in topic.turns) == [0, 1, 2]
    reasons = {row.reason for row in store.edits(memory.id) if row.op == "reply"}
    assert reasons == {"reply_invalid"}


def fail_at(*marks: str) -> ScriptedEngine:
    """An engine whose replies to prompts with one of some words cannot be used."""
    right = reply_by_stage(always([]))

    def reply(request: Request) -> str:
        prompt = request.messages[0].content
        return "no JSON" if any(mark in prompt for mark in marks) else right(request)

    return ScriptedEngine([reply] * 500)


SUMMARY, CUES = "structured analysis", '"temporal"'


async def test_cues_and_summaries_that_failed_are_rows_and_are_asked_for_again(
    memory_of: Open, store: Store
) -> None:
    said = talk(["a b c", "d e f"], ["g h i"])
    asked = fail_at(SUMMARY, CUES)
    memory = memory_of(said, asked, partition="session")
    await memory.build()
    missing = [row.payload["what"] for row in store.edits(memory.id) if row.op == "reply"]
    assert missing == ["summary", "cues"]
    topic = memory.state.topics["t1"]
    assert (topic.summary, memory.state.stale) == ("", {"t1"})
    calls = len(asked.requests)
    await memory.build()
    assert len(asked.requests) == calls, "what was asked for in vain is not asked for unasked"

    again = memory_of(said, fail_at(CUES), partition="session")
    await again.retry_failed()
    assert again.state.topics["t1"].summary == "Ann: a b c\nBo: d e f"
    assert again.state.stale == frozenset()
    last = memory_of(said, fail_at(), partition="session")
    await last.retry_failed()
    marks = last.state.topics["t1"].marks
    assert [marks[turn].temporal for turn in (0, 1)] == [True, False]
    assert not last.state.missed
    idle = ScriptedEngine([])
    await memory_of(said, idle, partition="session").retry_failed()
    assert not idle.requests
    assert VOCABULARY.replay(store.edits(memory.id)) == last.state


async def test_a_step_written_while_the_log_is_read_is_taken_once(
    memory_of: Open, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [Turn(str(number), "Ann", f"word {number}") for number in range(3)]
    reader = memory_of(Conversation.from_name("t"))
    with Store.open(store.path) as other:
        await memory_of(Conversation.from_name("t"), at=other).append(said[0])
        known_steps, talk = store.steps, Conversation.from_name("t").id

        def steps_then_another(memory_id: str) -> int:
            known, number = known_steps(memory_id), len(other.turns(talk))
            if number < len(said):
                edit = VOCABULARY.record(known, Append(number))
                other.append_turns(memory_id, number, [said[number]], [edit])
            return known

        monkeypatch.setattr(store, "steps", steps_then_another)
        for _ in said:
            state = reader.state
            assert list(state.buffer) == list(range(state.turns))
        assert reader.state.turns == len(said)


async def test_what_the_turns_of_a_reply_make_due_is_done_after_it(memory_of: Open) -> None:
    """The session's end is seen though the reply has followed the turn that shows it."""

    def reply(request: Request) -> str:
        if "Reply to the last message" in request.messages[0].content:
            return json.dumps({"memories": [], "answer": "Fine."})
        return reply_by_stage(always([0]))(request)

    asked = ScriptedEngine([reply] * 99)
    memory = memory_of(talk(["a b c", "d e f"]), asked, indicators="rules")
    await memory.build()
    await memory.reply(Turn("n", "Ann", "How are you?", DAY + timedelta(9), "9"), "Eve")
    assert len(asked.requests) == 1
    assert memory.state.buffer == (0, 1, 2, 3)
    await memory.settle()
    assert memory.state.topics["t1"].turns == (0,)


SAID = [
    Turn("1", "Ann", "I moved to Lisbon", DAY, "1"),
    Turn("1+", "assistant", "You live in London now", DAY, "1"),
]


def summarise(summary: str, *, shows_assistant: bool) -> Callable[[Request], str]:
    def reply(request: Request) -> str:
        assert ("You live in London" in request.messages[-1].content) is shows_assistant
        return json.dumps({"keywords": ["move"], "summary": summary})

    return reply


@pytest.mark.parametrize(
    "summary",
    ["Ann moved to Porto.", "Her two kids moved.", "She is in Moscow.", "Der Umzug nach Lisboa."],
)
async def test_the_papers_kind_keeps_a_summary_of_all_that_was_said_as_the_model_wrote_it(
    memory_of: Open, store: Store, summary: str
) -> None:
    asked = ScriptedEngine([summarise(summary, shows_assistant=True)])
    options = {"indicators": "rules", "partition": "session"}
    memory = memory_of(Conversation.from_turns("chat", SAID), asked, **options)
    await memory.flush()
    assert memory.state.topics["t1"].summary == summary
    (row,) = [row for row in store.edits(memory.id) if row.op == "consolidate"]
    assert (row.outcome, row.reason) == ("applied", None)


async def test_the_small_preset_remembers_without_a_call(memory_of: Open) -> None:
    asked = ScriptedEngine([])
    memory = memory_of(talk(["I paint a horse", "Good"], ["It rains"]), asked, preset="small")
    await memory.flush()
    assert [topic.turns for topic in memory.state.topics.values()] == [(0, 1), (2,)]
    assert not asked.requests


async def test_a_reply_stops_what_is_consolidated_and_waits_for_none_of_it(memory_of: Open) -> None:
    class Slow(ScriptedEngine):
        async def generate(self, request: Request) -> Completion:
            if "Reply to the last message" not in request.messages[0].content:
                begun.set()
                await asyncio.Event().wait()
            return await super().generate(request)

    begun = asyncio.Event()
    slow = Slow(["Fine."])
    memory = memory_of(talk(["a b c", "d"], ["d e f"]), slow, indicators="rules")
    await memory.settle_later()
    await begun.wait()
    replied = memory.reply(Turn("n", "Ann", "Good to see you.", DAY + timedelta(9), "9"), "Eve")
    assert (await replied).text == "Fine."
    assert not memory.state.topics, "what was stopped is due again"
    await memory.pause()
