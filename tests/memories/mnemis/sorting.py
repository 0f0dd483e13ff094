"""A graph of entities, and an engine that sorts, describes and selects them as it is told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import Tools
from mgl.memories.log import Draft
from mgl.memories.mnemis import grouping, hierarchy
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import VOCABULARY, AddEntity, AddEpisode, Describe, Edit, replay
from mgl.memories.mnemis.state import EMPTY, Episode, Mention, State
from mgl.observer import SILENT, Observer
from mgl.retrieval.base import Embedder
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import EditRecord
from mgl.types import Span

NODE = re.compile(r"(?m)^(\d+)\. (.*): \[(.*)\]$")
EXISTING = re.compile(r"(?m)^- (.*): \[(.*)\]$")
OFFERED = re.compile(r'(?m)^- name: "(.*)", uuid: "(\w+)", tag: \[(.*)\]$')
SEVERAL = re.compile(r"(?m)^(c\d+), (.*)\. Its nodes:$")
LISTED = re.compile(r"(?m)^- (.*?)(?: \(.*\))?$")
MOST = re.compile(r"up to (\d+) of them")
LAYER = re.compile(r"You are currently at Layer (\d+)")

Groups = list[dict[str, Any]]
Sort = Callable[[int, list[str], list[str]], Groups | str]
Select = Callable[[str], bool | None]


def state_of(names: Iterable[str], state: State = EMPTY) -> State:
    """A state with an entity for each name, more than it had; ``name|tag`` gives it a tag."""
    episode = Episode(len(state.episodes), Span("made up", 0, 1))
    mention = Mention(episode.number, episode.span)
    edits: list[Any] = [AddEpisode(episode)]
    first = state.counts.get("e", 0) + 1
    for number, named in enumerate(names, first):
        name, _, tag = named.partition("|")
        edits.append(AddEntity(f"e{number}", name, mention))
        if tag:
            edits.append(Describe(f"e{number}", f"{name} is a {tag}.", (tag,)))
    return replay(edits, state)


def by_first_word(layer: int, names: list[str], existing: list[str]) -> Groups:
    """At layer 1 by the first word of a name, above by the first letter, at last all in one."""
    del existing
    groups: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        key = name.split()[0] if layer == 1 else name[0] if layer == 2 else "Things"
        groups.setdefault(key, []).append(index)
    return [{"category": f"{key} kind", "indexes": held} for key, held in groups.items()]


class Sorter(SchemaEngine):
    """Sorts nodes by a function of layer, names and names of existing categories; selects a node
    by a function of its name: no, yes (False), or yes with all children (True).

    ``sort`` may be a list: one a call, the last again and again. ``asked`` has each call's stage
    and prompt.
    """

    def __init__(
        self,
        sort: Sort | Sequence[Sort | Groups | str] = by_first_word,
        select: Select = lambda _: None,
        describe: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__(concurrency=8, context_tokens=200_000)
        self._sorts = [sort] if callable(sort) else list(sort)
        self._select = select
        self._describe = describe
        self.asked: list[tuple[str, str]] = []

    def stages(self) -> list[str]:
        return [stage for stage, _ in self.asked]

    async def generate(self, request: Request) -> Completion:
        stage, prompt, said = self._said(request)
        self.asked.append((stage, prompt))
        text = said if isinstance(said, str) else json.dumps(said)
        return Completion(text, "stop", TokenUsage(1, 1))

    def _said(self, request: Request) -> tuple[str, str, Any]:
        first = request.messages[0].content
        if "semantic categorization" in first:
            again = len(request.messages) > 2
            prompt = request.messages[-1 if again else 1].content
            sort = self._sorts.pop(0) if len(self._sorts) > 1 else self._sorts[0]
            said = sort(*_given(request.messages[1].content)) if callable(sort) else sort
            return "again" if again else "categorise", prompt, said
        if "hierarchical knowledge graph" in first:
            offered = [(name, uuid, self._select(name)) for name, uuid, _ in OFFERED.findall(first)]
            picked = [
                {"name": name, "uuid": uuid, "get_all_children": whole}
                for name, uuid, whole in offered
                if whole is not None
            ]
            return "select", first, picked
        if first.startswith("Some nodes of a knowledge graph belong together"):
            return "name_category", first, {"category": f"{LISTED.findall(first)[0]} kind"}
        if first.startswith("Nodes of a knowledge graph"):
            chosen = [name for name in LISTED.findall(first) if self._select(name) is not None]
            return "select", first, {"nodes": chosen[: int(MOST.findall(first)[0])]}
        if several := SEVERAL.findall(first):
            told: Any = {identity: self._about(name) for identity, name in several}
            return "describe", first, "no" if self._describe else told
        name = first.partition("The category: ")[2].partition("\n")[0]
        if self._describe is not None:
            return "describe", first, self._describe(name)
        return "describe", first, self._about(name)

    def _about(self, name: str) -> dict[str, Any]:
        return {"summary": f"About {name}.", "tags": [name.split()[0]]}


def _given(prompt: str) -> tuple[int, list[str], list[str]]:
    content, _, rest = prompt.partition("<EXISTING CATEGORIES>")
    existing = rest.partition("</EXISTING CATEGORIES>")[0]
    layer = int(LAYER.findall(prompt)[0])
    names = [name for _, name, _ in NODE.findall(content)]
    return layer, names, [name for name, _ in EXISTING.findall(existing)]


def client(engine: SchemaEngine) -> Client:
    return Client(engine, MemoryCallLog())


Written = tuple[list[EditRecord], State]


def tools_of(
    engine: SchemaEngine, *, observer: Observer = SILENT, embedder: Embedder | None = None
) -> Tools:
    """What a hierarchy is built with: no store is needed."""
    store: Any = None
    return Tools(client(engine), store, observer, embedder or WordEmbedder(64))


def draft_of(state: State, step: int = 0) -> Draft[Edit, State]:
    return Draft(VOCABULARY, step, state)


async def build_hierarchy(
    tools: Tools, state: State, config: MnemisConfig, step: int = 0, batch: int = grouping.BATCH
) -> tuple[list[EditRecord], State, str]:
    """The rows, the state after them, and why it stopped."""
    draft = draft_of(state, step)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "BATCH", batch)
        stopped = await hierarchy.build_hierarchy(tools, draft, config)
    return draft.rows, draft.state, stopped


async def update_hierarchy(
    tools: Tools, state: State, config: MnemisConfig, step: int = 0, batch: int = grouping.BATCH
) -> Written:
    draft = draft_of(state, step)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "BATCH", batch)
        await hierarchy.update_hierarchy(tools, draft, config)
    return draft.rows, draft.state
