"""Plain retrieval over a conversation."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from mgl.baselines.turns import Turns, TurnsConfig
from mgl.errors import UsageError
from mgl.store import Store
from mgl.types import Conversation, Question, Turn
from tests.baselines.asking import asking, prompts, said

TEXTS = ["The horse is ill", "It rains", "A vet came for the horse", "It rains again", "The ring"]
TALK = Conversation.from_turns(
    "talk",
    [
        Turn(f"D1:{n}", "Ann", text, datetime(2023, 5, 8, 9, n), "1")
        for n, text in enumerate(TEXTS, 1)
    ],
)
QUESTION = Question("Did the horse see a vet?")


def last(prompt: str) -> str:
    """An answer that cites the last memory that is shown."""
    count = prompt.count("\n[")
    return said(memories=[count], answer=f"{count} memories")


async def test_the_best_turns_are_read_in_the_order_of_the_conversation(store: Store) -> None:
    tools, engine = asking(store, last)
    config = TurnsConfig(k=2, answer_tokens=33)
    answer = await Turns(tools, TALK, (), config).answer(QUESTION)
    lines = [f"[{n}] (Monday, 08 May 2023) Ann: {TEXTS[at]}" for n, at in enumerate([0, 2], 1)]
    assert "\n" + "\n".join(lines) + "\n" in prompts(engine)[0]
    assert [citation.node_id for citation in answer.citations] == ["D1:3"]
    assert engine.requests[0].sampling.max_tokens == 33
    assert set(answer.retrieved) == {"D1:3", "D1:1"}


async def test_a_turn_is_found_by_those_around_it_and_by_its_speaker(store: Store) -> None:
    lines = [("Ann", "My horse is ill."), ("Bo", "Oh no!"), ("Ann", "Oh no!"), ("Bo", "It rains.")]
    turns = [Turn(str(n), speaker, text, session="1") for n, (speaker, text) in enumerate(lines)]
    talk = Conversation.from_turns("talk", [*turns, Turn("4", "Bo", "Oh no!", session="2")])

    async def find(question: str) -> tuple[str, ...]:
        tools, _ = asking(store, last)
        return (await Turns(tools, talk, (), TurnsConfig(k=3)).answer(Question(question))).retrieved

    assert set(await find("a horse")) == {"0", "1", "2"}
    assert (await find("What of Bo's horse?"))[0] == "1"


async def test_it_needs_an_embedder(store: Store) -> None:
    tools = replace(asking(store, last)[0], embedder=None)
    with pytest.raises(UsageError, match="embedding model"):
        await Turns(tools, TALK).answer(QUESTION)
