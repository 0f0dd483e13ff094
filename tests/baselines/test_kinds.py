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
    OTHER,
    QUESTION,
    TALK,
    answered,
    asking,
    nothing,
    prompts,
    said,
)

NAMES = ["chain-of-agents", "direct", "naive-rag", "read-agent", "sliding-summary"]


SMALL: dict[str, dict[str, int]] = {
    "chain-of-agents": {"chunk_tokens": 200, "note_tokens": 40},
    "read-agent": {"page_tokens": 256, "least_tokens": 60, "gist_tokens": 20, "in_flight": 1},
    "sliding-summary": {"chunk_tokens": 200, "summary_tokens": 40},
}
each_kind = pytest.mark.parametrize("name", NAMES)


async def ask(tools: Tools, name: str, source: Source) -> Answer:
    kind: MemoryKind = registry.load("memory", name)
    return await kind(tools, source, [], kind.Config()).answer(QUESTION)


def working(prompt: str) -> str:
    """Notes that quote the prompt's end, the first pause, the first page."""
    if '"pause"' in prompt:
        return said(pause=1)
    if '"pages"' in prompt:
        return said(pages=[1])
    return said(notes=prompt[-300:-200]) if '"notes"' in prompt else answered(prompt)


def make_small(tools: Tools, name: str) -> Any:
    kind: Any = registry.load("memory", name)
    return kind(tools, BOOK, [], kind.Config.model_validate(SMALL.get(name, {})))


@each_kind
async def test_questions_share_what_was_read(store: Store, name: str) -> None:
    mine, engine = asking(store, working)
    await make_small(mine, name).answer(QUESTION)
    rows, calls = store.edits(make_small(mine, name).id), len(engine.requests)
    assert not any(QUESTION.text in (row.payload.get("text") or "") for row in rows)
    await make_small(mine, name).answer(OTHER)
    assert [store.edits(memory.id) for memory in store.memories()] == [rows]
    again = prompts(engine)[calls:]
    assert name == "chain-of-agents" or len(again) <= 2
    assert all(OTHER.text in prompt for prompt in again)
    await make_small(mine, name).answer(QUESTION)
    assert len(engine.requests) == calls + len(again)


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
