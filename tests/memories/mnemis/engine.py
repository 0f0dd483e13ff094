"""A model of Mnemis that follows rules, and what tests build with it.

Its entities are the capitalised words of a sentence, and its facts join those that follow each
other in one. It sorts nodes into categories and selects them by functions of their names, and
answers from the first memory that it is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client, Policy
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import Tools
from mgl.memories.log import Draft
from mgl.memories.mnemis import Mnemis, MnemisConfig, SmallMnemis, grouping
from mgl.memories.mnemis.edits import VOCABULARY, AddEntity, AddEpisode, Describe, Edit, replay
from mgl.memories.mnemis.hierarchy import HierarchyBuilder
from mgl.memories.mnemis.index import Index
from mgl.memories.mnemis.memory import read_episode
from mgl.memories.mnemis.prompts import GROUPING
from mgl.memories.mnemis.reading import EpisodeReader, find_fresh
from mgl.memories.mnemis.selection import ask_printed
from mgl.memories.mnemis.state import EMPTY, Episode, Mention, MnemisState
from mgl.memories.mnemis.terms import Places, read_terms
from mgl.observer import SILENT
from mgl.prompt import Prompt
from mgl.retrieval.base import Embedder
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import EditRecord
from mgl.types import Conversation, Question, Span, Turn

ONCE = Policy(max_retries=0, repair_attempts=0)
OFFERED = re.compile(r'(?m)^- name: "(.*)", uuid: "(\w+)", tag: \[(.*)\]$')
MARKS = {
    "entities": "Which entities do the numbered text",
    "entity_deduplication": "another name of",
    "entity_summaries": "Describe each entity",
    "edges": "Which facts does the numbered text state",
    "edge_deduplication": "New facts, each under a label",
}
LABELS = re.compile(r"^(n\d+) ", re.MULTILINE)
_NAME = re.compile(r"\b[A-Z]\w+\b")
_NUMBERED = re.compile(r"\[(\d+)\] (.*?)(?= \[\d+\] |\n|$)")
_NODE = re.compile(r"(?m)^(\d+)\. (.*): \[(.*)\]$")
_EXISTING = re.compile(r"(?m)^- (.*): \[(.*)\]$")
_LISTED = re.compile(r"(?m)^- (.*?)(?: \(.*\))?$")
_MOST = re.compile(r"up to (\d+) of them")
_LAYER = re.compile(r"You are currently at Layer (\d+)")

Groups = list[dict[str, Any]]
Sort = Callable[[int, list[str], list[str]], Groups | str]
Select = Callable[[str], bool | None]
Reply = Callable[[str], Any] | dict[str, Any] | str
Open = Callable[..., Mnemis]
Written = tuple[list[EditRecord], MnemisState]


def everything(_: str) -> bool:
    return True


def nothing(_: str) -> None:
    return None


def by_first_word(layer: int, names: list[str], existing: list[str]) -> Groups:
    """At layer 1 by the first word of a name, above by the first letter, at last all in one."""
    del existing
    groups: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        key = name.split()[0] if layer == 1 else name[0] if layer == 2 else "Things"
        groups.setdefault(key, []).append(index)
    return [{"category": f"{key} kind", "indexes": held} for key, held in groups.items()]


def in_pairs(layer: int, names: list[str], existing: list[str]) -> Groups:
    del existing
    return [
        {"category": f"Pair {n} of {layer}", "indexes": [*range(n, min(n + 2, len(names)))]}
        for n in range(0, len(names), 2)
    ]


class Model(SchemaEngine):
    """Follows rules, or says what it is told at a stage.

    ``sort`` is a function of layer, names and names of existing categories, or a list of what is
    said in turn; ``select`` says of a name no, yes (False), or yes with all children (True).
    ``replies`` for a stage are said in their order, the last again and again: an object, a text, or
    a function of the prompt. ``asked`` has each call's stage and prompt.
    """

    def __init__(
        self,
        sort: Sort | Sequence[Sort | Groups | str] = by_first_word,
        select: Select = nothing,
        *,
        concurrency: int = 8,
        context_tokens: int = 200_000,
        **replies: Sequence[Reply],
    ) -> None:
        super().__init__(concurrency=concurrency, context_tokens=context_tokens)
        self.sorts = [sort] if callable(sort) else list(sort)
        self.select = select
        self.replies = replies
        self.asked: list[tuple[str, str]] = []
        self.requests: list[Request] = []

    @property
    def llm(self) -> Client:
        return Client(self, MemoryCallLog(), ONCE)

    def stages(self) -> list[str]:
        return [stage for stage, _ in self.asked]

    def prompts(self, stage: str) -> list[str]:
        return [prompt for own, prompt in self.asked if own == stage]

    async def generate(self, request: Request) -> Completion:
        stage, prompt = find_stage(request)
        self.requests.append(request)
        self.asked.append((stage, prompt))
        if told := self.replies.get(stage):
            said: Any = told[min(len(told), self.stages().count(stage)) - 1]
        else:
            said = RULES.get(stage) or self._follow(stage, request)
        said = said(prompt) if callable(said) else said
        text = said if isinstance(said, str) else json.dumps(said)
        return Completion(text, "stop", TokenUsage(10, 2))

    def _follow(self, stage: str, request: Request) -> Any:
        first = request.messages[0].content
        if stage in ("categorise", "again"):
            sort = self.sorts.pop(0) if len(self.sorts) > 1 else self.sorts[0]
            return sort(*_given(request.messages[1].content)) if callable(sort) else sort
        if stage == "name_category":
            return {"category": f"{_LISTED.findall(first)[0]} kind"}
        if stage == "describe":
            return _about(first.partition("The category: ")[2].partition("\n")[0])
        if "hierarchical knowledge graph" in first:
            offered = [(name, uuid, self.select(name)) for name, uuid, _ in OFFERED.findall(first)]
            return [
                {"name": name, "uuid": uuid, "get_all_children": whole}
                for name, uuid, whole in offered
                if whole is not None
            ]
        if stage == "told":
            return "Yes" if request.choices else "You saw Rome."
        if stage == "selection":
            chosen = [name for name in _LISTED.findall(first) if self.select(name) is not None]
            return {"nodes": chosen[: int(_MOST.findall(first)[0])]}
        return {"memories": [1], "answer": "Rome."}


def find_stage(request: Request) -> tuple[str, str]:
    """The stage of a call, and the prompt that says most about it."""
    first, more = request.messages[0].content, len(request.messages) > 2
    last = request.messages[-1].content
    if request.choices or "said, in order:" in last:
        return "told", last
    for stage, mark in MARKS.items():
        if mark in first:
            return f"{stage}_reflection" if more else stage, first
    if "semantic categorization" in first:
        return ("again" if more else "categorise"), request.messages[-1 if more else 1].content
    if first.startswith("Some nodes of a knowledge graph belong together"):
        return "name_category", first
    if "hierarchical knowledge graph" in first or first.startswith("Nodes of a knowledge graph"):
        return "selection", first
    return ("answer" if '"memories"' in json.dumps(request.json_schema) else "describe"), first


def _given(prompt: str) -> tuple[int, list[str], list[str]]:
    content, _, rest = prompt.partition("<EXISTING CATEGORIES>")
    existing = _EXISTING.findall(rest.partition("</EXISTING CATEGORIES>")[0])
    names = [name for _, name, _ in _NODE.findall(content)]
    return int(_LAYER.findall(prompt)[0]), names, [name for name, _ in existing]


def _about(name: str) -> dict[str, Any]:
    return {"summary": f"About {name}.", "tags": [name.split()[0]]}


def sentences(prompt: str) -> list[tuple[int, str]]:
    """The numbered sentences of a prompt."""
    text = prompt.partition("\n\nEntities that it tells of")[0]
    return [(int(number), said) for number, said in _NUMBERED.findall(text)]


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(_NAME.findall(text)))


def named(prompt: str) -> dict[str, Any]:
    said = (name for _, text in sentences(prompt) for name in _names(text))
    return {"entities": list(dict.fromkeys(said))}


def stated(prompt: str) -> dict[str, Any]:
    listed = re.findall(r"^- (.+?)(?: \(|:|$)", prompt, re.MULTILINE)
    items = [
        {"src": n, "source": one, "target": other, "fact": text}
        for n, text in sentences(prompt)
        for one, other in pairwise(name for name in _names(text) if name in listed)
    ]
    return {"facts": items}


def described(prompt: str) -> dict[str, Any]:
    ids = re.findall(r"^(e\d+) ([^:\n]*)", prompt, re.MULTILINE)
    return {
        each: {"src": 1, "summary": f"{name} is named.", "tags": ["thing"]} for each, name in ids
    }


RULES: dict[str, Reply] = {
    "entities": named,
    "entities_reflection": {"entities": []},
    "entity_deduplication": lambda prompt: dict.fromkeys(LABELS.findall(prompt), "new"),
    "entity_summaries": described,
    "edges": stated,
    "edges_reflection": {"facts": []},
    "edge_deduplication": lambda prompt: {
        label: {"same": "none", "contradicts": []} for label in LABELS.findall(prompt)
    },
}


# What it reads


SAID = [
    ("1", "Ann", "I went to Rome with Bo in May. The ferry was late."),
    ("1", "Bo", "The ferry was late, and the museum in Rome was closed."),
    ("2", "Ann", "In Detroit I saw the museum of cars with Cy."),
    ("2", "Bo", "Cy lives in Detroit, near the museum."),
]
TURNS = [
    Turn(f"t{n}", speaker, text, datetime(2023, 5, 8 + int(session)), session)
    for n, (session, speaker, text) in enumerate(SAID)
]
TALK = Conversation.from_turns("talk", TURNS)
QUESTION = Question("Which cities did Ann see?")


def talk(*turns: tuple[str, str] | Turn) -> Conversation:
    """A conversation of (speaker, text), without times."""
    made = [
        turn if isinstance(turn, Turn) else Turn(str(place), *turn)
        for place, turn in enumerate(turns)
    ]
    return Conversation("talk", "talk", tuple(made))


def reader(**replies: Sequence[Reply]) -> Model:
    """A model that is asked one thing after the other."""
    return Model(concurrency=1, context_tokens=32_768, **replies)


def tools_of(engine: SchemaEngine, *, embedder: Embedder | None = None) -> Tools:
    """What episodes are read and a hierarchy is built with: no store is needed."""
    store: Any = None
    llm = engine.llm if isinstance(engine, Model) else Client(engine, MemoryCallLog(), ONCE)
    return Tools(llm, store, SILENT, embedder or WordEmbedder())


def draft_of(state: MnemisState, step: int = 0) -> Draft[Edit, MnemisState]:
    return Draft(VOCABULARY, step, state)


async def taken_in(
    model: Model,
    source: Conversation,
    state: MnemisState = EMPTY,
    embedder: Embedder | None = None,
    **config: Any,
) -> Written:
    """All episodes of a conversation that the state has not, one after the other."""
    rows: list[EditRecord] = []
    kind, chosen = choose(config, "model")
    tools, index, places = tools_of(model), Index(embedder or WordEmbedder()), Places()
    for episode in find_fresh(source, state):
        index.grow_candidates(state)
        draft = draft_of(state, episode.number)
        draft.put(AddEpisode(episode))
        if issubclass(kind, SmallMnemis):
            read_terms(draft, source, episode, places)
        else:
            reader = EpisodeReader(tools.llm, chosen, source, draft.state, [episode])
            await read_episode(reader, draft, index)
        rows, state = rows + draft.rows, draft.state
    return rows, state


class PrintedMnemis(SmallMnemis):
    """Has the terms of the small kind; a model sorts and selects them as Appendix E prints it."""

    grouping = grouping.BY_MODEL
    ask_nodes = staticmethod(ask_printed)

    def _writing_prompts(self) -> Sequence[Prompt]:
        return GROUPING


def choose(
    config: Mapping[str, Any], extraction: str = "terms"
) -> tuple[type[Mnemis], MnemisConfig]:
    """Choose the paper's kind for ``extraction`` model, else one of terms."""
    options = dict(config)
    extraction = options.pop("extraction", extraction)
    if options.get("preset") == "small":
        kind: type[Mnemis] = SmallMnemis
    elif extraction == "terms" and "preset" not in options:
        kind = PrintedMnemis
        options = {"preset": "small", **options}
    else:
        kind = Mnemis
    return kind, kind.Config.model_validate(options)


def state_of(names: Iterable[str], state: MnemisState = EMPTY) -> MnemisState:
    """A state with an entity for each name, more than it had; ``name|tag`` gives it a tag."""
    episode = Episode(len(state.episodes), Span("made up", 0, 1))
    mention = Mention(episode.number, episode.span)
    edits: list[Any] = [AddEpisode(episode)]
    first = state.counts.get("e", 0) + 1
    for number, name_and_tag in enumerate(names, first):
        name, _, tag = name_and_tag.partition("|")
        edits.append(AddEntity(f"e{number}", name, mention))
        if tag:
            edits.append(Describe(f"e{number}", f"{name} is a {tag}.", (tag,)))
    return replay(edits, state)


async def grow_hierarchy(
    tools: Tools,
    state: MnemisState,
    config: MnemisConfig,
    step: int = 0,
    batch: int = grouping.BATCH,
    how: grouping.Grouping = grouping.BY_MODEL,
) -> tuple[list[EditRecord], MnemisState, str]:
    """The rows, the state after them, and why it stopped."""
    draft = draft_of(state, step)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "BATCH", batch)
        stopped = await HierarchyBuilder(tools, config, how).grow(draft)
    return draft.rows, draft.state, stopped
