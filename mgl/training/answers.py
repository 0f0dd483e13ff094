"""What memories should have answered: their own requests, of texts that hold the answer and others.

    ask = write_answer(talk.turns, Question("Where does Ann live?"), "Rome", {3, 17})
    ask.prompt, ask.completion, ask.schema

The others are those most like the question by words, as many as memories read. A question that
the turns do not answer gets the reply that it was not mentioned, and cites none.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Final

from mgl.llm.schemas import json_schema, print_reply
from mgl.memories.calls import PASSAGE_ANSWER, number_passages
from mgl.memories.turns import UNMENTIONED, request_answer
from mgl.retrieval import LexicalIndex
from mgl.text.groups import format_turn
from mgl.training.hindsight import Asked
from mgl.types import Question, Turn

MOST_TURNS: Final = 10
_PASSAGES: Final = 4


def write_answer(
    turns: Sequence[Turn], question: Question, answer: str | None, shown: Collection[int]
) -> Asked:
    """The request over ``MOST_TURNS`` turns, ``shown`` among them, and its reply, which cites
    these; without an answer it says that nothing was mentioned."""
    places = _choose([turn.line for turn in turns], question.text, shown, MOST_TURNS)
    prompt, schema = request_answer([format_turn(turns[place]) for place in places], question)
    cited = [number for number, place in enumerate(places, 1) if place in shown and answer]
    said = print_reply({"memories": cited, "answer": answer or UNMENTIONED})
    described = json.dumps(json_schema(schema), ensure_ascii=False)
    return Asked(prompt, said, described, not cited)


def write_passage_answer(
    passages: Sequence[str], question: str, answer: str, shown: Collection[int]
) -> Asked:
    """The request over four passages of a document, ``shown`` among them, and its answer."""
    places = _choose(passages, question, shown, _PASSAGES)
    body = number_passages([passages[place] for place in places])
    return Asked(PASSAGE_ANSWER.render(passages=body, question=question), answer, "", False)


def _choose(texts: Sequence[str], question: str, shown: Collection[int], count: int) -> list[int]:
    """The places of some texts, in order: those of ``shown``, and the most like the question."""
    scores = LexicalIndex.of(texts).scores(question)
    ranked = sorted(range(len(texts)), key=lambda place: (place not in shown, -scores[place]))
    return sorted(ranked[: max(count, len(shown))])
