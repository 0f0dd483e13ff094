"""A memory as exporters draw it: the topic network, each topic with the turns it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten

from mgl.memories.gam.state import State
from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.store import MemoryRecord
from mgl.types import Answer, Conversation

__all__ = ["viewed"]

LABEL_CHARACTERS = 40


def viewed(
    memory: MemoryRecord, talk: Conversation, state: State, answers: Sequence[Answer]
) -> GraphView:
    """Topics and links; a topic stands on all that was said from its first turn to its last."""
    spans = {
        name: talk.transcript.span(talk.span(topic.turns[0]).start, talk.span(topic.turns[-1]).end)
        for name, topic in state.topics.items()
    }
    steps = {name: topic.turns[-1] for name, topic in state.topics.items()}
    return GraphView(
        memory_id=memory.id,
        memory=memory.kind,
        model=memory.model_id,
        document=talk.transcript,
        questions=memory.questions,
        steps=len(talk.turns),
        nodes=tuple(
            ViewNode(
                name,
                "topic",
                shorten(", ".join(topic.keywords) or name, LABEL_CHARACTERS, placeholder="…"),
                topic.summary,
                spans[name],
                steps[name],
            )
            for name, topic in state.topics.items()
        ),
        edges=tuple(
            ViewEdge(
                f"e{place}",
                link.source,
                link.target,
                link.relation,
                spans[link.source],
                steps[link.source],
            )
            for place, link in enumerate(state.links, 1)
        ),
        answers=tuple(answers),
    )
