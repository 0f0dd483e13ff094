"""What of a client's history is new, by hand and for clients that send it in every usual way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.api.history import News, Spoken, find_news, list_spoken
from mgl.llm.base import Message, ToolCall


def talk(*texts: str | None) -> list[Spoken]:
    """User and assistant by turns; None is a turn that was deleted."""
    roles = ("user", "assistant")
    return [Spoken(roles[place % 2], text) for place, text in enumerate(texts)]  # type: ignore[arg-type]


USER = [Spoken("user", "ok")]


@pytest.mark.parametrize(
    ("stored", "sent", "fresh"),
    [
        ([], talk("hi"), ["hi"]),
        ([], talk("hi", "hello", "who?"), ["hi", "hello", "who?"]),
        (talk("hi", "hello"), talk("hi", "hello", "who?"), ["who?"]),
        (talk("ok", "fine"), talk("ok", "fine", "ok"), ["ok"]),
        (talk("ok", "fine"), USER, ["ok"]),  # a client that sends the last message alone
        (talk("a", "b", "c", "d"), talk("c", "d", "e"), ["e"]),  # the last messages
        (talk("a", "b", "c", "d"), talk("a", "b", "new"), ["new"]),  # an edited message
        (talk("a", "b"), talk("a", "other", "c"), ["other", "c"]),  # another reply
        (talk("a", "b", "x", "y"), talk("a", "b", "c", "d", "e"), ["c", "d", "e"]),
        (talk("a", "b", None, "d"), talk("a", "b", "gone", "d", "e"), ["e"]),
        (talk("a", "b", "c", None), talk("a", "b", "c", "gone", "e"), ["e"]),
    ],
)
def test_what_follows_is_new(stored: list[Spoken], sent: list[Spoken], fresh: list[str]) -> None:
    found = find_news(stored, sent)
    assert [each.text for each in found.fresh] == fresh
    assert found.asked is None


def test_a_request_that_failed_is_not_taken_in_again() -> None:
    stored = talk("a", "b", "c")
    assert find_news(stored, talk("a", "b", "c")) == News((), 2)
    assert find_news(stored, talk("c")) == News((), 2)


def test_a_reply_that_was_lost_is_given_again() -> None:
    assert find_news(talk("a", "b", "c", "d"), talk("a", "b", "c")) == News((), 2)


def test_tool_calls_and_their_results_are_no_part_of_a_talk() -> None:
    call = (ToolCall("1", "look", "{}"),)
    messages = [
        Message("system", "Be kind."),
        Message("user", " hi "),
        Message("assistant", "Let me look.", call),
        Message("tool", "42", (), "1"),
        Message("assistant", "It is 42."),
    ]
    assert list_spoken(messages) == [Spoken("user", "hi"), Spoken("assistant", "It is 42.")]


Texts = st.lists(st.sampled_from(["ok", "no", "hm"]), max_size=12)


@given(Texts, st.integers(1, 30), st.data())
def test_however_much_a_client_sends_each_message_is_stored_once(
    texts: list[str], window: int, data: st.DataObject
) -> None:
    """Few words, so that messages are often alike; replies are lost on the way, or never made."""
    stored: list[Spoken] = []
    shown: list[Spoken] = []
    for text in texts:
        shown.append(Spoken("user", text))
        fails = data.draw(st.booleans())
        for attempt in range(2 if fails else 1):
            found = find_news(stored, shown[-window:])
            stored += found.fresh
            if fails and not attempt:
                continue  # the engine failed: the same request comes again
            reply = Spoken("assistant", data.draw(st.sampled_from(["fine", "ok"])))
            stored.append(reply)
            shown.append(reply)
    assert stored == shown
