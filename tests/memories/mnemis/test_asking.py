"""A memory that is told and asked in between: what is due when, and what an answer stands on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from mgl.errors import InputError
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.memories.mnemis import Mnemis
from mgl.store import Store
from mgl.types import Answer, Conversation, Turn
from tests.memories.mnemis.engine import (
    QUESTION,
    TALK,
    TURNS,
    Model,
    Open,
    everything,
    in_pairs,
    named,
)


async def test_it_is_told_turn_by_turn_and_the_hierarchy_follows_with_each_session(
    memory_of: Open,
) -> None:
    memory = memory_of(Conversation.from_name("told"))
    for turn in TURNS[:2]:
        await memory.append(turn)
    assert memory.state.categories == {}
    await memory.append(TURNS[2])
    assert memory.state.categories
    await memory.append(TURNS[0])
    assert len(memory.state.episodes) == 3
    with pytest.raises(InputError):
        await memory.append(replace(TURNS[0], text="other"))
    with pytest.raises(InputError):
        await memory.append(Turn("t9", "Ann", " "))


async def test_a_server_that_settles_in_between_gets_the_hierarchy_too(memory_of: Open) -> None:
    memory = memory_of(Conversation.from_name("told"))
    await memory.take_in(TURNS[:2])
    await memory.settle()
    assert memory.state.categories == {}
    await memory.take_in(TURNS[2:])
    await memory.settle()
    assert memory.state.categories


async def test_a_turn_is_found_before_it_is_settled(memory_of: Open) -> None:
    memory = memory_of()
    await memory.build()
    fresh = Turn("t9", "Ann", "I saw the cities of Porto and Braga.", session="3")
    await memory.take_in([fresh])
    found = await memory.recall(QUESTION)
    assert memory.conversation.turns[found.ranked[0]].id == "t9"
    assert any("Porto" in text for _, text in found.shown)
    await memory.take_in([Turn("t10", "Ann", "Which cities did I see?", session="3")])
    number = memory.find_number("t10")
    found = await memory.recall(QUESTION, recent=[number - 1, number])
    assert not any("Porto" in text for _, text in found.shown)


@pytest.mark.parametrize(("extraction", "shown"), [("terms", ""), ("model", " - now")])
async def test_facts_are_shown_with_their_dates(
    memory_of: Open, extraction: str, shown: str
) -> None:
    """Without a model nobody says that a fact still holds."""
    engine = Model(in_pairs, everything)
    memory = memory_of(engine=engine, extraction=extraction, routes="system1", k=50)
    await memory.build()
    texts = [text for _, text in (await memory.recall(QUESTION)).shown]
    assert any(
        text.startswith("Fact: ") and text.endswith(f"near the museum. (2023-05-10{shown})")
        for text in texts
    )


async def test_where_no_question_reads_the_graph_none_is_extracted(
    memory_of: Open, store: Store
) -> None:
    options = {"extraction": "model", "reflect": False}
    engine = Model(in_pairs, everything)
    episodes = memory_of(engine=engine, routes="system1", kinds="rag", **options)
    await episodes.build()
    assert engine.asked == []
    assert (len(episodes.state.episodes), len(episodes.state.entities)) == (4, 0)
    assert (await episodes.read(QUESTION)).found["episodes"]
    both = memory_of(engine=engine, **options)
    await both.build()
    assert both.id == episodes.id
    fresh = memory_of(
        Conversation("fresh", "fresh", TALK.turns), Model(in_pairs, everything), **options
    )
    await fresh.build()
    assert [e.names for e in both.state.entities.values()] == [
        e.names for e in fresh.state.entities.values()
    ]
    steps = store.steps(both.id)
    await both.build()
    assert store.steps(both.id) == steps


async def test_an_episode_that_could_not_be_read_is_read_again(memory_of: Open) -> None:
    engine = Model(in_pairs, everything, entities=["no", "no", "no", named])
    memory = memory_of(
        Conversation.from_name("told"), engine, extraction="model", reflect=False, routes="system1"
    )
    await memory.append(TURNS[0])
    await memory.settle()
    assert memory.state.find_unread(9) == {0: 3}
    assert [e.name for e in memory.state.entities.values() if e.episodes[0] == 0] == ["Ann"]
    answer = await memory.answer(QUESTION)
    assert answer.marks == ("episodes_unread",)
    await memory.retry_failed()
    assert memory.state.find_unread(9) == {}
    rome = next(each for each in memory.state.entities.values() if each.name == "Rome")
    assert rome.episodes[0] == 0
    assert (await memory.answer(QUESTION)).marks == ()


async def test_what_never_can_be_read_is_tried_some_times_and_on_request(
    memory_of: Open, store: Store
) -> None:
    engine = Model(in_pairs, everything, entities=["no"])
    memory = memory_of(engine=engine, extraction="model", reflect=False)
    for _ in range(4):
        await memory.build()
    assert set(memory.state.find_unread(9).values()) == {3}
    steps, calls = store.steps(memory.id), len(engine.asked)
    await memory.build()
    assert (store.steps(memory.id), len(engine.asked)) == (steps, calls)
    await memory.retry_failed()
    assert set(memory.state.find_unread(9).values()) == {4}
    assert len(engine.asked) > calls


async def test_a_hierarchy_whose_replies_all_failed_is_built_again(memory_of: Open) -> None:
    engine = Model(in_pairs, everything)
    engine.sorts = ["no", in_pairs]
    memory = memory_of(engine=engine)
    await memory.build()
    assert (memory.state.top, memory.state.failed_builds) == (0, 1)
    await memory.build()
    assert memory.state.top > 0
    assert memory.state.failed_builds == 0
    assert (await memory.read(QUESTION)).paths


async def test_a_turn_that_was_replied_to_has_that_reply(memory_of: Open) -> None:
    engine, talk = Talker(), Conversation.from_name("talks")
    said = await memory_of(talk, engine).reply(TURNS[0], "mgl")
    memory = memory_of(talk, engine)
    again = await memory.reply(TURNS[0], "mgl")
    assert said.text == again.text == "Reply 1."
    assert len(engine.heard) == 1
    await memory.append(TURNS[1])
    assert (await memory.reply(TURNS[0], "mgl")).text == "Reply 1."
    assert [turn.id for turn in memory.conversation.turns] == ["t0", "t0+", "t1"]
    await memory.forget(["t0+"])
    assert (await memory.reply(TURNS[0], "mgl")).text == "Reply 2."


async def test_a_reply_that_is_late_stands_on_what_was_said_before(memory_of: Open) -> None:
    engine = Talker()
    memory = memory_of(Conversation.from_name("talks"), engine, k=50)
    for turn in TURNS:
        await memory.append(turn)
    await memory.reply(TURNS[1], "mgl")
    [prompt] = engine.heard
    assert prompt.endswith(TURNS[1].text)
    assert not any(word in prompt for word in ("Detroit", "Cy", "cars"))


class Talker(Model):
    """Numbers its replies; ``heard`` has what each was asked with."""

    def __init__(self) -> None:
        super().__init__(in_pairs, everything)
        self.heard: list[str] = []

    async def generate(self, request: Request) -> Completion:
        if "Reply to the last message" not in request.messages[0].content:
            return await super().generate(request)
        self.heard.append("\n".join(message.content for message in request.messages))
        return Completion(f"Reply {len(self.heard)}.", "stop", TokenUsage(9, 3))


class Interrupted(Talker):
    """Selects everything; ``meanwhile`` happens once, as it is asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def generate(self, request: Request) -> Completion:
        happens = self.meanwhile
        if happens is not None and "hierarchical knowledge graph" in request.messages[0].content:
            self.meanwhile = None
            await happens()
        return await super().generate(request)


