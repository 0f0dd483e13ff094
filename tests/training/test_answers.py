"""What memories should have answered: the product's own requests, with the gold answer."""

from __future__ import annotations

import json
import re
from pathlib import Path

from mgl.llm.base import Sampling
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.llm.grammar import to_regex
from mgl.llm.schemas import compile_schema
from mgl.memories.calls import answer_from_passages
from mgl.memories.turns import UNMENTIONED, answer_from_lines, cite_shown, show_turns
from mgl.training.corpora import collect
from mgl.training.data import Example
from mgl.training.hindsight import write_answer, write_passage_answer
from mgl.types import Conversation, Question, Turn
from tests.evaluation.small_data import WRITERS

TALK = Conversation.from_turns(
    "ann",
    [
        Turn("a", "Ann", "I have a horse"),
        *(Turn(f"f{place}", "Bo", f"It rains on day {place}") for place in range(11)),
        Turn("b", "Ann", "It is ill"),
    ],
)
QUESTION = Question("Which day did it rain, and what is ill?")


async def test_a_row_of_turns_is_the_request_of_the_product_and_its_reply() -> None:
    ask = write_answer(TALK.turns, QUESTION, "the horse", {0, 12})
    engine = ScriptedEngine([ask.completion])
    client = Client(engine, MemoryCallLog())
    shown = [0, *range(1, 9), 12]  # the gold ones, and of equal others the first
    lines = cite_shown(TALK, show_turns(TALK.turns, shown))
    answer = await answer_from_lines(client, lines, QUESTION, Sampling())
    (sent,) = engine.requests
    assert (sent.messages[0].content, sent.json_schema) == (ask.prompt, json.loads(ask.schema))
    assert [each.node_id for each in answer.citations] == ["a", "b"]
    assert answer.text == "the horse"


def test_what_no_turn_answers_was_not_mentioned() -> None:
    ask = write_answer(TALK.turns, QUESTION, None, {12})
    assert json.loads(ask.completion) == {"memories": [], "answer": UNMENTIONED}
    assert "Ann: It is ill" in ask.prompt
    assert re.fullmatch(to_regex(compile_schema(json.loads(ask.schema))), ask.completion)


async def test_a_row_of_passages_is_the_request_of_the_product() -> None:
    texts = ["No.", "A horse is ill.", "What day?", "An ill horse.", "A day.", "Which day is ill?"]
    ask = write_passage_answer(texts, QUESTION.text, "a horse", {1})
    engine = ScriptedEngine(["a horse"])
    client = Client(engine, MemoryCallLog())
    await answer_from_passages(client, [texts[place] for place in (1, 2, 4, 5)], QUESTION)
    assert engine.requests[0].messages[-1].content == ask.prompt


def test_questions_of_conversations_become_rows_and_those_without_an_answer_too(
    tmp_path: Path,
) -> None:
    WRITERS["locomo"](tmp_path / "locomo")
    file = tmp_path / "locomo" / "locomo10.json"
    before, asked, after = file.read_text().partition('"answer": "Rome", "category": 1')
    assert asked
    file.write_text(f'{before}"adversarial_answer": "x", "category": 5{after}')
    rows = [row for row in collect(["locomo-answers"], tmp_path) if isinstance(row, Example)]
    replies = [json.loads(row.completion) for row in rows]
    assert replies == [
        {"memories": [1], "answer": "Oslo"},
        {"memories": [], "answer": UNMENTIONED},
    ]
    assert collect(["locomo-answers"], tmp_path, hold_out={"c"}) == []


def test_evidence_is_shown_among_that_of_other_questions(tmp_path: Path) -> None:
    def ask(name: str, question: str, answer: str, said: str) -> dict[str, object]:
        return {
            "question_id": name,
            "question_type": "single-session-user",
            "question": question,
            "answer": answer,
            "haystack_dates": ["2023/05/20 (Sat) 02:21"],
            "haystack_sessions": [[{"role": "user", "content": said}]],
        }

    rows = [
        ask("one", "Where was it sunny?", "Rome", "It was sunny in Rome."),
        ask("two_abs", "Where did it snow?", "You did not say.", "It rained in Oslo."),
        ask("three", "Can you recommend a hat?", "They would like a red one.", "I like red."),
    ]
    (tmp_path / "longmemeval").mkdir()
    (tmp_path / "longmemeval" / "evidence.json").write_text(json.dumps(rows))
    found = collect(["longmemeval-answers"], tmp_path)
    assert all(isinstance(row, Example) and "Rome" in row.prompt[0][1] for row in found[:2])
    replies = {row.completion for row in found if isinstance(row, Example)}
    unmentioned = f'{{"memories": [], "answer": "{UNMENTIONED}"}}'
    assert {'{"memories": [1], "answer": "Rome"}', unmentioned} == replies, "no rubric of advice"
