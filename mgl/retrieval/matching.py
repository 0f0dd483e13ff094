"""How well two texts match token by token: the arithmetic of BERTScore.

    >>> match = open_matcher("all-minilm-l6-v2", home, Source(), store)         # doctest: +SKIP
    >>> precision, recall, f1 = match("Ann met Bo.", "Bo was met by Ann.")      # doctest: +SKIP

Source: Zhang et al., BERTScore: Evaluating Text Generation with BERT (ICLR 2020), Section 3: each
token takes the most similar token of the other text by cosine; precision is the mean over the
judged text's tokens, recall over the reference's. As in the authors' package by default, tokens
weigh the same (no idf), nothing is rescaled, and the model's marks may be matched but do not count.
That package, last released in 2023, fails on an empty text with today's transformers, so the
arithmetic is here; a test compares the two where it is installed.
"""

from __future__ import annotations

import json
import threading
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mgl.errors import UsageError
from mgl.retrieval.computing import choose_device, load_model, require_package, run_model, to_utf8
from mgl.retrieval.models import RetrievalModel, Source, find_model

if TYPE_CHECKING:
    from mgl.retrieval.embedders import VectorCache

_UNBOUNDED: Final = 1_000_000  # tokenizers without a limit report far more
_PREFIXED: Final = ("roberta", "gpt2")  # their first word is another token without a space


class TokenVectors(NamedTuple):
    """A unit vector per token, shape (tokens, dims); ``own`` is False for the model's own marks."""

    vectors: NDArray[np.float32]
    own: NDArray[np.bool_]


class TokenEncoder:
    """Embeds tokens in context, by the hidden states of an encoder; loaded by the constructor.

    Computes in float32 and one text at a time, so that no batch changes a digit. A text is
    truncated at the tokenizer's limit. Pooling layers of sentence-transformers are passed over.
    """

    def __init__(self, folder: Path, *, model_id: str, layer: int | None = None) -> None:
        """``layer`` counts from 1, 0 being the embeddings before it; None is the last.

        Raises ResourceError where the folder holds no such model, UsageError where the extra
        ``retrieval`` is not installed or the model has no such layer.
        """
        self._model_id = model_id
        self._layer = -1 if layer is None else layer
        self._working = threading.Lock()
        with load_model(folder):
            import torch
            from transformers import AutoModel, AutoTokenizer

            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model: Any = AutoModel.from_pretrained(
                folder, local_files_only=True, dtype=torch.float32
            )
        config = model.config
        if layer is not None and not 0 <= layer <= config.num_hidden_layers:
            raise UsageError(
                f"{model_id} has {config.num_hidden_layers} layers, so there is no layer {layer}",
                hint=f"name one of 0 to {config.num_hidden_layers}, or none: the last",
            )
        self._model = model.eval().to(choose_device())
        self._prefix = " " if config.model_type in _PREFIXED else ""
        self._room = self._tokenizer.model_max_length
        if self._room > _UNBOUNDED:
            self._room = config.max_position_embeddings - 2  # RoBERTa's first two are no positions

    def encode(self, text: str) -> TokenVectors:
        """Embed the tokens of a text, stripped."""
        import torch

        (readable_text,) = to_utf8([text.strip()])
        with self._working, run_model(self._model_id), torch.no_grad():
            tokens = self._tokenizer(
                self._prefix + readable_text if readable_text else "",
                truncation=True,
                max_length=self._room,
                return_special_tokens_mask=True,
                return_tensors="pt",
            )
            own = tokens.pop("special_tokens_mask")[0].numpy() == 0
            if not own.any():
                dims = int(self._model.config.hidden_size)
                return TokenVectors(np.zeros((len(own), dims), dtype=np.float32), own)
            states = self._model(**tokens.to(self._model.device), output_hidden_states=True)
            vectors = states.hidden_states[self._layer][0]
            vectors = torch.nn.functional.normalize(vectors, dim=-1).cpu().numpy()
        return TokenVectors(vectors.astype(np.float32), own)


_DIGITS: Final = 6  # float32 has no more


class Matching(NamedTuple):
    """How well a text matches a reference: at most 1, and 0 where either is empty."""

    precision: float
    recall: float
    f1: float


def greedy_matching(said: TokenVectors, wanted: TokenVectors) -> Matching:
    """Match each token with the most similar one of the other text."""
    if not said.own.any() or not wanted.own.any():
        return Matching(0.0, 0.0, 0.0)
    alike = said.vectors @ wanted.vectors.T
    precision = float(alike.max(axis=1)[said.own].mean())
    recall = float(alike.max(axis=0)[wanted.own].mean())
    both = precision + recall
    return Matching(precision, recall, 2 * precision * recall / both if both else 0.0)


class TokenMatcher:
    """Matches texts by one model, each pair once over runs, by ``cache``.

    The model is loaded with the first pair that is not cached. ``model_id`` names model, revision
    and layer.
    """

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
        """Match a text with a reference. Errors as of ``TokenEncoder``; ResourceError without
        weights."""
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
        return TokenEncoder(self._model.folder(), model_id=self.model_id, layer=self._layer)


def open_matcher(
    written: str, home: Path, source: Source, cache: VectorCache | None = None
) -> TokenMatcher:
    """Open the matcher of ``MODEL`` or ``MODEL:LAYER``; nothing is loaded.

    MODEL is a profile's or its publisher's name, or the path of a folder. Raises UsageError where
    there is no such model or the extra ``retrieval`` is missing, ResourceError where a folder holds
    no model.
    """
    name, _, last = written.rpartition(":")
    name, layer = (name, int(last)) if name and last.isdecimal() else (written, None)
    model = find_model(name, "embed", source, home)
    require_package("transformers")
    return TokenMatcher(model, layer, cache)
