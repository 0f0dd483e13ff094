"""HGMem for small models: each call asks for a sentence, or for Yes or No.

Held to Fig. 4 and 6, the 1.5B model of the offline default inserts nothing, and asks in SQL. Here
each chunk that is found is read for the query by itself, in one sentence that the model then
confirms (``extract_claim``); the sentence is a point over the entities that it names. Code does the
rest: a sentence over the entities of a point is added to it, points that share half of their
entities are merged, and steps investigate a point and explore beyond the memory in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final, Literal

from pydantic import Field, create_model

from mgl.llm.base import Message, Sampling
from mgl.llm.constraints import index_set
from mgl.llm.prompting import SYSTEM, reader_messages
from mgl.memories.calls import (
    CLAIM,
    SUPPORTED,
    TOKEN_CHARS,
    Claim,
    answer_field,
    cite_parts,
    extract_claim,
    list_options,
)
from mgl.memories.graph import entity_key
from mgl.memories.graph.config import Extraction
from mgl.memories.graph.names import mentions
from mgl.memories.hgmem.ask import NONE, list_points
from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.evidence import Inquiry
from mgl.memories.hgmem.loop import Attempt, Loop, SourcedAnswer
from mgl.memories.hgmem.memory import HgMem
from mgl.memories.hgmem.proposals import (
    Concern,
    Concerns,
    Evolution,
    FollowUp,
    Merges,
    NewPoint,
    PointUpdate,
    ProposedMerge,
)
from mgl.memories.hgmem.state import Case, HypergraphMemory, Point, Respond, Retrieve
from mgl.memories.propose import Proposal, StrictReply
from mgl.prompt import Prompt, one_line
from mgl.text.support import find_repeated
from mgl.types import Citation, Question


def _answer(name: str, source: str, how: str, *variables: str) -> Prompt:
    return Prompt(
        name,
        source,
        f"""Answer the query from the memory and the sources below, and from nothing else.

Memory: what was found about the query, point by point.
{{memory}}

Sources: parts of the document, each with its number.
{{sources}}

Query: {{query}}

First name the numbers of the sources that the answer stands on, then answer {how}

{{"sources": [numbers], "answer": "..."}}""",
        ("memory", "sources", "query", *variables),
    )


_ELSE = " If neither memory nor sources answer it, say so."


ANSWER = _answer(
    "hgmem.answer",
    "ours: HGMem §3.6 says what the answer is given, and prints no prompt",
    f"in as few words as you can.{_ELSE}",
)

LONG_ANSWER = _answer(
    "hgmem.long_answer",
    "ours: hgmem.answer for a question that wants a long answer",
    "in full: everything that memory and sources tell about the query, from every side, with names "
    f"and particulars, in plain prose.{_ELSE}",
)

CHOICE_ANSWER = _answer(
    "hgmem.choice_answer",
    "ours: hgmem.answer for a question that has options",
    "with one of these, as it is written: {options}.",
    "options",
)

SUFFICIENT = Prompt(
    "hgmem.sufficient",
    source="ours: the preset small's, in place of Fig. 6",
    text="""Notes:
{notes}

Question: {query}
Do the notes above answer the question completely? Reply Yes or No.""",
    variables=("notes", "query"),
)

FOLLOW_UP = Prompt(
    "hgmem.follow_up",
    source="ours: the preset small's, in place of Fig. 7",
    text="""Question: {query}

Notes so far:
{notes}

