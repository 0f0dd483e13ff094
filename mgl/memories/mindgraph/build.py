"""The build stage as printed: one call a chunk, the question and the graph so far before it.

Source: MindGraph §3.2, prompt D.1. Each chunk's edits are one transaction, so a build that stops
goes on with the first chunk that is not in the log. A chunk whose reply stays invalid after every
retry is logged as a rejected reply and does not stop the document.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgl.errors import ContextOverflow, ReplyInvalid
from mgl.llm.base import Message, Sampling
from mgl.memories.base import Tools
from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.edits import (
    EDIT_TOKENS,
    Block,
    dispose,
    operations_schema,
    resolved,
)
from mgl.memories.mindgraph.prompts import (
    BUILD,
    BUILD_BY_SENTENCE,
    BUILD_BY_SENTENCE_CACHED,
    BUILD_CACHED,
    NO_QUESTION,
    SEVERAL_QUESTIONS,
)
from mgl.memories.mindgraph.state import Graph, apply, replay, serialise
from mgl.prompt import Prompt
from mgl.store import EditRecord
from mgl.text import sentence_spans
from mgl.types import Chunk, Document, Question

__all__ = ["build_graph", "question_text", "writing_prompts"]

_PROMPTS = {
    ("quote", "paper"): BUILD,
    ("quote", "cached"): BUILD_CACHED,
    ("sentence", "paper"): BUILD_BY_SENTENCE,
    ("sentence", "cached"): BUILD_BY_SENTENCE_CACHED,
}


def writing_prompts(questions: Sequence[Question], config: MindGraphConfig) -> tuple[Prompt, ...]:
    """The prompts that decide what stands in a graph for these questions."""
    build = _PROMPTS[config.cite, config.prompt_order]
    if len(questions) == 1:
        return (build,)
    return (build, SEVERAL_QUESTIONS if questions else NO_QUESTION)


def question_text(questions: Sequence[Question]) -> str:
    """What stands in the place of the question: it, several of them, or that there is none."""
    if not questions:
        return NO_QUESTION.text
    if len(questions) == 1:
        return questions[0].text
    numbered = "\n".join(f"{n}. {question.text}" for n, question in enumerate(questions, 1))
    return SEVERAL_QUESTIONS.render(questions=numbered)


async def build_graph(
    tools: Tools,
    memory_id: str,
    document: Document,
    chunks: Sequence[Chunk],
    questions: Sequence[Question],
    config: MindGraphConfig,
) -> None:
    """Read the chunks that the log does not hold yet, in order."""
    done = tools.store.chunks_done(memory_id)
    edits = (resolved(row) for row in tools.store.edits(memory_id))
    graph = replay(edit for edit in edits if edit is not None)
    tools.observer.progress("build", len(done), len(chunks))
    for chunk in chunks:
        if chunk.index not in done:
            rows, graph = await _read_chunk(
                tools, graph, _block(document, chunk), len(chunks), questions, config
            )
            tools.store.append_edits(memory_id, chunk.index, rows)
        tools.observer.progress("build", chunk.index + 1, len(chunks))


def _block(document: Document, chunk: Chunk) -> Block:
    sentences = sentence_spans(document.text, chunk.span.start, chunk.span.end)
    return Block(document, chunk, tuple(document.span(start, end) for start, end in sentences))


async def _most_operations(tools: Tools, block: Block, config: MindGraphConfig) -> int:
    """How many edits surely fit the reply's budget, whichever sources they cite."""
    source = 4
    if config.cite == "quote":
        quotes = [block.document.quote(span) for span in block.sentences]
        source = max(await tools.llm.count_tokens(quotes))
    fitting = config.build_tokens // (EDIT_TOKENS + source)
    return max(1, min(config.max_operations, fitting))


async def _read_chunk(
    tools: Tools,
    graph: Graph,
    block: Block,
    total: int,
    questions: Sequence[Question],
    config: MindGraphConfig,
) -> tuple[list[EditRecord], Graph]:
    if not block.sentences:
        return [], graph
    by_sentence = config.cite == "sentence"
    prompt = _PROMPTS[config.cite, config.prompt_order].render(
        question=question_text(questions),
        graph_state=serialise(graph),
        block_idx=str(block.chunk.index + 1),
        total_blocks=str(total),
        block_text=block.numbered() if by_sentence else block.chunk.text,
    )
    schema = operations_schema(
        [node.id for node in graph.nodes],
        block,
        cite=config.cite,
        quote=config.quote,
        max_operations=await _most_operations(tools, block, config),
    )
    sampling = Sampling(config.temperature, max_tokens=config.build_tokens, seed=config.seed)
    try:
        reply = await tools.llm.complete(
            [Message("user", prompt)], schema, sampling=sampling, stage="build"
        )
    except ReplyInvalid as error:
        tools.observer.note(f"block {block.chunk.index + 1}: {error.message}")
        failed = {"error": error.message}
        return [EditRecord(block.chunk.index, "reply", failed, "rejected", "reply_invalid")], graph
    except ContextOverflow as error:
        raise ContextOverflow(
            f"block {block.chunk.index + 1} of {total} with its graph of {len(graph.nodes)} nodes "
            f"does not fit: {error.message}",
            hint="use smaller chunks (--chunk-tokens) or a model with a longer context",
        ) from error
    rows: list[EditRecord] = []
    for proposal in reply.parsed.operations:
        for row, edit in dispose(
            graph, proposal, block, quote_floor=config.quote_floor, call_key=reply.call_key
        ):
            rows.append(row)
            if edit is not None:
                graph = apply(graph, edit)
    return rows, graph
