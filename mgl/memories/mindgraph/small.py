"""MindGraph for small models: the same graph and log, with less asked of one call.

Each question is read for in its best blocks (``mgl.memories.mindgraph.claims``). What they tell is
a claim, a node of the graph; the names in the claim's source are its neighbours.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from mgl.memories.base import check_question, check_text
from mgl.memories.estimates import Estimate
from mgl.memories.mindgraph.claims import (
    ALSO,
    PROMPTS,
    VOCABULARY,
    ClaimReader,
    ClaimWriter,
    MadeClaim,
    answer_from_claims,
    cost_of_block,
    cost_of_part,
    find_claims,
    split_questions,
)
from mgl.memories.mindgraph.config import LEAST_CHUNK_TOKENS, MindGraphConfig
from mgl.memories.mindgraph.memory import MindGraph
from mgl.memories.mindgraph.state import Node
from mgl.memories.results import leave_out_parts
from mgl.memories.view import GraphView
from mgl.prompt import Prompt, one_line
from mgl.store import MemoryRecord
from mgl.types import Answer, Chunk, Question

LABEL_CHARACTERS = 40


class SmallMindGraphConfig(MindGraphConfig):
    """How the graph of a small model is built and answered from."""

    preset: Literal["paper", "small"] = "small"
    chunk_tokens: int = Field(
        300,
        ge=LEAST_CHUNK_TOKENS,
        description="tokens a block",
    )


class SmallMindGraph(MindGraph):
    """Reads the blocks of a document that tell most for each question.

    All questions of a document share one memory: what is read for one stays, and leads the next to
    its blocks.
    """

    Config = SmallMindGraphConfig
    vocabulary = VOCABULARY

    async def build(self) -> None:
        """Read for the questions that the log lacks; without a question, the blocks that it lacks.

        InputError for a document without text. What gave no usable reply is read again next time.
        """
        check_text(self._document)
        blocks = await self._open_log()
        made = self._find_made()
        reader = ClaimReader(self._tools, self._document, blocks, made.values())
        if self._questions:
            found = await reader.read_parts([part for part in self._parts if part not in made])
        else:
            found = await reader.read_blocks(_find_unread(blocks, made))
        writer = ClaimWriter(self._document)
        for claim in found:
            is_written = False
            while not is_written:
                draft = self._log.draft()
                writer.write(draft, claim)
                is_written = self._log.write(draft)

    async def retry_failed(self) -> None:
        """Build: what gave no usable reply is not in the log."""
        await self.build()

    def is_built(self) -> bool:
        """Whether the log has every part of the questions."""
        made = self._find_made()
        return bool(made) and all(part in made for part in self._parts)

    async def answer(self, question: Question) -> Answer:
        """Answer from the claim that was made for a question, or by reading for it (builds first
        what its own questions lack)."""
        check_question(question)
        if self._questions:
            await self.build()
        blocks, made = await self._open_log(), self._find_made()
        reader = ClaimReader(self._tools, self._document, blocks, made.values())
        return await answer_from_claims(reader, made, question, source_tokens=self._record().tokens)

    async def estimate(self) -> Estimate:
        """What is still to be read, at most: for the questions, or without one for all blocks."""
        size = self._config.chunk_tokens
        if self._questions:
            wanted = len(set(self._parts) - self._find_made().keys())
            calls, tokens = cost_of_part(size)
        else:
            wanted = len(_find_unread(await self._cut(), self._find_made()))
            calls, tokens = cost_of_block(size)
        reads, checks = (
            self._tools.store.pace(self._tools.llm.model_id, stage) for stage in ("read", "check")
        )
        cost = Estimate(wanted * calls, wanted * tokens, is_bound=bool(self._questions))
        return cost.at([(reads, wanted), (checks, wanted * (calls - 1))])

    @cached_property
    def _parts(self) -> list[str]:
        return split_questions(question.text for question in self._questions)

    async def _open_log(self) -> list[Chunk]:
        """Register the document and the memory, and cut the document into its blocks."""
        self._tools.store.put_document(self._document)
        blocks = await self._cut()
        self._log.open(lambda: self._record(tokens=sum(block.tokens for block in blocks)))
        return blocks

    def _find_made(self) -> dict[str, MadeClaim]:
        """The claims of the log by the question, or the place of the block, that each is for."""
        made: dict[str, MadeClaim] = {}
        for each in find_claims(self._log.rows):
            made.setdefault(each.reading.question or _block_key(each.reading.spans[0]), each)
        return made

    def _scope(self) -> dict[str, Any]:
        return {"document": self._source.id}

    def _record(self, *, chunks: int = 0, tokens: int = 0) -> MemoryRecord:
        """The memory's record, which no question is part of."""
        return replace(super()._record(chunks=chunks, tokens=tokens), questions=())

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return PROMPTS

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """The graph as exporters draw it: a step is a question, or a block read for none."""
        view = super().view(answers)
        asked = [each.reading.question for each in find_claims(self._log.rows)]
        whole = leave_out_parts(asked, [answer.question for answer in answers])
        return replace(view, steps=self._log.step, questions=tuple(whole))

    def _label(self, node: Node) -> str:
        """What an entity is called in the text; of a claim its first words."""
        if node.type == "claim":
            return one_line(node.content, LABEL_CHARACTERS)
        return node.content.partition(ALSO)[0]


def _find_unread(blocks: Sequence[Chunk], made: Collection[str]) -> list[int]:
    """The blocks that were not read yet for no question; ``made`` are the keys of what was."""
    keys = {block.index: _block_key((block.span.start, block.span.end)) for block in blocks}
    return [place for place, key in keys.items() if key not in made]


def _block_key(span: tuple[int, int]) -> str:
    """The key of a block among questions; no question is written so."""
    return f"{span[0]}-{span[1]}"
