"""An engine of one class: any Python function from a prompt to a text runs as a model.

with Lab.open(OwnModels(FunctionEngine(my_pipeline, "my-model@1"))) as lab:
    lab.ask("story.txt", "Who is the narrator?")

The function is shown the JSON schema of a reply in its prompt. mgl validates what comes back and
asks again where it does not fit. If the function names none of several choices, the first is taken.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from math import log

from mgl.llm.base import Completion, Request, TokenUsage


class FunctionEngine:
    """Runs ``function``; ``model_id`` names its weights, since replies are stored under it."""

    native_tools = False
    concurrency = 1

    def __init__(
        self, function: Callable[[str], str], model_id: str, context_tokens: int = 8192
    ) -> None:
        self.model_id = model_id
        self.context_tokens = context_tokens
        self._function = function

    async def generate(self, request: Request) -> Completion:
        prompt = _write_prompt(request)
        text = await asyncio.to_thread(self._function, prompt)
        logprobs: tuple[float, ...] = ()
        if request.choices:
            named = [choice for choice in request.choices if choice in text]
            text, logprobs = (named or request.choices)[0], (log(0.9 if named else 0.5),)
        usage = TokenUsage(len(prompt) // 4, len(text) // 4)
        return Completion(text, "stop", usage, logprobs=logprobs)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) // 4 for text in texts]

    async def count_prompt_tokens(self, request: Request) -> int:
        return len(_write_prompt(request)) // 4

    async def aclose(self) -> None: ...


def _write_prompt(request: Request) -> str:
    parts = [message.content for message in request.messages]
    if request.json_schema is not None:
        parts.append(f"Reply with JSON of this schema alone: {json.dumps(request.json_schema)}")
    if request.choices:
        parts.append(f"Reply with one of: {', '.join(request.choices)}")
    return "\n\n".join(parts)
