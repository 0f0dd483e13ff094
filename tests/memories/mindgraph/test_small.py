"""The small preset over scripted models: what is asked, what is kept, what is cited."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from mgl.llm.base import Completion, Engine, Request, TokenUsage
from mgl.llm.calls import new_attempt
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.mindgraph import SmallMindGraph, SmallMindGraphConfig, claims
from mgl.memories.mindgraph.claims import BlockFinder
from mgl.memories.results import say_answer
from mgl.retrieval.base import Embedder
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.text.names import find_names
from mgl.text.sentences import split_question
from mgl.types import Chunk, Document, Question

from .conftest import MakeTools

CONFIG = SmallMindGraphConfig(chunk_tokens=20)
RING = Question("Where was the ring lost?")
FORGAVE = Question("Who forgave Ann?")
BOTH = Question("Where was the ring lost, and who forgave Ann?")


def yes(probability: float) -> Completion:
    return Completion("Yes", "stop", TokenUsage(50, 1), logprobs=(math.log(probability),))


def telling(*said: str) -> ScriptedEngine:
    """Claims what it is told, and confirms all of it."""
    return ScriptedEngine([*said, *[yes(0.9)] * 2], concurrency=1)


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


Open = Callable[..., SmallMindGraph]


@pytest.fixture
def memory_of(make_tools: MakeTools, tale: Document) -> Open:
    """``memory_of(engine, *questions)``: the small memory of the tale, or of another text."""

    def make(
        engine: Engine,
        *questions: Question,
        text: str = tale.text,
        embedder: Embedder | None = None,
    ) -> SmallMindGraph:
        tools, document = make_tools(engine), Document.from_text("tale.txt", text)
        tools = replace(tools, embedder=embedder or tools.embedder)
        return SmallMindGraph(tools, document, questions, CONFIG)

    return make


async def test_the_best_blocks_are_read_in_order_and_the_claim_cites_the_sentence_that_says_it(
    memory_of: Open, tale: Document
) -> None:
    engine = Reader()
    memory = memory_of(engine, RING)
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
    assert (await memory_of(idle, RING).answer(RING)).text == answer.text
    assert idle.requests == []


async def test_a_claim_that_no_sentence_bears_out_is_rejected_and_its_answer_cites_nothing(
    memory_of: Open, store: Store
) -> None:
    memory = memory_of(Reader(sure=False), RING)
    answer = await memory.answer(RING)
    assert (answer.text, answer.citations) == ("It was sea.", ())
    assert answer.marks == ("unconfirmed",)
    assert say_answer(answer) == "Not found in the text; the model's guess: It was sea."
    assert memory.state.nodes == ()
    rows = [(row.op, row.reason) for row in store.edits(memory.id)]
    assert rows == [("reading", None), ("add_node", "not_supported")]


async def test_a_source_that_lacks_most_words_of_a_claim_is_not_asked_about(
    memory_of: Open,
) -> None:
    engine = ScriptedEngine(["A pirate stole it at sea."], concurrency=1)
    answer = await memory_of(engine, RING).answer(RING)
    assert (answer.citations, answer.guesses) == ((), ("A pirate stole it at sea.",))
    assert len(engine.requests) == 1


async def test_a_claim_in_another_language_than_the_text_is_judged_by_the_model_alone(
    memory_of: Open,
) -> None:
    letter = "Das Wasser stieg die Nacht über. Da hat Matthes dem Klaus die Pumpe geliehen."
    question = Question("Who lent Klaus the pump?")
    memory = memory_of(telling("Matthes lent him the pump."), question, text=letter)
    answer = await memory.answer(question)
    assert (answer.marks, answer.guesses) == ((), ())
    assert "Matthes" in answer.citations[0].quote


async def test_a_text_whose_language_is_not_told_is_no_english_one(memory_of: Open) -> None:
    letter = "ارتفع الماء طوال الليل. ثم أعار مطيع المضخة لخالد وساعده حتى الصباح."
    question = Question("Who lent the pump to the neighbour?")
    memory = memory_of(telling("It was lent by his old friend Mutee."), question, text=letter)
    answer = await memory.answer(question)
    assert (answer.marks, answer.guesses) == ((), ())
    assert answer.citations[0].quote in letter


async def test_an_answer_that_repeats_its_question_is_a_guess(memory_of: Open) -> None:
    engine = ScriptedEngine(["The ring was lost."], concurrency=1)
    answer = await memory_of(engine, RING).answer(RING)
    assert (answer.citations, answer.guesses) == ((), ("The ring was lost.",))


async def test_names_in_a_claim_become_entities_with_the_place_that_names_them(
    memory_of: Open,
) -> None:
    """The sentence of the claim's source, else the first of the text; other names there do not."""
    said = "Then Ann Lee met Bo Orr, and he lost the ring."
    text = f"We call him Mr. Doe.\n\nIt rained.\n\n{said}"
    engine = telling("Mr. Doe lost it as he met Ann Lee.")
    memory = memory_of(engine, Question("Who lost the ring?"), text=text)
    await memory.build()
    graph = memory.state
    named = {node.id: node.quote for node in graph.nodes if node.type == "entity"}
    assert named == {"ann_lee": said, "mr_doe": "Mr. Doe"}
    (claim,) = (node for node in graph.nodes if node.type == "claim")
    assert {(edge.source, edge.relation) for edge in graph.edges} == {(claim.id, "mentions")}
    assert {edge.target for edge in graph.edges} == named.keys()
    for element in (*graph.nodes, *graph.edges):
        assert text[element.span.start : element.span.end] == element.quote
    labels = {node.id: node.label for node in memory.view().nodes if node.kind == "entity"}
    assert labels == {"ann_lee": "Ann Lee", "mr_doe": "Mr. Doe"}


