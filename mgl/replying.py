"""One call that answers a question from turns of a conversation: what its memories end in.

    reply = await reply_from_turns(llm, talk, [(3,), (17,)], "Where did Ann go?")

Prompt ours, the same for every method, so that methods differ by what they read alone. The numbers
of the memories come before the answer, so that it stands on something; they become citations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, create_model

from mgl.llm.base import LLM, Message, Sampling
from mgl.llm.constraints import bounded, index_set
from mgl.llm.fitting import fitted
from mgl.prompt import Prompt
from mgl.types import Answer, Citation, Conversation, Question, Turn

__all__ = ["ANSWER", "UNMENTIONED", "Memory", "cited_turn", "reply_from", "turns_as_memories"]

ANSWER_CHARS = 240
UNMENTIONED: Final = "Not mentioned in the conversation."

ANSWER = Prompt(
    "replying.answer",
    source="ours",
    text="""Memories of a conversation, each with its number and the time at which it was said:

{memories}

Question: {question}

First name the numbers of the memories that answer the question, then answer in as few words as \
you can, with the words of the conversation. Give dates as dates, reckoned from the time at which \
a thing was said. If no memory answers it, the answer is "Not mentioned in the conversation."

{"memories": [numbers], "answer": "..."}""",
    variables=("memories", "question"),
)

Memory = tuple[tuple[int, ...], str]
"""What is shown under one number: the turns it stands for, and its text."""


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid")

    memories: list[int]
    answer: Annotated[str, Field(min_length=1), bounded(ANSWER_CHARS)]


def turns_as_memories(turns: Sequence[Turn], numbers: Sequence[int]) -> list[Memory]:
    """Some turns in the order of the conversation, each with the day on which it was said."""
    return [((number,), f"{_day(turns[number])}{turns[number].line}") for number in sorted(numbers)]


async def reply_from(
    llm: LLM,
    conversation: Conversation,
    memories: Sequence[Memory],
    question: Question,
    *,
    sampling: Sampling,
    trace: Sequence[str] = (),
) -> Answer:
    """An answer from memories; where there are none, that the conversation does not mention it.

    Raises what LLM.complete raises.
    """
    if not memories:
        return Answer(question.text, UNMENTIONED, "low", (), tuple(trace))
    lines = await fitted(llm, [text for _, text in memories], reserve=sampling.max_tokens)
    shown = "\n".join(f"[{place}] {line}" for place, line in enumerate(lines, 1))
    schema = create_model(
        "answer", __base__=_Said, memories=(index_set(len(memories), first=1), ...)
    )
    reply = await llm.complete(
        [Message("user", ANSWER.render(memories=shown, question=question.text))],
        schema,
        sampling=sampling,
        stage="answer",
    )
    assert reply.parsed is not None
    cited = [number for place in reply.parsed.memories for number in memories[place - 1][0]]
    return Answer(
        question=question.text,
        text=reply.parsed.answer.strip(),
        confidence="medium" if cited else "low",
        citations=tuple(cited_turn(conversation, number) for number in cited),
        trace=tuple(trace),
    )


def cited_turn(conversation: Conversation, number: int) -> Citation:
    """The citation of one turn: its id, its session, and what it said."""
    span = conversation.span(number)
    transcript = conversation.transcript
    return Citation(
        node_id=conversation.turns[number].id,
        document=conversation.name,
        span=span,
        quote=transcript.quote(span),
        section=transcript.section_at(span.start),
    )


def _day(turn: Turn) -> str:
    return "" if turn.time is None else f"({turn.time:%A, %d %B %Y}) "
