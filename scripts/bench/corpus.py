"""Vectors and short texts in any number, shaped like those of real turns of talk.

Vectors: topics of about a hundred vectors each, with noise around them, both with a spectrum that
falls like that of sentence embeddings, and all to one side of the origin. Compared with 2,760
turns and 999 questions of LoCoMo by all-MiniLM-L6-v2, an inverted index of as many lists finds a
little less in as many of them (0.77 against 0.89 of the ten nearest in 4 of 52 lists, 0.97 and
0.99 in 16): what is measured on these vectors is not flattered by them.

Texts: twelve words on average, by Zipf's law with Mandelbrot's shift, the most frequent of them
English function words. It does not know meaning: a text and its vector have nothing in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_FUNCTION_WORDS: Final = (
    "the and a is that to of in for it was are with as on be at by this not but they"
).split()
_SYLLABLES: Final = tuple(c + v for c in "bcdfghjklmnprstvwz" for v in "aeiou")
_VOCABULARY: Final = 50_000
_WORDS: Final = 12
_QUERY_WORDS: Final = 5
_TOPIC: Final = 100
_BLOCK: Final = 50_000


@dataclass(frozen=True, slots=True)
class Query:
    """A question as words and as a vector; the two have nothing in common."""

    text: str
    vector: NDArray[np.float32]


@dataclass(frozen=True)
class Corpus:
    """Ids, unit vectors (n, dims) and texts of the same items, and what is asked of them."""

    ids: NDArray[np.int64]
    vectors: NDArray[np.float32]
    texts: tuple[str, ...]
    queries: tuple[Query, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def raw_bytes(self) -> int:
        """What the vectors take as float32."""
        return self.vectors.nbytes


def synthetic(size: int, queries: int, *, dims: int = 384, seed: int = 0) -> Corpus:
    """A corpus of this size, the same each time; its ids are not consecutive."""
    chance = np.random.default_rng(seed)
    scale = ((np.arange(1, dims + 1) + 5) ** -0.7).astype(np.float32)
    scale /= np.linalg.norm(scale)

    def noise(count: int) -> NDArray[np.float32]:
        return chance.standard_normal((count, dims), dtype=np.float32) * scale

    topics = noise(max(8, size // _TOPIC))
    vectors = np.empty((size, dims), dtype=np.float32)
    for start in range(0, size, _BLOCK):
        block = vectors[start : start + _BLOCK]
        block[:] = topics[chance.integers(len(topics), size=len(block))]
        block += 1.4 * noise(len(block)) + 1.2 * scale
        block /= np.linalg.norm(block, axis=1, keepdims=True)
    asked = vectors[chance.integers(size, size=queries)] + 1.1 * noise(queries)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    texts = _texts(size, chance)
    words = [_content(texts[at]) for at in chance.integers(size, size=queries)]
    questions = [" ".join(chance.permutation(content)[:_QUERY_WORDS]) for content in words]
    return Corpus(
        ids=np.arange(size, dtype=np.int64) * 3,
        vectors=vectors,
        texts=texts,
        queries=tuple(map(Query, questions, asked)),
    )


def _texts(size: int, chance: np.random.Generator) -> tuple[str, ...]:
    words = np.asarray([*_FUNCTION_WORDS, *map(_word, range(_VOCABULARY))])
    frequency = 1 / (np.arange(len(words)) + 2.7) ** 1.05
    lengths = np.maximum(chance.poisson(_WORDS, size), 3)
    chosen = words[chance.choice(len(words), size=lengths.sum(), p=frequency / frequency.sum())]
    ends = np.cumsum(lengths)
    return tuple(
        " ".join(chosen[end - length : end]) for end, length in zip(ends, lengths, strict=True)
    )


def _word(number: int) -> str:
    """A word of syllables, another for each number."""
    syllables = []
    number += len(_SYLLABLES)
    while number:
        number, rest = divmod(number, len(_SYLLABLES))
        syllables.append(_SYLLABLES[rest])
    return "".join(syllables)


def _content(text: str) -> list[str]:
    return sorted(set(text.split()) - set(_FUNCTION_WORDS))
