from __future__ import annotations

import pytest

from mgl.llm.base import Completion, FinishReason, Request, TokenUsage, Tool, ToolCall
from mgl.llm.replies import clean, judge, strip_thinking, validate
from tests.llm.shapes import Answer

GOOD = '{"answer":"a </think> b","sure":true}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n {GOOD} \n",
        f"<think>hm {{}} ```</think>{GOOD}",
        f"<think>one</think>\n<think>two</think>\n\n{GOOD}",
        f"opened by the template</think>\n{GOOD}",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}```",
        f"<think>fence it</think>\n````json5\n{GOOD}\n````\n",
    ],
)
def test_thinking_and_fences_go_and_the_reply_stays(text: str) -> None:
    assert clean(text) == GOOD
    assert validate(clean(text), Answer).parsed.sure


def test_thinking_without_an_end_is_all_thinking() -> None:
    assert strip_thinking("<think>still at it {") == ""


def test_prose_is_not_a_fence() -> None:
    text = "Look:\n```json\n{}\n```"
    assert clean(text) == text


@pytest.mark.parametrize(
    ("text", "unconstrained", "reason"),
    [
        ("Sure! Here it is: {}", True, "not JSON"),
        (f"{GOOD} I hope this helps", True, "after the JSON"),
        (f"{GOOD}\n{GOOD}", True, "after the JSON"),
        ('{"answer":"x","sure":"', True, "not JSON"),
        ('{"answer":"x","sure":"perhaps"}', False, "sure"),
        ('{"answer":"x"}', False, "sure"),
        ('{"answer":"x","sure":true,"more":1}', False, "more"),
        ("[]", False, "reply"),
    ],
)
def test_what_a_parser_says_of_a_bad_reply(text: str, unconstrained: bool, reason: str) -> None:
    verdict = validate(text, Answer)
    assert verdict.outcome == "invalid"
    assert verdict.unconstrained is unconstrained
    assert reason in verdict.error


def completion(text: str, reason: FinishReason = "stop", calls: int = 0) -> Completion:
    called = tuple(ToolCall(str(n), "look", "{}") for n in range(calls))
    return Completion(text, reason, TokenUsage(1, 7), called)


@pytest.mark.parametrize(
    ("made", "outcome"),
    [
        (completion(GOOD), "ok"),
        (completion(GOOD, "length"), "truncated"),
        (completion("  \n"), "empty"),
        (completion("<think>nothing more</think>"), "empty"),
        (completion("{}"), "invalid"),
        (completion("", "tool_calls", calls=1), "ok"),
    ],
)
def test_each_way_to_fail_has_a_name_of_its_own(made: Completion, outcome: str) -> None:
    tools = (Tool("look", "Look it up.", {}),) if made.tool_calls else ()
    assert judge(made, Request((), tools=tools), Answer).outcome == outcome


def test_a_tool_call_that_nobody_offered_is_not_a_reply() -> None:
    assert judge(completion("", "tool_calls", calls=1), Request(()), Answer).outcome == "empty"


def test_free_text_keeps_its_fences() -> None:
    text = "```python\nprint()\n```"
    assert judge(completion(f"<think>x</think>{text}"), Request(()), None).text == text


ASKED = Request((), choices=("Yes", "No"))


def test_a_choice_is_one_of_the_choices() -> None:
    assert judge(completion(" Yes\n"), ASKED, None).outcome == "ok"
    assert judge(completion("Yes, I think so"), ASKED, None).outcome == "invalid"
