"""Mnemis for small models: code finds terms, likeness groups them, System-2 chooses by names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, cast

from pydantic import Field, create_model

from mgl.llm.base import LLM, Sampling
from mgl.llm.constraints import one_of
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import EditDraft
from mgl.memories.mnemis.grouping import BY_MODEL, Grouping
from mgl.memories.mnemis.layers import summarize_node
from mgl.memories.mnemis.likeness import BY_LIKENESS, NAME_CATEGORY
from mgl.memories.mnemis.memory import Mnemis, stale_entities
from mgl.memories.mnemis.prompts import GROUPING
from mgl.memories.mnemis.selection import Ask, Picks, ask_printed
from mgl.memories.mnemis.state import Episode, Node, State
from mgl.memories.mnemis.terms import Places, describe_by_sentences, read_terms
from mgl.memories.propose import StrictReply, propose
from mgl.prompt import Prompt, one_line
from mgl.types import Conversation

NAMED: Final = 6
"""Names that a reply may select."""

SELECT_NAMES = Prompt(
    "mnemis.select_names",
    source="ours, after the selection of Appendix E",
    text="""Nodes of a knowledge graph, with what they are:
{nodes}

A question: {query}

Which of these nodes would help to answer the question, or lead to what does? Give the names of up \
to {most} of them, the most helpful first.

{"nodes": ["...", ...]}""",
    variables=("nodes", "query", "most"),
)


class SmallMnemisConfig(MnemisConfig):
    """How terms are categorised and read.

    ``grouping`` says what decides which nodes a category holds: the ``model``, or ``likeness``, by
    embeddings: the model names each group, which is described by the names of its children.
    ``selecting`` is how System-2 asks: with the prompt of Appendix E as ``printed``, or for the
    ``names`` of some nodes, the most helpful first.
    """

    READING: ClassVar[frozenset[str]] = MnemisConfig.READING | {"selecting"}

    preset: Literal["paper", "small"] = "small"
    reflect: Literal[False] = Field(False, description="code finds terms: no model is asked")
    grouping: Literal["model", "likeness"] = "likeness"
    selecting: Literal["printed", "names"] = "names"


class SmallMnemis(Mnemis):
    """Searches by similarity and selects down a hierarchy of terms, which code finds."""

    Config = SmallMnemisConfig
    in_context = True
    is_understood = False

    @property
    def _options(self) -> SmallMnemisConfig:
        return cast(SmallMnemisConfig, self._config)

    @property
    def _grouping(self) -> Grouping:
        return BY_LIKENESS if self._options.grouping == "likeness" else BY_MODEL

    @property
    def _ask_nodes(self) -> Ask:
        return ask_names if self._options.selecting == "names" else ask_printed

    def _reset_caches(self) -> None:
        super()._reset_caches()
        self._places = Places()

    def _writing_prompts(self) -> Sequence[Prompt]:
        return (NAME_CATEGORY,) if self._options.grouping == "likeness" else GROUPING

    def _scope(self) -> dict[str, Any]:
        return {"document": self._source.id}

    async def _read(
        self, draft: EditDraft, source: Conversation, episode: Episode, failures: int
    ) -> bool:
        del failures  # no call is made that could fail
        self._check_deletions()
        read_terms(draft, source, episode, self._places)
        return True

    async def _describe_again(self, draft: EditDraft) -> None:
        for entity in stale_entities(self._log.state):
            draft.put(describe_by_sentences(self._talk, draft.state, entity))

    def _count_descriptions(self, state: State) -> int:
        del state
        return 0


class _Selected(StrictReply):
    nodes: list[str]


async def ask_names(
    llm: LLM, nodes: Sequence[Node], query: str, sampling: Sampling
) -> Picks | None:
    """Ask for names. The nodes come first, so that a server reads them once for all questions."""
    by_name: dict[str, list[str]] = {}
    for node in nodes:
        by_name.setdefault(one_line(node.name), []).append(node.id)
    prompt = SELECT_NAMES.render(
        nodes="\n".join(f"- {one_line(node.name)} ({summarize_node(node)})" for node in nodes),
        query=query,
        most=str(NAMED),
    )
    name: Any = one_of(list(by_name))
    names = Annotated[list[name], Field(max_length=NAMED)]
    schema: type[_Selected] = create_model("selected", __base__=_Selected, nodes=(names, ...))
    reply = (await propose(llm, prompt, schema, sampling=sampling, stage="select")).reply
    if reply is None:
        return None
    return [(uuid, False) for chosen in reply.nodes for uuid in by_name[chosen]]
