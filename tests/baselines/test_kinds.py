"""Every baseline by its name, as the lab makes and opens it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
from pydantic import ValidationError

from mgl import baselines, registry
from mgl.errors import ContextOverflow, EngineRejected, InputError, ReplyInvalid
from mgl.lab.model import NoModel
from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import MemoryKind, Tools
from mgl.memories.turns import UNMENTIONED
from mgl.prompt import Prompt
from mgl.store import Store
from mgl.types import Answer, Conversation, Document, Source, Turn
from tests.baselines.asking import (
    BOOK,
    OTHER,
    QUESTION,
    TALK,
    answered,
    asking,
    killed,
    nothing,
    prompts,
    said,
)

PINNED = {
    "a-mem.evolve": "6970ec8a55ede69b",
    "a-mem.keywords": "cd2675ffd5f9fcd9",
    "a-mem.note": "0986c70a017d452e",
    "chain-of-agents.worker": "ef43c0ba43ea5608",
    "arigraph.start": "6542f3dc2e9dce14",
    "arigraph.write": "765d4ca1d57d267e",
    "como-rag.cue": "2333075ed4414b43",
    "como-rag.episode": "7d314f9d8e5c30b8",
    "como-rag.fuse": "02d24d124387cf46",
    "como-rag.probe": "4f2733b979761dd3",
    "como-rag.summary": "01c62fe32e97cad5",
    "como-rag.try": "5d7137e6cfe8c905",
    "deep-rag.decide": "3aa496ba9e89fa70",
    "deep-rag.read": "9486ce66f6b79c74",
    "emem.analyse": "b30a1e46812586fd",
    "emem.keep": "cef8871d64ca549b",
    "emem.mention": "a36fd4c5252a52c6",
    "emem.state": "31237d62fbc38aa7",
    "general-agentic-memory.abstract": "ccd12ad7077fefec",
    "general-agentic-memory.integrate": "99a7382c82ad877b",
    "general-agentic-memory.plan": "61074f62bdaa0f8d",
    "general-agentic-memory.reflect": "8391631a1697d6d9",
    "graphrag.glean": "43cfdb8e3ef68472",
    "graphrag.report": "7ccac287fb26a9c5",
    "hipporag.keep": "8f7f86b57c78adc1",
    "hipporag.name": "bdc5e3a448ea2efb",
    "hipporag.state": "46f2d0519dd1b6f1",
    "memgpt.step": "85ddc83212ec9ee0",
    "memgpt.update": "df175594d5235373",
    "memory-bank.events": "2b413e2287033a26",
    "memory-bank.history": "8f8d36eea2a711e9",
    "memory-bank.portrait": "f325539e90856b7d",
    "memory-bank.traits": "8cd398c875afc745",
    "memoryos.continues": "c7d8e9999b5d78b8",
    "memoryos.keywords": "b25843b6ddaaf32e",
    "memoryos.merge": "ecc2ae6537f0e884",
    "memoryos.meta": "69e5943fab1de92a",
    "memoryos.profile": "b0322ccbc71b0e65",
    "memoryos.themes": "e5e9833825ddfa4c",
    "memoryos.traits": "c5d825a77f1ac3cc",
    "nemori.compare": "32ee7ba7d5c5f52b",
    "nemori.extract": "17f09878918c61f6",
    "nemori.group": "be227ddaab0bde7b",
    "nemori.merge": "9e604c03137a2bf1",
    "nemori.narrate": "d3d0c8952ac13334",
    "nemori.predict": "452d6254170e5017",
    "nemori.same": "516e3047a9aeaed7",
    "premem.fragments": "064747b105c72b46",
    "premem.infer": "90d54d8dca33b9e6",
    "read-agent.gist": "2aaf2dcc8c6683b3",
    "read-agent.look-up": "8bf0901e3b2d5319",
    "read-agent.pause": "a88ff202ab4f1374",
    "read-agent.several": "18967cb245825ffb",
    "rlm.last": "6a8111693680f898",
    "rlm.ran": "32d22a661e778dec",
    "rlm.system": "985d29dad8ecd901",
    "rlm.text": "1eeab42b9e38b737",
    "rlm.turn": "eda6537ae66cf902",
    "sliding-summary.summary": "fa5a03ff08301bae",
}
NAMES = ["chain-of-agents", "direct", "naive-rag", "read-agent", "sliding-summary"]


def test_prompts_are_pinned() -> None:
    names = (module.name for module in iter_modules(baselines.__path__))
    modules = [import_module(f"mgl.baselines.{name}") for name in names if name != "sandboxed"]
    prompts = [each for room in modules for each in vars(room).values() if isinstance(each, Prompt)]
    hashes = {prompt.name: prompt.hash[:16] for prompt in prompts}
    assert {name: hashes[name] for name in PINNED} == PINNED


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("source", [BOOK, TALK], ids=["document", "conversation"])
async def test_it_answers_of_any_source_and_is_shown_without_a_model(
    store: Store, name: str, source: Source
) -> None:
    kind: MemoryKind = registry.load("memory", name)
    assert (kind.reads, kind.per_question) == ("either", False)
    assert kind.retrieves is (name == "naive-rag")
    mine, _ = asking(store, answered)
    mine = replace(mine, llm=Client(SchemaEngine(), store.call_log()))
    memory = kind(mine, source, [QUESTION], kind.Config())
    answer = await memory.answer(QUESTION)
    assert answer.text
    assert answer.compaction_ratio is not None
    for citation in answer.citations:
        assert memory.view().document.quote(citation.span) == citation.quote
    record = store.memory(memory.id)
    assert (record.kind, record.questions, record.document_id) == (name, (), source.id)
    stored = kind(
        replace(mine, llm=NoModel(record.model_id)),
        source,
        [],
        kind.Config.model_validate(record.config),
        identity=record.id,
    )
    view = stored.view([answer])
    assert (view.memory_id, view.memory, view.answers) == (memory.id, name, (answer,))


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
@pytest.mark.parametrize("last", [1, 3, 6])
async def test_one_that_was_killed_goes_on_and_asks_nothing_twice(
    store: Store, tmp_path: Path, name: str, last: int
) -> None:
    dying, seen = killed(working, last)
    with suppress(EngineRejected):
        await make_small(asking(store, dying)[0], name).answer(QUESTION)
    mine, engine = asking(store, working)
    answer = await make_small(mine, name).answer(QUESTION)
    with Store.open(tmp_path / "whole.sqlite") as other:
        whole, once = asking(other, working)
        assert await make_small(whole, name).answer(QUESTION) == answer
        made = [replace(row, call_key=None) for row in other.edits(make_small(whole, name).id)]
        kept = [replace(row, call_key=None) for row in store.edits(make_small(mine, name).id)]
        assert kept == made
    assert [*seen, *prompts(engine)] == prompts(once)


@each_kind
async def test_sources_without_text(store: Store, name: str) -> None:
    mine, engine = asking(store, answered)
    for text in ("", " \n "):
        with pytest.raises(InputError):
            await ask(mine, name, Document.from_text("empty.txt", text))
    assert store.memories() == []
    talks = [Conversation.named("e"), Conversation.from_turns("f", [Turn("1", "", "")])]
    for talk in talks[: 2 if name == "direct" else 1]:
        assert (await ask(mine, name, talk)).text == UNMENTIONED
    assert engine.requests == []


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
