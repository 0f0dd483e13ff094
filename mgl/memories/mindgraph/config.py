"""MindGraph's configuration: the paper's values by default, each with its source.

What goes beyond the paper is a named option here and is off by default.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field

from mgl.memories.base import PresetConfig

CHUNK_TOKENS, LEAST_CHUNK_TOKENS = 8192, 16


class MindGraphConfig(PresetConfig):
    """How a graph is built and answered from.

    ``cite`` is how an edit names its source: ``quote``, the paper's way, or ``sentence``, a number
    of the block's numbered sentences. ``edit_node`` says whether an edit of a node names one, too:
    as ``printed`` in D.1 it does not, and the node keeps its span; ``cited`` asks for it (§3.2).
    ``graph_form`` is how an answer is shown the finished graph: with the ``provenance`` of each
    node and edge (§3.1, §3.4), or in the ``brief`` form in which building shows it.
    """

    READING: ClassVar[frozenset[str]] = frozenset({"graph_form"})

    cite: Literal["quote", "sentence"] = "quote"
    edit_node: Literal["printed", "cited"] = "printed"
    graph_form: Literal["provenance", "brief"] = "provenance"
    chunk_tokens: int = Field(
        CHUNK_TOKENS,
        ge=LEAST_CHUNK_TOKENS,
        description="tokens a chunk, half of the model's context at most (§4.2)",
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
        1000, ge=100, description="characters of the original around a source of a node (§3.3)"
    )
    max_cluster_size: int = Field(
        10, ge=2, description="nodes of a Leiden subgraph, at most (§4.2)"
    )
    temperature: float = Field(0.0, ge=0.0, description="sampling temperature; no value printed")
    seed: int = 0

    def within(self, context_tokens: int) -> Self:
        """This configuration, with chunks of at most half of such a context: prompt, graph and
        reply need the rest."""
        most = max(LEAST_CHUNK_TOKENS, context_tokens // 2)
        return self if self.chunk_tokens <= most else self.model_copy(update={"chunk_tokens": most})
