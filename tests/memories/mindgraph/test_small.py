"""The small preset over scripted models: what is asked, what is kept, what is cited."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.calls import new_attempt
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.mindgraph import SmallMindGraph, SmallMindGraphConfig, claims
from mgl.memories.mindgraph.claims import BlockFinder
from mgl.memories.results import say_answer
from mgl.retrieval.fakes import WordEmbedder
from mgl.text.names import find_names
from mgl.text.sentences import split_question
from mgl.types import Chunk, Document, Question

from .conftest import MakeTools

CONFIG = SmallMindGraphConfig(chunk_tokens=20)
RING = Question("Where was the ring lost?")
BOTH = Question("Where was the ring lost, and who forgave Ann?")


def yes(probability: float) -> Completion:
    return Completion("Yes", "stop", TokenUsage(50, 1), logprobs=(math.log(probability),))


def choose(request: Request) -> str | Completion:
    return yes(0.9) if request.choices else '{"answer": "at sea"}'


class Reader(ScriptedEngine):
    """Answers with the key word of the question where it is shown it, and confirms a passage that
    holds that word."""

    def __init__(self, *, sure: bool = True) -> None:
        self._sure = sure
        super().__init__([self._reply] * 200, concurrency=1)

    def _reply(self, request: Request) -> str | Completion:
        prompt = request.messages[-1].content
        key = "sea" if "lost" in prompt.split("Question:")[-1] else "forgave"
        holds = key in prompt.split("Question:")[0]
        if request.choices:
            return yes(0.9 if holds and self._sure else 0.2)
        told = "It was sea." if key == "sea" else "Bo forgave."
        return told if holds else "It says nothing of that."


async def test_the_best_blocks_are_read_in_order_and_the_claim_cites_the_sentence_that_says_it(
    make_tools: MakeTools, tale: Document
) -> None:
    engine = Reader()
    tools = make_tools(engine)
    memory = SmallMindGraph(tools, tale, [RING], CONFIG)
    answer = await memory.answer(RING)
    (citation,) = answer.citations
    assert "sea" in citation.quote
    assert tale.quote(citation.span) == citation.quote
    assert (answer.text, answer.marks) == ("It was sea.", ())
    read, _ = engine.requests  # one reads, one checks: a tale so short is shown whole
    prompt = read.messages[-1].content
    assert 0 < prompt.index("spring") < prompt.index("Malta") < prompt.index("letter")
    claim = memory.state.node(citation.node_id)
    assert claim is not None
    assert claim.content == answer.text
    idle = ScriptedEngine([])
    assert (
        await SmallMindGraph(make_tools(idle), tale, [RING], CONFIG).answer(RING)
    ).text == answer.text
    assert idle.requests == []


async def test_a_claim_that_no_sentence_bears_out_is_rejected_and_its_answer_cites_nothing(
    make_tools: MakeTools, tale: Document
) -> None:
    tools = make_tools(Reader(sure=False))
    memory = SmallMindGraph(tools, tale, [RING], CONFIG)
    answer = await memory.answer(RING)
    assert (answer.text, answer.citations) == ("It was sea.", ())
    assert answer.marks == ("unconfirmed",)
    assert say_answer(answer) == "Not found in the text; the model's guess: It was sea."
    assert memory.state.nodes == ()
    rows = [(row.op, row.reason) for row in tools.store.edits(memory.id)]
    assert rows == [("reading", None), ("add_node", "not_supported")]


async def test_a_source_that_lacks_most_words_of_a_claim_is_not_asked_about(
    make_tools: MakeTools, tale: Document
) -> None:
    engine = ScriptedEngine(["A pirate stole it at sea."], concurrency=1)
    answer = await SmallMindGraph(make_tools(engine), tale, [RING], CONFIG).answer(RING)
    assert (answer.text, answer.citations, answer.marks) == (
        "A pirate stole it at sea.",
        (),
        ("unconfirmed",),
    )
    assert len(engine.requests) == 1


async def test_a_claim_in_another_language_than_the_text_is_judged_by_the_model_alone(
    make_tools: MakeTools,
) -> None:
    letter = Document.from_text(
        "brief.txt", "Das Wasser stieg die Nacht über. Da hat Matthes dem Klaus die Pumpe geliehen."
    )
    engine = ScriptedEngine(["Matthes lent him the pump.", yes(0.9)], concurrency=1)
    question = Question("Who lent Klaus the pump?")
    answer = await SmallMindGraph(make_tools(engine), letter, [question], CONFIG).answer(question)
    assert (answer.marks, answer.guesses) == ((), ())
    assert "Matthes" in answer.citations[0].quote


async def test_an_answer_that_repeats_its_question_is_a_guess(
    make_tools: MakeTools, tale: Document
) -> None:
    engine = ScriptedEngine(["The ring was lost."], concurrency=1)
    answer = await SmallMindGraph(make_tools(engine), tale, [RING], CONFIG).answer(RING)
    assert (answer.citations, answer.guesses) == ((), ("The ring was lost.",))


async def test_names_in_a_claim_become_entities_with_the_place_that_names_them(
    make_tools: MakeTools,
) -> None:
    """The sentence of the claim's source, else the first of the text; other names there do not."""
    said = "Then Ann Lee met Bo Orr, and he lost the ring."
    text = f"We call him Mr. Doe.\n\nIt rained.\n\n{said}"
    engine = ScriptedEngine(["Mr. Doe lost it as he met Ann Lee.", *[yes(0.9)] * 2], concurrency=1)
    told = Document.from_text("told.txt", text)
    memory = SmallMindGraph(make_tools(engine), told, [Question("Who lost the ring?")], CONFIG)
    await memory.build()
    graph = memory.state
    named = {node.id: node.quote for node in graph.nodes if node.type == "entity"}
    assert named == {"ann_lee": said, "mr_doe": "Mr. Doe"}
    (claim,) = (node for node in graph.nodes if node.type == "claim")
    assert {(edge.source, edge.relation) for edge in graph.edges} == {(claim.id, "mentions")}
    assert {edge.target for edge in graph.edges} == named.keys()
    for element in (*graph.nodes, *graph.edges):
        assert told.quote(element.span) == element.quote


