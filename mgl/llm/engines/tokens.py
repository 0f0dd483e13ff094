"""A model's tokenizer, without the model: for the engine, and for counting in other processes."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from mgl.llm.base import Request
from mgl.llm.control import ControlTokens
from mgl.models.files import find_parts

PIECE: Final = 4_000  # characters encoded at once: beyond 8,192 tokens the tokenizer cuts silently
_WITHOUT_THINKING: Final = {"enable_thinking": False}  # the name that Qwen3's template reads
_SAVED: Final = "openvino_tokenizer"
_GROUP: Final = re.compile(r"\((?!\?)((?:\\.|[^\\)])*)\)", re.DOTALL)
_SPELLED: Final = re.compile(r"(?:\\.|[^\\|])+", re.DOTALL)


class Tokenizer:
    """OpenVINO GenAI's tokenizer, which takes one caller at a time; thread-safe here.

    It reads control tokens in the chat template as control, and in no text.
    """

    def __init__(self, tokenizer: Any, control: ControlTokens) -> None:
        self._tokenizer = tokenizer
        self._control = control
        self._using = threading.Lock()

    @property
    def end_token(self) -> int:
        token: int = self._tokenizer.get_eos_token_id()
        return token

    def encode(self, text: str) -> NDArray[np.int64]:
        """Token ids, shape (1, n)."""
        return self._encode(self._control.cut(text))

    def encode_prompt(self, request: Request) -> NDArray[np.int64]:
        """The ids of a request's messages in the model's chat template.

        A template that can open with thinking, as Qwen3's does, is told to leave it out.
        """
        marked, mark = self._control.mark(request)
        messages = [
            {"role": message.role, "content": message.content} for message in marked.messages
        ]
        with self._using:
            text = self._tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, extra_context=_WITHOUT_THINKING
            )
        return self._encode(text.split(mark) if mark else [text])

    def _encode(self, parts: Sequence[str]) -> NDArray[np.int64]:
        """Encode parts of one text. Long ones are encoded in pieces that begin at the space before
        a word, where these tokenizers split anyway."""
        with self._using:
            ids = [
                self._tokenizer.encode(piece, add_special_tokens=False).input_ids.data
                for part in parts
                for piece in self._split(part)
            ]
        return np.concatenate(ids, axis=1)

    def _split(self, text: str) -> list[str]:
        pieces, start = [], 0
        while len(text) - start > PIECE:
            end = text.rfind(" ", start + 1, start + PIECE)
            while end > start + 1 and text[end - 1].isspace():
                end = text.rfind(" ", start + 1, end)
            if end <= start + PIECE // 2:  # in a long word, or in a run of spaces
                end = self._control.leave_whole(text, start + PIECE)
            pieces.append(text[start:end])
            start = end
        return [*pieces, text[start:]]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(self.encode(text)[0]) for text in texts]

    def decode(self, tokens: Sequence[int], *, keep_control: bool = False) -> str:
        with self._using:
            text: str = self._tokenizer.decode(tokens, skip_special_tokens=not keep_control)
        return text


def find_control(genai: Any, weights: Path) -> ControlTokens:
    """Find the control tokens of a model in OpenVINO's format, or of a GGUF file (seconds)."""
    if weights.is_dir():
        return ControlTokens(_read_control(weights))
    with tempfile.TemporaryDirectory(prefix="mgl-") as folder:
        links = link_weights(weights, Path(folder))  # OpenVINO saves beside the file that it read
        genai.Tokenizer(str(links[0]), enable_save_ov_model=True)
        return ControlTokens(_read_control(Path(folder)))


def link_weights(weights: Path, folder: Path) -> list[Path]:
    """Link all files of a GGUF model into a folder under their names; the first one first."""
    links = []
    for path in find_parts(weights):
        links.append(folder / path.name)
        links[-1].symlink_to(path.resolve())
    return links


def _read_control(folder: Path) -> Iterator[str]:
    """The texts that a saved tokenizer splits off before anything else.

    The model holds them as a regular expression like ``(\\<s\\>)|(\\<\\|end\\|\\>)``.
    """
    model = ElementTree.parse(folder / f"{_SAVED}.xml")
    split = model.find(".//layer[@type='SpecialTokensSplit']")
    if split is None:
        return
    port = [each.get("id") for each in split.iterfind("./input/port")][-1]
    edge = model.find(f".//edge[@to-layer='{split.get('id')}'][@to-port='{port}']")
    assert edge is not None, "each input of a layer has an edge"
    data = model.find(f".//layer[@id='{edge.get('from-layer')}']/data")
    assert data is not None, "the pattern is a constant"
    start, size = int(data.attrib["offset"]), int(data.attrib["size"])
    pattern = (folder / f"{_SAVED}.bin").read_bytes()[start : start + size].decode()
    for group in _GROUP.findall(pattern):
        for spelled in _SPELLED.findall(group):
            token = re.sub(r"\\(.)", r"\1", spelled, flags=re.DOTALL)
            if token.strip():
                yield token
