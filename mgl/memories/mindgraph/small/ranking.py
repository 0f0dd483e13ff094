"""Which blocks of a document to read closely for a question.

Two orders are fused: BM25 over all blocks, and, over the best ``pool`` of them, the model's own
P(Yes) that a block helps. A small model's P(Yes) has no usable threshold (it says Yes nearly
everywhere), but its order finds blocks that hardly share a word with the question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from mgl.llm.prompting import reader_messages
from mgl.memories.base import Tools
from mgl.memories.mindgraph.small.prompts import RELEVANT
from mgl.prompt import one_line
from mgl.retrieval import Bm25, reciprocal_rank_fusion
from mgl.types import Chunk, Question

__all__ = ["rank_blocks"]

RRF_K = 20
MODEL_WEIGHT = 2  # the model's order counts twice, BM25's once


async def rank_blocks(
    tools: Tools, blocks: Sequence[Chunk], questions: Sequence[Question], *, pool: int
) -> list[list[int]]:
    """For each question the indices of its pool's blocks, the best first.

    One call a question and block of its pool, all blocks of a question before the next question:
    a block is then in the engine's prefix cache when the next question asks of it.
    """
    index = Bm25([block.text for block in blocks])
    orders: list[list[int]] = []
    size = min(pool, len(blocks))
    asked = 0

    async def relevance(block: Chunk, question: Question) -> float:
        nonlocal asked
        prompt = RELEVANT.render(block=one_line(block.text), question=question.text)
        probability = await tools.llm.probability_of_yes(reader_messages(prompt), stage="rank")
        asked += 1
        tools.observer.progress("rank", asked, size * len(questions))
        return probability

    tools.observer.progress("rank", 0, size * len(questions))
    for question in questions:
        scores = index.scores(question.text)
        places = sorted(np.argsort(-scores, kind="stable")[:size].tolist())
        judged = await asyncio.gather(*(relevance(blocks[place], question) for place in places))
        fused = reciprocal_rank_fusion([scores[places], *[judged] * MODEL_WEIGHT], k=RRF_K)
        orders.append([places[at] for at in np.argsort(-fused, kind="stable").tolist()])
    return orders
