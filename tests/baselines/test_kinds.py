"""Every baseline by its name, as the lab makes and opens it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mgl import registry
from mgl.baselines import chain_of_agents, read_agent, sliding_summary
from mgl.lab.model import NoModel
from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import MemoryKind
from mgl.prompt import Prompt
from mgl.store import Store
from mgl.types import Source
from tests.baselines.asking import BOOK, QUESTION, TALK, answered, asking

PINNED = {
    "chain-of-agents.worker": "ef43c0ba43ea5608",
    "read-agent.gist": "2aaf2dcc8c6683b3",
    "read-agent.look-up": "8bf0901e3b2d5319",
    "read-agent.one": "a518a11063a9b894",
    "read-agent.pause": "a88ff202ab4f1374",
    "read-agent.several": "18967cb245825ffb",
    "sliding-summary.summary": "fa5a03ff08301bae",
}
NAMES = ["chain-of-agents", "direct", "naive-rag", "read-agent", "sliding-summary"]


def test_prompts_are_pinned() -> None:
    modules = (chain_of_agents, read_agent, sliding_summary)
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
