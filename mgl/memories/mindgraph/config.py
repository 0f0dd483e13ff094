"""MindGraph's configuration: the paper's values by default, each with its source.

What goes beyond the paper is a named option here and is off by default.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

PAPER_CHUNK_TOKENS = 8192
SMALL_CHUNK_TOKENS = 300
LEAST_CHUNK_TOKENS = 16


class MindGraphConfig(BaseModel):
    """How a graph is built and answered from.

    ``preset`` ``paper`` is the method as printed; ``small`` asks less of one model call
    (``mgl.memories.mindgraph.small``). ``cite`` is how an edit names its source: ``quote``, the
    paper's way, or ``sentence``, a number of the block's numbered sentences.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    preset: Literal["paper", "small"] = "paper"
    cite: Literal["quote", "sentence"] = "quote"
    chunk_tokens: int | None = Field(
        None,
        ge=LEAST_CHUNK_TOKENS,
        description="tokens a chunk, half of the model's context at most; None: 8,192 (§4.2), or "
        "300 in preset small",
    )
    max_operations: int = Field(
        40, ge=1, description="most edits of a reply about 8,192 tokens, fewer for fewer; ours"
    )
    build_tokens: int | None = Field(
        None, ge=64, description="tokens of a build reply; None: what its edits take; ours"
    )
    max_rounds: int = Field(
        40, ge=1, description="rounds of tool calls for an answer, at most (§4.2)"
    )
    answer_tokens: int = Field(
        1024, ge=64, description="tokens of an answering reply, at most; ours"
    )
    lookup_chars: int = Field(
        1000, ge=100, description="characters that lookup_source returns (D.3)"
    )
    max_cluster_size: int = Field(
        10, ge=2, description="nodes of a Leiden subgraph, at most (§4.2)"
    )
    temperature: float = Field(0.0, ge=0.0, description="sampling temperature; no value printed")
    seed: int = 0

    @property
    def tokens_per_chunk(self) -> int:
        """``chunk_tokens``, or the preset's own."""
        if self.chunk_tokens is not None:
            return self.chunk_tokens
        return PAPER_CHUNK_TOKENS if self.preset == "paper" else SMALL_CHUNK_TOKENS

    def within(self, context_tokens: int) -> MindGraphConfig:
        """This configuration, with chunks of at most half of such a context: prompt, graph and
        reply need the rest."""
        most = max(LEAST_CHUNK_TOKENS, context_tokens // 2)
        if self.tokens_per_chunk <= most:
            return self
        return self.model_copy(update={"chunk_tokens": most})
