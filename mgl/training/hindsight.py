"""What a model should have written, made of the texts that answer a question: MindGraph's edits,
and the answers of memories.

    for ask in write_edits(document, "Who sold the ring?", evidence):
        ask.prompt, ask.completion, ask.schema

A document is read block by block as MindGraph reads it, with its own prompt, citing sentences by
their numbers; the state before a block is what the edits of the earlier ones made. A sentence that
answers becomes a node that says it in the text's own words; a block without one gets an empty list.
Nodes alone: what relates them, nobody has labelled.

An answer is asked for as memories ask: over what answers and the texts most like the question.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any, Final

from mgl.llm.schemas import json_schema, print_reply
from mgl.memories.calls import PASSAGE_ANSWER, number_passages
from mgl.memories.log import Draft
from mgl.memories.mindgraph.build import build_prompt, plan_reply
from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.edits import CONTENT_CHARS, Block, dispose, operations_schema
from mgl.memories.mindgraph.state import EMPTY, VOCABULARY, Edit, Graph
from mgl.memories.turns import UNMENTIONED, request_answer
from mgl.retrieval import LexicalIndex
from mgl.text import chunk_document
from mgl.text.groups import format_turn
from mgl.types import Document, Question, Turn

BLOCK_TOKENS: Final = 400
"""Tokens of a block, at four characters each: no model's tokenizer is asked."""

MOST_TURNS: Final = 10
"""Turns that an answer is asked for over."""

_PASSAGES: Final = 4
_CHARACTERS: Final = 4
_ID_CHARACTERS: Final = 36


@dataclass(frozen=True, slots=True)
class HelpfulSpan:
    """A range of a document that helps to answer; ``about`` names what it is about."""

    start: int
    end: int
    about: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about a block, and the reply it should have had. ``schema`` is what holds the
    reply; both are JSON, the reply in the grammar's own layout."""

    prompt: str
    completion: str
    schema: str
    is_empty: bool


def write_edits(
    document: Document, question: str, evidence: Sequence[HelpfulSpan]
) -> Iterator[Asked]:
    """Yield the request for each block of a document, with the edits that it should have brought.

    The bytes are those that MindGraph sends with ``cite=sentence`` for these blocks.
    """
    config = MindGraphConfig(cite="sentence", chunk_tokens=BLOCK_TOKENS)
    chunks = asyncio.run(chunk_document(document, BLOCK_TOKENS, _count))
    graph = EMPTY
    for chunk in chunks:
        block = Block.of(document, chunk)
        if not block.sentences:
            continue
        edits, _ = plan_reply(config, block)
        ids = [node.id for node in graph.nodes]
        schema = operations_schema(ids, block, cite="sentence", max_operations=edits)
        prompt = build_prompt([Question(question)], config, graph, block, len(chunks))
        made = _make_nodes(block, evidence, graph)[:edits]
        said = print_reply({"operations": made})
        yield Asked(prompt, said, json.dumps(json_schema(schema), ensure_ascii=False), not made)
        draft: Draft[Edit, Graph] = Draft(VOCABULARY, chunk.index, graph)
        for operation in schema.model_validate_json(said).operations:
            dispose(draft, operation, block, call_key=None)
        graph = draft.state


def _make_nodes(
    block: Block, evidence: Sequence[HelpfulSpan], graph: Graph
) -> list[dict[str, Any]]:
    taken = {node.id for node in graph.nodes}
    made = []
    for number, sentence in enumerate(block.sentences, 1):
        found = [each for each in evidence if _is_said(each, sentence.start, sentence.end)]
        if not found:
            continue
        about = found[0].about
        name = _name_node(about, taken)
        taken.add(name)
        text = " ".join(block.document.quote(sentence).split())
        content = text if about.casefold() in text.casefold() else f"{about}: {text}"
        made.append(
            {
                "op": "add_node",
                "src": number,
                "id": name,
                "type": "claim",
                "content": shorten(content, CONTENT_CHARS, placeholder=" …"),
            }
        )
    return made


def _is_said(evidence: HelpfulSpan, start: int, end: int) -> bool:
    """Whether a range and the evidence overlap by more than half of the shorter one."""
    shared = min(evidence.end, end) - max(evidence.start, start)
    return 2 * shared > min(evidence.end - evidence.start, end - start)


def _name_node(about: str, taken: set[str]) -> str:
    """An id that is not taken yet, readable as D.1 asks for it."""
    words = re.sub(r"[^a-z0-9]+", "_", about.lower()).strip("_")
    base = words[:_ID_CHARACTERS].rstrip("_") if re.search("[a-z]", words) else "fact"
    names = [base, *(f"{base}_{number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)


async def _count(texts: Sequence[str]) -> list[int]:
    return [-(-len(text) // _CHARACTERS) for text in texts]


def write_answer(
    turns: Sequence[Turn], question: Question, answer: str | None, shown: Collection[int]
) -> Asked:
    """The request of a memory over ``MOST_TURNS`` turns, ``shown`` and those most like the question
    by words, and its reply, which cites ``shown``; without an answer it says that nothing was
    mentioned."""
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
