"""How well two texts match token by token: what BERTScore is made of.

    >>> match = open_matcher("all-minilm-l6-v2", home, Source(), store)         # doctest: +SKIP
    >>> precision, recall, f1 = match("Ann met Bo.", "Bo was met by Ann.")      # doctest: +SKIP

Source: Zhang et al., BERTScore: Evaluating Text Generation with BERT (ICLR 2020), Section 3: each
token takes the most similar token of the other text by the cosine of their vectors in context;
precision is the mean over the tokens of the text that is judged, recall over the reference's.
Tokens weigh the same (no idf), and nothing is rescaled by a baseline, as the defaults of the
authors' package have it. As there, the marks that a model puts around a text may be matched and are
not counted. That package had its last release in 2023 and fails on an empty text with the
transformers of today, so the arithmetic is here; a test holds the two together where it is
installed.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from mgl.retrieval.computing import require_package
from mgl.retrieval.models import RetrievalModel, Source, find_model

if TYPE_CHECKING:
    from mgl.retrieval.embedders.cached import VectorCache
    from mgl.retrieval.embedders.tokens import TokenEncoder, TokenVectors

__all__ = ["Matching", "TokenMatcher", "greedy_matching", "open_matcher"]

_DIGITS: Final = 6  # float32 has no more


class Matching(NamedTuple):
    """How well a text matches a reference: at most 1, and 0 where one of them is empty."""

    precision: float
    recall: float
    f1: float


def greedy_matching(said: TokenVectors, wanted: TokenVectors) -> Matching:
    """The matching of a text's tokens with the reference's."""
    if not said.own.any() or not wanted.own.any():
        return Matching(0.0, 0.0, 0.0)
    alike = said.vectors @ wanted.vectors.T
    precision = float(alike.max(axis=1)[said.own].mean())
    recall = float(alike.max(axis=0)[wanted.own].mean())
    both = precision + recall
    return Matching(precision, recall, 2 * precision * recall / both if both else 0.0)


class TokenMatcher:
    """Matches texts by one model, which is loaded with the first pair that is not in ``cache``: a
    pair is computed once, over runs. ``model_id`` names model, revision and layer."""

    def __init__(
        self, model: RetrievalModel, layer: int | None, cache: VectorCache | None = None
    ) -> None:
        self.model_id = f"{model.identity}:{'last' if layer is None else layer}"
        self._model = model
        self._layer = layer
        self._cache = cache

    @property
    def at_hand(self) -> bool:
        """Whether the model's weights are on this machine."""
        return self._model.found() is not None

    def __call__(self, said: str, wanted: str) -> Matching:
        """The matching of a text with a reference. Errors as of ``TokenEncoder``, ResourceError
        where the weights cannot be had."""
        key, pair = f"matching:{self.model_id}", json.dumps([said, wanted])
        (known,) = self._cache.vectors(key, [pair]) if self._cache is not None else (None,)
        if known is None:
            encode = self._encoder.encode
            known = np.array(greedy_matching(encode(said), encode(wanted)), dtype=np.float32)
            if self._cache is not None:
                self._cache.put_vectors(key, [pair], known[np.newaxis])
        return Matching(*(round(float(value), _DIGITS) for value in known))

    @cached_property
    def _encoder(self) -> TokenEncoder:
        from mgl.retrieval.embedders.tokens import TokenEncoder

        return TokenEncoder(self._model.folder(), model_id=self.model_id, layer=self._layer)


def open_matcher(
    written: str, home: Path, source: Source, cache: VectorCache | None = None
) -> TokenMatcher:
    """The matcher by ``MODEL`` or ``MODEL:LAYER``: a profile's or its publisher's name, or the path
    of a folder; nothing is loaded. UsageError where there is no such model or the extra
    ``retrieval`` is not installed, ResourceError where a folder holds no model.
    """
    name, _, last = written.rpartition(":")
    name, layer = (name, int(last)) if name and last.isdecimal() else (written, None)
    model = find_model(name, "embed", source, home)
    require_package("transformers")
    return TokenMatcher(model, layer, cache)
