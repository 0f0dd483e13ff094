"""Deletion with everything made of it, and what is masked before a model sees a turn."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from mgl.llm.base import Request
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.gam import Gam
from mgl.memories.gam.state import VOCABULARY, ForgetTurns, GamState
from mgl.memories.talk import Change
from mgl.store import Store
from mgl.store.deletion import MASK
from mgl.types import Conversation, Question, Turn
from tests.leftovers import find_kept, keep_vectors, left
from tests.memories.gam.test_memory import DAY, always, engine, talk

Open = Callable[..., Gam]
GONE = "xylophone marmalade quixotic zeppelin"
HELD = talk(["a b c", GONE, "d e f"], ["g h i", "j k l"])


def check(memory: Gam, store: Store, *, ordered: bool = True) -> None:
    """Every turn is forgotten, in the buffer or in exactly one topic, in order unless topics
    were merged; the log alone gives the state; and what is gone is gone."""
    state = memory.state
    held = [number for topic in state.topics.values() for number in topic.turns]
    gone = [number for number in state.forgotten if number < state.turns]
    assert sorted([*held, *state.buffer, *gone]) == list(range(state.turns))
    assert held == sorted(held) or not ordered
    assert not held or not state.buffer or max(held) < state.buffer[0]
    assert all(topic.turns for topic in state.topics.values())
    assert all(set(topic.marks) <= set(topic.turns) for topic in state.topics.values())
    names = state.topics.keys()
    assert all(link.source in names and link.target in names for link in state.links)
    assert len({frozenset((link.source, link.target)) for link in state.links}) == len(state.links)
    assert all(link.source != link.target for link in state.links)
    assert state.stale <= names
    assert VOCABULARY.replay(store.edits(memory.id)) == state
    turns = memory.conversation.turns
    assert all(set(turns[number].text) == {MASK} for number in state.forgotten)


async def topics_of(memory: Gam) -> GamState:
    await memory.build()
    await memory.flush()
    return memory.state


async def test_a_turn_goes_from_all_that_was_made_of_it(memory_of: Open, store: Store) -> None:
    memory = memory_of(HELD, engine(always([2])), partition="session")
    state = await topics_of(memory)
    assert state.topics["t1"].summary.count(GONE) == 1
    assert left(store.path, [GONE, GONE[:20]]) == [GONE, GONE[:20]]

    await memory.forget(["D1:2"])
    check(memory, store)
    topic = memory.state.topics["t1"]
    assert (topic.turns, topic.summary, topic.keywords) == ((0, 2), "", ())
    assert len(memory.state.links) == 1
    assert store.edits(memory.id)[-1].payload == {"turns": [1], "stale": [], "masked": []}
    assert left(store.path, [GONE, GONE[:20], GONE.split()[0]]) == []
    assert memory.conversation.turns[1] == replace(HELD.turns[1], text=MASK * len(GONE))
    assert memory.conversation.span(4) == HELD.span(4)


async def test_a_turn_goes_as_it_was_searched_for_before_others_joined(
    memory_of: Open, store: Store
) -> None:
    memory = memory_of(Conversation.from_name("t"), preset="small")
    embedder = keep_vectors(memory)
    for number, speaker in enumerate(["Ann", "Bo", "Cy"]):
        await memory.append(Turn(f"{number}", speaker, f"Cy and Ann like {GONE}", DAY, "1"))
        await memory.read(Question(f"Cy and Ann like {GONE}"))
    assert {f"Cy and like {GONE}", f"and like {GONE}"} <= find_kept(store, embedder)
    await memory.forget(["0", "1", "2"])
    assert not any(GONE in text for text in find_kept(store, embedder))


async def test_a_users_words_and_the_times_that_were_found_go_with_the_turn(
    memory_of: Open, store: Store
) -> None:
    said = talk(["a b c", "We met on 7 May 1999."], ["g h i", "j k l"])
    memory = memory_of(said, engine(always([])), preset="small", anchoring="summary")
    embedder = keep_vectors(memory)
    await memory.build()
    first, asked = memory.state.topics["t1"].summary, Question("Who met?")
    await memory.read(asked)
    await memory.edit("t1", Change("An old acquaintance.", ["friendship"]))
    await memory.flush()
    await memory.read(asked)
    assert {first, "An old acquaintance."} <= find_kept(store, embedder)
    assert memory.state.topics["t1"].marks[1].times[0].expression == "7 May 1999"
    words = ["7 May 1999", "1999-05-07", "An old acquaintance.", "friendship"]
    assert left(store.path, words) == words
    await memory.forget(["D1:2"])
    assert left(store.path, words) == []
    assert {first, "An old acquaintance."}.isdisjoint(find_kept(store, embedder))
    check(memory, store)


async def test_a_shortened_topic_is_summarised_anew_from_what_is_left(
    memory_of: Open, store: Store
) -> None:
    asked = engine(always([2]))
    memory = memory_of(HELD, asked, partition="session", indicators="rules")
    await topics_of(memory)
    calls = len(asked.requests)
    await memory.forget(["D1:2"])
    assert len(asked.requests) == calls
    await memory.build()
    assert len(asked.requests) == calls + 1
    assert memory.state.topics["t1"].summary == "Ann: a b c\nAnn: d e f"
    assert memory.state.stale == frozenset()
    row = store.edits(memory.id)[-1]
    assert (row.op, store.find_call(row.call_key or "") is not None) == ("rewrite", True)
    await memory.build()
    assert len(asked.requests) == calls + 1
    check(memory, store)


async def test_merged_topics_are_searched_and_forgotten_as_one(
    memory_of: Open, store: Store
) -> None:
    said = talk(["a b c", f"{GONE} was seen in the garden behind the house"], ["g h"], ["x y"])
    alone = engine(always([]), relation="unrelated")
    memory = memory_of(said, alone, partition="session", indicators="rules", anchors=1)
    embedder = keep_vectors(memory)
    state = await topics_of(memory)
    assert (len(state.topics), state.links) == (3, ())
    asked = Question(f"Who saw a {GONE.split()[0]}?")
    assert (await memory.read(asked)).anchors == ("t1",)
    await memory.edit("t2", Change(merge="t1"))
    assert (await memory.read(asked)).anchors == ("t2",)
    assert left(store.path, [GONE]) == [GONE]
    assert any(GONE in text for text in find_kept(store, embedder))

    gone = await memory.forget(["D1:2"])
    assert (gone.removed, gone.stale, gone.calls) == ((), ("t2",), 1)
    check(memory, store, ordered=False)
    assert left(store.path, [*GONE.split()]) == []
    assert not any(GONE in text for text in find_kept(store, embedder))
    await memory.edit("t3", Change(merge="t2"))
    assert (memory.state.topics["t3"].summary, memory.state.stale) == ("", {"t3"})
    await memory.build()
    assert memory.state.topics["t3"].summary == "Ann: a b c\nAnn: g h\nAnn: x y"
    check(memory, store, ordered=False)


async def test_what_cannot_be_summarised_anew_is_not_asked_for_again(
    memory_of: Open, store: Store
) -> None:
    memory = memory_of(HELD, engine(always([2])), partition="session", indicators="rules")
    await topics_of(memory)
    await memory.forget(["D1:2"])
    broken = ScriptedEngine(["no JSON"] * 9)
    again = memory_of(HELD, broken, partition="session", indicators="rules")
    await again.build()
    asked = len(broken.requests)
    assert asked
    assert again.state.topics["t1"].summary == ""
    await again.build()
    assert len(broken.requests) == asked
    assert [row.op for row in store.edits(memory.id)][-2:] == ["reply", "miss"]


async def test_what_is_private_is_masked_before_any_model_sees_the_turn(
    memory_of: Open, store: Store
) -> None:
    pytest.importorskip("detect_secrets")
    mail = "ann.lee@example.org"
    said = talk([f"write to {mail}", mail, "I will"], ["thanks a lot"])
    kept = memory_of(said, engine(always([])), indicators="rules", partition="session")
    await kept.build()
    assert kept.conversation.turns == said.turns
    asked = engine(always([]))
    memory = memory_of(said, asked, private="mask", indicators="rules", partition="session")
    await memory.build()
    assert asked.requests
    shown = [request.messages[-1].content for request in asked.requests]
    assert not any(mail in prompt for prompt in shown)
    assert any(f"write to {MASK * len(mail)}" in prompt for prompt in shown)
    assert memory.state.topics["t1"].turns == (0, 2)
    assert memory.state.forgotten == {1}
    assert left(store.path, [mail]) == []
    edits = [VOCABULARY.edit(row) for row in store.edits(memory.id)]
    assert ForgetTurns((1,), masked=(0,)) in edits
    check(memory, store)
    await memory.append(said.turns[0])
    assert memory.state.turns == 4


async def test_what_is_private_is_masked_before_the_buffer_is_read(
    memory_of: Open, store: Store
) -> None:
    pytest.importorskip("detect_secrets")
    mail = "ann.lee@example.org"

    def reply(request: Request) -> str:
        assert mail not in request.messages[-1].content
        named = [1] if "What is Ann's address?" in request.messages[-1].content else []
        return json.dumps({"memories": named, "answer": "I do not know"})

    asked = ScriptedEngine([reply] * 2)
    memory = memory_of(Conversation.from_name("t"), asked, private="mask", indicators="rules")
    await memory.append(Turn("1", "Ann", f"My address is {mail}, write to me."))
    await memory.answer(Question("What is Ann's address?"))
    await memory.reply(Turn("2", "Ann", mail), "assistant")
    assert len(asked.requests) == 2
    assert left(store.path, [mail]) == []
