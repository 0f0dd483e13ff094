"""The calls behind an answer and a reply, as they were stored with them."""

from __future__ import annotations

from datetime import datetime

import pytest

from mgl.lab import Lab, ModelChoice
from mgl.lab.tracing import trace_answer, trace_reply
from mgl.types import Question, Turn
from tests.cli.server import Server

pytestmark = pytest.mark.usefixtures("embeds_words")

NOON = datetime(2023, 5, 8, 12)
ASKED = "What is the horse called?"
TWICE = f"{ASKED} And what is the cart called?"


def test_calls_are_found_by_what_was_made_and_not_by_words(server: Server) -> None:
    """A replayed call belongs to each answer that took it, and to no other with its words in it."""
    with Lab.open(ModelChoice("qwen2.5-7b-instruct", base_url=server.url)) as lab:
        for name in ("first", "second"):
            talk = lab.talk(name)
            talk.append(Turn("1", "Ann", "My horse is called Star", NOON, "a"))
            talk.reply(Turn("2", "Ann", "I like the horse", NOON, "a"))
            for question in (ASKED, TWICE):
                talk.ask(Question(question, NOON))
        for name in ("first", "second"):
            for question in (ASKED, TWICE):
                calls = trace_answer(lab, name, question).calls
                (answered,) = (each for each in calls if each.stage == "answer")
                assert f"{question}\n" in answered.request.messages[-1].content
            *_, replied = trace_reply(lab, name, "2+").calls
            assert "I like the horse" in replied.request.messages[-1].content
        assert not any(call.stage == "answer" for call in lab.calls("second"))  # all replayed
        assert "1" in {cited.node_id for cited in trace_reply(lab, "first", "2+").retrieved}
        lab.talk("first").forget(["1"])
        left = trace_reply(lab, "first", "2+")
        assert "answer" not in {call.stage for call in left.calls}  # its prompt showed what is gone
        assert "1" not in {cited.node_id for cited in left.retrieved}
