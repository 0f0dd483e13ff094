"""Generative sense-making questions, made by a model from long documents.

Source: HGMem §4.1 and Appendix A: documents of LongBench v2's single-document QA with more than
100k tokens in three domains, several queries each (Table 4 has their totals), which (1) target the
overall understanding of the text, not single phrases, and (2) require high-level understanding and
reasoning over evidence scattered across it; Appendix F: an answer is judged beside the paragraph
that its query originated from. GPT-4o made the paper's queries, with a prompt that is not printed:
ours, with any model.

    made = await build_sensemaking(llm, dataset, SenseMakingConfig(), observer)
    made.items[0].question.text, made.items[0].passage

A document that does not fit is divided into passages, of which as many are drawn as there are
questions to make, so that questions come from all over it. The model names the parts that an answer
has to connect before it asks.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from longreason import MadeSet, estimated_tokens
from pydantic import BaseModel, ConfigDict, Field, create_model

from mgl.baselines.naive_rag import share_out
from mgl.benchmarks.base import Dataset, Item
from mgl.errors import ContextOverflow, ReplyInvalid, UsageError
from mgl.llm.base import LLM, Message, Sampling
from mgl.llm.constraints import max_chars
from mgl.observer import Observer
from mgl.prompt import Prompt
from mgl.text.chunks import chunk_document
from mgl.types import Chunk, Document, Question

__all__ = ["QUESTIONS", "SenseMakingConfig", "build_sensemaking"]

QUESTION_TOKENS: Final = 256

QUESTIONS = Prompt(
    "sensemaking.questions",
    source="ours, after the two requirements of HGMem §4.1",
    text=(
        "Text:\n{passage}\n\n"
        "Make {number} questions about the text above, for readers who have all of it. Each must\n"
        "1. be about the understanding of the text as a whole, not about some phrase or sentence "
        "of it;\n"
        "2. need high-level understanding, and reasoning over evidence that is scattered across "
        "the text.\n"
        "A question must be clear without the text beside it: name what it is about. First list "
        "two to six parts of the text that an answer has to connect, then ask. "
        'Reply with JSON only: {"questions": [{"parts": ["…", "…"], "question": "…"}]}'
    ),
    variables=("passage", "number"),
)


TOTALS: Final = {"Financial": 100, "Governmental": 98, "Legal": 55}
"""Queries of each domain (HGMem, Table 4)."""


class SenseMakingConfig(BaseModel):
    """Floor, category, domains and totals are HGMem's (Appendix A, Table 4).

    ``category`` is LongBench v2's, None for all. ``totals`` says how many questions the documents
    of a domain have together; in any other domain a document has ``questions``, which is also the
    most that a call asks for.
    ``passage_tokens`` bounds what the model reads for one call below its context. ``documents``
    bounds how many are used: so many are drawn by ``seed``. ``domains`` are sub-domains of
    LongBench v2; none are all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    floor_tokens: int = Field(100_000, ge=0)
    domains: tuple[str, ...] = ("Financial", "Governmental", "Legal")
    category: str | None = "Single-Document QA"
    totals: Mapping[str, Annotated[int, Field(ge=0)]] = TOTALS
    questions: int = Field(5, ge=1)
    passage_tokens: int | None = Field(None, ge=64)
    documents: int | None = Field(None, ge=1)
    temperature: float = Field(0.7, ge=0)
    seed: int = 0


class _Asked(BaseModel):
    """What an answer connects comes before the question."""

    model_config = ConfigDict(extra="forbid")

    parts: list[Annotated[str, max_chars(160)]] = Field(min_length=2, max_length=6)
    question: Annotated[str, max_chars(400)]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")

    questions: list[_Asked]


async def build_sensemaking(
    llm: LLM, dataset: Dataset, config: SenseMakingConfig, observer: Observer
) -> MadeSet:
    """The set made of a dataset's documents; a question that is there already is not made twice.

    UsageError where no document is long enough, or the context has no room. What ``LLM.complete``
    raises, but for replies that cannot be read: those leave their passage without questions.
    """
    documents = _documents(dataset, config)
    if not documents:
        raise UsageError(
            f"no document of {', '.join(config.domains) or 'any domain'} has "
            f"{config.floor_tokens:,} tokens",
            hint="lower the floor, for instance --set floor_tokens=20000, or set domains=[] or "
            "category=null",
        )
    items: list[Item] = []
    rows: list[Mapping[str, Any]] = []
    counts: dict[str, Mapping[str, int]] = {}
    numbers = _share_totals({source: domain for source, (domain, _) in documents.items()}, config)
    for done, (source, (domain, document)) in enumerate(documents.items(), start=1):
        made, told = await _of_document(llm, source, domain, document, numbers[source], config)
        items.extend(made)
        rows.extend(told)
        counts[source] = {
            "passages": len(told),
            "unread": sum(row["reason"] != "" for row in told),
            "questions": len(made),
        }
        observer.progress("documents", done, len(documents))
    return MadeSet(
        items=tuple(items),
        documents={source: document for source, (_, document) in documents.items()},
        counts=counts,
        rows=tuple(rows),
        prompts=(QUESTIONS,),
    )


