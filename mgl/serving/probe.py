"""Probe a server of the OpenAI chat API: what it obeys, found by trying.

    found = await probe("http://127.0.0.1:8000/v1", api_key=None)
    for finding in found.findings:
        print(finding.name, finding.verdict, finding.said)

Each trial is a request whose free answer would differ: asked for the capital of France in a plain
sentence, no model answers with a nonsense word in a JSON object unless it is made to. This tells a
constraint that is obeyed from one that is silently ignored. A server of a known make is tried only
with that make's constraint formats. What else mgl relies on is tried beside them: tools,
log-probabilities, counters of the prefix cache, and of vLLM its tokenizer, its list of adapters and
where a model's thoughts go. ``serving/README.md`` has the table.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mgl.errors import EngineError, EngineTimeout, EngineUnavailable
from mgl.llm.base import Completion, Message, Request, Sampling, Tool
from mgl.llm.capabilities import (
    Capabilities,
    ProbeResult,
    load_capabilities,
    save_capabilities,
)
from mgl.llm.replies import strip_thinking
from mgl.openai.formats import CHOICE, EBNF, FORMATS, GBNF, JSON, LARK, RESPONSE_FORMAT, Format
from mgl.openai.replies import read_completion
from mgl.openai.requests import write_body, write_tools
from mgl.openai.servers import Http, Kind, Server, identify, list_models, read_metrics
from mgl.prompt import one_line

_BY_MAKE: Final[Mapping[Kind, tuple[Format, ...]]] = {
    "vllm": (CHOICE, LARK, EBNF, JSON, RESPONSE_FORMAT),
    "llama.cpp": (GBNF, RESPONSE_FORMAT),
    "ollama": (RESPONSE_FORMAT,),
    "lm studio": (RESPONSE_FORMAT,),
    "unknown": FORMATS,
}

CAPITAL: Final = "What is the capital of France? Answer in one plain sentence."
LOOK_UP: Final = "Look up the word qibro with the tool, then tell me what it means."
REPEATED: Final = " ".join(f"Line {n}: the river runs past the mill to the sea." for n in range(24))
QUESTIONS: Final = (CAPITAL, LOOK_UP, REPEATED)
"""All questions that a probe asks."""

WORDS: Final = ("qibro", "zumtefa")
SUBSTRING: Final = f"{LARK.name}, verbatim parts"

_TIMEOUT_S = 120.0
_AT_ONCE = 4
_BUDGET = 48
_THINKING_BUDGET = 2048
_SAID = 100
_HITS = re.compile(r"(prefix_cache_hits|cached_tokens)(_total)?$")

_ONE_WORD = {"type": "string", "enum": list(WORDS)}
_PLAIN = {"word": _ONE_WORD}
# Only llguidance's dialect of Lark knows a bound in tokens, and a verbatim part of a text.
_BOUNDED = {"word": _ONE_WORD, "note": {"type": "string", "minLength": 1, "maxLength": 16}}
_SUBSTRING = {
    "quote": {"type": "string", "minLength": 1, "maxLength": 24, "substring": " ".join(WORDS)}
}
_TOOL = Tool(
    "look_up",
    "Looks up a word.",
    {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)


async def probe(base_url: str, api_key: str | None, model: str | None = None) -> Capabilities:
    """Find what the server obeys, with a few dozen short requests to ``model`` or its first.

    Raises EngineUnavailable, EngineTimeout or EngineRejected if the server does not answer a plain
    question, and UsageError if ``base_url`` is not a URL.
    """
    async with Http(base_url, api_key) as http:
        return await _probe(http, await identify(http, () if model is None else (model,)))


async def probe_once(
    base_url: str,
    api_key: str | None,
    names: Sequence[str],
    home: Path,
    note: Callable[[str], None],
) -> Capabilities:
    """Load what is known of the server and the model with one of ``names``, or probe it.

    A server whose make or version changed is probed again. ``note`` gets a line about a probe, and
    about constraints that are ignored. Raises what ``probe`` raises.
    """
    async with Http(base_url, api_key) as http:
        server = await identify(http, names)
        known = load_capabilities(home, base_url, server.label, server.model)
        if known is not None:
            return known
        note(f"probing the server at {base_url}, once")
        found = await _probe(http, server)
    if found.is_complete:
        save_capabilities(home, base_url, found)
    if found.warning is not None:
        note(found.warning)
    return found


async def _probe(http: Http, server: Server) -> Capabilities:
    trials = _Trials(http, server)
    control = await trials.ask_freely()
    formats = _BY_MAKE[server.kind]
    findings = await asyncio.gather(*(trials.try_format(one) for one in formats))
    obeyed = [one.name for one in findings if one.verdict == "honoured"]
    ignored = [one.name for one in findings if one.verdict == "ignored"]
    substring = [await trials.try_substring()] if LARK in formats else []
    if substring and substring[0].verdict != "honoured" and LARK.name in obeyed:
        obeyed.remove(LARK.name)
    others = [
        await trials.try_tools(),
        await trials.try_logprobs(),
        await trials.try_cached_tokens(),
    ]
    tools, logprobs, cached = (one.verdict == "honoured" for one in others)
    if server.kind == "vllm":
        others += [await trials.try_tokenizer(), await trials.try_adapters()]
    return Capabilities(
        server=server.label,
        formats=tuple(obeyed),
        ignored=tuple(ignored),
        tools=tools,
        logprobs=logprobs,
        cached_tokens=cached,
        model=server.model,
        context_tokens=server.context_tokens,
        findings=(control, *findings, *substring, *others),
    )


async def probe_pooling(base_url: str, api_key: str | None, model: str) -> list[ProbeResult]:
    """Try a server that embeds or reranks; errors as ``probe``."""
    async with Http(base_url, api_key) as http:
        server = await identify(http, (model,))

        async def embed() -> tuple[bool, str]:
            body = {"model": server.model, "input": [CAPITAL], "encoding_format": "float"}
            (found,) = (await http.post("embeddings", body, _TIMEOUT_S))["data"]
            return True, f"{len(found['embedding'])} dimensions"

        async def rerank() -> tuple[bool, str]:
            texts = ["Paris is the capital of France.", "Herons eat fish."]
            body = {"model": server.model, "query": CAPITAL, "documents": texts, "top_n": 2}
            found = (await http.post("rerank", body, _TIMEOUT_S))["results"]
            scores = {int(one["index"]): float(one["relevance_score"]) for one in found}
            return scores[0] > scores[1], f"{scores[0]:.3g} for the answer, {scores[1]:.3g} beside"

        return [await _run_trial("/v1/embeddings", embed), await _run_trial("/v1/rerank", rerank)]


class _Trials:
    """The trials of one server; each gives one finding."""

    def __init__(self, http: Http, server: Server) -> None:
        self._http = http
        self._server = server
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def ask_freely(self) -> ProbeResult:
        """The control, without a constraint. Raises the EngineError family."""
        request = _make_request(CAPITAL)
        answer = await self._answer(write_body(request, self._model))
        completion = read_completion(answer, request)
        thoughts = _find_thoughts(answer["choices"][0]["message"])
        said = f"{completion.text} ({thoughts})" if thoughts else completion.text
        return ProbeResult("a free answer", "answered", one_line(said, _SAID))

    async def try_format(self, one: Format) -> ProbeResult:
        if one is CHOICE:
            request = _make_request(CAPITAL, choices=WORDS)
            return await self._try(one.name, one, request, lambda text: text in WORDS)
        properties = _BOUNDED if one is LARK else _PLAIN
        request = _make_request(CAPITAL, schema=_object(properties))
        return await self._try(one.name, one, request, _is_object_with_word)

    async def try_substring(self) -> ProbeResult:
        request = _make_request(CAPITAL, schema=_object(_SUBSTRING))
        return await self._try(SUBSTRING, LARK, request, _is_substring)

    async def try_tools(self) -> ProbeResult:
        request = _make_request(LOOK_UP, tools=(_TOOL,))
        free = await self._try_call(request, {})
        if free.verdict != "ignored":
            return free
        forced = {"type": "function", "function": {"name": _TOOL.name}}
        return await self._try_call(request, {"tool_choice": forced})

    async def try_logprobs(self) -> ProbeResult:
        request = _make_request(CAPITAL, choices=("Paris", "Yes"))

        async def ask() -> tuple[bool, str]:
            answer = await self._answer(write_body(request, self._model))
            given = (answer["choices"][0].get("logprobs") or {}).get("content") or []
            top = len(given[0].get("top_logprobs") or ()) if given else 0
            return bool(given), f"{len(given)} tokens, {top} alternatives each"

        return await _run_trial("logprobs", ask)

    async def try_cached_tokens(self) -> ProbeResult:
        """Whether the server reports a repeated prompt as cached, in the usage or the metrics."""
        request = _make_request(REPEATED, budget=1)
        body = write_body(request, self._model)

        async def ask() -> tuple[bool, str]:
            first = read_completion(await self._answer(body), request)
            before = await self._hits()
            usage = read_completion(await self._answer(body), request).usage
            hits = await self._hits() - before
            if usage.cached_tokens:
                return True, f"{usage.cached_tokens} of {usage.input_tokens} tokens, in the usage"
            if hits > 0:
                return True, f"{hits:.0f} of {first.usage.input_tokens} tokens, in /metrics only"
            return False, "not in the usage, not in /metrics"

        return await _run_trial("prefix-cache counters", ask)

    async def try_tokenizer(self) -> ProbeResult:
        """Whether the server counts the tokens of a prompt."""

        async def ask() -> tuple[bool, str]:
            body = {"model": self._model, "prompt": CAPITAL}
            count = (await self._http.post("/tokenize", body, _TIMEOUT_S))["count"]
            return count > 0, f"{count} tokens"

        return await _run_trial("/tokenize", ask)

    async def try_adapters(self) -> ProbeResult:
        """Whether the list of models says which of them are adapters, and of what."""

        async def ask() -> tuple[bool, str]:
            served = await list_models(self._http)
            own = [name for name, entry in served.items() if entry.get("parent")]
            return all("parent" in one for one in served.values()), ", ".join(own) or "none loaded"

        return await _run_trial("adapters in the list of models", ask)

    @property
    def _model(self) -> str:
        return self._server.model

    async def _try(
        self, name: str, format_: Format, request: Request, obeys: Callable[[str], bool]
    ) -> ProbeResult:
        async def ask() -> tuple[bool, str]:
            completion = await self._completion(write_body(request, self._model, format_), request)
            text = strip_thinking(completion.text)
            return obeys(text), text

        return await _run_trial(name, ask)

    async def _completion(self, body: Mapping[str, Any], request: Request) -> Completion:
        """A reply; one cut off while the model was still thinking gets a larger budget."""
        completion = read_completion(await self._answer(body), request)
        if completion.finish_reason == "length" and not strip_thinking(completion.text):
            roomy = {**body, "max_tokens": _THINKING_BUDGET}
            completion = read_completion(await self._answer(roomy), request)
        return completion

    async def _try_call(self, request: Request, forced: Mapping[str, Any]) -> ProbeResult:
        async def ask() -> tuple[bool, str]:
            body = {**write_body(request, self._model), "tools": write_tools(request), **forced}
            completion = await self._completion(body, request)
            calls = [f"{call.name}({call.arguments})" for call in completion.tool_calls]
            return bool(calls), ", ".join(calls) or completion.text

        return await _run_trial("tools", ask)

    async def _answer(self, body: Mapping[str, Any]) -> Any:
        async with self._slots:
            return await self._http.post("chat/completions", body, _TIMEOUT_S)

    async def _hits(self) -> float:
        try:
            page = await self._http.get_text("/metrics", _TIMEOUT_S)
        except EngineError:
            return 0.0
        return sum(value for name, _, value in read_metrics(page) if _HITS.search(name))


def _make_request(
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


async def _run_trial(name: str, ask: Callable[[], Awaitable[tuple[bool, str]]]) -> ProbeResult:
    """Run a trial; one that was answered without success was ``ignored``."""
    try:
        good, said = await ask()
    except (EngineTimeout, EngineUnavailable) as error:
        return ProbeResult(name, "failed", one_line(error.message, _SAID))
    except EngineError as error:
        said = error.message.partition("): ")[2] or error.message
        return ProbeResult(name, "refused", one_line(said, _SAID))
    except (LookupError, TypeError, ValueError):
        return ProbeResult(name, "refused", "the answer has another form")
    return ProbeResult(name, "honoured" if good else "ignored", one_line(said, _SAID))


def _find_thoughts(message: Mapping[str, Any]) -> str:
    """Say where a model's thoughts went; empty if there are none."""
    for field in ("reasoning", "reasoning_content"):
        if message.get(field):
            return f"thoughts are split off into {field}"
    return "thoughts are in the reply" if "<think>" in (message.get("content") or "") else ""


def _is_object_with_word(text: str) -> bool:
    """Whether the text is the requested object, or as much of it as the budget allowed.

    Some formats leave white space open, and small models fill their budget with it.
    """
    squeezed = "".join(text.split())
    heads = [f'{{"word":"{word}"' for word in WORDS]
    return bool(squeezed) and any(
        squeezed.startswith(head) or head.startswith(squeezed) for head in heads
    )


def _is_substring(text: str) -> bool:
    try:
        quote = json.loads(text)["quote"]
    except (ValueError, KeyError, TypeError):
        return False
    return bool(quote) and quote in " ".join(WORDS)
