"""A vector for each token of a text, as it stands there: the hidden states of an encoder.

    encoder = TokenEncoder(folder, model_id="all-minilm-l6-v2@53aa51172d14")
    encoder.encode("Ann met Bo.").vectors.shape         # (6, 384)

A text that is longer than the model's tokenizer takes is cut there. It knows nothing of pooling:
sentence-transformers' folders are read for their encoder alone.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mgl.errors import UsageError
from mgl.retrieval.computing import computing, device, loading, readable

__all__ = ["TokenEncoder", "TokenVectors"]

_UNBOUNDED: Final = 1_000_000  # what a tokenizer without a limit gives is far above
_PREFIXED: Final = ("roberta", "gpt2")  # a word at the beginning is another token without a space


class TokenVectors(NamedTuple):
    """``vectors`` of length 1, shape (tokens, dims); ``own`` says which tokens are the text's own
    and not the model's marks around it."""

    vectors: NDArray[np.float32]
    own: NDArray[np.bool_]


class TokenEncoder:
    """One model in memory, loaded when this is made (seconds); it computes in float32, and one text
    at a time, so that what stands in a batch beside it changes no digit."""

    def __init__(self, folder: Path, *, model_id: str, layer: int | None = None) -> None:
        """``layer`` counts from 1, 0 being the embeddings before it; None is the last.

        Raises ResourceError where the folder holds no such model, UsageError where the extra
        ``retrieval`` is not installed or the model has no such layer.
        """
        self._model_id = model_id
        self._layer = -1 if layer is None else layer
        self._working = threading.Lock()
        with loading(folder):
            import torch
            from transformers import AutoModel, AutoTokenizer

            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model: Any = AutoModel.from_pretrained(
                folder, local_files_only=True, dtype=torch.float32
            )
        config = model.config
        if layer is not None and not 0 <= layer <= config.num_hidden_layers:
            raise UsageError(
                f"{model_id} has {config.num_hidden_layers} layers, and layer {layer} is asked for",
                hint=f"name one of 0 to {config.num_hidden_layers}, or none: the last",
            )
        self._model = model.eval().to(device())
        self._prefix = " " if config.model_type in _PREFIXED else ""
        self._room = self._tokenizer.model_max_length
        if self._room > _UNBOUNDED:
            self._room = config.max_position_embeddings - 2  # RoBERTa's first two are no positions

    def encode(self, text: str) -> TokenVectors:
        """The vectors of a text without the white space around it."""
        import torch

        (readable_text,) = readable([text.strip()])
        with self._working, computing(self._model_id), torch.no_grad():
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
