"""What one side writes, the other reads as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import EngineRejected
from mgl.llm.base import Message, Reply, Request, Sampling, TokenUsage, Tool, ToolCall
from mgl.openai.errors import Refused, error_from, write_error
from mgl.openai.events import decode_event, encode_event
from mgl.openai.replies import (
    join_events,
    read_completion,
    read_event,
    write_completion,
    write_end,
    write_event,
)
from mgl.openai.requests import read_body, read_request, write_body
from mgl.openai.shapes import ChatRequest, ReplyMessage

TEXT = st.text(max_size=20)
COUNT = st.integers(0, 10_000)
CALLS = st.lists(st.builds(ToolCall, st.text(min_size=1), TEXT, TEXT), max_size=2).map(tuple)
MESSAGES = st.one_of(
    st.builds(Message, st.sampled_from(["system", "user"]), TEXT),
    st.builds(Message, st.just("assistant"), TEXT, CALLS),
    st.builds(Message, st.just("tool"), TEXT, st.just(()), TEXT),
)
SAMPLING = st.builds(
    Sampling,
    st.floats(0, 2),
    st.floats(0, 1, exclude_min=True),
    st.integers(1, 4096),
    st.integers(0, 2**63 - 1),
)
TOOLS = st.builds(Tool, st.text(min_size=1), TEXT, st.just({"type": "object", "properties": {}}))
REQUESTS = st.builds(
    Request,
    st.lists(MESSAGES, min_size=1, max_size=4).map(tuple),
    st.none(),
    st.lists(TOOLS, max_size=2).map(tuple),
    SAMPLING,
)
USAGE = st.builds(TokenUsage, COUNT, COUNT, COUNT)
REASONS = st.sampled_from(["stop", "length"])
REPLIES: st.SearchStrategy[Reply[None]] = st.builds(
    Reply, TEXT, st.none(), CALLS, USAGE, REASONS, call_key=st.none() | st.text(max_size=30)
)
ASKED = Request((Message("user", "Hello"),))


def over_http(value: Any) -> bytes:
    return json.dumps(value).encode()


@given(REQUESTS)
def test_a_request_is_read_as_it_was_written(request: Request) -> None:
    chat = read_body(ChatRequest, over_http(write_body(request, "tiny")))
    assert chat.model == "tiny"
    assert read_request(chat, max_tokens=1, context_tokens=4096) == request


@given(REPLIES)
def test_a_reply_is_read_as_it_was_written(reply: Reply[None]) -> None:
    said = read_completion(json.loads(over_http(write_completion(reply, "tiny"))), ASKED)
    assert (said.text, said.tool_calls, said.usage) == (reply.text, reply.tool_calls, reply.usage)
    reason = "tool_calls" if reply.tool_calls and reply.finish_reason == "stop" else None
    assert said.finish_reason == (reason or reply.finish_reason)


@given(st.lists(TEXT, max_size=4), USAGE, REASONS)
def test_a_stream_is_read_as_the_reply_that_was_written(
    pieces: list[str], usage: TokenUsage, reason: Any
) -> None:
    reply: Reply[None] = Reply("".join(pieces), None, (), usage, reason)
    events = [write_event(ReplyMessage(content=piece), "tiny") for piece in pieces]
    events += write_end(reply, {}, "tiny", with_usage=True)
    lines = b"".join(map(encode_event, [*events, None])).decode().split("\n\n")
    read = [read_event(event) for line in lines if (event := decode_event(line)) is not None]
    said = read_completion(join_events(read), ASKED)
    assert (said.text, said.usage, said.finish_reason) == (reply.text, usage, reason)


def test_what_a_memory_says_besides_is_in_the_message_and_read_by_no_client() -> None:
    reply: Reply[None] = Reply("Ann", None, (), TokenUsage(1, 1), "stop")
    written = write_completion(reply, "tiny", {"citations": [], "turn": "t1"})
    assert written["choices"][0]["message"] == {
        "role": "assistant",
        "content": "Ann",
        "refusal": None,
        "citations": [],
        "turn": "t1",
    }
    assert read_completion(written, ASKED).text == "Ann"


def test_an_error_is_read_as_it_was_written() -> None:
    status, body = write_error(Refused("no such field", hint="leave it out", param="n"))
    assert body["error"]["param"] == "n"
    read = error_from(status, json.dumps(body), "http://127.0.0.1:1/v1")
    assert isinstance(read, EngineRejected)
    assert "no such field (leave it out)" in read.message


@pytest.mark.parametrize("line", ["data: {", 'data: {"choices": 3}', "data: []"])
def test_a_stream_that_makes_no_sense_is_the_servers_fault(line: str) -> None:
    with pytest.raises(EngineRejected) as caught:
        read_event(decode_event(line))
    assert "OpenAI-compatible" in caught.value.hint


@pytest.mark.parametrize("line", ["", ": a comment", "event: ping", "data: [DONE]", "data:[DONE]"])
def test_a_line_without_an_event(line: str) -> None:
    assert decode_event(line) is None