async def test_each_part_of_a_question_is_read_for_and_answered_on_its_own(
    make_tools: MakeTools, tale: Document
) -> None:
    memory = SmallMindGraph(make_tools(Reader()), tale, [BOTH], CONFIG)
    answer = await memory.answer(BOTH)
    assert answer.text == "It was sea. Bo forgave."
    assert ["sea" in each.quote or "forgave" in each.quote for each in answer.citations] == [
        True
    ] * 2


async def test_a_question_the_graph_was_not_built_for_is_read_for_and_writes_nothing(
    make_tools: MakeTools, tale: Document
) -> None:
    tools = make_tools(Reader())
    memory = SmallMindGraph(tools, tale, [Question("Who forgave Ann?")], CONFIG)
    await memory.build()
    rows = tools.store.edits(memory.id)
    answer = await memory.answer(RING)
    assert answer.text == "It was sea."
    (citation,) = answer.citations
    assert "sea" in citation.quote
    assert memory.state.node(citation.node_id) is None
    assert tools.store.edits(memory.id) == rows


async def test_each_question_of_a_graph_cites_its_own_claim(
    make_tools: MakeTools, tale: Document
) -> None:
    forgave = Question("Who forgave Ann?")
    memory = SmallMindGraph(make_tools(Reader()), tale, [RING, forgave], CONFIG)
    (citation,) = (await memory.answer(forgave)).citations
    claim = memory.state.node(citation.node_id)
    assert claim is not None
    assert claim.content == "Bo forgave."


async def test_blocks_are_embedded_once_for_all_questions(
    make_tools: MakeTools, tale: Document
) -> None:
    embedder = WordEmbedder(512)
    tools = replace(make_tools(Reader()), embedder=embedder)
    await SmallMindGraph(tools, tale, [BOTH, RING], CONFIG).build()
    blocks = [text for text in embedder.embedded if not text.endswith("?")]
    assert len(blocks) == len(set(blocks)) == 3


async def test_one_of_the_options_is_chosen_from_the_same_blocks(
    make_tools: MakeTools, tale: Document
) -> None:
    asked = Question("Where was the ring lost?", options=("at sea", "in Rome"))
    await SmallMindGraph(make_tools(Reader()), tale, [RING], CONFIG).build()
    chosen = ScriptedEngine([choose] * 3, concurrency=1)
    answer = await SmallMindGraph(make_tools(chosen), tale, [RING], CONFIG).answer(asked)
    assert answer.text == "at sea"


async def test_what_a_question_costs_is_known_before_and_nothing_is_left_after(
    make_tools: MakeTools, tale: Document
) -> None:
    memory = SmallMindGraph(make_tools(Reader()), tale, [BOTH], CONFIG)
    before = await memory.estimate()
    assert before is not None
    assert (before.calls, before.seconds) == (6, None)  # two parts: one reads, two check
    assert 0 < before.input_tokens < 1500
    await memory.build()
    after = await memory.estimate()
    assert after is not None
    assert after.calls == 0


async def test_what_reading_every_block_costs_is_known_to_the_call(
    make_tools: MakeTools, tale: Document
) -> None:
    engine = ScriptedEngine(
        [lambda request: yes(0.9) if request.choices else "They met."] * 6, concurrency=1
    )
    memory = SmallMindGraph(make_tools(engine), tale, [], CONFIG)
    before = await memory.estimate()
    assert (before.calls, before.is_bound) == (6, False)
    await memory.build()
    assert len(engine.requests) == 6
    assert (await memory.estimate()).calls == 0


