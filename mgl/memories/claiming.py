"""One sentence that a passage tells, and how surely it says so: the smallest step of reading.

    claim = await claim_from(llm, "Ann met Bo in Rome.", "Where did Ann meet Bo?")
    claim.text, claim.support

What small models are asked in place of the papers' prompts: a sentence, and a Yes or No that gives
its probability. The passage comes first and is the same in every call on it, so that an engine's
prefix cache pays it once for all questions. Prompts ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM, Reply, Sampling
from mgl.llm.reader import reader_messages
from mgl.prompt import Prompt, one_line

__all__ = [
    "CLAIM",
    "CLAIM_WITHOUT_QUESTION",
    "OPEN_QUESTION",
    "SUPPORTED",
    "Claim",
    "claim_from",
]

CLAIM_TOKENS = 60
OPEN_QUESTION = "What happens?"

CLAIM = Prompt(
    "claiming.claim",
    source="ours",
    text=(
        "Passage from a book:\n{block}\n\nQuestion: {question}\n"
        "Answer the question in one short sentence, using only the passage above. "
        "Name who does what."
    ),
    variables=("block", "question"),
)

CLAIM_WITHOUT_QUESTION = Prompt(
    "claiming.claim_without_question",
    source="ours",
    text=(
        "Passage from a book:\n{block}\n\n"
        "Say in one short sentence the most important thing that the passage above tells. "
        "Name who does what."
    ),
    variables=("block",),
)

SUPPORTED = Prompt(
    "claiming.supported",
    source="ours",
    text=(
        "Passage from a book:\n{block}\n\nQuestion: {question}\nProposed answer: {claim}\n"
        "Does the passage above say this, and does it answer the question? Reply Yes or No."
    ),
    variables=("block", "question", "claim"),
)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a passage tells, and the model's P(Yes) that it says so and answers the question."""

    text: str
    support: float
    call_key: str | None


async def claim_from(llm: LLM, passage: str, question: str | None) -> Claim | None:
    """The claim of a passage for a question, or for none; None where no reply could be used.

    Raises the EngineError family.
    """
    block = one_line(passage)
    if question is None:
        prompt, asked = CLAIM_WITHOUT_QUESTION.render(block=block), OPEN_QUESTION
    else:
        prompt, asked = CLAIM.render(block=block, question=question), question
    try:
        reply: Reply[BaseModel] = await llm.complete(
            reader_messages(prompt), sampling=Sampling(max_tokens=CLAIM_TOKENS), stage="read"
        )
    except ReplyInvalid:
        return None
    said = one_line(reply.text)
    check = SUPPORTED.render(block=block, question=asked, claim=said)
    support = await llm.probability_of_yes(reader_messages(check), stage="check")
    return Claim(said, support, reply.call_key)
