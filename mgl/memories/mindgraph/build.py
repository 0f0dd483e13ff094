"""The build stage as printed: one call a chunk, the question and the graph so far before it.

Source: MindGraph §3.2, prompt D.1. A chunk whose reply stays invalid after every retry is logged
as a rejected reply and does not stop the document.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgl.errors import ContextOverflow
from mgl.llm.base import Sampling
from mgl.memories.base import Tools
from mgl.memories.log import Draft
from mgl.memories.mindgraph import prompts
from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.edits import EDIT_TOKENS, Block, dispose, operations_schema
from mgl.memories.mindgraph.state import Edit, Graph, serialise
from mgl.memories.propose import propose
from mgl.prompt import Prompt
from mgl.types import Question

__all__ = ["question_text", "read_block", "writing_prompts"]

_PROMPTS = {
    ("quote", "paper"): prompts.BUILD,
    ("quote", "cached"): prompts.BUILD_CACHED,
    ("sentence", "paper"): prompts.BUILD_BY_SENTENCE,
    ("sentence", "cached"): prompts.BUILD_BY_SENTENCE_CACHED,
}


def writing_prompts(questions: Sequence[Question], config: MindGraphConfig) -> tuple[Prompt, ...]:
    """The prompts that decide what stands in a graph for these questions."""
    build = _PROMPTS[config.cite, config.prompt_order]
    if len(questions) == 1:
        return (build,)
    return (build, prompts.SEVERAL_QUESTIONS if questions else prompts.NO_QUESTION)


def question_text(questions: Sequence[Question]) -> str:
    """What stands in the place of the question: it, several of them, or that there is none."""
    if not questions:
        return prompts.NO_QUESTION.text
    if len(questions) == 1:
        return questions[0].text
    numbered = "\n".join(f"{n}. {question.text}" for n, question in enumerate(questions, 1))
    return prompts.SEVERAL_QUESTIONS.render(questions=numbered)


async def read_block(
    tools: Tools,
    draft: Draft[Edit, Graph],
    block: Block,
    total: int,
    questions: Sequence[Question],
    config: MindGraphConfig,
) -> None:
    """Put the edits that the model proposes for one of ``total`` blocks into its draft.

    ContextOverflow where the block and the graph do not fit the model's context.
    """
    if not block.sentences:
        return
    number, graph = block.chunk.index + 1, draft.state
    prompt = _PROMPTS[config.cite, config.prompt_order].render(
        question=question_text(questions),
        graph_state=serialise(graph),
        block_idx=str(number),
        total_blocks=str(total),
        block_text=block.number_sentences() if config.cite == "sentence" else block.chunk.text,
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
        proposal = await propose(tools.llm, prompt, schema, sampling=sampling, stage="build")
    except ContextOverflow as error:
        raise ContextOverflow(
            f"block {number} of {total} with its graph of {len(graph.nodes)} nodes does not fit: "
            f"{error.message}",
            hint="use smaller chunks (--chunk-tokens) or a model with a longer context",
        ) from error
    if proposal.reply is None:
        tools.observer.note(f"block {number}: {proposal.problem}")
        draft.fail("build", proposal.problem)
        return
    for operation in proposal.reply.operations:
        dispose(draft, operation, block, quote_floor=config.quote_floor, call_key=proposal.call_key)


async def _most_operations(tools: Tools, block: Block, config: MindGraphConfig) -> int:
    """How many edits fit the reply's budget even with the longest source."""
    source = 4
    if config.cite == "quote":
        quotes = [block.document.quote(span) for span in block.sentences]
        source = max(await tools.llm.count_tokens(quotes))
    fitting = config.build_tokens // (EDIT_TOKENS + source)
    return max(1, min(config.max_operations, fitting))
