"""The prompts of the small preset, all ours. The passage comes first and is the same in every
call on a block, so that an engine's prefix cache pays it once for all questions."""

from __future__ import annotations

from mgl.prompt import Prompt

__all__ = [
    "ANSWER",
    "ANSWER_PARTS",
    "CLAIM",
    "CLAIM_WITHOUT_QUESTION",
    "RELEVANT",
    "SUPPORTED",
    "SYSTEM",
]

SYSTEM = Prompt(
    "mindgraph.small.system",
    source="ours",
    text="You are a careful reader. You answer only from the given text.",
)

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

ANSWER = Prompt(
    "mindgraph.small.answer",
    source="ours",
    text=(
        "{passages}\n\nQuestion: {question}\n"
        "Answer the question in one short sentence, using only the text above. Be specific."
    ),
    variables=("passages", "question"),
)

ANSWER_PARTS = Prompt(
    "mindgraph.small.answer_parts",
    source="ours",
    text=(
        "{passages}\n\nQuestions:\n{questions}\n"
        "Answer each question in one short sentence, using only the text above. Be specific."
    ),
    variables=("passages", "questions"),
)
