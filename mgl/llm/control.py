"""Control tokens in what people write, kept from reaching a model as control.

A chat template marks turns with tokens such as ``<|im_end|>``, and a tokenizer finds them anywhere
in a prompt: a document that spells one out would end its own message. So a text is cut within each
control token that it spells out, and no tokenizer sees one whole.

    >>> control = ControlTokens(["<|im_end|>", "<s>"])
    >>> control.cut("a <s> ends with <|im_end|>")
    ['a <', 's> ends with <', '|im_end|>']

An engine with a tokenizer of its own encodes the parts one by one: the model reads the same
characters, spelled out. To a server, which tokenizes itself, ``mark`` sends a character of no width
at each cut; the engine takes it out of the reply.

A control token of one character cannot be cut. A format whose marks are no tokens of their own
(``[INST]`` of Llama 2) reads the same to its model when it is cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from mgl.llm.base import Request

_ANGLED: Final = (
    r"\|[^\s<>|]{1,64}\|?>",  # ChatML, Llama 3, Phi, gpt-oss; <|turn> of Gemma 4
    r"[^\s<>|]{1,64}\|>",
    r"｜[^<>｜]{1,64}｜>",  # DeepSeek
    r"/?(?:s|think|tool_calls?|tool_response)>",  # Llama, Qwen, Hermes
    r"(?:unk|pad|bos|eos|mask|cls|sep|sop|eop)>",
    r"(?:UNK|CLS|SEP|(?:BOS|EOS|EOP|PAD|MASK)_TOKEN)>",  # Command R
    r"(?:start|end)_of_(?:turn|image|audio)>",  # Gemma
    r"fim_(?:prefix|middle|suffix|pad)>",  # StarCoder
    r"__media__>",  # where llama.cpp puts an image
    r"/?seed:[a-z_]{1,40}>",
    r"</?SYS>>",  # Llama 2
)
_SQUARE: Final = (
    r"/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS|TOOL_CONTENT)\]",  # Mistral
    r"/?(?:THINK|ARGS|CALL_ID|PREFIX|MIDDLE|SUFFIX|IMG|IMG_BREAK|IMG_END)\]",
    r"(?:gMASK|sMASK|MASK|CLS|SEP|PAD|UNK|BOS|EOS)\]",  # ChatGLM, BERT
    r"\|[a-z]{1,20}\|\]",  # EXAONE
)
FAMILIES: Final = re.compile(f"<(?:{'|'.join(_ANGLED)})|\\[(?:{'|'.join(_SQUARE)})")
"""How the common families of models write their control tokens."""

_LONGEST: Final = 100  # characters of a control token
_NOTHING: Final = r"(?!)"

MARKS: Final = (
    *("\u200b", "\u2060", "\u200c", "\u200d", "\ufeff", "\u2063"),
    *map(chr, range(0xE000, 0xF900)),
)


def unmark(text: str, mark: str) -> str:
    """Take a mark out of a reply, also where JSON escapes it."""
    if not mark:
        return text
    return re.sub(rf"{mark}|\\u{ord(mark):04x}", "", text, flags=re.IGNORECASE)


class ControlTokens:
    """The control tokens of one model, and, for a model that is not known well, also those of the
    common families."""

    def __init__(self, tokens: Iterable[str] = (), *, families: bool = False) -> None:
        spelled = sorted(re.escape(each) for each in tokens if len(each) > 1)
        if families:
            spelled.append(FAMILIES.pattern)
        self._any = re.compile("|".join(spelled) or _NOTHING)

    def cut(self, text: str) -> list[str]:
        """Split a text after the first character of each control token in it; the parts joined
        are the text."""
        parts, start = [], 0
        found = self._any.search(text)
        while found is not None:
            parts.append(text[start : (start := found.start() + 1)])
            found = self._any.search(text, start)
        return [*parts, text[start:]]

    def spell(self, text: str) -> str:
        """The text with a mark at each cut, as a server is sent it."""
        return MARKS[0].join(self.cut(text))

    def leave_whole(self, text: str, place: int) -> int:
        """The place, or the beginning of the control token that it lies in."""
        near = self._any.finditer(text, max(0, place - _LONGEST), place + _LONGEST)
        return next((each.start() for each in near if each.start() < place < each.end()), place)

    def mark(self, request: Request) -> tuple[Request, str]:
        """Put a mark at each cut in what a request's messages and tools say.

        The mark is a character that they do not contain, and empty if there was nothing to cut.
        """
        said: list[str] = []

        def collect(text: str) -> str:
            said.append(text)
            return text

        parts = (request.messages, request.tools)
        _rewrite(parts, collect)
        if not any(map(self._any.search, said)):
            return request, ""
        mark = next((each for each in MARKS if not any(each in text for text in said)), MARKS[0])
        messages, tools = _rewrite(parts, lambda text: mark.join(self.cut(text)))
        return replace(request, messages=messages, tools=tools), mark


def select_control(added: Iterable[Any], template: str = "") -> Iterator[str]:
    """Select the control tokens of those that were added to a tokenizer's vocabulary, which may be
    white space and HTML tags as well."""
    for token in added:
        text = str(token.content)
        if token.special or FAMILIES.fullmatch(text) or (text.strip() and text in template):
            yield text


def _rewrite(value: Any, change: Callable[[str], str]) -> Any:
    """Change each text within messages and tools."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): _rewrite(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_rewrite(each, change) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        own = {each.name: _rewrite(getattr(value, each.name), change) for each in fields(value)}
        return replace(value, **own)
    return value
