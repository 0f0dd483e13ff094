"""Plain retrieval over a conversation."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from mgl.baselines.turns import Turns, TurnsConfig
from mgl.errors import UsageError
from mgl.llm.base import Request
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.base import Tools
from mgl.observer import SilentObserver
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.types import Conversation, Question, Turn

TEXTS = ["The horse is ill", "It rains", "A vet came for the horse", "It rains again", "The ring"]
TALK = Conversation.from_turns(
    "talk",
    [
        Turn(f"D1:{n}", "Ann", text, datetime(2023, 5, 8, 9, n), "1")
        for n, text in enumerate(TEXTS, 1)
    ],
)
QUESTION = Question("Did the horse see a vet?")


class Backwards(WordEmbedder):
    """Likes what shares no word with the question."""

    def embed(self, texts, *, task="passage"):  # type: ignore[no-untyped-def]
        return super().embed(texts, task=task) * (-1 if task == "query" else 1)


def last(request: Request) -> str:
    """An answer that cites the last memory that is shown."""
    count = request.messages[-1].content.count("\n[")
    return json.dumps({"memories": [count], "answer": f"{count} memories"})


def tools(store: Store, embedder: WordEmbedder | None) -> tuple[Tools, ScriptedEngine]:
    engine = ScriptedEngine([last] * 5)
    client = Client(engine, store.call_log())
    return Tools(client, store, SilentObserver(), lambda: 0.0, embedder), engine


@pytest.mark.parametrize(
    ("by", "embedder", "read"),
    [
        ("both", WordEmbedder(), [0, 2]),
        ("meaning", WordEmbedder(), [0, 2]),
        ("words", None, [0, 2]),
    ],
)
async def test_the_best_turns_are_read_in_the_order_of_the_conversation(
    store: Store, by: str, embedder: WordEmbedder | None, read: list[int]
) -> None:
    mine, engine = tools(store, embedder)
    config = TurnsConfig.model_validate({"by": by, "k": 2, "answer_tokens": 33})
    answer = await Turns(mine, TALK, (), config).answer(QUESTION)
    lines = [f"[{place}] (Monday, 08 May 2023) Ann: {TEXTS[n]}" for place, n in enumerate(read, 1)]
    assert "\n" + "\n".join(lines) + "\n" in engine.requests[0].messages[-1].content
    assert [citation.node_id for citation in answer.citations] == [f"D1:{read[-1] + 1}"]
    assert engine.requests[0].sampling.max_tokens == 33
    assert answer.retrieved == ("D1:3", "D1:1")


async def test_meaning_is_the_embedders(store: Store) -> None:
    mine, engine = tools(store, Backwards())
    await Turns(mine, TALK, (), TurnsConfig(by="meaning", k=3)).answer(QUESTION)
    assert "horse" not in engine.requests[0].messages[-1].content.partition("Question:")[0]


async def test_without_an_embedder_words_are_left(store: Store) -> None:
    mine, _ = tools(store, None)
    with pytest.raises(UsageError, match="embedding model"):
        await Turns(mine, TALK).answer(QUESTION)
