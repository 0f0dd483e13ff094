"""Tool calls for a model that has none of its own: a schema for the reply, and a line that says so.

The tools stand in the prompt, and the reply is one JSON object: an answer, or the calls to make.
What the program then sends back (the calls, and what the tools gave) is shown as plain messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from mgl.llm.base import Message, Reply, Request, Tool, ToolCall
from mgl.llm.replies import clean
from mgl.prompt import Prompt

MOST_CALLS: Final = 8

TOOLS = Prompt(
    "openai.tools",
    source="ours",
    text="""You can call these tools, each described by the JSON schema of its parameters:

{tools}

{rule}""",
    variables=("tools", "rule"),
)

MAY_CALL = Prompt(
    "openai.may_call",
    source="ours",
    text="""Reply with a JSON object: {"calls": [{"tool": "...", "arguments": {...}}]} to call \
tools, or {"answer": "..."} to answer.""",
)

MUST_CALL = Prompt(
    "openai.must_call",
    source="ours",
    text="""Reply with a JSON object that calls tools: \
{"calls": [{"tool": "...", "arguments": {...}}]}.""",
)

RESULT = Prompt(
    "openai.result",
    source="ours",
    text="The tool {tool} gave:\n{result}",
    variables=("tool", "result"),
)


def as_schema(request: Request, *, must_call: str | None, several: bool) -> Request:
    """The same request without tools: they are described, and the reply is held to a schema.

    ``must_call`` names the tool that has to be called, "" for any, None where the model may answer;
    ``several`` calls may be made at once.
    """
    tools = [tool for tool in request.tools if must_call in (None, "", tool.name)]
    rule = MAY_CALL if must_call is None else MUST_CALL
    listed = "\n".join(json.dumps(_describe(tool), ensure_ascii=False) for tool in tools)
    described = TOOLS.render(tools=listed, rule=rule.text)
    names = {call.id: call.name for each in request.messages for call in each.tool_calls}
    messages = [_plain(message, names) for message in request.messages]
    if messages and messages[0].role == "system":
        messages[0] = replace(messages[0], content=f"{messages[0].content}\n\n{described}")
    else:
        messages.insert(0, Message("system", described))
    forms = [_object(tool={"const": tool.name}, arguments=dict(tool.parameters)) for tool in tools]
    calls = {
        "type": "array",
        "items": {"anyOf": forms},
        "minItems": 1,
        "maxItems": MOST_CALLS if several else 1,
    }
    schema: Mapping[str, Any] = _object(calls=calls)
    if must_call is None:
        answer = _object(answer=request.json_schema or {"type": "string"})
        schema = {"anyOf": [answer, schema]}
    return replace(request, messages=tuple(messages), json_schema=schema, tools=())


def read_calls(reply: Reply[None]) -> Reply[None]:
    """The reply as an answer or as calls; as it is where it is neither."""
    try:
        value = json.loads(clean(reply.text))
        if "answer" in value:
            answer = value["answer"]
            text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
            return replace(reply, text=text)
        calls = [(call["tool"], call["arguments"]) for call in value["calls"]]
    except (ValueError, KeyError, TypeError):
        return reply
    key = (reply.call_key or "")[:16]
    return replace(
        reply,
        text="",
        tool_calls=tuple(
            ToolCall(f"call_{key}_{place}", name, json.dumps(arguments, ensure_ascii=False))
            for place, (name, arguments) in enumerate(calls)
        ),
        finish_reason="tool_calls",
    )


def _describe(tool: Tool) -> dict[str, Any]:
    return {**asdict(tool), "parameters": dict(tool.parameters)}


def _object(**fields: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _plain(message: Message, names: Mapping[str, str]) -> Message:
    """A message in words: calls as the JSON that makes them, and what a tool gave as the user's."""
    if message.tool_calls:
        return replace(message, content=_write_calls(message.tool_calls), tool_calls=())
    if message.role == "tool":
        name = names.get(message.tool_call_id or "", "")
        return Message("user", RESULT.render(tool=name, result=message.content))
    return message


def _write_calls(calls: Sequence[ToolCall]) -> str:
    made = [{"tool": call.name, "arguments": _arguments(call)} for call in calls]
    return json.dumps({"calls": made}, ensure_ascii=False)


def _arguments(call: ToolCall) -> Any:
    try:
        return json.loads(call.arguments)
    except ValueError:
        return call.arguments
