"""The whole conversation in one prompt."""

from __future__ import annotations

import json

import pytest

from mgl.baselines.base import BaselineConfig
from mgl.baselines.transcript import Transcript
from mgl.errors import ContextOverflow
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.llm.prompting import available_tokens
from mgl.memories.base import Tools
from mgl.memories.turns import show_turns
from mgl.observer import SilentObserver
from mgl.store import Store
from mgl.types import Conversation, Question, Turn

QUESTION = Question("What happened?")
SAID = json.dumps({"memories": [2], "answer": "It rained."})


def talk(words: list[int]) -> Conversation:
    turns = [Turn(f"{n}", "Ann", "rain " * count) for n, count in enumerate(words)]
    return Conversation.from_turns("talk", turns)


def tools(store: Store, context: int) -> tuple[Tools, ScriptedEngine]:
    engine = ScriptedEngine([SAID], context_tokens=context)
    client = Client(engine, MemoryCallLog())
    return Tools(client, store, SilentObserver(), lambda: 0.0), engine


async def test_every_turn_is_read_and_cited(store: Store) -> None:
    mine, engine = tools(store, 2000)
    source = talk([3, 5, 100])
    answer = await Transcript(mine, source).answer(QUESTION)
    assert answer.text == "It rained."
    assert [citation.node_id for citation in answer.citations] == ["1"]
    assert answer.retrieved == ("0", "1", "2")
    prompt = engine.requests[0].messages[-1].content
    for _, line in show_turns(source.turns, range(3)):
        assert line in prompt
    assert store.memories()[0].kind == "transcript"


@pytest.mark.parametrize(("spare", "fits"), [(0, True), (-1, False)])
async def test_it_fits_to_the_token(store: Store, spare: int, fits: bool) -> None:
    source = talk([30] * 20)
    mine, engine = tools(store, 0)
    needed = sum(await mine.llm.count_tokens([turn.line for turn in source.turns]))
    engine.context_tokens = needed - available_tokens(mine.llm, 20, reserve=120) + spare
    method = Transcript(mine, source, (), BaselineConfig(answer_tokens=120))
    if fits:
        assert (await method.answer(QUESTION)).text == "It rained."
    else:
        with pytest.raises(ContextOverflow):
            await method.answer(QUESTION)
        assert engine.requests == []
        assert store.memories() == []
