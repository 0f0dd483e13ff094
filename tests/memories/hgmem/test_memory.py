"""The steps of a question, from the graph to the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mgl.baselines.naive_rag import NaiveRag, NaiveRagConfig
from mgl.errors import ReplyInvalid, UsageError
from mgl.llm.base import Request, Sampling
from mgl.llm.fakes import SchemaEngine
from mgl.memories.hgmem import HgMem
from mgl.memories.hgmem.state import (
    ChosenCase,
    Counts,
    Respond,
    Retrieve,
    Stop,
    StopReason,
    Subquery,
)
from mgl.store import Store
from mgl.types import Document, Question
from tests.memories.hgmem.conftest import Ask
from tests.memories.hgmem.telling import (
    DOCUMENT,
    INSERTED,
    ONCE,
    PUNISHED,
    QUESTION,
    SMALL_CHUNKS,
    SUFFICES,
    Teller,
    case,
    point,
    rows_of,
    said,
    stage_of,
    state_after,
)

DEFEATED = point(["Xodar", "Carter"], "Carter defeated Xodar on the flier.")
UNKNOWN = "I cannot say."
MERGED = {"points": [0, 1], "description": "Xodar is given to Carter, who defeated him."}


async def test_the_steps_of_the_papers_own_case(memory_for: Ask) -> None:
    teller = Teller(
        evolve=[{"inserted": [PUNISHED]}, {"inserted": [DEFEATED], "updated": []}],
        merge=[{"merges": [MERGED]}],
        concerns=[case("2.1", (0, "What was the disgrace?")), case("1")],
        subquery=[{"subquery": "Who defeated Xodar?"}],
        answer=["Because Carter defeated him."],
    )
    memory = memory_for(teller.engine)
    answer = await memory.answer(QUESTION)
    assert answer.text == "Because Carter defeated him."
    (response,) = said(memory, Respond)
    read = [memory._graph.chunks()[number].span for number in response.read]
    assert answer.retrieved == tuple(span.place for span in read)
    cited = answer.citations[0]
    assert DOCUMENT.quote(cited.span) == cited.quote
    assert "defeated him" in cited.quote
    assert any(span.start <= cited.span.start < cited.span.end <= span.end for span in read)
    asked = said(memory, Subquery)
    assert [(each.text, each.case, each.point) for each in asked] == [
        (QUESTION.text, None, None),
        ("Who defeated Xodar?", "2.1", 0),
    ]
    first, then = state_after(memory, 1), memory.state
    assert [sorted(p.vertices) for p in first.points.values()] == [["issus", "xodar"]]
    (merged,) = then.points.values()
    assert (merged.parents, sorted(merged.vertices)) == ((0, 1), ["carter", "issus", "xodar"])
    assert said(memory, Stop) == [Stop("sufficient")]
    found = [set(each.chunks) for each in said(memory, Retrieve)]
    assert said(memory, Counts) == [Counts(2, 2, sum(map(len, found)))]
    assert any("points 0, 1 merged into point 2" in line for line in answer.trace)
    assert "Xodar is given to Carter, who defeated him." in teller.prompts("answer")[0]


async def test_a_subquery_looks_around_its_point_or_beyond_the_memory(memory_for: Ask) -> None:
    teller = Teller(
        evolve=[{"inserted": [PUNISHED]}, {"inserted": []}],
        concerns=[case("2.1", (0, "More of it?")), case("2.2", "Who else?"), case("1")],
        subquery=[{"subquery": "Who is Xodar and who is Issus?"}],
    )
    memory = memory_for(teller.engine, entities=10)
    await memory.build()
    _, local, wide = said(memory, Retrieve)
    graph = memory._graph.graph()
    near = {"xodar", "issus"} | graph.neighbours("xodar") | graph.neighbours("issus")
    assert set(local.entities) <= near
    assert local.scope == len(near)
    assert "thuria" in graph.entities.keys() - near
    assert set(wide.entities) == {"carter", "phaidor", "thuria"}


@pytest.mark.parametrize(
    ("retrieval", "cases"), [("global_only", {"2.2"}), ("local_only", {"2.1"})]
)
async def test_one_way_to_look_may_be_left_out(
    memory_for: Ask, retrieval: str, cases: set[str]
) -> None:
    both = [case("2.1", (0, "More?")), case("2.2", "What else?"), case("1")]
    teller = Teller(evolve=[{"inserted": [PUNISHED]}, {"inserted": []}], concerns=both)
    memory = memory_for(teller.engine, retrieval=retrieval, steps=2)
    await memory.answer(QUESTION)
    asked = said(memory, Subquery)[1:]
    assert {each.case for each in asked} == cases


async def test_without_merging_nothing_is_merged(memory_for: Ask) -> None:
    teller = Teller(evolve=[{"inserted": [PUNISHED, DEFEATED]}], merge=[{"merges": [MERGED]}])
    memory = memory_for(teller.engine, merge=False)
    await memory.answer(QUESTION)
    assert teller.prompts("merge") == []
    assert len(memory.state.points) == 2


NO_SUBQUERY = {"subquery": ["no JSON"], "concerns": [case("2.2", "What else?")]}


@pytest.mark.parametrize(
    ("replies", "options", "judged", "where"),
    [
        (
            {"evolve": [INSERTED], "merge": ["[Points_to_Merge]:\n<None>"], "concerns": [SUFFICES]},
            {"format": "delimiters"},
            ["1", "1"],
            ("2.2", None),
        ),
        ({"concerns": ["no JSON"]}, {"retrieval": "local_only"}, [], ("2.1", 0)),
        (NO_SUBQUERY, {}, ["2.2", "2.2"], ("2.2", None)),
    ],
)
async def test_forced_steps_go_on_with_the_query_where_there_is_no_concern(
    memory_for: Ask,
    replies: dict[str, Any],
    options: dict[str, Any],
    judged: list[str],
    where: tuple[str, int | None],
) -> None:
    evolve = ONCE
    teller = Teller(**{"evolve": evolve, **replies})
    memory = memory_for(teller.engine, steps=2, force_steps=True, **options)
    await memory.answer(QUESTION)
    assert [each.case for each in said(memory, ChosenCase)] == judged
    asked = said(memory, Subquery)[1:]
    assert [(each.text, each.case, each.point) for each in asked] == [(QUESTION.text, *where)] * 2
    assert len(said(memory, Respond)) == 3
    assert said(memory, Stop) == [Stop("steps")]


FLIER = point(["Carter", "Xodar"], "They fought on the black flier.")
SLAVE = point(["Issus", "Xodar"], "Issus gave Carter Xodar as a slave.")
OTHER = point(["Carter", "Phaidor"], "She loved him.")


async def test_a_case_that_is_not_open_investigates_the_point_most_like_the_concern(
    memory_for: Ask,
) -> None:
    printed = "[Judgement]: 2.2\n[Concerns]: Who gave Carter a slave?##\n<|COMPLETE|>"
    points = "##\n".join(
        f"(point<|>{'<&>'.join(each['objects'])}<|>{each['description']})"
        for each in (FLIER, SLAVE, OTHER)
    )
    teller = Teller(
        evolve=[
            f"[Inserted Memory Points]:\n{points}##\n<|COMPLETE|>\n\n"
            "[Updated Memory Points]:\n<None>"
        ],
        merge=["[Points_to_Merge]:\n<None>"],
        concerns=[printed],
        subquery=["[Subquery]: What happened?"],
    )
    memory = memory_for(teller.engine, format="delimiters", retrieval="local_only", steps=1)
    await memory.answer(QUESTION)
    assert [each.point for each in said(memory, Subquery)] == [None, 1]


async def test_points_that_do_not_fit_the_model_are_shown_by_their_likeness(
    memory_for: Ask,
) -> None:
    told = [{**each, "description": "She loved him. " * 130} for each in (OTHER, FLIER)]
    teller = Teller(evolve=[{"inserted": [*told, SLAVE]}])
    teller.engine.context_tokens = 2_000
    options = {"steps": 0, "merge": False, "reply_tokens": 512, "answer_tokens": 512}
    await memory_for(teller.engine, **options).answer(QUESTION)
    (shown,) = teller.prompts("answer")
    assert SLAVE["description"] in shown
    assert shown.count("She loved him.") == 130


@pytest.mark.parametrize(("forced", "answers"), [(False, 1), (True, 6)])
async def test_a_model_that_is_never_satisfied_ends_at_the_last_step(
    memory_for: Ask, *, forced: bool, answers: int
) -> None:
    teller = Teller(
        evolve=ONCE,
        concerns=[case("2.2", "What else?")],
        answer=list("abcdef"),
    )
    memory = memory_for(teller.engine, steps=5, force_steps=forced)
    answer = await memory.answer(QUESTION)
    assert len(said(memory, Subquery)) == 6
    assert [each.text for each in said(memory, Respond)] == list("abcdef"[:answers])
    assert answer.text == "abcdef"[answers - 1]
    assert said(memory, Stop) == [Stop("steps")]


async def test_a_model_that_remembers_nothing_answers_from_the_likest_chunks(
    memory_for: Ask,
) -> None:
    teller = Teller(
        evolve=[{"inserted": []}],
        concerns=[case("2.2", "What?")],
        answer=["Issus gave him to Carter."],
    )
    memory = memory_for(teller.engine, "Who gave Carter a slave of slaves?", chunks=1)
    answer = await memory.answer(Question("Who gave Carter a slave of slaves?"))
    assert answer.text == "Issus gave him to Carter."
    (citation,) = answer.citations
    assert citation.node_id.startswith("chunk-")
    assert "a slave of slaves" in citation.quote
    assert len(answer.retrieved) == 1
    (prompt,) = teller.prompts("answer")
    assert prompt.startswith("[1] of the First Born")
    assert "[2]" not in prompt


async def test_the_answer_is_asked_for_as_every_baseline_asks(memory_for: Ask) -> None:
    """§4.3: by the same instruction, with the same budget and sampling; they differ by what they
    read alone."""
    conditions = {"answer_tokens": 500, "answer_temperature": 0.5, "answer_top_p": 0.9}
    teller = Teller(evolve=[{"inserted": [PUNISHED]}])
    memory = memory_for(teller.engine, **conditions)
    await memory.answer(QUESTION)
    plain = NaiveRagConfig.model_validate({**SMALL_CHUNKS, **conditions})
    await NaiveRag(memory._tools, DOCUMENT, (), plain).answer(QUESTION)
    one, other = (each for each in teller.engine.requests if stage_of(each) == "answer")
    for each in (one, other):
        assert replace(each.sampling, seed=0) == Sampling(0.5, 0.9, 500)
    ends = [each.messages[-1].content.partition("\n\nQuestion: ")[2] for each in (one, other)]
    assert ends[0] == ends[1] != ""
    assert f"[1] {PUNISHED['description']}" in one.messages[-1].content
    assert one.messages[0] == other.messages[0]


async def test_a_long_answer_is_asked_for_and_has_a_memory_of_its_own(
    memory_for: Ask, store: Store
) -> None:
    sentences = " ".join(f"Sentence {number}." for number in range(300))
    teller = Teller(evolve=[{"inserted": [PUNISHED]}], answer=[sentences])
    memory = memory_for(teller.engine)
    short = await memory.answer(QUESTION)
    long = await memory.answer(replace(QUESTION, form="long"))
    assert long.text == sentences
    assert long.citations == short.citations
    own = [each.id for each in store.memories() if each.kind == "hgmem"]
    assert len(own) == 2
    asked = [each for each in teller.engine.requests if stage_of(each) == "answer"]
    assert ["in full" in each.messages[-1].content for each in asked] == [False, True]
    assert [each.sampling.max_tokens for each in asked] == [2048, 2048]


async def test_what_a_benchmark_calls_unknown_is_part_of_the_question(memory_for: Ask) -> None:
    teller = Teller(evolve=[{"inserted": [PUNISHED]}])
    memory = memory_for(teller.engine)
    await memory.answer(QUESTION)
    await memory.answer(replace(QUESTION, unknown="I don't know."))
    told = ['the answer is "I don\'t know."' in prompt for prompt in teller.prompts("answer")]
    assert told == [False, True]


async def test_the_graph_is_the_same_before_and_after_a_question(
    memory_for: Ask, store: Store
) -> None:
    teller = Teller(evolve=[{"inserted": [point(["Xodar", "a plan"], "He had one.")]}])
    await memory_for(teller.engine, None).build()
    (graph_id,) = [memory.id for memory in store.memories()]
    before = store.edits(graph_id)
    memory = memory_for(teller.engine)
    await memory.answer(QUESTION)
    assert memory.state.vertices["plan"].new
    assert store.edits(graph_id) == before


@pytest.mark.parametrize(
    ("replies", "what", "stop"),
    [
        ({"evolve": ["no JSON"]}, "evolution", "sufficient"),
        ({"concerns": ["no JSON"]}, "concerns", "unjudged"),
    ],
)
async def test_a_reply_that_stays_invalid_is_recorded_and_does_not_cost_the_answer(
    memory_for: Ask, replies: dict[str, Any], what: str, stop: StopReason
) -> None:
    memory = memory_for(Teller(**{"evolve": [{"inserted": [PUNISHED]}], **replies}).engine)
    assert (await memory.answer(QUESTION)).text == UNKNOWN
    failed = [row for row in rows_of(memory) if row.op == "reply"]
    assert [(row.payload["what"], row.outcome, row.reason) for row in failed] == [
        (what, "rejected", "reply_invalid")
    ]
    assert said(memory, Stop) == [Stop(stop)]


async def test_a_graph_without_entities_is_answered_over(memory_for: Ask) -> None:
    document = Document.from_text("none.txt", "it rained and it rained.")
    teller = Teller(concerns=[case("2.2", "What?")])
    memory = memory_for(teller.engine, document=document, floor=0.9)
    assert (await memory.answer(QUESTION)).text == UNKNOWN
    assert teller.prompts("evolve") == []


async def test_a_failed_answer_is_asked_for_again(memory_for: Ask) -> None:
    memory = memory_for(Teller(evolve=[{"inserted": [PUNISHED]}], answer=[""]).engine)
    with pytest.raises(ReplyInvalid):
        await memory.answer(QUESTION)
    assert said(memory, Stop) == [Stop("failed")]
    teller = Teller(answer=["For the disgrace."])
    again = memory_for(teller.engine)
    for _ in range(2):
        assert (await again.answer(QUESTION)).text == "For the disgrace."
    assert [stage for stage, _ in teller.asked] == ["answer"]
    assert said(again, Stop) == [Stop("failed"), Stop("retried")]


async def test_the_sources_that_a_subquery_found_best_are_shown(memory_for: Ask) -> None:
    teller = Teller(evolve=[{"inserted": [PUNISHED]}])
    asked = "To whom was the slave of slaves given?"
    memory = memory_for(teller.engine, asked, entities=9, chunk_tokens_shown=30)
    await memory.build()
    sources = teller.prompts("evolve")[0].split("id,content")[1]
    assert "slave of slaves" in sources
    assert "black flier" not in sources


async def test_the_relationships_of_an_inserted_entity_are_shown_next(memory_for: Ask) -> None:
    plan = point(["Xodar", "a plan"], "Xodar had a plan of escape.")
    teller = Teller(
        evolve=[{"inserted": [plan]}, {"inserted": [], "updated": []}],
        concerns=[case("2.1", (0, "What was the plan?")), case("1")],
        subquery=[{"subquery": "Which plan of escape had Xodar?"}],
    )
    memory = memory_for(teller.engine)
    await memory.build()
    row = "\na plan,Xodar,Xodar had a plan of escape.\n"
    assert [row in prompt for prompt in teller.prompts("evolve")] == [False, True]


def test_it_keeps_one_memory_a_question(memory_for: Ask) -> None:
    made = memory_for(SchemaEngine())
    with pytest.raises(UsageError):
        HgMem(made._tools, DOCUMENT, [QUESTION, Question("Another?")])


async def test_a_long_question_leaves_less_room_for_sources(memory_for: Ask) -> None:
    asked = " ".join(["Is this of Xodar true?", *(f"w{number}" for number in range(400))])
    long = Document.from_text("long.txt", DOCUMENT.text * 30)
    teller = Teller(
        evolve=ONCE,
        concerns=[case("2.2", "What else?"), case("1")],
        subquery=[{"subquery": asked}],
    )
    engine = teller.engine
    engine.context_tokens = 4800
    memory = memory_for(engine, asked, document=long, chunks=80, answer_chunks=80)
    await memory.answer(Question(asked))
    prompts = teller.prompts("evolve") + teller.prompts("answer")
    assert len(prompts) == 3
    counts = await engine.count_tokens(prompts)
    assert max(counts) <= 4800 - 2048


async def test_the_view_shows_points_as_they_were(memory_for: Ask) -> None:
    teller = Teller(
        evolve=[
            {"inserted": [PUNISHED]},
            {"inserted": [DEFEATED], "updated": [{"point": 0, "description": "Anew."}]},
        ],
        merge=[{"merges": []}, {"merges": []}],
        concerns=[case("2.2", "What else?"), case("1")],
    )
    memory = memory_for(teller.engine)
    await memory.build()
    view = memory.view()
    first = {node.id for node in view.at(1).nodes if node.kind == "point"}
    then = {node.id for node in view.at(2).nodes if node.kind == "point"}
    assert first == {"point 0"}
    assert then == {"point 0, updated in step 1", "point 1"}
    assert all(view.document.quote(node.span) for node in view.nodes)


async def test_the_view_shows_what_came_after_the_last_restart(memory_for: Ask) -> None:
    teller = Teller(
        evolve=[INSERTED, INSERTED.replace("Issus", "Carter")],
        merge=["[Points_to_Merge]:\n<None>"],
        concerns=["nonsense", SUFFICES],
    )
    memory = memory_for(teller.engine, format="delimiters", compat="released_code")
    view = memory.view([await memory.answer(QUESTION)])
    lives = {node.id: (node.step, node.gone) for node in view.nodes}
    assert lives == dict.fromkeys(("carter", "xodar", "point 0"), (2, None))
    assert [(edge.source, edge.target) for edge in view.edges] == [
        ("point 0", "carter"),
        ("point 0", "xodar"),
    ]


async def test_failed_chunks_are_read_again_and_an_answered_question_keeps_its_answer(
    memory_for: Ask,
) -> None:
    class Failing(Teller):
        def _reply(self, request: Request) -> str:
            passage = request.messages[0].content.split("The text:")[-1]
            return "no JSON" if "Thuria" in passage else super()._reply(request)

    replies: dict[str, Any] = {"evolve": [{"inserted": [PUNISHED]}]}
    memory = memory_for(Failing(**replies).engine)
    before = await memory.answer(QUESTION)
    rows = rows_of(memory)
    assert "thuria" not in memory._graph.graph().entities
    teller = Teller(**replies)
    again = memory_for(teller.engine)
    await again.retry_failed()
    assert set(teller.asked) == {("graph", prompt) for prompt in teller.prompts("graph")}
    assert "thuria" in again._graph.graph().entities
    assert again.id == memory.id
    assert rows_of(again) == rows
    assert (await again.answer(QUESTION)).text == before.text
    other = memory_for(Teller(**replies).engine, "What is Thuria?", entities=10)
    await other.build()
    assert "thuria" in said(other, Retrieve)[0].entities
