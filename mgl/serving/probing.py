"""What a server honours, found by trying: a probe of any server of the OpenAI chat API.

    honoured = await probe("http://127.0.0.1:8000/v1", api_key=None)
    for name, verdict, said in honoured.rows():
        print(name, verdict, said)

Of the ways of constraining, a server of known make is tried with those of its make: what is
written for another make is passed over everywhere.

It prints nothing, and it starts no server. What was found is kept by ``mgl.llm.honoured``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mgl.llm.engines.http import Http
from mgl.llm.engines.looking import Kind, Server, look
from mgl.llm.engines.ways import (
    CHOICE,
    EBNF,
    GBNF,
    JSON,
    LARK,
    REGEX,
    RESPONSE_FORMAT,
    SGLANG_EBNF,
    SGLANG_REGEX,
    WAYS,
    Way,
)
from mgl.llm.honoured import Honoured, keep, kept
from mgl.serving.trials import Trials

__all__ = ["honoured_by", "probe"]

_STRUCTURED = (CHOICE, LARK, EBNF, JSON, REGEX)
_DIALECTS: Mapping[Kind, tuple[Way, ...]] = {
    "vllm": (*_STRUCTURED, RESPONSE_FORMAT),
    "sglang": (SGLANG_EBNF, SGLANG_REGEX, RESPONSE_FORMAT),
    "llama.cpp": (GBNF, RESPONSE_FORMAT),
    "ollama": (RESPONSE_FORMAT,),
    "lm studio": (RESPONSE_FORMAT,),
    "unknown": WAYS,
}


async def probe(base_url: str, api_key: str | None, model: str | None = None) -> Honoured:
    """Try what the server honours, with some dozen short requests to ``model`` or its first.

    Raises EngineUnavailable, EngineTimeout or EngineRejected where the server answers no plain
    question, and UsageError where ``base_url`` is no URL.
    """
    http = Http(base_url, api_key)
    try:
        return await _probe(http, await look(http, () if model is None else (model,)))
    finally:
        await http.aclose()


async def honoured_by(
    base_url: str,
    api_key: str | None,
    names: Sequence[str],
    home: Path,
    note: Callable[[str], None],
) -> Honoured:
    """What the server honours for the model of one of ``names``: as kept, or else by trying.

    A server whose make or version changed is tried anew. ``note`` hears of a trial, and of
    constraints that are ignored. Raises what ``probe`` raises.
    """
    http = Http(base_url, api_key)
    try:
        server = await look(http, names)
        found = kept(home, base_url, server.label, server.model)
        if found is not None:
            return found
        note(f"trying, once, what the server at {base_url} honours")
        honoured = await _probe(http, server)
    finally:
        await http.aclose()
    if honoured.complete:
        keep(home, base_url, honoured)
    if honoured.warning is not None:
        note(honoured.warning)
    return honoured


async def _probe(http: Http, server: Server) -> Honoured:
    trials = Trials(http, server)
    free = await trials.said_freely()
    tried = _DIALECTS[server.kind]
    constrained = await asyncio.gather(*(trials.way(way) for way in tried))
    verdicts = dict(zip(tried, constrained, strict=True))
    part = [await trials.part()] if LARK in verdicts else []
    others = [
        await trials.tools(),
        await trials.logprobs(),
        await trials.cached_tokens(),
        await trials.adapters(),
    ]
    obeyed = [way.name for way in tried if verdicts[way].verdict == "honoured"]
    if part and part[0].verdict != "honoured" and LARK.name in obeyed:
        obeyed.remove(LARK.name)
    tools, logprobs, cached, adapters = (one.verdict == "honoured" for one in others)
    return Honoured(
        server=server.label,
        ways=tuple(obeyed),
        ignored=tuple(way.name for way in tried if verdicts[way].verdict == "ignored"),
        tools=tools,
        logprobs=logprobs,
        cached_tokens=cached,
        adapters=adapters,
        model=server.model,
        findings=(free, *constrained, *part, *others),
    )
