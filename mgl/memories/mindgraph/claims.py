"""What a document tells for a question, read from a few of its passages, as claims of a graph.

Code finds what to read (``BlockFinder``). The model reads it in the order of the text and answers
in one sentence, which is the claim that the graph takes in. Code finds the sentences of two of
these passages that tell most of it, and the model says of each that has most of the claim's words
whether it says so. The surer one is the claim's source; a claim that neither bears out is logged as
rejected. A document that is read for no question has a claim for each block.

A reading (``Reading``) is a step of the log: one part of a question, or one block. What is read for
a question has the source of the claim most like it, too, so that one finds what another has read.

Answering takes the claim that was made for a question; a question that the graph was not built for
is read for in the same way, and nothing is written. An answer that no sentence bears out is a
guess: it is marked ``unconfirmed`` and cites nothing.

    claim —mentions→ entity    the claim holds one of the entity's names
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from threading import Lock
from typing import cast

import numpy as np
from numpy.typing import NDArray

from mgl.errors import ReplyInvalid
from mgl.llm.prompting import SYSTEM
from mgl.memories.base import Tools
from mgl.memories.calls import (
    CLAIM_WITHOUT_QUESTION,
    OPEN_QUESTION,
    PASSAGE_ANSWER,
    SUPPORTED,
    answer_from_passages,
    cite_parts,
    extract_claim,
    find_support,
)
from mgl.memories.log import READING, Draft
from mgl.memories.mindgraph.state import AddEdge, AddNode, Edit, Graph, make_vocabulary
from mgl.memories.mindgraph.tools import passage_around
from mgl.retrieval.base import Embedder
from mgl.retrieval.evidence import find_evidence
from mgl.retrieval.passages import PassageIndex, standardize
from mgl.store import EditRecord
from mgl.text import sentence_spans
from mgl.text.groups import show_span
from mgl.text.language import find_language
from mgl.text.names import Name, find_mentioned, find_names
from mgl.text.sentences import split_question
from mgl.text.support import find_telling, share_told
from mgl.types import Answer, Chunk, Document, Question, Span

BLOCKS_READ = 4
GROUNDS = 2  # sentences that a claim is checked against
PROMPT_TOKENS, TOKEN_CHARS = 80, 4  # of a call beside what it reads; of a token, about
GROUND_CHARS = 600  # of the original around such a sentence
SUPPORT_FLOOR = 0.75  # P(Yes) below which a claim is rejected
LANGUAGE_CHARS = 4_000  # of a document, that tell its language
TOLD_FLOOR = 0.6  # share of a claim's words that a source in its language has, to be asked about
ALSO = " (also "  # between a name and its other forms
NOT_FOUND = "The text could not be read for this question."

_CHOICE = re.compile(r"\bor\b", re.IGNORECASE)

PROMPTS = (SYSTEM, PASSAGE_ANSWER, CLAIM_WITHOUT_QUESTION, SUPPORTED)
"""The prompts that decide what stands in a graph, whatever was asked."""


# Questions


def split_questions(questions: Iterable[str]) -> list[str]:
    """The parts of all questions in order, each once: what a graph is read for."""
    return list(dict.fromkeys(part for text in questions for part in split_question(text)))


def cost_of_part(block_tokens: int) -> tuple[int, int]:
    """The calls that a part of a question takes at most, and about how many tokens they read."""
    checks = GROUNDS * (GROUND_CHARS // TOKEN_CHARS + PROMPT_TOKENS)
    return 1 + GROUNDS, BLOCKS_READ * block_tokens + PROMPT_TOKENS + checks


def cost_of_block(block_tokens: int) -> tuple[int, int]:
    """The calls that a block takes which is read for no question, and about how many tokens."""
    return 2, 2 * (block_tokens + PROMPT_TOKENS)


# Claims


@dataclass(frozen=True, slots=True)
class Reading:
    """Marks the step that read for ``question``: "" for a block that was read for none.

    ``spans`` are the starts and ends of what was shown, in the order of the text.
    """

    question: str
    spans: tuple[tuple[int, int], ...]


VOCABULARY = make_vocabulary({READING: Reading})


@dataclass(frozen=True, slots=True)
class Ground:
    """The sentences that best cover a claim, their block, and P(Yes) that they support it: 0 if
    they lack too many of its words, since the 1.5B then says Yes to unsupported claims."""

    block: int
    span: Span
    support: float


@dataclass(frozen=True, slots=True)
class FoundClaim:
    """What the document tells for a question, and what it stands on.

    ``question`` is "" where a block was read for none. ``read`` are the passages that were shown in
    the order of the text, and ``input_tokens`` what the call read. ``node`` is the claim's id in
    the graph, None for one that is not in it.
    """

    question: str
    text: str
    ground: Ground
    read: tuple[Span, ...]
    call_key: str | None
    input_tokens: int = 0
    node: str | None = None

    @property
    def name(self) -> str:
        """The id of its node, or what a citation names where it has none."""
        return self.node or f"block{self.ground.block + 1}"

    @property
    def is_supported(self) -> bool:
        return self.ground.support >= SUPPORT_FLOOR


@dataclass(frozen=True, slots=True)
class MadeClaim:
    """What the log has of a reading: its mark, and the row of its claim, kept or rejected."""

    reading: Reading
    row: EditRecord


class ClaimReader:
    """Reads a document's blocks for questions, and finds them by the claims ``made`` before."""

    def __init__(
        self,
        tools: Tools,
        document: Document,
        blocks: Sequence[Chunk],
        made: Iterable[MadeClaim] = (),
    ) -> None:
        self._tools = tools
        self.document = document
        self._blocks = blocks
        self._names = find_names(document.text)
        self._made = tuple(made)
        self._finder: BlockFinder | None = None
        self._finding = Lock()

    @cached_property
    def _language(self) -> str:
        text = self.document.text
        middle = max(0, len(text) - LANGUAGE_CHARS) // 2  # a licence before it may be in another
        return find_language(text[middle : middle + LANGUAGE_CHARS], unsure="")

    async def read_parts(self, parts: Sequence[str]) -> list[FoundClaim]:
        """What the document tells for each part of the questions."""
        return await self._gather([self.read_for(Question(part)) for part in parts])

    async def read_blocks(self, places: Iterable[int]) -> list[FoundClaim]:
        """What each of these blocks tells, read for no question."""
        return await self._gather([self._read_block(self._blocks[place]) for place in places])

    async def _gather(self, wanted: Sequence[Awaitable[FoundClaim | None]]) -> list[FoundClaim]:
        done, total = count(1), len(wanted)
        progress = self._tools.observer.progress
        if wanted:
            progress("read", 0, total)

        async def report(read: Awaitable[FoundClaim | None]) -> FoundClaim | None:
            found = await read
            progress("read", next(done), total)
            return found

        read = await asyncio.gather(*map(report, wanted))
        return [each for each in read if each is not None]

    def _find(self, question: str) -> list[Span]:
        """The passages to read for a question: its best blocks, the best first, and the source of
        the claim most like it."""
        with self._finding:  # questions that are asked at once wait for the first one's index
            if self._finder is None:
                embedder = self._tools.required_embedder
                self._finder = BlockFinder(embedder, self._blocks, self._names)
            places = self._finder.find(question, BLOCKS_READ)
        spans = [self._blocks[place].span for place in places]
        if (known := self._find_known(question)) is not None:
            around = passage_around(self.document, known, GROUND_CHARS)
            spans += [each for each in (around, known) if _is_apart(each, spans)][:1]
        return spans

    def _find_known(self, question: str) -> Span | None:
        """The source of the claim made before that is most like a question, if there is any."""
        made = [each.row for each in self._made if each.row.outcome == "applied"]
        known = [(str(row.payload["content"]), row.span) for row in made if row.span is not None]
        if not known:
            return None
        embedder = self._tools.required_embedder
        vectors = embedder.embed([text for text, _ in known])
        likeness = vectors @ embedder.embed([question], task="query")[0]
        return known[int(np.argmax(likeness))][1]

    def _find_block(self, span: Span) -> int:
        """The block that a span begins in."""
        return max(0, bisect_right([block.span.start for block in self._blocks], span.start) - 1)

    async def read_for(self, question: Question) -> FoundClaim | None:
        """Answer a part of a question from its best passages; None where no reply could be
        used."""
        spans = await asyncio.to_thread(self._find, question.text)
        read = tuple(sorted(spans))
        shown = [self._show(span) for span in read]
        try:
            reply = await answer_from_passages(self._tools.llm, shown, question, stage="read")
        except ReplyInvalid:
            return None
        ground = await self._find_ground(spans, reply.text, question.text)
        return FoundClaim(
            question.text, reply.text, ground, read, reply.call_key, reply.input_tokens
        )

    async def _find_ground(self, spans: Sequence[Span], claim: str, question: str) -> Ground:
        """Check a claim against the sentences of the passages that tell most of it.

        One that only repeats its question ("They were married.") answers nothing: nothing bears it
        out. Words are compared where both are in one language; else the model alone says whether a
        passage bears the claim out.
        """
        found = [find_evidence(self.document, span, claim, question) for span in spans]
        found.sort(key=lambda each: -each[1])

        says_more = bool(_CHOICE.search(question) or find_telling(claim) - find_telling(question))
        language = find_language(f"{question} {claim}", unsure=self._language)
        floor = TOLD_FLOOR if language == self._language else 0.0

        async def check(span: Span) -> Ground:
            passage = self._show(passage_around(self.document, span, GROUND_CHARS))
            place = self._find_block(span)
            if not says_more or share_told(claim, passage) < floor:
                return Ground(place, span, 0.0)
            support = await find_support(self._tools.llm, passage, question, claim)
            return Ground(place, span, support)

        grounds = await asyncio.gather(*(check(span) for span, _ in found[:GROUNDS]))
        return max(grounds, key=lambda ground: ground.support)

    def recall(self, made: MadeClaim) -> FoundClaim:
        """The claim that was made for a part of a question, from its row."""
        row, reading = made.row, made.reading
        assert row.span is not None
        assert row.score is not None
        call = self._tools.store.find_call(row.call_key or "")
        tokens = (
            0 if call is None or call.completion is None else call.completion.usage.input_tokens
        )
        return FoundClaim(
            reading.question,
            str(row.payload["content"]),
            Ground(self._find_block(row.span), row.span, row.score),
            tuple(self.document.span(start, end) for start, end in reading.spans),
            row.call_key,
            tokens,
            str(row.payload["id"]),
        )

    async def _read_block(self, block: Chunk) -> FoundClaim | None:
        claim = await extract_claim(self._tools.llm, self._show(block.span), None)
        if claim is None:
            return None
        span, _ = find_evidence(self.document, block.span, claim.text, OPEN_QUESTION)
        ground = Ground(block.index, span, claim.support)
        return FoundClaim("", claim.text, ground, (block.span,), claim.call_key)

    def _show(self, span: Span) -> str:
        return show_span(self.document, span)