async def test_questions_of_a_document_share_a_memory_that_keeps_what_each_found(
    make_tools: MakeTools, tale: Document
) -> None:
    forgave = Question("Who forgave Ann?")
    first = SmallMindGraph(make_tools(Reader()), tale, [RING], CONFIG)
    said = await first.answer(RING)
    second = SmallMindGraph(make_tools(Reader()), tale, [forgave], CONFIG)
    await second.answer(forgave)
    assert first.id == second.id == SmallMindGraph(make_tools(Reader()), tale, [], CONFIG).id
    claims = [node.content for node in second.state.nodes if node.type == "claim"]
    assert claims == ["It was sea.", "Bo forgave."]
    view = second.view()
    assert (view.steps, view.questions) == (2, (RING.text, forgave.text))
    silent = ScriptedEngine([])
    assert (await SmallMindGraph(make_tools(silent), tale, [RING], CONFIG).answer(RING)) == said
    assert (await second.estimate()).calls == 0


async def test_the_parts_of_an_answered_question_are_no_questions_of_their_own(
    make_tools: MakeTools, tale: Document
) -> None:
    memory = SmallMindGraph(make_tools(Reader()), tale, [BOTH], CONFIG)
    await memory.build()
    assert len(memory.view().questions) == 2
    assert memory.view([await memory.answer(BOTH)]).questions == ()


async def test_the_source_of_the_likest_claim_is_read_for_the_next_question(
    make_tools: MakeTools, tale: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "BLOCKS_READ", 1)
    (source,) = (
        await SmallMindGraph(make_tools(Reader()), tale, [RING], CONFIG).answer(RING)
    ).citations
    later = Question("Did Bo find a letter in winter?")
    judge = ScriptedEngine([yes(0.9)] * 3)
    await SmallMindGraph(make_tools(judge), tale, [later], CONFIG).build()
    shown = judge.requests[0].messages[-1].content
    assert "In winter Bo found a letter" in shown
    assert source.quote in shown


async def test_a_reading_without_a_usable_reply_is_made_again_by_the_next_build(
    make_tools: MakeTools, tale: Document
) -> None:
    empty = SmallMindGraph(make_tools(ScriptedEngine([""], concurrency=1)), tale, [RING], CONFIG)
    await empty.build()
    assert not empty.is_built()
    with new_attempt():
        memory = SmallMindGraph(make_tools(Reader()), tale, [RING], CONFIG)
        await memory.build()
    assert memory.is_built()
    assert (await memory.answer(RING)).text == "It was sea."


async def test_entities_are_labelled_as_the_text_names_them(make_tools: MakeTools) -> None:
    text = "At last Mrs. Woods lost the ring at sea. Then Mrs. Woods wept, and Mrs. Woods slept."
    engine = ScriptedEngine(["Mrs. Woods lost it at sea.", *[yes(0.9)] * 2], concurrency=1)
    document = Document.from_text("woods.txt", text)
    memory = SmallMindGraph(make_tools(engine), document, [RING], CONFIG)
    await memory.build()
    labels = {node.id: node.label for node in memory.view().nodes if node.kind == "entity"}
    assert labels == {"mrs_woods": "Mrs. Woods"}


async def test_without_a_question_every_block_makes_a_claim(
    make_tools: MakeTools, tale: Document
) -> None:
    sure = ScriptedEngine([lambda request: yes(0.9) if request.choices else "They met."] * 6)
    memory = SmallMindGraph(make_tools(sure), tale, [], CONFIG)
    await memory.build()
    claims = [node for node in memory.state.nodes if node.type == "claim"]
    assert [claim.chunk for claim in claims] == [0, 1, 2]


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who is Ann?", ["Who is Ann?"]),
        ("Who is Ann and where is Bo?", ["Who is Ann?", "Where is Bo?"]),
        ("Whom does Ann marry, and what is lost?", ["Whom does Ann marry?", "What is lost?"]),
        ("Why does Bo, who is ill, leave?", ["Why does Bo, who is ill, leave?"]),
        ("Who are Ann and Bo?", ["Who are Ann and Bo?"]),
        ("Tell me about Ann", ["Tell me about Ann"]),
        ("and who?", ["and who?"]),
    ],
)
def test_only_and_before_a_question_word_parts_a_question(question: str, parts: list[str]) -> None:
    assert split_question(question) == parts


# Blocks


BLOCKS = (
    "The opera was sung by Ada Lind in the spring of that year. ",
    "Wolves ran over the hills, and snow lay on all the roofs. ",
    "Bread was dear, and the mill stood still for want of rain. ",
    "At his house Ada Lind kept three parrots and a clock. ",
)


def find(question: str, k: int) -> list[int]:
    document = Document.from_text("t", "".join(BLOCKS))
    starts = [sum(map(len, BLOCKS[:number])) for number in range(len(BLOCKS))]
    blocks = [
        Chunk(number, document.span(start, start + len(part)), part, 12)
        for number, (start, part) in enumerate(zip(starts, BLOCKS, strict=True))
    ]
    return BlockFinder(WordEmbedder(512), blocks, find_names(document.text)).find(question, k)


def test_the_block_that_shares_words_with_the_question_comes_first() -> None:
    assert find("Where did wolves run over hills?", 1) == [1]


def test_a_name_in_the_best_block_leads_to_a_block_that_shares_no_word_with_the_question() -> None:
    assert find("Who sang the opera?", 2) == [0, 3]
