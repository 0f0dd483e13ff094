"""What is heard of calls that take their time."""

from __future__ import annotations

from typing import Any

import pytest

from mgl.errors import EngineRejected
from mgl.llm.base import Message, Request, Sampling
from mgl.llm.capabilities import ServerEndpoint
from mgl.llm.progress import LONG_PROMPT, PATIENCE_S, READING, WRITING, TokenProgress, listen
from mgl.observer import SilentObserver
from mgl.openai.engine import OpenAIEngine
from mgl.openai.replies import join_events, read_event
from tests.openai.answering import OTHER, PROFILE, VLLM, Route, Stream, chat, serving


class Hears(SilentObserver):
    def __init__(self) -> None:
        self.heard: list[tuple[str, int, int]] = []

    def progress(self, stage: str, done: int, total: int) -> None:
        self.heard.append((stage, done, total))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_calls_in_flight_are_added_up_and_short_ones_passed_over() -> None:
    hears, clock = Hears(), Clock()
    progress = TokenProgress(hears, clock)
    progress.update("a", read=10, prompt=20)
    assert hears.heard == []
    clock.now = PATIENCE_S
    progress.update("b", read=0, prompt=100)
    progress.update("a", read=20, prompt=20, written=3, budget=50)
    progress.update("b", read=100, prompt=100, written=1, budget=60)
    assert hears.heard == [(READING, 10, 120), (READING, 20, 120), (WRITING, 4, 110)]
    progress.end("a")
    progress.end("b")
    progress.update("c", read=0, prompt=10)
    assert len(hears.heard) == 3, "its time counts from its own start"


def test_a_long_prompt_is_told_at_once() -> None:
    hears = Hears()
    TokenProgress(hears, Clock()).update("a", read=0, prompt=LONG_PROMPT)
    assert hears.heard == [(READING, 0, LONG_PROMPT)]


def events(*texts: str) -> Stream:
    made: list[Any] = [{"choices": [{"delta": {"content": text}}]} for text in texts]
    made[-1]["choices"][0]["finish_reason"] = "length"
    return Stream([*made, {"choices": [], "usage": {"prompt_tokens": 31, "completion_tokens": 3}}])


REQUEST = Request((Message("user", "word " * 4000),), sampling=Sampling(max_tokens=9))


@pytest.mark.parametrize(("routes", "is_streamed"), [(VLLM, True), (OTHER, False)])
async def test_a_servers_reply_is_followed_as_it_is_written(
    routes: dict[str, Route], is_streamed: bool
) -> None:
    reply = events("An", "n ", "met") if is_streamed else chat("Ann met", "length")
    hears = Hears()
    with serving(routes, reply) as server:
        engine = await OpenAIEngine.connect(
            ServerEndpoint(server.url), PROFILE, model_id="m", progress=TokenProgress(hears)
        )
        completion = await engine.generate(REQUEST)
        await engine.aclose()
        (body,) = server.bodies()
    assert completion.text == "Ann met"
    assert completion.finish_reason == "length"
    assert body.get("stream", False) is is_streamed
    if is_streamed:
        assert (completion.usage.input_tokens, completion.usage.output_tokens) == (31, 3)
        assert [one[:2] for one in hears.heard][:1] == [(READING, 0)]
        assert [one[1:] for one in hears.heard if one[0] == WRITING][:3] == [(1, 9), (2, 9), (3, 9)]


async def test_a_listener_hears_a_reply_as_it_is_written() -> None:
    heard: list[str] = []
    with serving(VLLM, *[events("An", "n ", "met")] * 2) as server:
        engine = await OpenAIEngine.connect(
            ServerEndpoint(server.url), PROFILE, model_id="m", progress=TokenProgress(Hears())
        )
        with listen(heard.append):
            await engine.generate(REQUEST)
        await engine.generate(REQUEST)
        await engine.aclose()
    assert heard[:3] == ["An", "Ann ", "Ann met"]
    assert set(heard[3:]) <= {"Ann met"}


async def test_a_server_that_does_not_stream_after_all_is_read_as_it_answers() -> None:
    with serving(VLLM, chat("Ann")) as server:
        engine = await OpenAIEngine.connect(
            ServerEndpoint(server.url), PROFILE, model_id="m", progress=TokenProgress(Hears())
        )
        assert (await engine.generate(REQUEST)).text == "Ann"
        await engine.aclose()


def test_an_error_within_a_stream_is_an_error() -> None:
    with pytest.raises(EngineRejected):
        join_events([read_event({"error": {"message": "no such parameter", "code": 400}})])
