"""One call that answers a question from passages: the last step that several methods share.

    reply = await answer_from_passages(llm, ["Ann met Bo in Rome."], "Where did Ann meet Bo?")

The passages come first, so that questions about the same passages share a prefix cache. Prompt
ours; the same for every method, so that methods differ by what they read alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from mgl.llm.base import LLM, Reply, Sampling
from mgl.llm.reader import reader_messages
from mgl.prompt import Prompt, one_line
from mgl.types import AnswerForm

__all__ = [
    "ANSWER",
    "ANSWER_TOKENS",
    "LONG_ANSWER",
    "PassageAnswer",
    "answer_from_passages",
]

ANSWER_TOKENS: Final[Mapping[AnswerForm, int]] = {"short": 256, "long": 1024}

ANSWER = Prompt(
    "reading.answer",
    source="ours",
    text=(
        "{passages}\n\nQuestion: {question}\n"
        "Answer the question in one short sentence, using only the text above. Be specific."
    ),
    variables=("passages", "question"),
)

LONG_ANSWER = Prompt(
    "reading.long_answer",
    source="ours",
    text=(
        "{passages}\n\nQuestion: {question}\n"
        "Answer the question in full, using only the text above: everything that it tells about "
        "the question, from every side, with names and particulars. Write plain prose."
    ),
    variables=("passages", "question"),
)

_PROMPTS: Final[Mapping[AnswerForm, Prompt]] = {"short": ANSWER, "long": LONG_ANSWER}


@dataclass(frozen=True, slots=True)
class PassageAnswer:
    """``input_tokens`` is what the call read, instructions included."""

    text: str
    input_tokens: int


async def answer_from_passages(
    llm: LLM,
    passages: Sequence[str],
    question: str,
    *,
    form: AnswerForm = "short",
    stage: str = "answer",
) -> PassageAnswer:
    """An answer from numbered passages; what LLM.complete raises."""
    body = "\n\n".join(f"[{number}] {one_line(text)}" for number, text in enumerate(passages, 1))
    reply: Reply[BaseModel] = await llm.complete(
        reader_messages(_PROMPTS[form].render(passages=body, question=question)),
        sampling=Sampling(max_tokens=ANSWER_TOKENS[form]),
        stage=stage,
    )
    return PassageAnswer(one_line(reply.text), reply.usage.input_tokens)
