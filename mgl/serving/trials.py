"""The single trials of a probe: one request or two each, and what became of them.

Each thing is tried with a request whose free answer would differ: asked for the capital of
France in a plain sentence, no model answers with a nonsense word in an object of JSON unless it
is made to. So a constraint that is accepted and passed over in silence is told from one that is
obeyed.

    trials = Trials(http, server)
    finding = await trials.way(RESPONSE_FORMAT)

It does not know which trials make a probe: ``mgl.serving.probing`` does.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mgl.errors import EngineError, EngineTimeout, EngineUnavailable
from mgl.llm.base import Completion, Message, Request, Sampling, Tool
from mgl.llm.engines.counters import read_samples
from mgl.llm.engines.http import Http
from mgl.llm.engines.looking import Server, served_models
from mgl.llm.engines.ways import CHOICE, LARK, Way
from mgl.llm.engines.wire import body_of, completion_of, tools_of
from mgl.llm.honoured import Finding, Verdict
from mgl.llm.replies import strip_thinking

__all__ = ["QUESTIONS", "WORDS", "Trials"]

CAPITAL: Final = "What is the capital of France? Answer in one plain sentence."
LOOK_UP: Final = "Look up the word qibro with the tool, then tell me what it means."
REPEATED: Final = " ".join(f"Line {n}: the river runs past the mill to the sea." for n in range(24))
QUESTIONS: Final = (CAPITAL, LOOK_UP, REPEATED)
"""All that a probe ever asks, word for word."""

WORDS: Final = ("qibro", "zumtefa")
SUBSTRING: Final = f"{LARK.name}, verbatim parts"

_PATIENCE_S = 120.0
_AT_ONCE = 4
_BUDGET = 48
_THINKING_BUDGET = 2048
_SAID = 100
_HITS = re.compile(r"(prefix_cache_hits|cached_tokens)(_total)?$")

_ONE_WORD = {"type": "string", "enum": list(WORDS)}
_PLAIN = {"word": _ONE_WORD}
# What only llguidance's dialect of Lark says: a bound in tokens, and a part of a text verbatim.
_BOUNDED = {"word": _ONE_WORD, "note": {"type": "string", "minLength": 1, "maxLength": 16}}
_PART = {"quote": {"type": "string", "minLength": 1, "maxLength": 24, "substring": " ".join(WORDS)}}
_TOOL = Tool(
    "look_up",
    "Looks up a word.",
    {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)


class Trials:
    """What is tried of one server, each trial giving one finding."""

    def __init__(self, http: Http, server: Server) -> None:
        self._http = http
        self._server = server
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def said_freely(self) -> Finding:
        """The control: what the model says without a constraint. Raises the EngineError family."""
        request = _asking(CAPITAL)
        completion = completion_of(await self._answer(body_of(request, self._model)), request)
        return Finding("a free answer", "answered", _short(completion.text))

    async def way(self, way: Way) -> Finding:
        if way is CHOICE:
            request = _asking(CAPITAL, choices=WORDS)
            return await self._try(way.name, way, request, lambda text: text in WORDS)
        properties = _BOUNDED if way is LARK else _PLAIN
        request = _asking(CAPITAL, schema=_object(properties))
        return await self._try(way.name, way, request, _begins_with_a_word)

    async def part(self) -> Finding:
        request = _asking(CAPITAL, schema=_object(_PART))
        return await self._try(SUBSTRING, LARK, request, _quotes_a_part)

    async def tools(self) -> Finding:
        request = _asking(LOOK_UP, tools=(_TOOL,))
        free = await self._called(request, {})
        if free.verdict != "ignored":
            return free
        forced = {"type": "function", "function": {"name": _TOOL.name}}
        return await self._called(request, {"tool_choice": forced})

    async def logprobs(self) -> Finding:
        request = _asking(CAPITAL, choices=("Paris", "Yes"))

        async def ask() -> tuple[bool, str]:
            answer = await self._answer(body_of(request, self._model))
            given = (answer["choices"][0].get("logprobs") or {}).get("content") or []
            top = len(given[0].get("top_logprobs") or ()) if given else 0
            return bool(given), f"{len(given)} tokens, {top} alternatives each"

        return await _finding("logprobs", ask)

    async def cached_tokens(self) -> Finding:
        """Whether a prompt that is sent twice is told to be cached, in the usage or the metrics."""
        request = _asking(REPEATED, budget=1)
        body = body_of(request, self._model)

        async def ask() -> tuple[bool, str]:
            first = completion_of(await self._answer(body), request)
            before = await self._hits()
            usage = completion_of(await self._answer(body), request).usage
            hits = await self._hits() - before
            if usage.cached_tokens:
                return True, f"{usage.cached_tokens} of {usage.input_tokens} tokens, in the usage"
            if hits > 0:
                return True, f"{hits:.0f} of {first.usage.input_tokens} tokens, in /metrics only"
            return False, "not in the usage, not in /metrics"

        return await _finding("prefix-cache counters", ask)

    async def adapters(self) -> Finding:
        async def ask() -> tuple[bool, str]:
            served = await served_models(self._http)
            loaded = [name for name, entry in served.items() if entry.get("parent")]
            if loaded:
                return True, f"loaded: {', '.join(loaded)}"
            at_root = self._server.kind == "sglang"
            try:
                await self._http.post("/load_lora_adapter" if at_root else "load_lora_adapter", {})
            except EngineError as error:
                if "lora_name" in error.message:
                    return True, "none is loaded; it takes them while it runs"
            return False, "none is loaded, and it takes none while it runs"

        return await _finding("LoRA adapters", ask, otherwise="refused")

    @property
    def _model(self) -> str:
        return self._server.model

    async def _try(
        self, name: str, way: Way, request: Request, obeys: Callable[[str], bool]
    ) -> Finding:
        async def ask() -> tuple[bool, str]:
            completion = await self._completion(body_of(request, self._model, way), request)
            text = strip_thinking(completion.text)
            return obeys(text), text

        return await _finding(name, ask)

    async def _completion(self, body: Mapping[str, Any], request: Request) -> Completion:
        """A reply; one that was cut off while the model was still thinking is given more room."""
        completion = completion_of(await self._answer(body), request)
        if completion.finish_reason == "length" and not strip_thinking(completion.text):
            roomy = {**body, "max_tokens": _THINKING_BUDGET}
            completion = completion_of(await self._answer(roomy), request)
        return completion

    async def _called(self, request: Request, forced: Mapping[str, Any]) -> Finding:
        async def ask() -> tuple[bool, str]:
            body = {**body_of(request, self._model), "tools": tools_of(request), **forced}
            completion = await self._completion(body, request)
            calls = [f"{call.name}({call.arguments})" for call in completion.tool_calls]
            return bool(calls), ", ".join(calls) or completion.text

        return await _finding("tools", ask)

    async def _answer(self, body: Mapping[str, Any]) -> Any:
        async with self._slots:
            return await self._http.post("chat/completions", body, _PATIENCE_S)

    async def _hits(self) -> float:
        try:
            page = await self._http.text("/metrics", _PATIENCE_S)
        except EngineError:
            return 0.0
        return sum(sample.value for sample in read_samples(page) if _HITS.search(sample.name))


def _asking(
    question: str,
    *,
    schema: Mapping[str, Any] | None = None,
    choices: tuple[str, ...] = (),
    tools: tuple[Tool, ...] = (),
    budget: int = _BUDGET,
) -> Request:
    messages = (Message("user", question),)
    return Request(messages, schema, tools, Sampling(max_tokens=budget), choices)


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


async def _finding(
    name: str,
    ask: Callable[[], Awaitable[tuple[bool, str]]],
    otherwise: Verdict = "ignored",
) -> Finding:
    """What became of a trial; ``otherwise`` where it was answered and did not succeed."""
    try:
        good, said = await ask()
    except (EngineTimeout, EngineUnavailable) as error:
        return Finding(name, "failed", _short(error.message))
    except EngineError as error:
        said = error.message.partition("): ")[2] or error.message
        return Finding(name, "refused", _short(said))
    return Finding(name, "honoured" if good else otherwise, _short(said))


def _begins_with_a_word(text: str) -> bool:
    """Whether it is the object that was asked for, or as much of it as the budget allowed.

    White space is left open by some ways, and small models fill their budget with it.
    """
    squeezed = "".join(text.split())
    heads = [f'{{"word":"{word}"' for word in WORDS]
    return bool(squeezed) and any(
        squeezed.startswith(head) or head.startswith(squeezed) for head in heads
    )


def _quotes_a_part(text: str) -> bool:
    try:
        quote = json.loads(text)["quote"]
    except (ValueError, KeyError, TypeError):
        return False
    return bool(quote) and quote in " ".join(WORDS)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SAID else f"{line[: _SAID - 1]}…"