def _documents(dataset: Dataset, config: SenseMakingConfig) -> dict[str, tuple[str, Document]]:
    """The documents to ask about with their domain, by source, each once."""
    found: dict[str, tuple[str, Document]] = {}
    for item in dataset.items:
        domain = item.labels.get("sub_domain", "")
        is_wanted = config.category in (None, item.category)
        is_wanted = is_wanted and (not config.domains or domain in config.domains)
        if item.source in found or not is_wanted:
            continue
        document = dataset.sources[item.source]()
        if isinstance(document, Document) and estimated_tokens(document.text) >= max(
            1, config.floor_tokens
        ):
            found[item.source] = (domain, document)
    if config.documents is not None and len(found) > config.documents:
        drawn = set(random.Random(config.seed).sample(list(found), config.documents))
        found = {source: one for source, one in found.items() if source in drawn}
    return found


def _share_totals(domains: Mapping[str, str], config: SenseMakingConfig) -> dict[str, int]:
    """How many questions each document is asked, by source; ``domains`` are theirs."""
    numbers = dict.fromkeys(domains, config.questions)
    for domain, total in config.totals.items():
        own = [source for source, other in domains.items() if other == domain]
        numbers |= dict(zip(own, share_out(total, len(own)), strict=True))
    return numbers


async def _of_document(
    llm: LLM,
    source: str,
    domain: str,
    document: Document,
    number: int,
    config: SenseMakingConfig,
) -> tuple[list[Item], list[Mapping[str, Any]]]:
    if not number:
        return [], []
    passages = await _passages(llm, document, config)
    drawn = random.Random(f"{config.seed} {source}").sample(
        range(len(passages)), min(number, len(passages))
    )
    shares = share_out(number, len(drawn))
    asked = [
        (passages[place], min(config.questions, share - first), first)
        for place, share in zip(sorted(drawn), shares, strict=True)
        for first in range(0, share, config.questions)
    ]
    replies = await asyncio.gather(*(_ask(llm, *one, config) for one in asked))
    items: dict[str, Item] = {}
    rows: list[Mapping[str, Any]] = []
    for (chunk, wanted, _), (questions, reason) in zip(asked, replies, strict=True):
        place = f"{chunk.span.start}-{chunk.span.end}"
        for one in questions:
            text = " ".join(one.question.split())
            items.setdefault(
                text.casefold(),
                Item(
                    id=f"{source}/q{len(items)}",
                    source=source,
                    question=Question(text, form="long"),
                    category=domain,
                    evidence=(place,),
                    passage=chunk.text,
                ),
            )
        rows.append(
            {
                "source": source,
                "passage": place,
                "wanted": wanted,
                "questions": [one.model_dump() for one in questions],
                "reason": reason,
            }
        )
    return list(items.values()), rows


async def _passages(llm: LLM, document: Document, config: SenseMakingConfig) -> Sequence[Chunk]:
    frame = await llm.count_prompt_tokens(_messages("", config.questions), _schema(1))
    room = llm.context_tokens - frame - 2 * QUESTION_TOKENS * config.questions
    if config.passage_tokens is not None:
        room = min(room, config.passage_tokens)
    if room <= 0:
        raise UsageError(
            f"a context of {llm.context_tokens:,} tokens has no room for a passage",
            hint="take a model with a longer context, or ask fewer questions a document",
        )
    return await chunk_document(document, room, llm.count_tokens)


async def _ask(
    llm: LLM, chunk: Chunk, number: int, first: int, config: SenseMakingConfig
) -> tuple[list[_Asked], str]:
    """The questions made of a passage, and why there are none where none could be read; ``first``
    are those that earlier calls make of it."""
    seed = config.seed + first
    sampling = Sampling(config.temperature, max_tokens=QUESTION_TOKENS * number, seed=seed)
    try:
        reply = await llm.complete(
            _messages(chunk.text, number), _schema(number), sampling=sampling, stage="questions"
        )
    except (ReplyInvalid, ContextOverflow) as error:
        return [], error.message
    return ([], "the model called a tool") if reply.parsed is None else (reply.parsed.questions, "")


def _messages(passage: str, number: int) -> list[Message]:
    return [Message("user", QUESTIONS.render(passage=passage, number=str(number)))]


def _schema(number: int) -> type[_Reply]:
    """A reply of so many questions."""
    field = Field(min_length=number, max_length=number)
    return create_model("Questions", __base__=_Reply, questions=(list[_Asked], field))
