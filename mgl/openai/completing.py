"""Chat requests of other programs, answered by a model as they came: whole, or as a stream.

completer = Completer(llm)
reply = await completer.complete(chat, stage="proxy")
async for event in stream_reply(lambda hear: ..., "tiny"): ...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from mgl.errors import MglError
from mgl.llm.base import LLM, Reply
from mgl.llm.calls import call_key
from mgl.llm.progress import Listener, listen
from mgl.openai.errors import write_error
from mgl.openai.listening import follow
from mgl.openai.replies import cut_at_stop, write_end, write_event
from mgl.openai.requests import read_request
from mgl.openai.shapes import ChatRequest, ReplyMessage
from mgl.openai.tools import as_schema, read_calls

REPLY_TOKENS: Final = 2048
"""The budget of a reply where a request names none."""

Said = tuple[Reply[None], Mapping[str, Any]]
"""A reply, and what its message holds besides."""


class Completer:
    """Asks a model what programs ask. ``calls`` counts the requests.

    Two equal requests that sample (temperature above 0) and name no seed are two draws: the n-th
    has the seed n, so a program that is run again gets the same draws in the same order. Greedy
    requests that are equal are one call.
    """

    def __init__(self, llm: LLM, reply_tokens: int = REPLY_TOKENS) -> None:
        self._llm = llm
        self._reply_tokens = reply_tokens
        self._draws: Counter[str] = Counter()
        self.calls = 0

    async def complete(
        self, chat: ChatRequest, *, stage: str, hear: Listener | None = None
    ) -> Reply[None]:
        """The reply to a request, from the log or from the model.

        ``hear`` is given the text so far while it can be sent as it is.
        """
        llm = self._llm
        asked = read_request(chat, max_tokens=self._reply_tokens, context_tokens=llm.context_tokens)
        described = bool(asked.tools) and not llm.native_tools
        if described:
            several = chat.parallel_tool_calls is not False
            asked = as_schema(asked, must_call=chat.must_call, several=several)
        elif asked.tools and chat.must_call is not None:
            named = [tool for tool in asked.tools if chat.must_call in ("", tool.name)]
            asked = replace(asked, tools=tuple(named))
        if asked.sampling.temperature > 0 and chat.seed is None:
            key = call_key(llm.model_id, asked)
            seed = self._draws[key]
            self._draws[key] += 1
            asked = replace(asked, sampling=replace(asked.sampling, seed=seed))
        self.calls += 1
        if hear is None or chat.tools or chat.stops:
            reply = await llm.forward(asked, stage=stage)
        else:
            with listen(hear):
                reply = await llm.forward(asked, stage=stage)
        if described:
            reply = read_calls(reply)
        text = cut_at_stop(reply.text, chat.stops)
        return reply if text == reply.text else replace(reply, text=text, finish_reason="stop")


async def read_reply(
    work: Callable[[Listener], Coroutine[Any, Any, Said]],
) -> AsyncGenerator[str | Said]:
    """Yield the pieces of a reply as they are written, if the engine shows that, then the reply.

    ``work`` gets a listener, to call from any thread with the text so far. Half a character at the
    end of a text waits for its other half.
    """
    sent = ""
    async with follow(work) as (texts, task):
        async for text in texts:
            fresh = text.rstrip("\N{REPLACEMENT CHARACTER}")
            if fresh.startswith(sent) and len(fresh) > len(sent):
                yield fresh[len(sent) :]
                sent = fresh
        reply, besides = await task
        if rest := reply.text.removeprefix(sent):
            yield rest
        yield reply, besides


async def stream_reply(
    work: Callable[[Listener], Coroutine[Any, Any, Said]],
    model: str,
    *,
    with_usage: bool = False,
    failures: list[MglError] | None = None,
) -> AsyncGenerator[dict[str, Any]]:
    """A reply as events (``read_reply``). What fails before the first is raised; an error after it
    is the last event, and is added to ``failures``."""
    async with aclosing(read_reply(work)) as pieces:
        piece = await anext(pieces)
        yield write_event(ReplyMessage(role="assistant", content=""), model)
        try:
            while isinstance(piece, str):
                yield write_event(ReplyMessage(content=piece), model)
                piece = await anext(pieces)
        except MglError as error:
            if failures is not None:
                failures.append(error)
            yield write_error(error)[1]
            return
        for event in write_end(*piece, model, with_usage=with_usage):
            yield event
