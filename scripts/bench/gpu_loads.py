"""Loads of a server: the prompts that each method's builds send, free and constrained.

    requests = record_prompts("mindgraph", context=32_768)
    figures = dict(measure_loads(url, key, model, "guidance", (1, 16), 32_768))

Prompts are recorded from builds of the demo's story, or of the example's chat, with an engine that
answers at once.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from stepping import Figures
from throughput import load

from mgl.errors import EngineRejected
from mgl.lab import Lab, OwnModels
from mgl.llm.base import Completion, Message, Request
from mgl.llm.fakes import SchemaEngine
from mgl.openai.formats import EBNF, JSON, LARK, Format
from mgl.openai.requests import write_body
from mgl.retrieval.fakes import WordEmbedder, WordReranker

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
STORY, CHAT = EXAMPLES / "a-scandal-in-bohemia.txt", EXAMPLES / "chat.jsonl"
QUESTION: Final = "What does the King want from Holmes, and how does the matter end?"
REPLY: Final = 160
"""Tokens of each reply in a load."""

FORMATS: Final[Mapping[str, Format]] = {"guidance": LARK, "xgrammar": EBNF, "outlines": JSON}
METHODS: Final = ("mindgraph", "hgmem", "gam", "mnemis")
PROMPTS: Final = 64


class Recorder(SchemaEngine):
    """Keeps the different prompts of a build, as many as are wanted, and then refuses."""

    def __init__(self, most: int, context: int) -> None:
        super().__init__(context_tokens=context)
        self.most = most
        self.kept: dict[tuple[Message, ...], Request] = {}

    async def generate(self, request: Request) -> Completion:
        if len(self.kept) >= self.most:
            raise EngineRejected("enough requests were recorded", hint="")
        self.kept.setdefault(tuple(request.messages), request)
        return await super().generate(request)


def record_prompts(method: str, context: int, most: int = PROMPTS) -> list[Request]:
    """The first prompts of a method's build of the demo's story, or of the example's chat.

    ``context`` is the server's, in tokens; a quarter is left for how its tokenizer counts.
    """
    recorder = Recorder(most, context * 3 // 4)
    source = STORY if method in ("mindgraph", "hgmem") else CHAT
    models = OwnModels(recorder, WordEmbedder(), WordReranker())
    with (
        tempfile.TemporaryDirectory() as home,
        Lab.open(models, home=Path(home)) as lab,
        suppress(EngineRejected),
    ):
        lab.build(source, [QUESTION] if source == STORY else [], memory=method)
    return list(recorder.kept.values())


def count_shared(text: str, other: str) -> int:
    """Count the characters that two texts share at their beginning."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((at for at, (one, two) in pairs if one != two), min(len(text), len(other)))


def write_bodies(
    requests: Sequence[Request], model: str, format_: Format | None, count: int
) -> list[dict[str, Any]]:
    """Bodies of so many requests; unconstrained ones reply at full length.

    No two prompts are alike: repetitions are numbered where the prompts begin to differ, so that
    the cache holds as much of them as of a build's.
    """
    salt, bodies = secrets.token_hex(8), []
    texts = [request.messages[-1].content for request in requests]
    shared = [
        max((count_shared(text, other) for other in texts if other != text), default=0)
        for text in texts
    ]
    for number in range(count):
        request = requests[number % len(requests)]
        constrained = request.json_schema is not None or bool(request.choices)
        own = format_ if constrained else None
        body = {**write_body(request, model, own), "cache_salt": salt, "max_tokens": REPLY}
        if own is None:
            body |= {"min_tokens": REPLY, "ignore_eos": True}
        if number >= len(requests):
            *before, last = body["messages"]
            text, start = last["content"], shared[number % len(requests)]
            numbered = f"{text[:start]}({number}) {text[start:]}"
            body["messages"] = [*before, {**last, "content": numbered}]
        bodies.append(body)
    return bodies


def measure_loads(
    url: str, key: str | None, model: str, compiler: str, levels: Sequence[int], context: int
) -> Figures:
    """Tokens a second of each method's prompts, free and constrained, at each level."""
    for method in METHODS:
        requests = record_prompts(method, context)
        for way in ("free", compiler):
            for at_once in levels:
                bodies = write_bodies(requests, model, FORMATS.get(way), max(8, 2 * at_once))
                seconds, sent = asyncio.run(load(url, key, bodies, at_once))
                name, good = f"{method} {way} x{at_once}", [one for one in sent if one.completed]
                read = sum(one.input_tokens for one in good)
                yield f"{name} read_tok_s", round(read / seconds, 1)
                yield f"{name} write_tok_s", round(sum(o.output_tokens for o in good) / seconds, 1)
                cached = sum(one.cached_tokens for one in good)
                yield f"{name} cached", round(cached / max(1, read), 4)
                if len(good) < len(sent):
                    why = next(one.refused for one in sent if one.refused)
                    yield f"{name} refused", f"{len(sent) - len(good)} of {len(sent)}: {why}"
