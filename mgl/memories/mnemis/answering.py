"""The answer from one memory context: facts with their times, entities, episodes.

Source: Mnemis §2.3, which prints no prompt. Over a conversation it ends in the call that all
memories of conversations share (``replying``); over a document in one like it. What is cited
becomes the turns, or the passages, that it stands on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from mgl.llm.base import LLM
from mgl.memories.calls import Shown, answer_from_lines
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.nodes import Fact, Mention
from mgl.memories.mnemis.reading import Reading
from mgl.memories.mnemis.similarity import node_text
from mgl.memories.mnemis.state import State
from mgl.prompt import Prompt, one_line
from mgl.types import Answer, Citation, Document, Question

__all__ = ["ANSWER", "Item", "answer_from_document", "as_memories", "context", "ranked"]

NOTHING = "The document says nothing about this."

ANSWER = Prompt(
    "mnemis.answer",
    source="ours: §2.3 says what the answer is given, and prints no prompt",
    text="""What is known from a document, each with its number:

{memories}

Question: {question}

First name the numbers of what answers the question, then answer in as few words as you can. If \
nothing answers it, say that the document does not tell.

{"memories": [numbers], "answer": "..."}""",
    variables=("memories", "question"),
)


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the context, and where it stands."""

    id: str
    text: str
    mentions: tuple[Mention, ...]


def context(reading: Reading, state: State, episodes: Mapping[int, str]) -> list[Item]:
    """What is read, in the order facts, entities, episodes; episodes in the order of the source."""
    items = [
        Item(name, f"Fact: {state.facts[name].text}{_held(state.facts[name])}", mentions)
        for name in reading.found.get("facts", ())
        for mentions in [state.facts[name].mentions]
    ]
    for name in reading.found.get("entities", ()):
        node = state.node(name)
        if node.summary or node.tags:
            mentions = node.mentions if name in state.entities else ()  # type: ignore[union-attr]
            items.append(Item(name, one_line(node_text(node)), mentions))
    for number in sorted(reading.episodes, key=lambda each: state.episodes[each].span.start):
        episode = state.episodes[number]
        span = (Mention(number, episode.span),)
        items.append(Item(f"episode {number}", one_line(episodes[number]), span))
    return items


def ranked(items: Sequence[Item], reading: Reading) -> list[Mention]:
    """Where the context stands: the episodes, the best first, then what facts and entities are
    taken from."""
    by_id = {item.id: item for item in items}
    episodes = [by_id.pop(f"episode {number}") for number in reading.episodes]
    return [mention for item in (*episodes, *by_id.values()) for mention in item.mentions]


def as_memories(items: Sequence[Item], state: State) -> list[Shown]:
    """The context as an answer over a conversation reads it: a line, and the turns it stands on."""
    return [
        (
            tuple(dict.fromkeys(t for m in item.mentions for t in state.episodes[m.episode].turns)),
            item.text,
        )
        for item in items
    ]


async def answer_from_document(
    llm: LLM,
    document: Document,
    items: Sequence[Item],
    question: Question,
    config: MnemisConfig,
    trace: Sequence[str],
) -> Answer:
    """An answer over a document; without a call where nothing was found.

    Raises what LLM.complete raises.
    """
    if not items:
        return Answer(question.text, NOTHING, "low", (), tuple(trace))

    def cite(places: Sequence[int]) -> list[Citation]:
        return [_citation(document, items[place]) for place in places if items[place].mentions]

    return await answer_from_lines(
        llm,
        [item.text for item in items],
        cite,
        question,
        partial(ANSWER.render, question=question.text),
        config.sampling(config.answer_tokens),
        trace,
    )


def _citation(document: Document, item: Item) -> Citation:
    span = item.mentions[0].span
    return Citation(
        node_id=item.id,
        document=document.name,
        span=span,
        quote=document.quote(span),
        section=document.section_at(span.start),
    )


def _held(fact: Fact) -> str:
    if fact.valid_at is None and fact.invalid_at is None:
        return ""
    return f" (from {_day(fact.valid_at)} to {_day(fact.invalid_at)})"


def _day(time: datetime | None) -> str:
    return "unknown" if time is None else f"{time:%d %B %Y}"
