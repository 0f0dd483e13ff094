"""How a document is made into an entity graph: the paper's values where it prints one."""

from __future__ import annotations

from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

OVERLAP_TOKENS: Final = 50
Extraction = Literal["model", "terms", "lightrag"]


class GraphConfig(BaseModel):
    """How an entity graph is built; ``in_flight`` decides only how fast.

    A method that uses the graph extends it with fields of its own, and leaves these and their
    defaults as they are: all that agree on them share one graph. ``extraction`` says who finds
    entities and relations: the ``model``, chunk by chunk; code, which knows ``terms`` alone
    (``mgl.memories.graph.build``); or the package ``lightrag`` with its own prompts, gleaning and
    limits, as in HGMem §4.2 (``mgl peer install lightrag``).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    extraction: Extraction = "model"
    chunk_tokens: int = Field(200, ge=16, description="tokens of a chunk, at most (HGMem §4.2)")
    overlap_tokens: int = Field(
        OVERLAP_TOKENS,
        ge=0,
        description="tokens that a chunk shares with the one before, at most (§4.2); where smaller "
        "chunks are asked for, a quarter of them",
    )
    in_flight: int = Field(256, ge=1, description="chunks read at the same time, at most; ours")

    @model_validator(mode="before")
    @classmethod
    def _of_small_chunks(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(tokens := given.get("chunk_tokens"), int):
            return {"overlap_tokens": min(OVERLAP_TOKENS, tokens // 4), **given}
        return given

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.overlap_tokens >= self.chunk_tokens:
            raise ValueError("overlap_tokens must be less than chunk_tokens")
        return self

    @classmethod
    def of(cls, config: GraphConfig) -> GraphConfig:
        """The graph's own part of a configuration that extends it."""
        own = {name: getattr(config, name) for name in GraphConfig.model_fields}
        return GraphConfig.model_validate(own)
