"""The build stage as printed: one call a chunk, the question and the graph so far before it.

Source: MindGraph §3.2, prompt D.1. Edits are judged one by one; the model is told once which of
them could not be applied, and why. A chunk that gave no reply at all is logged as unread and does
not stop the document. One that does not fit beside the graph is halved until its parts do; beside
a graph that leaves no room for an eighth of a chunk, the graph's latest elements are shown, and a
row says how many (``graph``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from mgl.errors import ContextOverflow
from mgl.llm.base import Message, Sampling
from mgl.memories.base import Tools
from mgl.memories.log import Draft
from mgl.memories.mindgraph import prompts
from mgl.memories.mindgraph.config import CHUNK_TOKENS, MindGraphConfig
from mgl.memories.mindgraph.edits import (
    EDIT_TOKENS,
    Block,
    Operations,
    Unfit,
    dispose,
    operations_schema,
)
from mgl.memories.mindgraph.state import Edit, Graph, serialise
from mgl.memories.propose import FAILURES, Proposal, propose, vary
from mgl.prompt import Prompt
from mgl.text.groups import show_span
from mgl.types import Question

LEAST_EDITS: Final = 8
"""The fewest edits a reply may hold, however short the chunk."""
FEWEST_EDITS: Final = LEAST_EDITS // 2
"""Edits for which there must be room, so that a call is worth it."""
MOST_TOLD: Final = 10
"""Wrong edits that a repair names."""
MOST_PARTS: Final = 8
"""Parts that a chunk is split into, at most."""

_PROMPTS = {"quote": prompts.BUILD, "sentence": prompts.BUILD_BY_SENTENCE}


def writing_prompts(questions: Sequence[Question], config: MindGraphConfig) -> tuple[Prompt, ...]:
    """The prompts that decide what stands in a graph for these questions."""
    build = (_PROMPTS[config.cite], prompts.REPAIR_EDITS)
    if len(questions) == 1:
        return build
    return (*build, prompts.SEVERAL_QUESTIONS if questions else prompts.NO_QUESTION)


def question_text(questions: Sequence[Question]) -> str:
    """The question as a prompt shows it: one, several, or that none is known."""
    if not questions:
        return prompts.NO_QUESTION.text
    if len(questions) == 1:
        return questions[0].text
    numbered = "\n".join(f"{n}. {question.text}" for n, question in enumerate(questions, 1))
    return prompts.SEVERAL_QUESTIONS.render(questions=numbered)


def build_prompt(
    questions: Sequence[Question],
    config: MindGraphConfig,
    graph: Graph,
    block: Block,
    total: int,
    *,
    since: int = 0,
) -> str:
    """Render the prompt for one of ``total`` blocks, or a part of one. ``graph`` is what the
    earlier blocks built; its first ``since`` elements are left out."""
    return _PROMPTS[config.cite].render(
        question=question_text(questions),
        graph_state=serialise(graph, since=since),
        block_idx=str(block.chunk.index + 1),
        total_blocks=str(total),
        block_text=block.number_sentences()
        if config.cite == "sentence"
        else show_span(block.document, block.chunk.span),
    )


def plan_reply(config: MindGraphConfig, block: Block) -> tuple[int, int]:
    """The edits that a reply on a block may hold, and the tokens that they take.

    D.2's example has 10.8 elements a chunk that *survive*; a shorter chunk needs fewer. A source
    takes as many tokens as the block's sentences do on average.
    """
    chunk = block.chunk
    share = ceil(config.max_operations * chunk.tokens / CHUNK_TOKENS)
    edits = min(config.max_operations, max(LEAST_EDITS, share))
    source = 4 if config.cite == "sentence" else ceil(chunk.tokens / len(block.sentences))
    per_edit = EDIT_TOKENS + source
    if config.build_tokens is None:
        return edits, edits * per_edit
    return max(1, min(edits, config.build_tokens // per_edit)), config.build_tokens


@dataclass(frozen=True, slots=True)
class BlockReader:
    """Reads the blocks of a document, ``total`` of them, for some questions."""

    tools: Tools
    questions: Sequence[Question]
    config: MindGraphConfig
    total: int

    async def read(self, draft: Draft[Edit, Graph], block: Block, *, time: int = 0) -> None:
        """Ask for the edits of a block and put them into its draft.

        ``time`` counts earlier failures, so that each try is another call. ContextOverflow if the
        block does not fit the model's context even beside an empty graph.
        """
        if not block.sentences:
            return
        graph, left_out = draft.state, 0
        messages = self._open(graph, block)
        said = await self._propose(graph, block, messages, time)
        if _is_too_long(said) and graph.elements:
            is_long = block.chunk.tokens * MOST_PARTS > self.config.chunk_tokens
            if is_long and len(block.sentences) > 1:
                for half in block.halve():
                    await self.read(draft, half, time=time)
                return
            left_out = await self._find_left_out(graph, block)
            shown = {"shown": len(graph.elements) - left_out, "left_out": left_out}
            draft.reject("graph", shown, said.reason)
            messages = self._open(graph, block, left_out)
            said = await self._propose(graph, block, messages, time)
        number = block.chunk.index + 1
        if said.reply is None:
            if _is_too_long(said) and left_out == len(graph.elements):
                raise ContextOverflow(
                    f"block {number} of {self.total} does not fit: {said.problem}",
                    hint="use shorter chunks (--set chunk_tokens=N), or a model with more context",
                )
            self.tools.observer.note(f"block {number} is left unread: {said.problem}")
            draft.fail("build", said.problem, reason=said.reason)
            return
        if wrong := self._dispose(draft, block, said):
            told = [f"- {json.dumps(one.made, ensure_ascii=False)}: {one.problem}" for one in wrong]
            feedback = prompts.REPAIR_EDITS.render(problems="\n".join(told[:MOST_TOLD]))
            messages += [Message("assistant", said.text), Message("user", feedback)]
            mended = await self._propose(draft.state, block, messages, time)
            if mended.reply is None:
                draft.reject("repair", {"problem": mended.problem}, mended.reason)
            self._dispose(draft, block, mended)

    def _open(self, graph: Graph, block: Block, since: int = 0) -> list[Message]:
        prompt = build_prompt(self.questions, self.config, graph, block, self.total, since=since)
        return [Message("user", prompt)]

    async def _find_left_out(self, graph: Graph, block: Block) -> int:
        """The fewest of a graph's first elements without which a block fits beside the others; all
        of them if it fits beside none."""
        edits, tokens = plan_reply(self.config, block)
        needed = min(edits, FEWEST_EDITS) * (tokens // edits)
        least, most = 1, len(graph.elements)
        while least < most:
            middle = (least + most) // 2
            if await self._count_room(self._open(graph, block, middle)) < needed:
                least = middle + 1
            else:
                most = middle
        return least

    async def _count_room(self, messages: Sequence[Message]) -> int:
        """The tokens that a prompt leaves for its reply."""
        llm = self.tools.llm
        return llm.context_tokens - await llm.count_prompt_tokens(messages)

    def _dispose(
        self, draft: Draft[Edit, Graph], block: Block, said: Proposal[Operations]
    ) -> list[Unfit]:
        """Judge the edits of a reply one by one; returns those that could not be applied."""
        judged = [
            dispose(draft, operation, block, call_key=said.call_key)
            for operation in (said.reply.operations if said.reply is not None else ())
        ]
        return [wrong for wrong in judged if wrong is not None]

    async def _propose(
        self, graph: Graph, block: Block, messages: Sequence[Message], time: int
    ) -> Proposal[Operations]:
        config = self.config
        edits, tokens = plan_reply(config, block)
        room = await self._count_room(messages)
        if room < tokens:  # fewer edits, down to what is not worth a call
            per_edit = tokens // edits
            edits = min(edits, max(room // per_edit, FEWEST_EDITS))
            tokens = edits * per_edit
        ids = [node.id for node in graph.nodes]
        schema = operations_schema(
            ids, block, cite=config.cite, edit_node=config.edit_node, max_operations=edits
        )
        sampling = vary(Sampling(config.temperature, max_tokens=tokens, seed=config.seed), time)
        return await propose(
            self.tools.llm, messages, schema, sampling=sampling, stage="build", forgive=FAILURES
        )


def _is_too_long(said: Proposal[Operations]) -> bool:
    return said.reply is None and said.reason == "context_overflow"
