"""One call that answers a question from turns of a conversation: what its memories end in.

    reply = await reply_from_turns(llm, talk, [(3,), (17,)], "Where did Ann go?")

Prompt ours, the same for every method, so that methods differ by what they read alone. The numbers
of the memories come before the answer, so that it stands on something; they become citations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from mgl.llm.base import LLM, Message, Sampling
from mgl.llm.constraints import bounded, index_set, number
from mgl.llm.fitting import fitted
from mgl.prompt import Prompt
from mgl.text.groups import dated
from mgl.types import Answer, Citation, Conversation, Question, Turn

__all__ = [
    "ANSWER",
    "REMEMBERED",
    "REPLY",
    "UNMENTIONED",
    "Memory",
    "answer_from_lines",
    "cited_turn",
    "reply_from",
    "reply_in_talk",
    "turns_as_memories",
]

ANSWER_CHARS = 400
MOST_CITED: Final = 10
NONE = Field(max_length=0)
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

REPLY = Prompt(
    "replying.reply",
    source="ours",
    text="""You are {name}, in a conversation with {speaker}.

{remembered}The conversation now:
{recent}

Write what {name} says next: a friendly reply to the last line, in one to three sentences, that \
uses what was said above. If {speaker} asks for something that was not said above, say that you do \
not know it.

{"memories": [numbers], "answer": "..."}""",
    variables=("name", "speaker", "remembered", "recent"),
)

REMEMBERED = Prompt(
    "replying.remembered",
    source="ours",
    text="""What was said in earlier talks, each with its number and the time at which it was said:
{memories}

First name the numbers of those that you use, if you use any.

""",
    variables=("memories",),
)

Memory = tuple[tuple[int, ...], str]
"""What is shown under one number: the turns it stands for, and its text."""


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid")

    memories: list[int]
    answer: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1), bounded(ANSWER_CHARS)
    ]


def turns_as_memories(turns: Sequence[Turn], numbers: Sequence[int]) -> list[Memory]:
    """Some turns in the order of the conversation, a line each, with the day on which it was
    said."""
    return [((number,), dated(turns[number])) for number in sorted(numbers)]


async def reply_from(
    llm: LLM,
    conversation: Conversation,
    memories: Sequence[Memory],
    question: Question,
    *,
    sampling: Sampling,
    trace: Sequence[str] = (),
    ranked: Sequence[int] = (),
) -> Answer:
    """An answer from memories; where there are none, that the conversation does not mention it.

    ``ranked`` are the turns of the memories, the best first, where something ranks them. Raises
    what LLM.complete raises.
    """
    if not memories:
        return Answer(question.text, UNMENTIONED, "low", (), tuple(trace))
    prompt = partial(ANSWER.render, question=question.text)
    answer = await _ask(llm, conversation, memories, question, prompt, sampling, trace)
    numbers = ranked or [number for own, _ in memories for number in own]
    ids = dict.fromkeys(conversation.turns[number].id for number in numbers)
    return replace(answer, retrieved=tuple(ids))


async def reply_in_talk(
    llm: LLM,
    conversation: Conversation,
    memories: Sequence[Memory],
    recent: Sequence[int],
    *,
    name: str,
    sampling: Sampling,
    trace: Sequence[str] = (),
) -> Answer:
    """What ``name`` says next, to the last of the ``recent`` turns; it may stand on memories.

    Raises what LLM.complete raises.
    """
    last = conversation.turns[recent[-1]]
    lines = [conversation.turns[number].line for number in recent]
    shown = await fitted(llm, lines, reserve=llm.context_tokens // 2)
    asked = Question(last.text, last.time, last.speaker or None)

    def prompt(*, memories: str) -> str:
        return REPLY.render(
            name=name,
            speaker=last.speaker or "somebody",
            remembered=REMEMBERED.render(memories=memories) if memories else "",
            recent="\n".join(shown),
        )

    return await _ask(llm, conversation, memories, asked, prompt, sampling, trace)


async def _ask(
    llm: LLM,
    conversation: Conversation,
    memories: Sequence[Memory],
    question: Question,
    prompt: Callable[..., str],
    sampling: Sampling,
    trace: Sequence[str],
) -> Answer:
    def cite(places: Sequence[int]) -> list[Citation]:
        numbers = (number for place in places for number in memories[place][0])
        return [cited_turn(conversation, number) for number in numbers]

    lines = [text for _, text in memories]
    return await answer_from_lines(llm, lines, cite, question, prompt, sampling, trace)


async def answer_from_lines(
    llm: LLM,
    lines: Sequence[str],
    cite: Callable[[Sequence[int]], Sequence[Citation]],
    question: Question,
    prompt: Callable[..., str],
    sampling: Sampling,
    trace: Sequence[str],
    *,
    source_tokens: int | None = None,
) -> Answer:
    """One call over numbered lines: which of them are used, then the answer.

    ``cite`` makes citations of the places, from 0, of the lines that were named; ``prompt`` is
    rendered with ``memories``. With ``source_tokens`` the answer has its compaction ratio.
    Raises what LLM.complete raises.
    """
    kept = await fitted(llm, lines, reserve=sampling.max_tokens)
    shown = "\n".join(f"[{place}] {line}" for place, line in enumerate(kept, 1))
    schema = create_model("answer", __base__=_Said, memories=(_numbers(len(lines)), ...))
    reply = await llm.complete(
        [Message("user", prompt(memories=shown))], schema, sampling=sampling, stage="answer"
    )
    assert reply.parsed is not None
    citations = tuple(cite([place - 1 for place in sorted(set(reply.parsed.memories))]))
    return Answer(
        question=question.text,
        text=reply.parsed.answer,
        confidence="medium" if citations else "low",
        citations=citations,
        trace=tuple(trace),
        compaction_ratio=reply.usage.input_tokens / source_tokens if source_tokens else None,
    )


def _numbers(memories: int) -> Any:
    """What may be cited: a set of numbers; of more memories than may be cited, some in any order.

    A small model that may name all of fifty does, and its budget ends before it answers.
    """
    if not memories:
        return Annotated[list[int], NONE]
    if memories <= MOST_CITED:
        return index_set(memories, first=1)
    item: Any = number(1, memories)
    return Annotated[list[item], Field(max_length=MOST_CITED)]


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
