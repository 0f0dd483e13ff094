"""How a request is asked again after a reply that could not be used, and when that is given up.

A reply that is empty or of the wrong form is drawn anew; one of the right form that breaks a rule
(``mgl.llm.constraints``) is told which. How often, the client's policy says.
"""

from __future__ import annotations

from dataclasses import replace

from mgl.errors import ReplyInvalid
from mgl.llm.base import Message, Request, SchemaT
from mgl.llm.replies import Verdict
from mgl.prompt import Prompt

__all__ = ["REPAIR", "invalid", "told", "varied"]

# Greedy decoding gives the same invalid reply again, so repairs draw at least this warm.
_REPAIR_TEMPERATURE = 0.3

REPAIR = Prompt(
    "llm.repair",
    source="ours",
    text="""\
That reply cannot be used: {reason}
Give the whole reply again, corrected.""",
    variables=("reason",),
)


def told(request: Request, verdict: Verdict[SchemaT]) -> Request:
    """The request as it is repeated after a reply of the right form that breaks a rule."""
    broken = REPAIR.render(reason=verdict.error or "")
    said = (Message("assistant", verdict.text), Message("user", broken))
    return replace(request, messages=(*request.messages, *said), tools=())


def varied(request: Request) -> Request:
    """The request as it is repeated after a reply that was empty or invalid."""
    sampling = replace(
        request.sampling,
        seed=request.sampling.seed + 1,
        temperature=max(request.sampling.temperature, _REPAIR_TEMPERATURE),
    )
    tools = () if request.json_schema is not None else request.tools
    return replace(request, sampling=sampling, tools=tools)


def invalid(verdict: Verdict[SchemaT], attempts: int) -> ReplyInvalid:
    """The error that says why no reply could be used."""
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
