"""One call that answers a question from passages: the last step that several methods share.

    reply = await answer_from_passages(llm, ["Ann met Bo in Rome."], "Where did Ann meet Bo?")

The passages come first, so that questions about the same passages share a prefix cache. Prompt
ours; the same for every method, so that methods differ by what they read alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from mgl.llm.base import LLM, Message, Reply, Sampling
from mgl.prompt import Prompt

__all__ = ["ANSWER", "SYSTEM", "PassageAnswer", "answer_from_passages", "flat", "reader"]

ANSWER_TOKENS = 60

SYSTEM = Prompt(
    "reading.system",
    source="ours",
    text="You are a careful reader. You answer only from the given text.",
)

ANSWER = Prompt(
    "reading.answer",
    source="ours",
    text=(
        "{passages}\n\nQuestion: {question}\n"
        "Answer the question in one short sentence, using only the text above. Be specific."
    ),
    variables=("passages", "question"),
)


@dataclass(frozen=True, slots=True)
class PassageAnswer:
    """``input_tokens`` is what the call read, instructions included."""

    text: str
    input_tokens: int


def flat(text: str) -> str:
    """The text on one line: the line breaks of a printed page tell a model nothing."""
    return " ".join(text.split())


def reader(prompt: str) -> list[Message]:
    """A prompt under the careful reader's system message."""
    return [Message("system", SYSTEM.text), Message("user", prompt)]


async def answer_from_passages(
    llm: LLM, passages: Sequence[str], question: str, *, stage: str = "answer"
) -> PassageAnswer:
    """A short answer from numbered passages; what LLM.complete raises."""
    body = "\n\n".join(f"[{number}] {flat(text)}" for number, text in enumerate(passages, 1))
    reply: Reply[BaseModel] = await llm.complete(
        reader(ANSWER.render(passages=body, question=question)),
        sampling=Sampling(max_tokens=ANSWER_TOKENS),
        stage=stage,
    )
    return PassageAnswer(flat(reply.text), reply.usage.input_tokens)
