"""A model for every kind of memory, whose replies repeat what it is shown wherever they may."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from typing import Any

from mgl.llm import fakes
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.calls import call_key
from mgl.llm.fakes import SchemaEngine, sample
from mgl.llm.schemas import compile_schema


class EchoEngine(SchemaEngine):
    """``SchemaEngine`` that writes with the words of its prompt, and counts its calls."""

    def __init__(self, **properties: Any) -> None:
        super().__init__(**{"model_id": "echo@1+fake", "concurrency": 2, **properties})
        self.calls = 0

    async def generate(self, request: Request) -> Completion:
        self.calls += 1
        words = re.findall(r"\w+", request.messages[-1].content)[-400:] or ["none"]
        drawing = _Drawing(call_key(self.model_id, request), words)
        logprobs: tuple[float, ...] = ()
        if request.choices:
            text, logprobs = drawing.choice(request.choices), (math.log(0.9),)
        elif request.json_schema is None:
            text = " ".join(drawing.choice(words) for _ in range(12))
        else:
            text = sample(compile_schema(request.json_schema), drawing)
        return Completion(text, "stop", TokenUsage(10, 5), logprobs=logprobs)


class _Drawing(random.Random):
    def __init__(self, seed: str, words: Sequence[str]) -> None:
        super().__init__(seed)
        self._words = words

    def choice(self, options: Any) -> Any:
        return super().choice(self._words if options is fakes._WORDS else options)
