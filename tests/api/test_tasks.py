"""What clients send by themselves, as they send it: it is answered, and not remembered."""

from __future__ import annotations

from typing import Any

import pytest

from mgl.api.tasks import is_task
from mgl.llm.base import Message
from tests.api.conftest import HORSE, Client
from tests.effort import within_cpu_seconds

HISTORY = "USER: My horse is called Star\nASSISTANT: A fine name."


def alone(text: str, **more: Any) -> dict[str, Any]:
    """A request with one message."""
    return {"messages": [{"role": "user", "content": text}], **more}


def webui(task: str, output: str, **more: Any) -> dict[str, Any]:
    """A request of Open WebUI: its default template around the chat."""
    text = (
        f"### Task:\n{task}\n### Guidelines:\n- Be brief.\n### Output:\nJSON format: {output}\n"
        f"### Chat History:\n<chat_history>\n{HISTORY}\n</chat_history>"
    )
    return alone(text, **more)


TASKS: dict[str, dict[str, Any]] = {
    "webui-title": webui(
        "Generate a concise, 3-5 word title with an emoji summarizing the chat history.",
        '{ "title": "your concise title here" }',
        max_completion_tokens=1000,
    ),
    "webui-tags": webui(
        "Generate 1-3 broad tags categorizing the main themes of the chat history, along with "
        "1-3 more specific subtopic tags.",
        '{ "tags": ["tag1", "tag2", "tag3"] }',
    ),
    "webui-follow-ups": webui(
        "Suggest 3-5 relevant follow-up questions or prompts that the user might naturally ask "
        "next in this conversation as a **user**, based on the chat history.",
        '{ "follow_ups": ["Question 1?", "Question 2?"] }',
    ),
    "webui-queries": webui(
        "Analyze the chat history to determine the necessity of generating search queries, in "
        "the given language.",
        '{ "queries": ["query1"] }',
    ),
    "webui-autocomplete": alone(
        "### Task:\nYou are an autocompletion system. Continue the text in `<text>`.\n"
        "### **Output Rules**:\n- Respond only in JSON format.\n<type>General</type>\n"
        "<text>My horse is</text>\n#### Output:\n"
    ),
    "librechat-title": alone(
        "Provide a concise, 5-word-or-less title for the conversation, using title case "
        "conventions. Only return the title itself.\n\nConversation:\n"
        "User: My horse is called Star\nAI: A fine name.",
        temperature=0.2,
        presence_penalty=0,
        frequency_penalty=0,
    ),
    "librechat-structured": alone(
        "Analyze this conversation and provide:\n1. The detected language of the conversation\n"
        "2. A concise title in the detected language (5 words or less, no punctuation or "
        "quotation)\n\nUser: My horse is called Star"
    ),
    "continue-title": alone(
        "Given the following... please reply with a title for the chat that is 3-4 words in "
        "length, all words used should be directly related to the content of the chat\n\n"
        "A fine name.",
        max_tokens=16,
    ),
    "continue-autocomplete": alone(
        "<|fim_prefix|>def add(<|fim_suffix|>return<|fim_middle|>", max_tokens=256
    ),
    "named": alone("Name this chat.", metadata={"task": "title_generation"}),
}


async def test_tasks_are_answered_and_not_remembered(http: Client) -> None:
    reply = await http.chat(HORSE)
    for name, body in TASKS.items():
        answer = await http.chat(**body)
        assert answer["content"], name
    await http.chat(HORSE, headers={"X-MGL-Task": "tags"})
    assert await http.texts() == [HORSE, reply["content"]]


@pytest.mark.parametrize(
    "text",
    [
        "### Task: Mow the lawn.",
        "Please generate a title for the poem that I wrote.",
        "### Task:\nRespond to the user query using the provided context.\n### Output:\nText\n"
        "<user_query>What is new?</user_query>",
    ],
)
async def test_what_somebody_says_is_no_task(http: Client, text: str) -> None:
    await http.chat(text)
    assert (await http.texts())[0] == text


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
    http: Client, headers: dict[str, str], metadata: dict[str, str]
) -> None:
    reply = await http.chat("Hi.", user="one-for-all", metadata=metadata, headers=headers)
    assert reply["conversation"] == "chat-1"
    temporary = await http.chat("Hi.", headers={"X-OpenWebUI-Chat-Id": "local:abc"})
    assert "conversation" not in temporary


def test_a_message_that_nearly_has_a_form_takes_no_longer_than_others() -> None:
    text = "Analyze this conversation and provide:" + "detected language " * 20_000
    with within_cpu_seconds(2):
        assert not is_task([Message("user", text)], None, None)
        assert is_task([Message("user", f"{text} and a title")], None, None)
