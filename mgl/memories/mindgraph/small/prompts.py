"""The prompt of the small preset's own, ours. The passage comes first and is the same in every
call on a block, so that an engine's prefix cache pays it once for all questions. What a block tells
is asked by ``mgl.memories.calls``, the answer by ``mgl.memories.calls``."""

from __future__ import annotations

from mgl.prompt import Prompt

__all__ = ["RELEVANT"]

RELEVANT = Prompt(
    "mindgraph.small.relevant",
    source="ours",
    text=(
        "Passage from a book:\n{block}\n\nQuestion: {question}\n"
        "Does the passage above tell anything that helps to answer this question? "
        "Reply Yes or No."
    ),
    variables=("block", "question"),
)
