"""What a model wrote, before it is believed: cleaning and parsing.

    >>> clean('<think>easy</think>\\n```json\\n{"a": 1}\\n```')
    '{"a": 1}'

A reply under a schema must be one JSON value and nothing else. Prose around the value is not
forgiven: it means that the server did not decode under the schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from mgl.llm.base import Completion
from mgl.llm.calls import Outcome
from mgl.llm.constraints import RULES

__all__ = ["Malformed", "Verdict", "clean", "judge", "parse", "without_thinking"]

SchemaT = TypeVar("SchemaT", bound=BaseModel)

_THOUGHT = re.compile(r"\s*<think>.*?(?:</think>\s*|\Z)", re.DOTALL)
_FENCED = re.compile(r"\s*(`{3,})[\w+-]*[ \t]*\n(.*?)\n?[ \t]*\1\s*", re.DOTALL)


class Malformed(Exception):
    """Why a reply does not satisfy its schema; ``unconstrained`` if no schema was obeyed.

    ``rule`` names the rule that was broken, where the form is right (``mgl.llm.constraints``).
    """

    def __init__(
        self, reason: str, *, unconstrained: bool = False, rule: str | None = None
    ) -> None:
        super().__init__(reason)
        self.unconstrained = unconstrained
        self.rule = rule


def without_thinking(text: str) -> str:
    """The text without thinking blocks at its start, closed or not, stripped of white space.

    A ``</think>`` alone ends a block that the chat template opened, unless JSON or a fence came
    before it.
    """
    while match := _THOUGHT.match(text):
        text = text[match.end() :]
    if not text.lstrip().startswith(("{", "[", "`")):
        _, closing, after = text.partition("</think>")
        text = after if closing else text
    return text.strip()


def clean(text: str) -> str:
    """The text without thinking blocks, and without a code fence around all of it."""
    bare = without_thinking(text)
    match = _FENCED.fullmatch(bare)
    return match.group(2).strip() if match else bare


def parse(text: str, model: type[SchemaT]) -> SchemaT:
    """A cleaned reply as an instance of its schema; raises Malformed with the first reason."""
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        raise Malformed(
            f"not JSON at character {error.pos}: {error.msg}", unconstrained=True
        ) from None
    if text[end:].strip():
        raise Malformed(f"text after the JSON at character {end}", unconstrained=True)
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        first = next((e for e in found if e["type"] not in RULES), found[0])
        where = ".".join(str(part) for part in first["loc"]) or "the reply"
        rule = first["type"] if first["type"] in RULES else None
        raise Malformed(f"{where}: {first['msg']}", rule=rule) from None


@dataclass(frozen=True, slots=True)
class Verdict(Generic[SchemaT]):
    """What a completion is worth. ``unconstrained``: the engine ignored the schema; ``rule``: the
    one that a reply of the right form breaks."""

    outcome: Outcome
    text: str
    parsed: SchemaT | None = None
    error: str | None = None
    unconstrained: bool = False
    rule: str | None = None


def judge(
    completion: Completion, schema: type[SchemaT] | None, choices: Sequence[str] = ()
) -> Verdict[SchemaT]:
    """Whether a completion is whole, says something, and satisfies the schema or is a choice."""
    text = without_thinking(completion.text)
    if completion.finish_reason == "length":
        used = completion.usage.output_tokens
        return Verdict("truncated", text, error=f"cut off after {used:,} tokens")
    if completion.tool_calls:
        return Verdict("ok", text)
    if not text:
        return Verdict("empty", text, error="the model wrote nothing")
    if choices and text not in choices:
        reason = f"{text[:40]!r} is none of {', '.join(choices)}"
        return Verdict("invalid", text, error=reason, unconstrained=True)
    if schema is None:
        return Verdict("ok", text)
    text = clean(completion.text)
    try:
        return Verdict("ok", text, parsed=parse(text, schema))
    except Malformed as error:
        if error.rule is not None:
            return Verdict("violated", text, error=f"{error.rule}: {error}", rule=error.rule)
        return Verdict("invalid", text, error=str(error), unconstrained=error.unconstrained)
