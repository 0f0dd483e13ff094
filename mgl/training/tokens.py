"""Rows as a language model reads them: tokenized as engines do, answers as grammars lay them out.

tokenizer, model = load_causal(weights)
prompt, answer = tokenize(tokenizer, row.prompt, row.completion)
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mgl.llm.base import Message, Request
from mgl.llm.grammar import to_regex
from mgl.llm.schemas import compile_schema, print_reply
from mgl.observer import Observer
from mgl.training.data import Example, Preference
from mgl.training.fitting import explain_import


@dataclass(frozen=True, slots=True)
class Tokens:
    """A row: token ids of its prompt, and of its one answer, or of the better and the worse; beside
    them the messages, the answers as texts and the schema."""

    prompt: list[int]
    answers: list[list[int]]
    messages: list[dict[str, str]]
    texts: list[str]
    schema: str = ""


def load_causal(weights: Path) -> tuple[Any, Any]:
    """Load tokenizer and model of a GGUF file or a model folder, in bfloat16 where that is fast.

    UsageError without the extra ``training``, ResourceError where it does not load or the
    tokenizer has no chat template.
    """
    from mgl.llm.engines.transformers import load_weights
    from mgl.retrieval.computing import choose_dtype

    try:
        import torch

        tokenizer, model = load_weights(weights, getattr(torch, choose_dtype(None)))
    except ImportError as error:
        raise explain_import(error) from error
    for key in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(model.config, key):
            delattr(model.config, key)
    return tokenizer, model


def tokenize(
    tokenizer: Any, prompt: Sequence[tuple[str, str]], answer: str
) -> tuple[list[int], list[int]]:
    """The token ids of a prompt as the engines send it, and of an answer with its end."""
    from mgl.llm.engines.transformers import encode_prompt, encode_texts, find_control

    control = find_control(tokenizer)
    request = Request(tuple(Message(cast("Any", role), content) for role, content in prompt))
    (answered,) = encode_texts(tokenizer, control, [answer])
    return encode_prompt(tokenizer, control, request), [*answered, _find_end(tokenizer)]


def _find_end(tokenizer: Any) -> int:
    """The token by which the chat template ends a reply, at which engines stop: the tokenizer's
    own end of a text may be another."""
    reply = "reply"
    messages = _list_messages([("user", "?"), ("assistant", reply)])
    said = tokenizer.apply_chat_template(messages, tokenize=False)
    after = said.rpartition(reply)[2].strip()
    ids = tokenizer(after, add_special_tokens=False)["input_ids"]
    end: int = ids[0] if ids else tokenizer.eos_token_id
    return end


def lay_out(answer: str, schema: str) -> str | None:
    """An answer in the layout of its schema's grammar; None where that does not allow it."""
    if not schema:
        return answer
    described = json.loads(schema)
    try:
        laid = print_reply(json.loads(answer))
    except ValueError:
        return None
    return laid if re.fullmatch(to_regex(compile_schema(described)), laid) else None


def take_rows(
    tokenizer: Any, rows: Sequence[Example | Preference], most: int, observer: Observer
) -> list[Tokens]:
    """Tokenize rows, but for those of more than ``most`` tokens and those whose answer no reply can
    be, and note how many these are."""
    taken, dropped = [], Counter[str]()
    for row in rows:
        said = [row.completion] if isinstance(row, Example) else [row.chosen, row.rejected]
        laid = [each for one in said if (each := lay_out(one, row.schema)) is not None]
        if len(laid) < len(said):
            dropped["are not what their schema allows"] += 1
            continue
        pairs = [tokenize(tokenizer, row.prompt, each) for each in laid]
        prompt, answers = pairs[0][0], [answer for _, answer in pairs]
        if len(prompt) + max(map(len, answers)) > most:
            dropped[f"have more than {most:,} tokens"] += 1
            continue
        taken.append(Tokens(prompt, answers, _list_messages(row.prompt), laid, row.schema))
    for why, count in dropped.items():
        observer.note(f"{count:,} of {len(rows):,} rows {why}: left out")
    return taken


def _list_messages(prompt: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in prompt]
