"""Reading a document into the log of its graph: many chunks at once, each a step of its own.

Source: HGMem §4.2, which leaves the extraction to LightRAG. The steps 0 to n - 1 are the chunks;
step n holds the descriptions that were summarised, and is written last. A chunk whose reply
cannot be used, or comes too late, is read once more when all others are through, then logged as
failed: it never stops the document. A chunk in which nothing is found is no failure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Final

from mgl.errors import ContextOverflow, EngineError, EngineTimeout, ReplyInvalid
from mgl.llm.base import Message, Sampling
from mgl.llm.concurrency import for_each
from mgl.llm.prompting import fit_texts
from mgl.memories.base import Tools
from mgl.memories.graph.config import GraphConfig
from mgl.memories.graph.edits import Extraction, Passage, Rows, described, description, extraction
from mgl.memories.graph.fold import Kind, gather, joined
from mgl.memories.graph.prompts import DESCRIBE, EXTRACT, GLEAN
from mgl.prompt import Prompt
from mgl.store import EditRecord
from mgl.types import Chunk, Document

__all__ = [
    "EXTRACT_STAGE",
    "FAILURES",
    "again_sampling",
    "asked",
    "describe_all",
    "extract",
    "read_chunks",
    "reason_of",
    "schema_of",
    "writing_prompts",
]

EXTRACT_STAGE: Final = "extract"
_REASONS: Final[dict[type[EngineError], str]] = {
    ReplyInvalid: "reply_invalid",
    EngineTimeout: "timeout",
    ContextOverflow: "context_overflow",
}
FAILURES: Final = tuple(_REASONS)
"""What ends one chunk and not the document."""
# Beyond the seeds of the client's own repairs, and warm, since greedy decoding repeats itself.
_AGAIN_SEED, _AGAIN_TEMPERATURE = 1000, 0.3
_JSON_TOKENS = 16


def writing_prompts(config: GraphConfig) -> tuple[Prompt, ...]:
    """The prompts that decide what stands in a graph of this configuration."""
    if config.extraction == "terms":
        return ()
    return (EXTRACT, DESCRIBE, GLEAN) if config.gleanings else (EXTRACT, DESCRIBE)


def asked(passage: Passage, config: GraphConfig) -> list[Message]:
    """The prompt that asks what a passage, of one sentence at least, tells of."""
    types = ", ".join(config.entity_types)
    return [Message("user", EXTRACT.render(entity_types=types, text=passage.numbered()))]


def schema_of(passage: Passage, config: GraphConfig) -> type[Extraction]:
    """What a reply about a passage is held to."""
    sentences = len(passage.sentences)
    return extraction(sentences, config.entity_types, config.most_entities, config.most_relations)


async def read_chunks(
    tools: Tools,
    memory_id: str,
    document: Document,
    chunks: Sequence[Chunk],
    config: GraphConfig,
) -> None:
    """Read the chunks that the log does not hold yet.

    Raises what LLM.complete raises, but for the failures of one chunk; what is in the log stays.
    """
    done = tools.store.chunks_done(memory_id)
    reading = _Reading(tools, memory_id, document, len(chunks), config, len(done))
    missing = [chunk.index for chunk in chunks if chunk.index not in done]
    await reading.all(chunks[index] for index in missing)
    await reading.again(chunks)


class _Reading:
    """One sitting over a document."""

    def __init__(
        self,
        tools: Tools,
        memory_id: str,
        document: Document,
        total: int,
        config: GraphConfig,
        done: int,
    ) -> None:
        self._tools = tools
        self._memory_id = memory_id
        self._document = document
        self._config = config
        self._done, self._total = done, total
        self._failed: list[int] = []

    async def all(self, chunks: Iterable[Chunk]) -> None:
        """Read chunks, and keep those that fail for another time."""
        self._tools.observer.progress(EXTRACT_STAGE, self._done, self._total)
        config = self._config
        sampling = Sampling(
            config.temperature, max_tokens=config.extraction_tokens, seed=config.seed
        )
        await for_each(
            chunks, partial(self._read, sampling, last=False), at_once=self._config.in_flight
        )

    async def again(self, chunks: Sequence[Chunk]) -> None:
        """Read those that failed once more, and log what fails again."""
        failed, self._failed = sorted(self._failed), []
        sampling = again_sampling(self._config)
        await for_each(
            (chunks[index] for index in failed),
            partial(self._read, sampling, last=True),
            at_once=self._config.in_flight,
        )

    async def _read(self, sampling: Sampling, chunk: Chunk, *, last: bool) -> None:
        passage = Passage.of(self._document, chunk)
        rows = Rows(passage)
        if passage.sentences:
            try:
                await extract(self._tools, passage, rows, sampling, self._config)
            except FAILURES as error:
                if not last:
                    if not self._failed:
                        self._tools.observer.note(
                            f"chunk {chunk.index} gave no reply that can be used: {error.message}; "
                            "such chunks are read once more at the end"
                        )
                    self._failed.append(chunk.index)
                    return
                self._tools.observer.note(f"chunk {chunk.index} failed: {error.message}")
                rows.fail("reply", reason_of(error), error.message)
        self._tools.store.append_edits(self._memory_id, chunk.index, rows.rows)
        self._done += 1
        self._tools.observer.progress(EXTRACT_STAGE, self._done, self._total)


async def extract(
    tools: Tools, passage: Passage, rows: Rows, sampling: Sampling, config: GraphConfig
) -> None:
    """Ask what a passage, of one sentence at least, tells of, and put it into its rows.

    Raises what LLM.complete raises; a gleaning that fails is a row.
    """
    messages = asked(passage, config)
    schema = schema_of(passage, config)
    for gleaning in range(config.gleanings + 1):
        try:
            reply = await tools.llm.complete(
                messages, schema, sampling=sampling, stage=EXTRACT_STAGE
            )
        except FAILURES as error:
            if not gleaning:
                raise
            rows.fail("gleaning", reason_of(error), error.message)
            return
        rows.take(reply.parsed, reply.call_key)
        if not (reply.parsed.entities or reply.parsed.relations):
            return
        messages += [Message("assistant", reply.text), Message("user", GLEAN.text)]


def again_sampling(config: GraphConfig, time: int = 1) -> Sampling:
    """How a chunk is read the ``time``-th time after the first: warm, and each time anew."""
    warm = max(config.temperature, _AGAIN_TEMPERATURE)
    seed = config.seed + time * _AGAIN_SEED
    return Sampling(warm, max_tokens=config.extraction_tokens, seed=seed)


async def describe_all(
    tools: Tools,
    memory_id: str,
    step: int,
    config: GraphConfig,
    *,
    among: Collection[tuple[Kind, str]] | None = None,
) -> None:
    """Summarise the descriptions, or some ``among`` them, that are longer than
    ``description_tokens``; one step of the log.

    One that cannot be had leaves the several in their place, and says so in the log.
    """
    gathered = gather(tools.store.edits(memory_id))
    several = {
        key: said for key, said in gathered.several().items() if among is None or key in among
    }
    counts = await tools.llm.count_tokens([joined(said) for said in several.values()])
    long = [
        key
        for key, tokens in zip(several, counts, strict=True)
        if tokens > config.description_tokens
    ]
    rows: list[EditRecord] = []
    if long:
        tools.observer.progress("describe", 0, len(long))

    async def describe(key: tuple[Kind, str]) -> None:
        of, identity = key
        name = gathered.name(of, identity)
        try:
            text, call_key = await _described(tools, name, several[key], config)
        except FAILURES as error:
            tools.observer.note(f"the description of {name} stays long: {error.message}")
            rows.append(described(step, of, identity, None, reason_of(error), None))
        else:
            rows.append(described(step, of, identity, text, None, call_key))
        tools.observer.progress("describe", len(rows), len(long))

    await for_each(long, describe, at_once=config.in_flight)
    places = {key: place for place, key in enumerate(long)}
    rows.sort(key=lambda row: places[row.payload["of"], row.payload["id"]])
    tools.store.append_edits(memory_id, step, rows)


async def _described(
    tools: Tools, name: str, said: Sequence[str], config: GraphConfig
) -> tuple[str, str | None]:
    budget = config.description_tokens + _JSON_TOKENS
    shown = await fit_texts(tools.llm, said, reserve=budget)
    prompt = DESCRIBE.render(
        name=name,
        descriptions="\n".join(f"- {text}" for text in shown),
        words=str(config.description_tokens // 2),
    )
    reply = await tools.llm.complete(
        [Message("user", prompt)],
        description(config.description_tokens),
        sampling=Sampling(config.temperature, max_tokens=budget, seed=config.seed),
        stage="describe",
    )
    return " ".join(reply.parsed.description.split()), reply.call_key


def reason_of(error: EngineError) -> str:
    """Why a chunk failed, as its row says it."""
    return next(reason for kind, reason in _REASONS.items() if isinstance(error, kind))
