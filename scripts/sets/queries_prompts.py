"""Primitive and sense-making queries, as HGMem's §5.4 defines them, put to a judge.

Source: the two definitions of §5.4, word for word. The frame around them is that of
``longreason_prompts``.
"""

from __future__ import annotations

from typing import Final, Literal

from longreason_prompts import AxisReply

from mgl.prompt import Prompt

__all__ = ["KINDS", "QueryReply"]


class QueryReply(AxisReply):
    """Two kinds."""

    label: Literal["primitive", "sense-making"]


KINDS: Final = Prompt(
    "hgmem.queries",
    source="HGMem §5.4",
    text=(
        "primitive. Queries that primarily require locating directly associated chunks, which can "
        "often be resolved with local evidence and focus on straightforward factual information.\n"
        "sense-making. Queries that require deeper comprehension by connecting and integrating "
        "multiple pieces of evidence, emphasizing the construction of higher-order relationships "
        "and interpretation beyond surface retrieval."
    ),
)
