"""Every baseline by its name, as the lab makes and opens it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from mgl import registry
from mgl.errors import ContextOverflow, ReplyInvalid
from mgl.memories.base import MemoryKind, Tools
from mgl.store import Store
from mgl.types import Answer, Source
from tests.baselines.asking import (
    BOOK,
    QUESTION,
    TALK,
    answered,
    asking,
    nothing,
)

NAMES = ["chain-of-agents", "direct", "naive-rag", "read-agent", "sliding-summary"]
each_kind = pytest.mark.parametrize("name", NAMES)


async def ask(tools: Tools, name: str, source: Source) -> Answer:
    kind: MemoryKind = registry.load("memory", name)
    return await kind(tools, source, [], kind.Config()).answer(QUESTION)


@each_kind
@pytest.mark.parametrize("source", [BOOK, TALK], ids=["document", "conversation"])
async def test_a_model_that_says_nothing(store: Store, name: str, source: Source) -> None:
    mine, _ = asking(store, nothing)
    with pytest.raises(ReplyInvalid):
        await ask(mine, name, source)


@each_kind
async def test_a_context_that_is_too_small(store: Store, name: str) -> None:
    mine, engine = asking(store, answered, context=400)
    with pytest.raises(ContextOverflow):
        await ask(mine, name, BOOK)
    assert engine.requests == []


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("naive-rag", {"chunk_tokens": 50, "overlap_tokens": 50}),
        ("naive-rag", {"most_tokens": 100}),
        ("read-agent", {"page_tokens": 300, "least_tokens": 301}),
    ],
)
def test_options_that_cannot_work(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        registry.load("memory", name).Config.model_validate(options)
