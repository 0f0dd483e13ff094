"""Servers of several makes, as far as a probe and the engine can tell: what each honours.

A constraint is told by its field in the request, as the servers do. What a make honours is
answered as it asks; what it refuses, by an error in that make's words; all else is passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mgl.serving.probe import WORDS
from tests.openai.answering import MODEL, Answered, Route, Server, chat, models, serving

FREE = "The capital of France is Paris."
STRUCTURED = (
    "structured_outputs.choice",
    "structured_outputs.grammar (lark)",
    "structured_outputs.grammar (ebnf)",
    "structured_outputs.json",
)
_TRIED = {"word": WORDS[0], "note": "zum", "quote": WORDS[1]}


@dataclass(frozen=True)
class Make:
    """A make of server. ``tools`` is what it says where it takes none, or True."""

    label: str
    routes: Mapping[str, Route]
    obeys: tuple[str, ...] = ()
    refuses: Mapping[str, str] = field(default_factory=dict)
    tools: str | bool = False
    logprobs: bool = False
    cached: bool = False

    def answer(self, body: Mapping[str, Any]) -> Any:
        """A chat completion as this make gives it."""
        asked = constraints(body)
        for name in asked:
            if name in self.refuses:
                return Answered(400, {"error": {"message": self.refuses[name]}})
        if "tools" in body:
            return self._called()
        obeyed = [value for name, value in asked.items() if name in self.obeys]
        more: dict[str, Any] = {}
        if self.logprobs and body.get("logprobs"):
            token = {"token": "The", "logprob": -0.1, "top_logprobs": []}
            more["choice"] = {"logprobs": {"content": [token]}}
        details = {"cached_tokens": 256} if self.cached else None
        usage = {"prompt_tokens": 380, "completion_tokens": 4, "prompt_tokens_details": details}
        return chat(obeying(obeyed[0]) if obeyed else FREE, usage=usage, **more)

    def _called(self) -> Any:
        if isinstance(self.tools, str):
            return Answered(400, {"error": {"message": self.tools}})
        if not self.tools:
            return chat(FREE)
        function = {"name": "look_up", "arguments": '{"word": "qibro"}'}
        calls = [{"id": "c1", "type": "function", "function": function}]
        return chat(None, "tool_calls", message={"tool_calls": calls})


def constraints(body: Mapping[str, Any]) -> dict[str, Any]:
    """The constraints in a request's body by their ways' names."""
    found: dict[str, Any] = {}
    for kind, value in body.get("structured_outputs", {}).items():
        if kind == "grammar":
            notation = "lark" if value.startswith("start: ") else "ebnf"
            found[f"structured_outputs.grammar ({notation})"] = value
        elif kind in ("json", "choice"):
            found[f"structured_outputs.{kind}"] = value
    if "response_format" in body:
        found["response_format"] = body["response_format"]["json_schema"]["schema"]
    if "grammar" in body:
        found["grammar (gbnf)"] = body["grammar"]
    return found


def obeying(constraint: Any) -> str:
    """A reply that obeys one of a probe's constraints."""
    if isinstance(constraint, list):
        return str(constraint[0])
    if isinstance(constraint, dict):
        return json.dumps({name: _TRIED[name] for name in constraint["properties"]})
    names = re.findall(r'(word|note|quote)\\*"', constraint)
    return json.dumps({name: _TRIED[name] for name in dict.fromkeys(names)})


@contextmanager
def running(make: Make, **routes: Route) -> Iterator[Server]:
    """A server of that make."""
    with serving({"/v1/chat/completions": make.answer, **make.routes, **routes}) as server:
        yield server


def _vllm(version: str) -> dict[str, Route]:
    return {
        "/v1/models": models(max_model_len=4096, owned_by="vllm", parent=None),
        "/version": {"version": version},
        "/tokenize": {"count": 14, "max_model_len": 4096},
    }


VLLM = Make(
    "vllm 0.32.0",
    _vllm("0.32.0"),
    obeys=(*STRUCTURED, "response_format"),
    tools='"auto" tool choice requires --enable-auto-tool-choice',
    logprobs=True,
    cached=True,
)
OLD_VLLM = Make("vllm 0.11.0", _vllm("0.11.0"), obeys=("response_format",), logprobs=True)
OUTLINES = Make(
    "vllm 0.32.0",
    _vllm("0.32.0"),
    obeys=(STRUCTURED[0], *STRUCTURED[3:], "response_format"),
    refuses=dict.fromkeys(STRUCTURED[1:3], "Outlines does not support grammar specifications"),
    logprobs=True,
)
LLAMA = Make(
    "llama.cpp b8681",
    {
        "/v1/models": models(owned_by="llamacpp"),
        "/props": {"default_generation_settings": {"n_ctx": 2048}, "build_info": "b8681"},
    },
    obeys=("grammar (gbnf)", "response_format"),
    tools=True,
    logprobs=True,
)
OLLAMA = Make(
    "ollama 0.12.6",
    {"/v1/models": models(owned_by="library"), "/api/version": {"version": "0.12.6"}},
    obeys=("response_format",),
    tools=True,
)
LM_STUDIO = Make(
    "lm studio",
    {
        "/v1/models": models(owned_by="organization_owner"),
        "/api/v0/models": {"data": [{"id": MODEL, "state": "loaded"}]},
        # It answers what it does not know with an error in a good answer.
        "/version": {"error": "Unexpected endpoint or method. (GET /version)"},
        "/server_info": {"error": "Unexpected endpoint or method. (GET /server_info)"},
    },
    obeys=("response_format",),
)
IGNORANT = Make("unknown", {"/v1/models": models()})
