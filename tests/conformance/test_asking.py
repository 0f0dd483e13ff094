"""Asking and looking: nothing is written, citations are exact, views can be exported."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import networkx as nx
import pytest

from mgl.errors import InputError
from mgl.lab.model import NoModel
from mgl.types import Conversation
from mgl.web.export import to_graphml, to_hif, to_html, to_json
from tests.conformance.kinds import (
    OTHER,
    QUESTION,
    Case,
    check_answer,
    dump,
    list_cases,
    open_built,
)

each_case = pytest.mark.parametrize("case", list_cases())
answering = pytest.mark.parametrize("case", [c for c in list_cases() if c.values[0].answers])


@answering
async def test_asking_writes_nothing_that_a_memory_holds(case: Case) -> None:
    with open_built(case) as (store, memory):
        before = dump(store)
        for question in [QUESTION, *([] if case.kind.per_question else [OTHER])]:
            check_answer(case, memory, await memory.answer(question))
        assert dump(store) == before
        assert await case.open(store).answer(QUESTION) == await memory.answer(QUESTION)


@each_case
async def test_what_it_holds_is_drawn_from_the_store_alone(case: Case) -> None:
    with open_built(case) as (store, memory):
        answers = [await memory.answer(QUESTION)] if case.answers else []
        view = memory.view(answers)
        document, ids = view.document, [element.id for element in view.elements]
        assert (view.memory_id, view.memory) == (memory.id, case.name)
        assert len(set(ids)) == len(ids)
        for element in view.elements:
            assert document.quote(element.span)
            assert element.gone is None or element.step <= element.gone < view.length
        for step in range(view.length + 1):
            shown = view.at(step)
            ends = {end for edge in shown.edges for end in (edge.source, edge.target)}
            assert ends <= {node.id for node in shown.nodes}
        exported = json.loads(to_json(view))
        assert {node["id"] for node in exported["nodes"]} == {node.id for node in view.nodes}
        graph = view.to_networkx()
        assert {*graph} == {node.id for node in view.nodes}
        assert {key for *_, key in graph.edges(keys=True)} == {edge.id for edge in view.edges}
        assert len(nx.read_graphml(StringIO(to_graphml(view)))) == len(view.nodes)
        assert json.loads(to_hif(view))
        assert to_html(view).startswith("<!doctype html>")
        record = store.memory(memory.id)
        kind, config = case.kind, case.kind.Config.model_validate(record.config)
        tools = replace(memory._tools, llm=NoModel(record.model_id))
        source = (
            replace(case.source, turns=tuple(store.turns(case.source.id)))
            if isinstance(case.source, Conversation)
            else store.document(case.source.id)
        )
        opened = kind(tools, source, case.questions, config, identity=record.id)
        assert opened.view(answers) == view


@answering
async def test_a_question_with_options_is_answered_by_one_of_them(case: Case) -> None:
    asked = replace(QUESTION, options=("(A) certainly", "(B) certainly not"))
    with open_built(case) as (store, memory):
        if case.questions:
            plain, memory = memory, case.open(store, questions=[asked])
            await memory.build()
            assert memory.id != plain.id or case.name != "hgmem"  # which holds the answer
        assert (await memory.answer(asked)).text in asked.options


@answering
async def test_a_question_without_words_is_refused(case: Case) -> None:
    with open_built(case) as (_, memory):
        with pytest.raises(InputError) as refused:
            await memory.answer(replace(QUESTION, text=" \n"))
        assert refused.value.hint
