"""What a model wrote, before it is trusted: clean it, parse it, and ask again if it is unusable.

    >>> clean('<think>easy</think>\\n```json\\n{"a": 1}\\n```')
    '{"a": 1}'

A reply under a schema must be one JSON value and nothing else. Prose around the value means that
the server did not decode under the schema, and the reply is invalid.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any, Generic

from pydantic import BaseModel, ValidationError

from mgl.errors import ReplyInvalid, describe_fault
from mgl.llm.base import Completion, Message, ParsedT, Request
from mgl.llm.calls import Outcome
from mgl.llm.constraints import RULES
from mgl.prompt import Prompt

_THOUGHT = re.compile(r"\s*<think>.*?(?:</think>\s*|\Z)", re.DOTALL)
_FENCED = re.compile(r"\s*(`{3,})[\w+-]*[ \t]*\n(.*?)\n?[ \t]*\1\s*", re.DOTALL)

# Greedy decoding repeats the same invalid reply, so a resampled request is at least this warm.
_RESAMPLE_TEMPERATURE = 0.3

# Far from the seeds of repairs, of calls that memories repeat, and of a run's repeats.
_ANEW_SEED = 1_000_000

REPAIR = Prompt(
    "llm.repair",
    source="ours",
    text="""\
That reply cannot be used: {reason}
Give the whole reply again, corrected.""",
    variables=("reason",),
)


def strip_thinking(text: str) -> str:
    """Remove thinking blocks at the start, closed or not, and surrounding white space.

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
    """Remove thinking blocks, and a code fence that encloses everything else."""
    bare = strip_thinking(text)
    match = _FENCED.fullmatch(bare)
    return match.group(2).strip() if match else bare


@dataclass(frozen=True, slots=True)
class Verdict(Generic[ParsedT]):
    """What a completion is worth; ``parsed`` is valid only if ``outcome`` is ``ok``.

    ``unconstrained``: the engine ignored the schema. ``rule`` names the rule that a well-formed
    reply breaks (``mgl.llm.constraints.RULES``).
    """

    outcome: Outcome
    text: str
    parsed: ParsedT
    error: str = ""
    unconstrained: bool = False
    rule: str | None = None


def judge(completion: Completion, request: Request, schema: type[BaseModel] | None) -> Verdict[Any]:
    """Decide whether a completion is whole, not empty, and valid for its schema or choices."""
    text = strip_thinking(completion.text)
    if completion.finish_reason == "length":
        used = completion.usage.output_tokens
        return Verdict("truncated", text, None, f"cut off after {used:,} tokens")
    if completion.tool_calls and request.tools:
        return Verdict("ok", text, None)
    if not text:
        return Verdict("empty", text, None, "the model wrote nothing")
    if request.choices and text not in request.choices:
        reason = f"{text[:40]!r} is none of {', '.join(request.choices)}"
        return Verdict("invalid", text, None, reason, unconstrained=True)
    if schema is None:
        return Verdict("ok", text, None)
    return validate(clean(completion.text), schema)


def validate(text: str, schema: type[BaseModel]) -> Verdict[Any]:
    """Decide whether a cleaned reply is one JSON value that is valid for its schema."""
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        reason = f"not JSON at character {error.pos}: {error.msg}"
        return Verdict("invalid", text, None, reason, unconstrained=True)
    if text[end:].strip():
        reason = f"text after the JSON at character {end}"
        return Verdict("invalid", text, None, reason, unconstrained=True)
    try:
        return Verdict("ok", text, schema.model_validate_json(text))
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
    first = next((e for e in found if e["type"] not in RULES), found[0])
    if first["type"] in RULES:
        rule, place = first["type"], ".".join(map(str, first["loc"])) or "the reply"
        reason = f"{place}: {first['msg']}"
        return Verdict("violated", text, None, f"{rule}: {reason}", rule=rule)
    return Verdict("invalid", text, None, describe_fault(dict(first), "the reply"))


def with_feedback(request: Request, verdict: Verdict[Any]) -> Request:
    """The request after a reply that broke a rule: the model is shown the reply and the rule."""
    problem = REPAIR.render(reason=verdict.error)
    said = (Message("assistant", verdict.text), Message("user", problem))
    return replace(request, messages=(*request.messages, *said), tools=())


def resample(request: Request) -> Request:
    """The request after an empty or invalid reply: another seed, and not greedy."""
    sampling = replace(
        request.sampling,
        seed=request.sampling.seed + 1,
        temperature=max(request.sampling.temperature, _RESAMPLE_TEMPERATURE),
    )
    return replace(request, sampling=sampling)


def ask_anew(request: Request) -> Request:
    """The request of a later attempt: the same, greedy if it was, with a seed of its own."""
    sampling = replace(request.sampling, seed=request.sampling.seed + _ANEW_SEED)
    return replace(request, sampling=sampling)


def invalid_reply(verdict: Verdict[Any], attempts: int) -> ReplyInvalid:
    """The error that explains why there is no usable reply."""
    if verdict.unconstrained:
        hint = (
            "the server seems to ignore the JSON schema: use one that decodes under "
            "response_format json_schema (vLLM 0.12 or newer, llama.cpp), or an in-process engine"
        )
    elif verdict.outcome == "empty":
        hint = "raise the reply budget if the model thinks aloud, or try another model"
    else:
        hint = "try a larger model, or a simpler request"
    return ReplyInvalid(f"no valid reply in {attempts} attempts: {verdict.error}", hint=hint)
