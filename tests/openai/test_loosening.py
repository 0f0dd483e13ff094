"""The engine and what a server honours: the strongest way first, a looser one where it must."""

from __future__ import annotations

import asyncio
import math
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

import pytest
from pydantic import BaseModel, create_model

from mgl.llm.calls import MemoryCallLog
from mgl.llm.capabilities import Capabilities
from mgl.llm.client import Client
from tests.llm.shapes import Answer
from tests.openai import answering
from tests.openai.answering import (
    ASK,
    GOOD,
    MODEL,
    OTHER,
    QUICK,
    VLLM,
    Answered,
    Route,
    Server,
    chat,
    connect,
)
from tests.serving.makes import STRUCTURED, constraints

CHOICE, LARK, EBNF, JSON = STRUCTURED
BAD_GRAMMAR = Answered(400, {"error": {"message": "Grammar error: 1(9): expected token"}})
TIMED_OUT = Answered(
    500, {"error": {"message": "Regex compilation timed out after 5s. The pattern may be complex"}}
)


def honouring(*ways: str, ignored: tuple[str, ...] = ()) -> Capabilities:
    return Capabilities("vllm 0.32.0", ways, ignored, tools=True, logprobs=True, cached_tokens=True)


def client_of(
    honoured: Capabilities, *replies: Route, routes: dict[str, Route] = VLLM
) -> AbstractAsyncContextManager[tuple[Client, Server, MemoryCallLog]]:
    return answering.client_of(routes, *replies, capabilities=honoured)


def sent(server: Server) -> list[list[str]]:
    """The names of the constraints of each request."""
    return [list(constraints(body)) for body in server.bodies()]


def ways(log: MemoryCallLog) -> list[tuple[str | None, int]]:
    made = [call.completion for call in log.records if call.completion is not None]
    return [(completion.way, completion.loosened) for completion in made]


def of_ids(*ids: str) -> type[BaseModel]:
    return create_model("Chosen", id=(Literal[ids], ...))  # type: ignore[valid-type]


@pytest.mark.parametrize("way", [LARK, EBNF, JSON, "response_format"])
async def test_the_strongest_way_that_is_honoured_is_sent_alone(way: str) -> None:
    honoured = honouring("response_format", way)
    async with client_of(honoured, chat(GOOD)) as (llm, server, log):
        assert (await llm.complete(ASK, Answer)).parsed is not None
        assert sent(server) == [[way]]
        assert ways(log) == [(way, 0)]


async def test_a_grammar_that_is_refused_gives_way_to_what_is_looser() -> None:
    honoured = honouring(LARK, EBNF, JSON)
    async with client_of(honoured, BAD_GRAMMAR, BAD_GRAMMAR, chat(GOOD)) as (llm, server, log):
        assert (await llm.complete(ASK, Answer, stage="build")).parsed is not None
        assert sent(server) == [[LARK], [EBNF], [JSON]]
        assert ways(log) == [(JSON, 2)]
        assert llm.usage()["build"].loosened == 2
        assert llm.usage()["build"].calls == 1


async def test_a_shape_that_failed_is_tried_no_more() -> None:
    def answer(body: dict[str, Any]) -> Any:
        return chat('{"id": "x"}') if "response_format" in body else TIMED_OUT

    honoured = honouring(JSON, "response_format")
    routes = {**VLLM, "/v1/chat/completions": answer}
    async with client_of(honoured, routes=routes) as (llm, server, log):
        for number in range(5):
            await llm.complete(ASK, of_ids("x", str(number)))
        assert sent(server) == [[JSON], *[["response_format"]] * 5]
        assert ways(log) == [("response_format", 1)] * 5


async def test_an_ignored_response_format_is_sent_and_called_no_constraint() -> None:
    honoured = honouring(ignored=("response_format",))
    async with client_of(honoured, chat(GOOD), routes=OTHER) as (llm, server, log):
        await llm.complete(ASK, Answer)
        assert sent(server) == [["response_format"]]
        assert ways(log) == [(None, 0)]


async def test_a_constraint_dropped_in_silence_is_given_up_at_the_repair() -> None:
    prose = chat("Certainly! It is Ann.")
    async with client_of(honouring(LARK, JSON), prose, chat(GOOD)) as (llm, server, log):
        assert (await llm.complete(ASK, Answer)).parsed is not None
        assert sent(server) == [[LARK], [JSON]]
        assert [call.outcome for call in log.records] == ["invalid", "ok"]
        assert ways(log) == [(LARK, 0), (JSON, 1)]


async def test_a_schema_that_grammars_cannot_say_goes_as_json() -> None:
    class Pair(BaseModel):
        found: tuple[int, str]

    reply = chat('{"found": [1, "a"]}')
    async with client_of(honouring(LARK, EBNF, JSON), reply) as (llm, server, log):
        await llm.complete(ASK, Pair)
        assert sent(server) == [[JSON]]
        assert ways(log) == [(JSON, 2)]


async def test_other_failures_of_the_server_are_no_reason_to_loosen() -> None:
    busy = Answered(500, {"error": {"message": "EngineCore encountered an issue"}})
    async with client_of(honouring(LARK, JSON), busy, chat(GOOD)) as (llm, server, log):
        await llm.complete(ASK, Answer)
        assert sent(server) == [[LARK], [LARK]]
        assert [call.outcome for call in log.records] == ["failed", "ok"]


def chosen(*tokens: tuple[str, dict[str, float]]) -> dict[str, Any]:
    """A reply whose tokens had these alternatives, by their probabilities."""
    content = [
        {
            "token": token,
            "logprob": math.log(top[token]),
            "top_logprobs": [{"token": t, "logprob": math.log(p)} for t, p in top.items()],
        }
        for token, top in tokens
    ]
    text = "".join(token for token, _ in tokens)
    return chat(text, choice={"logprobs": {"content": content}})


SURE = {'"}': 0.99}
WRAPPED = [
    chosen(('{"', {'{"': 1.0}), ("choice", {"choice": 1.0}), ('": "', {'": "': 1.0}),
           ("No", {"No": 0.6, "Yes": 0.2}), ('"}', SURE)),
    chosen(('{"choice":', {'{"choice":': 1.0}), (' "No', {' "No': 0.6, ' "Yes': 0.2, " [": 0.1}),
           ('"}', SURE)),
]  # fmt: skip


@pytest.mark.parametrize("reply", WRAPPED, ids=["own token", "within a token"])
async def test_a_choice_comes_out_of_its_object_with_its_probability(reply: Any) -> None:
    async with client_of(honouring("response_format"), reply, routes=OTHER) as (llm, server, log):
        assert await llm.probability_of_yes(ASK) == pytest.approx(0.25)
        assert sent(server) == [["response_format"]]
        assert ways(log) == [("response_format", 0)]
        made = log.records[0].completion
        assert made is not None
        assert made.text == "No"


# Cancelling a call frees what it held in the server.


async def test_a_cancelled_call_closes_its_connection() -> None:
    arrived, left = asyncio.Event(), asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        if b"chat/completions" not in request:
            body = f'{{"data": [{{"id": "{MODEL}"}}]}}'.encode()
            head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
        else:
            arrived.set()
            while await reader.read(4096):
                pass
            left.set()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        engine = await connect(f"http://127.0.0.1:{port}/v1")
        llm = Client(engine, MemoryCallLog(), QUICK)
        call = asyncio.create_task(llm.complete(ASK))
        await arrived.wait()
        call.cancel()
        await left.wait()
        with pytest.raises(asyncio.CancelledError):
            await call
        await llm.aclose()
