"""MindGraph for small models: the same graph and log, with less asked of one call.

Each question is read for in its best blocks (``mgl.memories.mindgraph.claims``). What they tell is
a claim, a node of the graph; the names in the claim's source are its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from textwrap import shorten
from typing import Literal

from pydantic import Field

from mgl.memories.base import check_question
from mgl.memories.graph import Estimate
from mgl.memories.mindgraph.claims import (
    ClaimReader,
    ClaimWriter,
    answer_from_claims,
    cost_of_part,
    find_claims,
    list_prompts,
    split_questions,
)
from mgl.memories.mindgraph.config import LEAST_CHUNK_TOKENS, MindGraphConfig
from mgl.memories.mindgraph.memory import MindGraph
from mgl.memories.mindgraph.state import Node
from mgl.prompt import Prompt
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
    """Reads the blocks of a document that tell most for each question."""

    Config = SmallMindGraphConfig

    async def _read(self, chunks: Sequence[Chunk]) -> None:
        claims = await ClaimReader(self._tools, self._document, chunks).read_parts(self._parts)
        writer = ClaimWriter(self._document)
        while (step := self._log.step) < len(chunks):
            draft = self._log.draft()
            for claim in claims:
                if claim.ground.block == step:
                    writer.write(draft, claim)
            self._log.write(draft)

    async def answer(self, question: Question) -> Answer:
        """Answer from the claim that was made for a question, or by reading for it (builds what is
        missing first)."""
        check_question(question)
        await self.build()
        reader = ClaimReader(self._tools, self._document, await self._cut())
        made = find_claims(self._log.rows, self._parts)
        tokens = self._record().tokens
        return await answer_from_claims(reader, made, question, source_tokens=tokens)

    async def estimate(self) -> Estimate | None:
        """What is still to be read for the questions, whatever the document's length; None where
        there is none, and only earlier builds can tell."""
        if not self._parts:
            return None
        parts = 0 if self.is_built() else len(self._parts)
        calls, tokens = cost_of_part(self._config.chunk_tokens)
        pace = self._tools.store.pace(self._tools.llm.model_id, "read")
        return Estimate(
            chunks=0,
            done=0,
            calls=parts * calls,
            input_tokens=parts * tokens,
            output_tokens=None if pace is None else parts * pace.output_tokens // pace.calls,
            seconds=None if pace is None else parts * pace.seconds / pace.calls,
            measured=0 if pace is None else pace.calls,
        )

    @cached_property
    def _parts(self) -> list[str]:
        return split_questions(question.text for question in self._questions)

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return list_prompts(self._questions)

    def _label(self, node: Node) -> str:
        """The id of an entity; a claim is called by its first words, as its id is a number."""
        if node.type == "claim":
            return shorten(node.content, LABEL_CHARACTERS, placeholder="…")
        return node.id
