"""A model's tokenizer, without the model: for the engine, and for counting in other processes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mgl.llm.base import Request

PIECE: Final = 4_000  # characters encoded at once: beyond 8,192 tokens the tokenizer cuts silently


class Tokenizer:
    """OpenVINO GenAI's tokenizer, which takes one caller at a time; thread-safe here."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._using = threading.Lock()

    @property
    def end_token(self) -> int:
        token: int = self._tokenizer.get_eos_token_id()
        return token

    def encode(self, text: str) -> NDArray[np.int64]:
        """Token ids, shape (1, n). Long texts are encoded in pieces that begin at the space
        before a word, where these tokenizers split anyway."""
        with self._using:
            parts = [
                self._tokenizer.encode(piece, add_special_tokens=False).input_ids.data
                for piece in _pieces(text)
            ]
        return np.concatenate(parts, axis=1)

    def encode_prompt(self, request: Request) -> NDArray[np.int64]:
        """The ids of a request's messages in the model's chat template."""
        messages = [
            {"role": message.role, "content": message.content} for message in request.messages
        ]
        with self._using:
            text = self._tokenizer.apply_chat_template(messages, add_generation_prompt=True)
        return self.encode(text)

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(self.encode(text)[0]) for text in texts]

    def decode(self, tokens: Sequence[int]) -> str:
        with self._using:
            text: str = self._tokenizer.decode(tokens)
        return text


def _pieces(text: str) -> list[str]:
    pieces, start = [], 0
    while len(text) - start > PIECE:
        end = text.rfind(" ", start + 1, start + PIECE)
        while end > start + 1 and text[end - 1].isspace():
            end = text.rfind(" ", start + 1, end)
        end = end if end > start else start + PIECE
        pieces.append(text[start:end])
        start = end
    return [*pieces, text[start:]]
