"""What clients send by themselves, as they send it: it is answered, and not remembered."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from mgl.api.tasks import is_task
from mgl.llm.base import Message
from tests.api.conftest import MEMORY, Serve, connect
from tests.effort import within_cpu_seconds

HISTORY = "USER: My horse is called Star\nASSISTANT: A fine name."


def webui(task: str, output: str) -> list[dict[str, str]]:
    """A request of Open WebUI: one message, its default template around the chat."""
    text = (
        f"### Task:\n{task}\n### Guidelines:\n- Be brief.\n### Output:\nJSON format: {output}\n"
        f"### Chat History:\n<chat_history>\n{HISTORY}\n</chat_history>"
    )
    return [{"role": "user", "content": text}]


TASKS: dict[str, dict[str, Any]] = {
    "webui-title": {
        "messages": webui(
            "Generate a concise, 3-5 word title with an emoji summarizing the chat history.",
            '{ "title": "your concise title here" }',
        ),
        "max_completion_tokens": 1000,
    },
    "webui-tags": {
        "messages": webui(
            "Generate 1-3 broad tags categorizing the main themes of the chat history, along with "
            "1-3 more specific subtopic tags.",
            '{ "tags": ["tag1", "tag2", "tag3"] }',
        )
    },
    "webui-follow-ups": {
        "messages": webui(
            "Suggest 3-5 relevant follow-up questions or prompts that the user might naturally ask "
            "next in this conversation as a **user**, based on the chat history.",
            '{ "follow_ups": ["Question 1?", "Question 2?"] }',
        )
    },
    "webui-queries": {
        "messages": webui(
            "Analyze the chat history to determine the necessity of generating search queries, in "
            "the given language.",
            '{ "queries": ["query1"] }',
        )
    },
    "webui-autocomplete": {
        "messages": [
            {
                "role": "user",
                "content": "### Task:\nYou are an autocompletion system. Continue the text in "
                "`<text>`.\n### **Output Rules**:\n- Respond only in JSON format.\n"
                "<type>General</type>\n<text>My horse is</text>\n#### Output:\n",
            }
        ]
    },
    "librechat-title": {
        "messages": [
            {
                "role": "user",
                "content": "Provide a concise, 5-word-or-less title for the conversation, using "
                "title case conventions. Only return the title itself.\n\nConversation:\n"
                "User: My horse is called Star\nAI: A fine name.",
            }
        ],
        "temperature": 0.2,
        "presence_penalty": 0,
        "frequency_penalty": 0,
    },
    "librechat-structured": {
        "messages": [
            {
                "role": "user",
                "content": "Analyze this conversation and provide:\n1. The detected language of "
                "the conversation\n2. A concise title in the detected language (5 words or less, "
                "no punctuation or quotation)\n\nUser: My horse is called Star",
            }
        ]
    },
    "continue-title": {
        "messages": [
            {
                "role": "user",
                "content": "Given the following... please reply with a title for the chat that is "
                "3-4 words in length, all words used should be directly related to the content of "
                "the chat\n\nA fine name.",
            }
        ],
        "max_tokens": 16,
    },
    "continue-autocomplete": {
        "messages": [
            {"role": "user", "content": "<|fim_prefix|>def add(<|fim_suffix|>return<|fim_middle|>"}
        ],
        "max_tokens": 256,
    },
    "named": {
        "messages": [{"role": "user", "content": "Name this chat."}],
        "metadata": {"task": "title_generation"},
    },
}


async def send(http: httpx.AsyncClient, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    sent = {"model": MEMORY, "stream": False, **body}
    answer = await http.post("/v1/chat/completions", json=sent, headers=headers)
    assert answer.status_code == 200, answer.text
    message: dict[str, Any] = answer.json()["choices"][0]["message"]
    return message


async def find_texts(http: httpx.AsyncClient, name: str) -> list[str]:
    export = await http.get(f"/api/conversations/{name}/export")
    return [turn["text"] for turn in export.json()["turns"]]


async def test_tasks_are_answered_and_not_remembered(serve: Serve) -> None:
    said = {"role": "user", "content": "My horse is called Star"}
    async with serve() as served, connect(served) as http:
        reply = await send(http, {"messages": [said], "user": "ann"})
        for name, body in TASKS.items():
            answer = await send(http, {**body, "user": "ann"})
            assert answer["content"], name
        await send(http, {"messages": [said], "user": "ann"}, **{"X-MGL-Task": "tags"})
        assert await find_texts(http, "ann") == [said["content"], reply["content"]]


@pytest.mark.parametrize(
    "text",
    [
        "### Task: Mow the lawn.",
        "Please generate a title for the poem that I wrote.",
        "### Task:\nRespond to the user query using the provided context.\n### Output:\nText\n"
        "<user_query>What is new?</user_query>",
    ],
)
async def test_what_somebody_says_is_no_task(serve: Serve, text: str) -> None:
    async with serve() as served, connect(served) as http:
        await send(http, {"messages": [{"role": "user", "content": text}], "user": "ann"})
        assert (await find_texts(http, "ann"))[0] == text


@pytest.mark.parametrize(
    ("headers", "metadata"),
    [
        ({"X-OpenWebUI-Chat-Id": "chat-1"}, {}),
        ({"X-LibreChat-Conversation-Id": "chat-1"}, {}),
        ({}, {"chat_id": "chat-1"}),
        ({"X-MGL-Conversation": "chat-1", "X-Chat-Id": "chat-2"}, {"chat_id": "chat-3"}),
    ],
)
async def test_what_names_a_chat_is_preferred(
    serve: Serve, headers: dict[str, str], metadata: dict[str, str]
) -> None:
    body = {"messages": [{"role": "user", "content": "Hi."}], "user": "one-for-all"}
    async with serve() as served, connect(served) as http:
        reply = await send(http, {**body, "metadata": metadata}, **headers)
        assert reply["conversation"] == "chat-1"
        temporary = await send(http, body, **{"X-OpenWebUI-Chat-Id": "local:abc"})
        assert "conversation" not in temporary


def test_a_message_that_nearly_has_a_form_takes_no_longer_than_others() -> None:
    text = "Analyze this conversation and provide:" + "detected language " * 20_000
    with within_cpu_seconds(2):
        assert not is_task([Message("user", text)], None, None)
        assert is_task([Message("user", f"{text} and a title")], None, None)
