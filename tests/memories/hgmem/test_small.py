"""The preset small: what is asked of a small model, and what code makes of it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.hgmem import SmallHgMemConfig
from mgl.memories.hgmem.evidence import Inquiry
from mgl.memories.hgmem.small import SmallAsker
from mgl.memories.hgmem.state import ChosenCase, Retrieve, Stop, Subquery
from mgl.types import Chunk, Question, Span
from tests.memories.hgmem.conftest import Ask
from tests.memories.hgmem.graphs import graph_of, memory_of
from tests.memories.hgmem.telling import QUESTION, said

Sure = Callable[[str], float]


class Reader:
    """An engine that claims what it is told of each passage, and is as sure as it is told."""

    def __init__(self, claim: Callable[[str], str], sure: Sure) -> None:
        self._claim, self._sure = claim, sure
        self.asked: list[str] = []
        self.engine = ScriptedEngine([self._reply] * 300, concurrency=1)

    def _reply(self, request: Request) -> Completion:
        prompt = request.messages[-1].content
        if request.choices:
            self.asked.append("sufficient" if prompt.startswith("Notes:") else "check")
            yes = self._sure(prompt)
            text, chance = ("Yes", yes) if yes >= 0.5 else ("No", 1 - yes)
            return Completion(text, "stop", TokenUsage(9, 1), logprobs=(math.log(chance),))
        if request.json_schema is not None:
            self.asked.append("answer")
            return Completion('{"sources": [1], "answer": "He lost."}', "stop", TokenUsage(9, 1))
        self.asked.append("subquery" if "What do the notes leave open" in prompt else "read")
        said = self._claim(prompt) if self.asked[-1] == "read" else "Who defeated Xodar?"
        return Completion(said, "stop", TokenUsage(9, 1))


def first_sentence(prompt: str) -> str:
    return prompt.split("Passage from a book:\n")[1].split(". ")[0] + "."


def sure_of(chance: float, enough: float = 0.0) -> Sure:
    return lambda prompt: enough if prompt.startswith("Notes:") else chance


async def test_a_passage_that_says_so_becomes_a_point(memory_for: Ask) -> None:
    reader = Reader(first_sentence, sure_of(0.9, enough=0.95))
    memory = memory_for(reader.engine, preset="small")
    answer = await memory.answer(QUESTION)
    assert answer.text == "He lost."
    for point in memory.state.points.values():
        assert len(point.vertices) > 1
    assert said(memory, Stop) == [Stop("sufficient")]
    assert reader.asked[-2:] == ["sufficient", "answer"]


async def test_what_is_not_confirmed_is_no_point_but_the_best_of_the_first_step(
    memory_for: Ask,
) -> None:
    claims = iter([f"Xodar and Issus, number {n}." for n in range(9)])
    chances = {"number 0": 0.55, "number 1": 0.7, "number 2": 0.6}

    def sure(prompt: str) -> float:
        return next((p for said, p in chances.items() if said in prompt), 0.0)

    memory = memory_for(Reader(lambda _: next(claims), sure).engine, preset="small", steps=1)
    await memory.build()
    (point,) = memory.state.points.values()
    assert point.description == "Xodar and Issus, number 1."


@pytest.mark.parametrize(
    ("retrieval", "cases"),
    [
        ("adaptive", ["2.1", "2.2", "2.1"]),
        ("global_only", ["2.2"] * 3),
        ("local_only", ["2.1"] * 3),
    ],
)
async def test_steps_look_around_a_point_and_beyond_in_turn_and_read_no_chunk_twice(
    memory_for: Ask, retrieval: str, cases: list[str]
) -> None:
    reader = Reader(first_sentence, sure_of(0.9))
    memory = memory_for(reader.engine, preset="small", steps=3, retrieval=retrieval)
    await memory.answer(QUESTION)
    assert [each.case for each in said(memory, ChosenCase)] == cases
    assert [each.case for each in said(memory, Subquery)] == [None, *cases]
    numbers = [number for each in said(memory, Retrieve) for number in each.chunks]
    assert len(numbers) == len(set(numbers))
    asked = len(reader.asked)
    again = memory_for(reader.engine, preset="small", steps=3, retrieval=retrieval)
    await again.answer(QUESTION)
    assert len(reader.asked) == asked


async def test_what_a_question_costs_at_most_is_known_before_it_is_asked(memory_for: Ask) -> None:
    reader = Reader(first_sentence, sure_of(0.9))
    memory = memory_for(reader.engine, preset="small", steps=3)
    cost = await memory.estimate()
    assert cost.is_bound
    await memory.build()
    assert 0 < len(reader.asked) <= cost.calls == 6 + 3 * 8 + 1
    assert (await memory.estimate()).calls == 0
    other = memory_for(reader.engine, "Who is Issus?", preset="small", steps=3)
    assert (await other.estimate()).calls == cost.calls


async def test_points_that_share_half_of_their_entities_are_merged() -> None:
    asker = asking()
    memory = memory_of(["ann", "bo"], ["cy", "dee"], ["ann", "bo", "eve"], ["cy", "fay", "gus"])
    merges = (await asker.merges(memory)).reply.merges
    assert [(merge.points, merge.description) for merge in merges] == [([0, 2], "said said")]


async def test_what_a_step_says_of_the_entities_of_a_point_is_added_to_it() -> None:
    def reader() -> Reader:
        claims = iter(["Ann met Bo in Rome.", "Ann married Bo in Paris.", "Ann met Bo in Rome."])
        return Reader(lambda _: next(claims), sure_of(0.9))

    memory = memory_of(["ann", "bo"])
    found = [Retrieve("q", 2, ("ann",), (), (0, 1, 2))]
    said = (await asking(reader()).evolution(memory, ["q"], found)).reply
    (update,) = said.updated
    assert (update.point, said.inserted) == (0, [])
    assert update.description == "said Ann met Bo in Rome. Ann married Bo in Paris."
    without = (await asking(reader(), update=False).evolution(memory, ["q"], found)).reply
    assert [point.objects for point in without.inserted] == [["ann", "bo"]] * 3


def asking(reader: Reader | None = None, **config: object) -> SmallAsker:
    engine = reader.engine if reader else ScriptedEngine([])
    options = SmallHgMemConfig.model_validate(config)
    llm = Client(engine, MemoryCallLog())
    graph = graph_of({"ann": (0, 1, 2), "bo": (0, 1, 2), "cy": (1,)})
    texts = ["Ann met Bo, and then Cy.", "Cy saw Ann and Bo.", "So Ann met Bo."]
    chunks = [Chunk(n, Span("d", 30 * n, 30 * n + 1), text, 8) for n, text in enumerate(texts)]
    return SmallAsker(Inquiry(llm, Question("Who met?"), graph, chunks, options), step=1)