What do the notes leave open? Write one short question, in plain English, whose answer would help \
to answer the question above. It must not repeat it.""",
    variables=("query", "notes"),
)

LEAST_SUPPORT: Final = 0.75
ENOUGH: Final = 0.9
ALIKE: Final = 0.5
QUESTION_TOKENS: Final = 40
MERGED_CHARS: Final = 600
ANSWER_CHARS: Final = 600
FRAME_TOKENS, NUMBER_TOKENS = 24, 3  # of the JSON around a long answer, and for each source


class SmallAsker:
    """Asks about one query in one step, in place of ``PaperAsker``."""

    def __init__(self, inquiry: Inquiry, *, step: int) -> None:
        self._inquiry = inquiry
        self._llm, self._query = inquiry.llm, inquiry.question.text
        self._step = step

    async def evolution(
        self, memory: HypergraphMemory, subqueries: Sequence[str], found: Sequence[Retrieve]
    ) -> Proposal[Evolution]:
        """A point for each chunk whose sentence is confirmed; if the memory is empty, at least the
        best."""
        del subqueries
        numbers = list(dict.fromkeys(number for one in found for number in one.chunks))
        entities = frozenset(entity for one in found for entity in one.entities)
        claims: list[tuple[int, Claim]] = []
        for number in numbers:
            claim = await extract_claim(self._llm, self._inquiry.chunks[number].text, self._query)
            if claim is not None:
                claims.append((number, claim))
        best = max((claim.support for _, claim in claims), default=0.0)
        floor = LEAST_SUPPORT if memory.points else min(LEAST_SUPPORT, best)
        made, updates, points = Evolution(), dict[int, str](), list(memory.points.values())
        for number, claim in claims:
            if claim.support < floor:
                continue
            names = self._names(number, claim, entities)
            if (place := self._find_point(memory, names)) is not None:
                text = updates.get(place, points[place].description)
                if claim.text not in text:
                    updates[place] = f"{text} {claim.text}"
            elif len(names) > 1:
                made.inserted.append(NewPoint(objects=names, description=claim.text))
        made.updated += [PointUpdate(point=at, description=text) for at, text in updates.items()]
        return Proposal("evolve", made)

    async def merges(self, memory: HypergraphMemory) -> Proposal[Merges]:
        """Points that share half of their entities, the most alike first."""
        points = list(memory.points.values())
        pairs = sorted(
            combinations(range(len(points)), 2),
            key=lambda pair: -_alike(points[pair[0]], points[pair[1]]),
        )
        taken: set[int] = set()
        merges: list[ProposedMerge] = []
        for one, other in pairs:
            if _alike(points[one], points[other]) < ALIKE:
                break
            text = f"{points[one].description} {points[other].description}"
            if not {one, other} & taken and len(text) <= MERGED_CHARS:
                taken |= {one, other}
                merges.append(ProposedMerge(points=[one, other], description=text))
        return Proposal("merge", Merges(merges=merges))

    async def concerns(
        self, memory: HypergraphMemory, cases: tuple[Case, ...]
    ) -> Proposal[Concerns]:
        """Whether the notes answer the query, or which way to look in this step."""
        if "1" in cases and memory.points:
            prompt = SUFFICIENT.render(notes=_notes(memory.points.values()), query=self._query)
            yes = await self._llm.probability_of_yes(reader_messages(prompt), stage="concerns")
            if yes >= ENOUGH:
                return Proposal("concerns", Concerns(judgement="1"))
        if "2.1" in cases and (self._step % 2 == 1 or "2.2" not in cases):
            place, point = max(
                enumerate(memory.points.values()), key=lambda item: (item[1].changed, item[0])
            )
            near = Concern(point=place, concern=point.description)
            return Proposal("concerns", Concerns(judgement="2.1", concerns=[near]))
        wide = Concern(concern=self._query)
        return Proposal("concerns", Concerns(judgement="2.2", concerns=[wide]))

    async def subquery(
        self, memory: HypergraphMemory, concern: Concern, history: Sequence[str]
    ) -> Proposal[FollowUp]:
        """A question that the notes leave open: of the point, or of all."""
        del history
        points = list(memory.points.values())
        shown = points if concern.point is None else [points[concern.point]]
        reply = await self._llm.complete(
            reader_messages(FOLLOW_UP.render(query=self._query, notes=_notes(shown))),
            sampling=Sampling(max_tokens=QUESTION_TOKENS, seed=self._step),
            stage="subquery",
        )
        said = FollowUp.model_construct(subquery=one_line(reply.text))
        return Proposal("subquery", said, reply.text, reply.call_key)

    def _find_point(self, memory: HypergraphMemory, names: Sequence[str]) -> int | None:
        """The place of the point over the entities of some names, if points are updated."""
        held = {entity_key(name) for name in names}
        places = (at for at, each in enumerate(memory.points.values()) if each.vertices == held)
        return next(places, None) if self._inquiry.config.update else None

    def _names(self, number: int, claim: Claim, found: frozenset[str]) -> list[str]:
        """The chunk's entities that the claim names; if fewer than two, also ones that were found,
        then any."""
        here = [each for each in self._inquiry.graph.entities.values() if number in each.chunks]
        here.sort(key=lambda each: (not mentions(each.name, claim.text), each.id not in found))
        said = sum(mentions(each.name, claim.text) for each in here)
        return [each.name for each in here[: max(2, said)]]


def _alike(one: Point, other: Point) -> float:
    return len(one.vertices & other.vertices) / len(one.vertices | other.vertices)


def _notes(points: Iterable[Point]) -> str:
    lines = (f"{place}. {one_line(point.description)}" for place, point in enumerate(points, 1))
    return "\n".join(lines) or "(none)"


class SmallLoop(Loop):
    """The steps of a question with ``SmallAsker``; a subquery finds only chunks not read yet."""

    def _open_asker(self, attempt: Attempt) -> SmallAsker:
        return SmallAsker(self._inquiry, step=attempt.done)

    def _pass_over(self, attempt: Attempt) -> frozenset[int]:
        return attempt.read

    def _list(self, memory: HypergraphMemory) -> list[str]:
        return list_points(memory)

    async def _say(
        self, points: Sequence[str], texts: Sequence[str], sampling: Sampling
    ) -> SourcedAnswer:
        """Answer under a schema. Chunks that repeat the answer are cited; those that the model
        names, where none does."""
        question = self._inquiry.question
        lines = "\n".join(f"[{at}] {text}" for at, text in enumerate(texts, 1))
        shown = {"memory": "\n".join(points) or NONE, "sources": lines, "query": question.text}
        if question.options:
            shown["options"] = list_options(question)
        messages = [Message("user", answer_prompt(question).render(**shown))]
        schema = _answer_schema(len(texts), question, sampling.max_tokens)
        reply = await self._inquiry.llm.complete(
            messages, schema, sampling=sampling, stage="answer"
        )
        answer = one_line(reply.parsed.answer)
        named = [place - 1 for place in reply.parsed.sources if place <= len(texts)]
        telling = find_repeated(answer, "", [texts[place] for place in named])
        repeated = {*find_repeated(answer, question.text, texts), *(named[at] for at in telling)}
        return SourcedAnswer(answer, tuple(sorted(repeated) or named), reply.call_key)


class _Answered(StrictReply):
    sources: list[int]
    answer: str


def _answer_schema(sources: int, question: Question, tokens: int) -> type[_Answered]:
    """A long answer may fill what the reply's tokens leave, and has at least a short one's room."""
    chars = ANSWER_CHARS
    if question.form == "long":
        chars = max(chars, TOKEN_CHARS * (tokens - FRAME_TOKENS - NUMBER_TOKENS * sources))
    cited = index_set(max(1, sources), first=1)
    answer = answer_field(question, chars)
    return create_model("answer", __base__=_Answered, sources=(cited, ...), answer=(answer, ...))


def answer_prompt(question: Question) -> Prompt:
    if question.options:
        return CHOICE_ANSWER
    return LONG_ANSWER if question.form == "long" else ANSWER


class SmallHgMemConfig(HgMemConfig):
    """How a small model answers a question over a document's graph of terms."""

    preset: Literal["paper", "small"] = "small"
    extraction: Extraction = "terms"
    chunks: int = Field(3, ge=1, description="chunks a subquery finds")
    answer_chunks: int = Field(4, ge=1, description="chunks read for an answer")
    reply_tokens: int = Field(200, ge=64, description="tokens of a reply, at most")
    reply_temperature: float = Field(0.0, ge=0.0, description="sampling temperature")
    reply_top_p: float = Field(1.0, gt=0.0, le=1.0, description="sampling top-p")
    answer_tokens: int = Field(200, ge=16, description="tokens of an answer, at most")
    answer_temperature: float = Field(0.0, ge=0.0, description="sampling temperature of an answer")
    answer_top_p: float = Field(1.0, gt=0.0, le=1.0, description="sampling top-p of an answer")


class SmallHgMem(HgMem):
    """Retrieves over several steps with a model that is asked for a sentence at a time."""

    Config = SmallHgMemConfig
    loop_type = SmallLoop

    def _count_step_calls(self) -> tuple[int, int]:
        """Each chunk is read and confirmed; a later step judges, and asks for one subquery."""
        reading = 2 * self._config.chunks
        return reading, 2 + reading

    def _count_prompt_tokens(self) -> int:
        return self._config.chunk_tokens

    def _cite_answer(self, said: Respond, memory: HypergraphMemory) -> tuple[Citation, ...]:
        return cite_parts(self._document, (self._name_chunk(n, memory) for n in said.chunks))

    def _writing_prompts(self) -> Sequence[Prompt]:
        asked: Question | None = self._question
        if asked is None:
            return ()
        return (SYSTEM, CLAIM, SUPPORTED, SUFFICIENT, FOLLOW_UP, answer_prompt(asked))
