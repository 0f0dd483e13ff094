"""Which blocks of a document to read closely for a question.

Two orders are fused: BM25 over the blocks, and the model's own P(Yes) that a block helps, asked of
every block. A small model's P(Yes) has no usable threshold (it says Yes nearly everywhere), but
its order finds blocks that share no word with the question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from mgl.llm.base import Message
from mgl.memories.base import Tools
from mgl.memories.mindgraph.small.prompts import RELEVANT, SYSTEM
from mgl.retrieval import Bm25, reciprocal_rank_fusion
from mgl.types import Chunk, Question

__all__ = ["flat", "rank_blocks", "user"]

RRF_K = 20
MODEL_WEIGHT = 2  # the model's order counts twice, BM25's once


def flat(text: str) -> str:
    """The text on one line: line breaks of a printed page tell a model nothing."""
    return " ".join(text.split())


def user(text: str) -> list[Message]:
    """A prompt under the preset's system message."""
    return [Message("system", SYSTEM.text), Message("user", text)]


async def rank_blocks(
    tools: Tools, blocks: Sequence[Chunk], questions: Sequence[Question]
) -> list[list[int]]:
    """For each question the block indices, the best first. One call a block and question."""
    index = Bm25([block.text for block in blocks])
    orders: list[list[int]] = []
    asked = 0

    async def relevance(block: Chunk, question: Question) -> float:
        nonlocal asked
        prompt = RELEVANT.render(block=flat(block.text), question=question.text)
        probability = await tools.llm.probability_of_yes(user(prompt), stage="rank")
        asked += 1
        tools.observer.progress("rank", asked, len(blocks) * len(questions))
        return probability

    for question in questions:
        relevances = await asyncio.gather(*(relevance(block, question) for block in blocks))
        fused = reciprocal_rank_fusion(
            [index.scores(question.text), *[relevances] * MODEL_WEIGHT], k=RRF_K
        )
        orders.append([int(place) for place in np.argsort(-fused, kind="stable")])
    return orders
