"""Chain-of-Agents: workers read the source in order and pass notes on; a manager answers from them.

Source: Zhang et al. 2024, §3 (Algorithm 1); chunks of 8,192 tokens as in MindGraph §4.2. A worker
sees the question, what the worker before it passed on (the communication unit) and its own chunk,
and writes the unit for the next one. The manager sees the last unit and the question alone. The
paper's roles, our prompts; the manager's is the call that answers for every baseline, so that
methods differ by what they read alone. The question is known from the start, so that nothing is
read beforehand; a chain that was interrupted resumes from the log of calls.
"""

from __future__ import annotations

from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt
from mgl.errors import ReplyInvalid
from mgl.memories.calls import check_room, summarize
from mgl.prompt import Prompt
from mgl.types import Answer, Question

STAGE = "worker"
NOTHING = "(nothing: yours is the first part)"

WORKER = Prompt(
    "chain-of-agents.worker",
    source="ours, in the role of Zhang et al. 2024, §3.1",
    text="""Several readers read a long text together, each one part of it, in order. You read \
part {number} of {total}. In the end somebody who has only your notes must answer this question:

{question}

Notes of the readers before you:
{notes}

Part {number}:
{text}

Write the notes for the next reader: whatever in the notes so far and in your part helps to answer \
the question, with names, numbers and words of the text. Keep what was noted unless your part \
corrects it. Do not answer the question unless the text does.

{"notes": "..."}""",
    variables=("question", "number", "total", "notes", "text"),
)


class ChainOfAgentsConfig(BaselineConfig):
    """``chunk_tokens`` bounds what a worker reads, ``note_tokens`` what it passes on."""

    chunk_tokens: int = Field(8_192, ge=16)
    note_tokens: int = Field(1_024, ge=16)


class ChainOfAgents(Baseline[None]):
    """Passes notes from chunk to chunk, through everything, for every question."""

    kind = "chain-of-agents"
    reads = "either"
    Config = ChainOfAgentsConfig
    _config: ChainOfAgentsConfig

    async def _respond(self, question: Question) -> Answer:
        """Marked ``chunks_unread`` where a worker gave no reply that could be used: the notes so
        far go on without its chunk. ReplyInvalid where none did, ContextOverflow where a chunk
        and two notes do not fit the context.
        """
        llm, observer = self._tools.llm, self._tools.observer
        most, budget = self._config.chunk_tokens, self._config.note_tokens
        chunks = [chunk for chunk in await self._chunks(most) if chunk.text]
        size = max((chunk.tokens for chunk in chunks), default=0)
        asked = await self._question_tokens(question)
        check_room(llm, size, "chunk_tokens", reserve=2 * budget + asked)
        notes, trace, problem = "", [], None
        for number, chunk in enumerate(chunks, 1):
            prompt = WORKER.render(
                question=question.text,
                number=str(number),
                total=str(len(chunks)),
                notes=notes or NOTHING,
                text=chunk.text.strip(),
            )
            note = await summarize(llm, prompt, budget, stage=STAGE, fallback=notes)
            notes, problem = note.text, note.problem or problem
            trace.append(f"worker {number} of {len(chunks)}: {note.problem or 'passed notes on'}")
            observer.progress(STAGE, number, len(chunks))
        if problem is not None and not notes:
            raise ReplyInvalid(
                f"no worker passed notes on: {problem}", hint="use another model, or larger notes"
            )
        return await self._answer(
            question,
            [Excerpt(notes)] if chunks else [],
            trace=trace,
            marks=("chunks_unread",) if problem is not None else (),
        )