async def answered(memory: Mnemis) -> Answer:
    return await memory.answer(QUESTION)


async def replied(memory: Mnemis) -> Answer:
    return await memory.reply(Turn("t9", "Ann", "Which cities did I see?", None, "3"), "mgl")


@pytest.mark.parametrize("ask", [answered, replied])
async def test_what_is_forgotten_while_it_selects_is_not_answered_from(
    memory_of: Open, ask: Callable[[Mnemis], Awaitable[Answer]]
) -> None:
    engine = Interrupted()
    memory = memory_of(engine=engine, k=50)
    await memory.build()
    engine.meanwhile = lambda: memory.forget(["t2"])
    answer = await ask(memory)
    assert engine.meanwhile is None
    assert "t2" not in {*answer.retrieved, *(citation.node_id for citation in answer.citations)}
    state = memory.state
    known = state.entities.keys() | state.categories.keys()
    assert all(known >= {*path} for path in answer.paths)


async def test_an_entity_of_many_turns_is_cited_by_the_first_and_the_latest(
    memory_of: Open,
) -> None:
    turns = [Turn(f"t{n}", "Ann", "We saw Rome.", TURNS[0].time, "1") for n in range(30)]
    memory = memory_of(Conversation.from_turns("long", turns), routes="system1", k=1)
    await memory.build()
    [shown] = [
        numbers for numbers, text in (await memory.recall(QUESTION)).shown if "Rome (" in text
    ]
    assert shown == (0, 1, 2, *range(23, 30))
