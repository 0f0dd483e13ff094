"""Dense vectors, token weights and token vectors of a text together, as bge-m3 makes them.

Source: Chen et al., M3-Embedding (2024), §3.1 and §4.1. s_dense is the cosine of two vectors; s_lex
sums the products of the weights of shared tokens; s_mul takes for each token of the query its
most similar token of the text, and averages. They are joined as s_dense + 0.3 s_lex (``hybrid``),
with s_mul besides (``all``), divided by the sum of the factors, as FlagEmbedding's own
``compute_score`` does, so that a score is near a cosine's scale. ``mgl.retrieval.vectors`` has the
index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import Embedder, EmbeddingTask

Ranking = Literal["dense", "hybrid", "all"]
"""By what texts are ranked: dense vectors alone; lexical weights, too; multi-vectors, too."""

WEIGHTS: Final[Mapping[Ranking, tuple[float, float, float]]] = {
    "dense": (1.0, 0.0, 0.0),
    "hybrid": (1.0, 0.3, 0.0),
    "all": (1.0, 0.3, 1.0),
}
"""Factors of s_dense, s_lex and s_mul (M3-Embedding, §4.1)."""

HEADS: Final = ("sparse_linear.pt", "colbert_linear.pt")
"""The files of bge-m3's folder that make token weights and token vectors of hidden states."""

PARTS: Final = ("lexical", "tokens")
"""What is kept of a text beside its dense vector."""

CANDIDATES: Final = 200
"""Texts that the dense and the lexical search each pass on (M3-Embedding, §4.1)."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text: its unit vector, the weight of each of its tokens by the token's id, and a unit
    vector for each token (shape (tokens, dims))."""

    dense: NDArray[np.float32]
    lexical: Mapping[int, float]
    tokens: NDArray[np.float32]

    def pack(self) -> tuple[NDArray[np.float32], ...]:
        """Three flat arrays: the vector; all token ids, then their weights; all token vectors.

        Ids are below 2^24, and so exact in float32.
        """
        lexical = np.array([*self.lexical, *self.lexical.values()], dtype=np.float32)
        return self.dense, lexical, self.tokens.ravel()

    @classmethod
    def unpack(cls, *parts: NDArray[np.float32]) -> Encoded:
        """Undo ``pack``."""
        dense, lexical, tokens = parts
        return cls(dense, unpack_weights(lexical), tokens.reshape(-1, len(dense)))


def unpack_weights(lexical: NDArray[np.float32]) -> dict[int, float]:
    """The weights by token that ``Encoded.pack`` made flat."""
    ids, weights = lexical.reshape(2, -1)
    return dict(zip(ids.astype(int).tolist(), weights.tolist(), strict=True))


class MultiEmbedder(Embedder, Protocol):
    """An embedder that gives three representations in one pass."""

    @property
    def ranking(self) -> Ranking: ...

    def encode(self, texts: Sequence[str], *, task: EmbeddingTask = "passage") -> list[Encoded]: ...


def ranks_by_more(embedder: Embedder) -> TypeGuard[MultiEmbedder]:
    """Whether an embedder ranks by more than its dense vectors."""
    return getattr(embedder, "ranking", "dense") != "dense"


def score_tokens(query: NDArray[np.float32], text: NDArray[np.float32]) -> float:
    """s_mul: the mean over the query's tokens of the best match in the text; 0 without tokens."""
    if not len(query) or not len(text):
        return 0.0
    return float((query @ text.T).max(axis=1).mean())
