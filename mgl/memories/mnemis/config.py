"""Mnemis' configuration: the paper's values by default, each with its source.

What goes beyond the paper, or takes a part of it away, is a named option.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from pydantic import Field

from mgl.memories.talk import TalkConfig

REPLY_TOKENS: Final = 1024
"""Reply budget of an extraction, a categorisation and a selection; ours."""


class MnemisConfig(TalkConfig):
    """How a conversation is taken in, categorised and read.

    ``hierarchy`` says what becomes of the categories when the base graph grows: they are built anew
    (``rebuild``, §2.2) or taken further (``incremental``, ours).
    ``routes`` and ``kinds`` are the rows of Table 4: System-1 similarity search, System-2 global
    selection or both, over episodes (``rag``), entities and edges (``graph``), or all.
    ``reranked`` says whether a re-ranker orders what System-1 alone has found; the union of both
    routes is always re-ranked (§2.3).
    """

    READING: ClassVar[frozenset[str]] = frozenset("routes kinds reranked k answer_tokens".split())

    reflect: bool = Field(True, description="ask again for missed names and facts (§2.1)")
    compression: int = Field(
        2, ge=2, description="children of a category, at least: n; the number is ours"
    )
    layers: int = Field(
        5, ge=1, description="layers of categories, at most (§2.2); the number is ours"
    )
    hierarchy: Literal["rebuild", "incremental"] = "rebuild"
    routes: Literal["both", "system1", "system2"] = "both"
    kinds: Literal["all", "rag", "graph"] = "all"
    reranked: bool = False
    k: int = Field(10, ge=1, description="episodes read; entities and edges 2k each (§3.1)")

    @property
    def reads_graph(self) -> bool:
        """Whether a question reads anything but episodes."""
        return self.routes != "system1" or self.kinds != "rag"
