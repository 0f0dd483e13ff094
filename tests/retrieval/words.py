"""An embedder without a model that gives three representations, as bge-m3 does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mgl.retrieval.base import EmbeddingTask
from mgl.retrieval.fakes import WordEmbedder
from mgl.retrieval.multi import Encoded, Ranking


class Words(WordEmbedder):
    """Weights by how often a word stands in a text, and a vector for each word."""

    def __init__(self, ranking: Ranking) -> None:
        super().__init__(512)
        self.model_id = f"fake/multi:{ranking}"
        self.ranking: Ranking = ranking
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str], *, task: EmbeddingTask = "passage") -> list[Encoded]:
        del task
        self.encoded.extend(texts)
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> Encoded:
        words = text.lower().strip(".?").split()
        counts = Counter(sum(word.encode()) for word in words)
        return Encoded(self.embed([text])[0], dict(counts), self.embed(words))
