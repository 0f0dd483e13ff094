"""A memory's id knows the prompts that decide what the memory holds, and no others."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import ReplyInvalid
from mgl.lab import Lab
from mgl.lab.workplace import Workplace
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import Memory, Tools, memory_id
from mgl.memories.calls import CLAIM_WITHOUT_QUESTION, PASSAGE_ANSWER
from mgl.memories.gam.prompts import CUES, RELATION, SUMMARY
from mgl.memories.mindgraph.prompts import BUILD
from mgl.memories.options import load_kind
from mgl.observer import SILENT
from mgl.prompt import Prompt
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import Document, Question, Source
from tests.baselines.asking import BOOK, QUESTION, TALK
from tests.memories.graph.conftest import TALE, entity, found, relation

Make = Callable[..., Memory]

LITTLE = {"chunk_tokens": 64}
ENDS = (("Ann", "Bo"), ("Carl", "Dora"))
STORY = Document.from_text("tale.txt", TALE)
CASES: list[tuple[str, dict[str, Any], Source, int]] = [
    ("graph", {**LITTLE}, BOOK, 0),
    ("graph", {**LITTLE, "extraction": "terms"}, BOOK, 0),
    ("hgmem", {**LITTLE, "floor": -1.0}, BOOK, 1),
    ("hgmem", {**LITTLE, "floor": -1.0, "compat": "released_code"}, BOOK, 1),
    ("hgmem", {**LITTLE, "floor": -1.0, "update": False, "merge": False}, BOOK, 1),
    ("hgmem", {**LITTLE, "floor": -1.0, "format": "delimiters"}, BOOK, 1),
    ("hgmem", {**LITTLE, "floor": -1.0, "preset": "small"}, STORY, 1),
    ("mindgraph", {**LITTLE}, BOOK, 1),
    ("mindgraph", {**LITTLE, "cite": "sentence"}, BOOK, 2),
    ("mindgraph", {**LITTLE, "cite": "sentence"}, BOOK, 0),
    ("mindgraph", {**LITTLE, "preset": "small"}, BOOK, 1),
    ("mindgraph", {**LITTLE, "preset": "small"}, BOOK, 0),
    ("gam", {"buffer_tokens": 32}, TALK, 0),
    ("gam", {"buffer_tokens": 32, "indicators": "rules"}, TALK, 0),
    ("gam", {"preset": "small", "partition": "turns", "without": "tan"}, TALK, 0),
    ("mnemis", {}, TALK, 0),
    ("mnemis", {"reflect": False, "hierarchy": "incremental"}, TALK, 0),
    ("mnemis", {"preset": "small"}, TALK, 0),
    ("read-agent", {"page_tokens": 256, "least_tokens": 64}, BOOK, 0),
    ("sliding-summary", {"chunk_tokens": 256}, BOOK, 0),
    ("chain-of-agents", {}, BOOK, 0),
    ("naive-rag", {}, BOOK, 0),
    ("direct", {}, TALK, 0),
]
SELDOM = {
    "hgmem.answer",
    "hgmem.follow_up",
    "hgmem.merge",
    "hgmem.replace_json",
    "hgmem.subquery",
    "hgmem.subquery_json",
    "llm.repair",
    "mnemis.describe_category",
    "mnemis.same_entities",
}
"""Prompts that a memory writes with where something calls for it, which these builds do not."""

SHARED = {"claiming.claim_without_question", "mindgraph.yes_or_no", "reading.answer"}
"""Prompts that the small mindgraph writes with for a question, or for none: all share a memory."""

QUESTIONS = [QUESTION, *(Question(f"Who went to town {n}?") for n in (3, 4))]

CLAIMED = (PASSAGE_ANSWER, CLAIM_WITHOUT_QUESTION)


class Listening(SchemaEngine):
    """Keeps all that is said to it, finds two entities in every chunk, and claims what all say."""

    def __init__(self) -> None:
        super().__init__(native_tools=False)
        self.heard: list[str] = []

    async def generate(self, request: Request) -> Completion:
        self.heard += [message.content for message in request.messages]
        self.heard += [tool.description for tool in request.tools]
        asked = (request.json_schema or {}).get("properties", {})
        ends = ENDS[len(self.heard) % 2]
        told = [entity(name, f"Of whom page {len(self.heard)} tells.") for name in ends]
        if "relations" in asked:
            said = found(told, [relation(*ends)])
        elif "entities" in asked:
            said = {"entities": ["town", "the walker"]}
        elif "category" in asked:
            said = {"category": "People"}
        elif "nodes" in asked:
            said = {"nodes": []}
        elif "inserted" in asked:
            point = {"objects": ends, "description": f"What page {len(self.heard)} tells."}
            said = {"inserted": [point], **({"updated": []} if "updated" in asked else {})}
        elif any(_mark(each) in request.messages[-1].content for each in CLAIMED):
            return Completion("The walker went to town.", "stop", TokenUsage(1, 1))
        else:
            return await super().generate(request)
        return Completion(json.dumps(said), "stop", TokenUsage(1, 1))

    def names(self) -> set[str]:
        """The prompts whose mark was in what was heard, which is forgotten."""
        heard, self.heard = " ".join(self.heard), []
        return {prompt.name for prompt in known_prompts() if _mark(prompt) in heard}


def known_prompts() -> list[Prompt]:
    found: dict[int, Prompt] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("mgl."):
            found |= {id(each): each for each in vars(module).values() if isinstance(each, Prompt)}
    return list(found.values())


@contextmanager
def changed(prompt: Prompt, addition: str = " Be brief.") -> Iterator[None]:
    """The prompt with other words."""
    text = prompt.text
    object.__setattr__(prompt, "text", text + addition)
    try:
        yield
    finally:
        object.__setattr__(prompt, "text", text)


def _mark(prompt: Prompt) -> str:
    return f"<<{prompt.name}>>"


@pytest.fixture
def making(tmp_path: Path) -> Iterator[tuple[Make, Listening]]:
    engine = Listening()
    with Store.open(tmp_path / "mgl.sqlite") as store:
        llm = Client(engine, store.call_log())
        tools = Tools(llm, store, SILENT, WordEmbedder(), WordReranker())

        def make(name: str, config: dict[str, Any], source: Source, questions: int) -> Memory:
            kind = load_kind(name, config.get("preset"))
            made: Memory = kind(
                tools, source, QUESTIONS[:questions], kind.Config.model_validate(config)
            )
            return made

        yield make, engine


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{name}-{place}" for place, (name, *_) in enumerate(CASES)]
)
def test_it_changes_with_the_prompts_that_write_and_not_with_those_that_read(
    making: tuple[Make, Listening], case: tuple[str, dict[str, Any], Source, int]
) -> None:
    make, engine = making
    own = make(*case).id
    assert make(*case).id == own
    with ExitStack() as marked:
        for prompt in known_prompts():
            marked.enter_context(changed(prompt, _mark(prompt)))
        memory = make(*case)
        asyncio.run(memory.build())
        if hasattr(memory, "flush"):
            asyncio.run(memory.flush())
        wrote = engine.names()
        if case[0] != "graph":
            with suppress(ReplyInvalid):
                asyncio.run(memory.answer(QUESTION))
        read = engine.names() - wrote
    for prompt in known_prompts():
        if prompt.name in wrote:
            with changed(prompt):
                assert make(*case).id != own
    # a repair writes as well, where a reply asks for it
    allowed = {"llm.repair", *(SELDOM - read)} if wrote else set()
    if wrote & SHARED and case[0] == "mindgraph":
        allowed |= SHARED
    with ExitStack() as others:
        for prompt in known_prompts():
            if prompt.name not in wrote | allowed:
                others.enter_context(changed(prompt))
        assert make(*case).id == own


def test_prompts_in_any_order_give_the_same_id() -> None:
    orders = permutations((CUES, RELATION, SUMMARY))
    ids = {memory_id("gam", {"k": 1}, "m", prompts, document="d") for prompts in orders}
    assert len(ids) == 1


@pytest.mark.usefixtures("embeds_words")
def test_what_other_prompts_built_is_not_answered_from_and_still_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = tmp_path / "book.txt"
    book.write_text(BOOK.text)
    monkeypatch.setattr(Workplace, "engine", Listening())
    told = {"preset": "paper", "chunk_tokens": 72}
    with Lab.open() as lab:
        first = lab.ask(book, QUESTION.text, **told).memory_id
        before = lab.view(first)
        with changed(BUILD):
            again = lab.ask(book, QUESTION.text, **told).memory_id
            assert {memory.id for memory in lab.memories()} == {first, again} != {first}
            assert lab.view(first) == before
        assert lab.view(again).nodes
        assert lab.ask(book, QUESTION.text, **told).memory_id == first
