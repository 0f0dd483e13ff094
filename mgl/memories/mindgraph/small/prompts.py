"""The prompts of the small preset, all ours. The passage comes first and is the same in every
call on a block, so that an engine's prefix cache pays it once for all questions. The answer's
prompt is the one that all readers of passages share (``mgl.reading``)."""

from __future__ import annotations

from mgl.prompt import Prompt

__all__ = ["CLAIM", "CLAIM_WITHOUT_QUESTION", "RELEVANT", "SUPPORTED"]

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

CLAIM = Prompt(
    "mindgraph.small.claim",
    source="ours",
    text=(
        "Passage from a book:\n{block}\n\nQuestion: {question}\n"
        "Answer the question in one short sentence, using only the passage above. "
        "Name who does what."
    ),
    variables=("block", "question"),
)

CLAIM_WITHOUT_QUESTION = Prompt(
    "mindgraph.small.claim_without_question",
    source="ours",
    text=(
        "Passage from a book:\n{block}\n\n"
        "Say in one short sentence the most important thing that the passage above tells. "
        "Name who does what."
    ),
    variables=("block",),
)

SUPPORTED = Prompt(
    "mindgraph.small.supported",
    source="ours",
    text=(
        "Passage from a book:\n{block}\n\nQuestion: {question}\nProposed answer: {claim}\n"
        "Does the passage above say this, and does it answer the question? Reply Yes or No."
    ),
    variables=("block", "question", "claim"),
)
