"""Control tokens in what people write: cut everywhere, and nothing else is changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.llm.base import Message, Request, Tool, ToolCall
from mgl.llm.control import MARKS, ControlTokens, unmark

OVERLAPPING = ("<|end|>", "<<|end|>>", "<s>", "<s><", "|end|>", "<|endoftext|>")
TEXTS = st.lists(st.sampled_from([*OVERLAPPING, *"<|>s", "end", " ", "é", "\n"]) | st.text()).map(
    "".join
)
FAMILIES = """
<|im_start|> <|im_end|> <|endoftext|> <|eot_id|> <|start_header_id|> <|begin_of_text|>
<|python_tag|> <|reserved_special_token_17|> <|channel|> <|END_OF_TURN_TOKEN|>
<|turn> <turn|> <|tool_call>
<｜User｜> <｜begin▁of▁sentence｜> <｜tool▁calls▁begin｜> <s> </s> <unk> <pad> <bos> <eos> <mask>
<start_of_turn> <end_of_turn> <fim_prefix> <think> </think> <tool_call> </tool_call>
<tool_response> <__media__> <seed:think> </seed:think>
<<SYS>> <</SYS>> [INST] [/INST] [SYSTEM_PROMPT]
[AVAILABLE_TOOLS] [/TOOL_RESULTS] [TOOL_CALLS] [THINK] [gMASK] [SEP] [|user|] [|endofturn|]
""".split()
ORDINARY = [
    "if a < b | c > d: x <- y",
    "<br> <b>bold</b> <first_name>Ann</first_name> <p class='a|b'>",
    "List<String> [1] [Editor's note] [INSTALL] [a|b] x |> f <| y",
    "{{ braces }} {% for a in b %} |user| im_end <|> < |im_end|>",
]


@given(TEXTS)
def test_parts_are_the_text_and_hold_no_control_token(text: str) -> None:
    parts = ControlTokens(OVERLAPPING).cut(text)
    assert "".join(parts) == text
    assert not [one for one in OVERLAPPING for part in parts if one in part]
    if not any(one in text for one in OVERLAPPING):
        assert parts == [text]


@pytest.mark.parametrize("token", FAMILIES)
def test_the_control_tokens_of_common_families_are_known(token: str) -> None:
    assert len(ControlTokens(families=True).cut(f"a {token} b")) == 2
    assert ControlTokens().cut(token) == [token]


@pytest.mark.parametrize("text", ORDINARY)
def test_markup_and_code_are_ordinary(text: str) -> None:
    request = Request((Message("user", text),))
    assert ControlTokens(families=True).mark(request) == (request, "")


def ask(text: str) -> Request:
    """A request that says a text in every place where it can."""
    call = ToolCall("c1", text, text)
    messages = (
        Message("system", text),
        Message("user", text),
        Message("assistant", text, (call,)),
        Message("tool", text, tool_call_id="c1"),
    )
    parameters = {"type": "object", "properties": {text: {"enum": [text, 1, None]}}}
    return Request(messages, {"const": text}, (Tool(text, text, parameters),), choices=(text,))


@given(TEXTS | st.just(f"<s>{MARKS[0]}{MARKS[1]}"))
def test_each_cut_is_marked_and_the_marks_can_be_taken_out(text: str) -> None:
    control = ControlTokens(OVERLAPPING)
    request = ask(text)
    marked, mark = control.mark(request)
    if not any(one in text for one in OVERLAPPING):
        assert (marked, mark) == (request, "")
        return
    assert mark not in text
    spelled = mark.join(control.cut(text))
    (tool,) = marked.tools
    (call,) = marked.messages[2].tool_calls
    said = [*(each.content for each in marked.messages), tool.name, tool.description]
    assert set(said) == {spelled}
    assert (call.name, call.arguments, call.id) == (spelled, spelled, "c1")
    assert tool.parameters["properties"] == {spelled: {"enum": [spelled, 1, None]}}
    assert unmark(spelled, mark) == text
    # What a reply is held to is no part of the prompt.
    assert (marked.json_schema, marked.choices) == (request.json_schema, request.choices)


def test_a_mark_that_json_escapes_is_taken_out() -> None:
    assert unmark('{"quote": "<\\u2060s> <\\ufeffs>"}', "\u2060") == '{"quote": "<s> <\\ufeffs>"}'
    assert unmark('"<\\uFEFFs>"', "\ufeff") == '"<s>"'