def _is_apart(span: Span, others: Iterable[Span]) -> bool:
    return all(span.end <= each.start or each.end <= span.start for each in others)


def describe_claim(claim: FoundClaim) -> str:
    """Say in a line what was read for a claim."""
    read = ", ".join(span.place for span in claim.read)
    return f"read {read}: support {claim.ground.support:.2f} by {claim.name}"


# The graph


class ClaimWriter:
    """Turns claims into edits of a graph, with the names of the whole document as its entities."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._names = find_names(document.text)
        self._ids = _entity_ids(self._names)

    def write(self, draft: Draft[Edit, Graph], found: FoundClaim) -> None:
        """Put a claim into the draft of its reading, with the names in it."""
        ground, key, step = found.ground, found.call_key, draft.step
        shown = tuple((span.start, span.end) for span in found.read)
        draft.mark(Reading(found.question, shown), call_key=key)
        quote = self._document.quote(ground.span)
        claim = f"claim{step + 1}"
        node = AddNode(claim, "claim", found.text, ground.span, quote, step)
        rejected = None if found.is_supported else "not_supported"
        if not draft.put(node, rejected=rejected, score=ground.support, call_key=key):
            return
        for name in find_mentioned(found.text, self._names):
            entity = self._ids[name.name]
            if draft.state.node(entity) is None:
                draft.put(self._make_entity(name, ground.span, step), call_key=key)
            link = AddEdge(claim, entity, "mentions", ground.span, quote, step)
            draft.put(link, call_key=key)

    def _make_entity(self, name: Name, span: Span, step: int) -> AddNode:
        """A name's node, whose source is the sentence of the claim's source that names it, or else
        the first place of the text that does."""
        text = self._document.text
        forms = "|".join(r"\s+".join(map(re.escape, alias.split())) for alias in name.aliases)
        named = re.compile(rf"(?<!\w)(?:{forms})(?!\w)")
        sentences = sentence_spans(text, span.start, span.end)
        first = next((each for each in sentences if named.search(text, *each)), None)
        if first is None and (found := named.search(text)):
            first = found.span()
        span = span if first is None else self._document.span(*first)
        others = [alias for alias in name.aliases if alias != name.name]
        content = f"{name.name}{ALSO}{', '.join(others)})" if others else name.name
        quote = self._document.quote(span)
        return AddNode(self._ids[name.name], "entity", content, span, quote, step)


def _entity_ids(names: Sequence[Name]) -> dict[str, str]:
    """A readable id for each name; a number where two names would share one."""
    ids: dict[str, str] = {}
    used: set[str] = set()
    for number, name in enumerate(names):
        plain = unicodedata.normalize("NFKD", name.name).encode("ascii", "ignore").decode()
        slug = re.sub(r"[^a-z0-9]+", "_", plain.lower()).strip("_")[:32]
        taken = not slug or slug in used
        ids[name.name] = f"{slug or 'name'}_{number}" if taken else slug
        used.add(ids[name.name])
    return ids


def find_claims(rows: Iterable[EditRecord]) -> list[MadeClaim]:
    """The readings of a log, in order, each with its claim."""
    made: list[MadeClaim] = []
    reading: Reading | None = None
    for row in rows:
        if row.op == READING:
            reading = cast(Reading, VOCABULARY.parse(row))
        elif row.op == "add_node" and row.payload["type"] == "claim" and reading is not None:
            made.append(MadeClaim(reading, row))
    return made


# The answer


async def answer_from_claims(
    reader: ClaimReader,
    made: Mapping[str, MadeClaim],
    question: Question,
    *,
    source_tokens: int,
) -> Answer:
    """Answer each part of a question by the claim ``made`` for that part, or by reading for it;
    one that has options, or is to be answered in full, by reading for the whole."""
    if question.options or question.form == "long":
        found = [await reader.read_for(question)]
    else:
        found = [
            reader.recall(made[part]) if part in made else await reader.read_for(Question(part))
            for part in split_question(question.text)
        ]
    said = [claim for claim in found if claim is not None]
    sure = [claim for claim in said if claim.is_supported]
    read = dict.fromkeys(span.place for claim in said for span in claim.read)
    return Answer(
        question=question.text,
        text=" ".join(claim.text for claim in said) or NOT_FOUND,
        confidence=None,
        citations=cite_parts(reader.document, ((each.name, each.ground.span) for each in sure)),
        trace=tuple(map(describe_claim, said)),
        marks=() if len(sure) == len(found) else ("unconfirmed",),
        guesses=tuple(claim.text for claim in said if not claim.is_supported),
        compaction_ratio=sum(claim.input_tokens for claim in said) / source_tokens,
        retrieved=tuple(read),
    )


# Which blocks to read

HOP_WEIGHT = 4.0


class BlockFinder:
    """The blocks of a document by their words, their meaning and the names in them.

    First come the blocks that are most like the question. Then a second hop: the names in the best
    of them that the question does not have lead to other blocks, a name by 1/n where n blocks have
    it. So a question that needs two places of a text finds the second, which may share no word with
    it. The weight was chosen on HotpotQA, MuSiQue and two novels (``LOG.md``). Making
    it embeds all blocks, and blocks.
    """

    def __init__(self, embedder: Embedder, blocks: Sequence[Chunk], names: Sequence[Name]) -> None:
        self._index = PassageIndex(embedder, [block.text for block in blocks])
        self._size = len(blocks)
        self._names = names
        self._blocks_of: list[list[int]] = []
        self._names_of: defaultdict[int, list[int]] = defaultdict(list)
        starts = [block.span.start for block in blocks]
        for number, name in enumerate(names):
            held = sorted({bisect_right(starts, start) - 1 for start, _ in name.spans} - {-1})
            self._blocks_of.append(held)
            for place in held:
                self._names_of[place].append(number)

    def find(self, question: str, k: int) -> list[int]:
        """The places of the ``k`` best blocks, the best first. Embeds the question, and blocks."""
        if not self._size:
            return []
        scores = standardize(self._index.scores(question))
        known = {name.name for name in find_mentioned(question, self._names)}
        first = int(np.argmax(scores))
        total = scores + HOP_WEIGHT * self._follow(first, known)
        total[first] = np.inf
        return [int(place) for place in np.argsort(-total, kind="stable")[:k]]

    def _follow(self, block: int, known: set[str]) -> NDArray[np.float64]:
        """How strongly the names of a block, but for ``known`` ones, lead to each other block."""
        links = np.zeros(self._size)
        for number in self._names_of[block]:
            if self._names[number].name not in known:
                held = self._blocks_of[number]
                links[held] += 1 / len(held)
        return links
