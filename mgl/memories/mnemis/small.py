"""Mnemis for small models: code finds terms, likeness groups them, System-2 chooses by names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field, create_model

from mgl.llm.base import LLM, Sampling
from mgl.llm.constraints import one_of
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import EditDraft
from mgl.memories.mnemis.layers import summarize_node
from mgl.memories.mnemis.likeness import BY_LIKENESS, NAME_CATEGORY
from mgl.memories.mnemis.memory import Mnemis, stale_entities
from mgl.memories.mnemis.selection import Picks
from mgl.memories.mnemis.state import Episode, MnemisState, Node
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
    """How terms are categorised and read."""

    preset: Literal["paper", "small"] = "small"
    reflect: Literal[False] = Field(False, description="code finds terms: no model is asked")


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


class SmallMnemis(Mnemis):
    """Searches by similarity and selects down a hierarchy of terms, which code finds.

    Likeness decides which nodes a category holds: a small model cannot sort nodes by their indexes
    (LOG.md, 2026-11-23), so it only names each group, and selects by names.
    """

    Config = SmallMnemisConfig
    in_context = True
    is_understood = False
    grouping = BY_LIKENESS
    ask_nodes = staticmethod(ask_names)
    _places: tuple[int, Places] | None = None

    def _writing_prompts(self) -> Sequence[Prompt]:
        return (NAME_CATEGORY,)

    def _scope(self) -> dict[str, Any]:
        return {"document": self._source.id}

    async def _read(
        self, draft: EditDraft, source: Conversation, episode: Episode, failures: int
    ) -> bool:
        del failures  # no call is made that could fail
        deletions = self._log.deletions
        if self._places is None or self._places[0] != deletions:
            self._places = deletions, Places()
        read_terms(draft, source, episode, self._places[1])
        return True

    async def _describe_again(self, draft: EditDraft) -> None:
        for entity in stale_entities(self._log.state):
            draft.put(describe_by_sentences(self._talk, draft.state, entity))

    def _count_descriptions(self, state: MnemisState) -> int:
        del state
        return 0
