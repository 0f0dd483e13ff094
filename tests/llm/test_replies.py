from __future__ import annotations

import pytest

from mgl.llm.base import Completion, FinishReason, TokenUsage, ToolCall
from mgl.llm.replies import Malformed, clean, judge, parse, without_thinking
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
    assert parse(clean(text), Answer).sure


def test_thinking_without_an_end_is_all_thinking() -> None:
    assert without_thinking("<think>still at it {") == ""


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
    with pytest.raises(Malformed, match=reason) as caught:
        parse(text, Answer)
    assert caught.value.unconstrained is unconstrained


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
    assert judge(made, Answer).outcome == outcome


def test_free_text_keeps_its_fences() -> None:
    text = "```python\nprint()\n```"
    assert judge(completion(f"<think>x</think>{text}"), None).text == text


def test_a_choice_is_one_of_the_choices() -> None:
    assert judge(completion(" Yes\n"), None, ("Yes", "No")).outcome == "ok"
    assert judge(completion("Yes, I think so"), None, ("Yes", "No")).outcome == "invalid"