async def test_each_part_of_a_question_is_read_for_and_answered_on_its_own(memory_of: Open) -> None:
    memory = memory_of(Reader(), BOTH)
    answer = await memory.answer(BOTH)
    assert answer.text == "It was sea. Bo forgave."
    assert ["sea" in each.quote or "forgave" in each.quote for each in answer.citations] == 2 * [
        True
    ]


async def test_a_question_the_graph_was_not_built_for_is_read_for_and_writes_nothing(
    memory_of: Open, store: Store
) -> None:
    memory = memory_of(Reader(), FORGAVE)
    await memory.build()
    rows = store.edits(memory.id)
    answer = await memory.answer(RING)
    assert answer.text == "It was sea."
    (citation,) = answer.citations
    assert "sea" in citation.quote
    assert memory.state.node(citation.node_id) is None
    assert store.edits(memory.id) == rows


async def test_blocks_are_embedded_once_for_all_questions(memory_of: Open) -> None:
    embedder = WordEmbedder(512)
    await memory_of(Reader(), BOTH, RING, embedder=embedder).build()
    blocks = [text for text in embedder.embedded if not text.endswith("?")]
    assert len(blocks) == len(set(blocks)) == 3


async def test_one_of_the_options_is_chosen_from_the_same_blocks(memory_of: Open) -> None:
    asked = Question("Where was the ring lost?", options=("at sea", "in Rome"))
    await memory_of(Reader(), RING).build()
    choosing = telling('{"answer": "at sea"}')
    assert (await memory_of(choosing, RING).answer(asked)).text == "at sea"


async def test_what_a_question_costs_is_known_before_and_nothing_is_left_after(
    memory_of: Open,
) -> None:
    memory = memory_of(Reader(), BOTH)
    before = await memory.estimate()
    assert (before.calls, before.seconds) == (6, None)  # two parts: one reads, two check
    assert 0 < before.input_tokens < 1500
    await memory.build()
    assert (await memory.estimate()).calls == 0


async def test_without_a_question_every_block_makes_a_claim_at_a_cost_known_to_the_call(
    memory_of: Open,
) -> None:
    engine = ScriptedEngine(
        [lambda request: yes(0.9) if request.choices else "They met."] * 6, concurrency=1
    )
    memory = memory_of(engine)
    before = await memory.estimate()
    assert (before.calls, before.is_bound) == (6, False)
    await memory.build()
    assert len(engine.requests) == 6
    assert (await memory.estimate()).calls == 0
    made = [node for node in memory.state.nodes if node.type == "claim"]
    assert [claim.chunk for claim in made] == [0, 1, 2]


async def test_questions_of_a_document_share_a_memory_that_keeps_what_each_found(
    memory_of: Open,
) -> None:
    first = memory_of(Reader(), RING)
    said = await first.answer(RING)
    second = memory_of(Reader(), FORGAVE)
    (citation,) = (await second.answer(FORGAVE)).citations
    assert first.id == second.id == memory_of(Reader()).id
    made = {node.content: node.id for node in second.state.nodes if node.type == "claim"}
    assert list(made) == ["It was sea.", "Bo forgave."]
    assert citation.node_id == made["Bo forgave."]
    view = second.view()
    assert (view.steps, view.questions) == (2, (RING.text, FORGAVE.text))
    silent = ScriptedEngine([])
    assert (await memory_of(silent, RING).answer(RING)) == said
    assert (await second.estimate()).calls == 0


async def test_the_parts_of_an_answered_question_are_no_questions_of_their_own(
    memory_of: Open,
) -> None:
    memory = memory_of(Reader(), BOTH)
    await memory.build()
    assert len(memory.view().questions) == 2
    assert memory.view([await memory.answer(BOTH)]).questions == ()


async def test_the_source_of_the_likest_claim_is_read_for_the_next_question(
    memory_of: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "BLOCKS_READ", 1)
    (source,) = (await memory_of(Reader(), RING).answer(RING)).citations
    later = Question("Did Bo find a letter in winter?")
    judge = ScriptedEngine([yes(0.9)] * 3)
    await memory_of(judge, later).build()
    shown = judge.requests[0].messages[-1].content
    assert "In winter Bo found a letter" in shown
    assert source.quote in shown


async def test_a_reading_without_a_usable_reply_is_made_again_by_the_next_build(
    memory_of: Open,
) -> None:
    empty = memory_of(ScriptedEngine([""], concurrency=1), RING)
    await empty.build()
    assert not empty.is_built()
    with new_attempt():
        memory = memory_of(Reader(), RING)
        await memory.build()
    assert memory.is_built()
    assert (await memory.answer(RING)).text == "It was sea."


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
