"""A-Mem: each turn a note that is linked with its neighbours and rewrites them.

Source: Xu et al. 2025 (arXiv 2502.12110), §3, and its released code where the paper is silent: five
neighbours, temperature 0.7, notes embedded again every hundredth evolution. One call writes a
note's keywords, context and tags; another decides to which of its neighbours the note is linked,
and whether these get another context and other tags. A question becomes keywords, and the ``k``
nearest notes are read, each with the notes it is linked to. The prompts are ours.

Unlike its harness: k and the prompt do not depend on a question's gold category, no gold answer is
offered, and a note that several others link to is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, create_model

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt, number_items, reply_row
from mgl.llm.base import Sampling
from mgl.llm.concurrency import for_each
from mgl.llm.constraints import index_set, max_chars, several
from mgl.memories.propose import Proposal, StrictReply, propose
from mgl.prompt import Prompt
from mgl.retrieval.ranking import nearest
from mgl.store import EditRecord
from mgl.text.groups import format_turn
from mgl.types import Answer, Question

REBUILT = 100
"""Evolutions after which all notes are embedded again, with what has become of them."""

REPLY_TOKENS = 1000
AHEAD = 8

NOTE = Prompt(
    "a-mem.note",
    source="ours, in the role of Xu et al. 2025, §3.1",
    text="""Write a note about this message, so that it can be found again.

{text}

Give its keywords (names, things and deeds, the most important first), its context (one sentence: \
what it is about and what it tells) and its tags (the broad subjects it belongs to).

{"keywords": ["..."], "context": "...", "tags": ["..."]}""",
    variables=("text",),
)

EVOLVE = Prompt(
    "a-mem.evolve",
    source="ours, in the role of Xu et al. 2025, §3.2 and §3.3",
    text="""A new note has come into a memory:

{note}

These notes are most like it:

{neighbours}

Which of these notes should the new one be linked to? Give their numbers, and the tags that the \
new note should have then. Do these notes read differently now? If so, give the context and the \
tags that each should have, in their order. Leave a list empty where nothing changes.

{"links": [numbers], "tags": ["..."], "neighbours": [{"context": "...", "tags": ["..."]}]}""",
    variables=("note", "neighbours"),
)

KEYWORDS = Prompt(
    "a-mem.keywords",
    source="ours, in the role of Xu et al. 2025, §3.4",
    text="""Name the keywords by which the answer to this question can be found in a conversation.

{question}

{"keywords": ["..."]}""",
    variables=("question",),
)

Words = Annotated[list[Annotated[str, max_chars(40)]], Field(max_length=8)]
Sentence = Annotated[str, max_chars(240)]


class Analysis(StrictReply):
    keywords: Words
    context: Sentence
    tags: Words


class NoteKeywords(StrictReply):
    keywords: Words


class NoteChange(StrictReply):
    context: Sentence
    tags: Words


class _Evolution(StrictReply):
    links: list[int]
    tags: Words
    neighbours: list[NoteChange]


class AMemConfig(BaselineConfig):
    """``k`` is how many notes are read for a question, and how many links of each are followed at
    most, but one; ``neighbours`` how many a new note is held against."""

    k: int = Field(10, ge=1)
    neighbours: int = Field(5, ge=1)
    temperature: float = Field(0.7, ge=0.0)
    seed: int = 0


@dataclass(slots=True)
class Note:
    """A turn as it is remembered; ``links`` are the numbers of other notes."""

    content: str
    keywords: Sequence[str] = ()
    context: str = ""
    tags: Sequence[str] = ()
    links: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The note as it is shown to a model."""
        about = f" (context: {self.context})" if self.context else ""
        words = f" (keywords: {', '.join(self.keywords)})" if self.keywords else ""
        tags = f" (tags: {', '.join(self.tags)})" if self.tags else ""
        return f"{self.content}{about}{words}{tags}"


class AMem(Baseline):
    """Writes a note a turn, links it to its neighbours and rewrites them."""

    kind = "a-mem"
    reads = "conversation"
    retrieves = True
    Config = AMemConfig
    _config: AMemConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (NOTE, EVOLVE)

    async def _count_steps(self) -> int:
        return len(self.conversation.turns)

    async def _read(self) -> None:
        total = len(self.conversation.turns)
        memory = _Notes.of(self._rows(), self._contents())
        analysed: dict[int, Proposal[Analysis]] = {}

        async def analyse(number: int) -> None:
            with self._note_shown([self.conversation.line_span(number)]):
                analysed[number] = await self._analyse(number)

        async def take_in(number: int) -> list[EditRecord]:
            if number not in analysed and self.conversation.turns[number].text:
                ahead = [n for n in range(number, min(number + AHEAD, total)) if self._says(n)]
                await for_each(ahead, analyse, at_once=AHEAD)
            rows = await self._take_in(number, analysed.get(number), memory)
            for row in rows:
                memory.apply(row)
            return rows

        await self._go_on("notes", total, take_in)

    def _says(self, number: int) -> bool:
        return bool(self.conversation.turns[number].text)

    def _contents(self) -> list[str]:
        return [format_turn(turn) for turn in self.conversation.turns]

    def _choose_sampling(self) -> Sampling:
        config = self._config
        return Sampling(config.temperature, max_tokens=REPLY_TOKENS, seed=config.seed)

    async def _analyse(self, number: int) -> Proposal[Analysis]:
        prompt = NOTE.render(text=format_turn(self.conversation.turns[number]))
        return await propose(
            self._tools.llm, prompt, Analysis, sampling=self._choose_sampling(), stage="note"
        )

    async def _take_in(
        self, number: int, said: Proposal[Analysis] | None, memory: _Notes
    ) -> list[EditRecord]:
        """The rows of one turn: its note, and what its coming changed."""
        if said is None:
            return []
        note = Note(memory.contents[number])
        span = self.conversation.line_span(number)
        if said.reply is None:
            return [reply_row(number, "note", said, {}, span)]
        note.keywords, note.context = said.reply.keywords, said.reply.context
        note.tags = said.reply.tags
        row = reply_row(number, "note", said, said.reply.model_dump(), span)
        near = await nearest(
            self._tools.required_embedder,
            note.content,
            memory.documents,
            self._config.neighbours,
        )
        if not near:
            return [row]
        found = [place for place, _ in near]
        evolved = await self._evolve(note, [memory.notes[place] for place in found])
        if evolved.reply is None:
            return [row, reply_row(number, "evolve", evolved, {}, span)]
        change = evolved.reply
        links = [found[place - 1] for place in change.links]
        rewritten = dict(zip(map(str, found), change.model_dump()["neighbours"], strict=False))
        payload = {"links": links, "tags": change.tags, "neighbours": rewritten}
        if not any(payload.values()):
            return [row]
        return [row, reply_row(number, "evolve", evolved, payload, span)]

    async def _evolve(self, note: Note, near: Sequence[Note]) -> Proposal[_Evolution]:
        shown = number_items(each.text for each in near)
        schema = create_model(
            "evolution",
            __base__=_Evolution,
            links=(index_set(len(near), first=1), ...),
            neighbours=(several(NoteChange, len(near)), ...),
        )
        prompt = EVOLVE.render(note=note.text, neighbours=shown)
        sampling = self._choose_sampling()
        return await propose(self._tools.llm, prompt, schema, sampling=sampling, stage="evolve")

    async def _respond(self, question: Question) -> Answer:
        config, tools = self._config, self._tools
        memory = _Notes.of(self._rows(), self._contents())
        prompt = KEYWORDS.render(question=question.text)
        said = await propose(
            tools.llm, prompt, NoteKeywords, sampling=self._choose_sampling(), stage="keywords"
        )
        words = ", ".join(said.reply.keywords) if said.reply else ""
        query = words or question.text
        found = await nearest(tools.required_embedder, query, memory.documents, config.k)
        read: dict[int, None] = {}
        for place, _ in found:
            links = memory.notes[place].links
            read.update(dict.fromkeys([place, *links[: config.k + 1]]))
        talk = self.conversation
        excerpts = [
            Excerpt(memory.notes[place].text, talk.turns[place].id, talk.span(place))
            for place in sorted(read)
        ]
        spans = [talk.line_span(place) for place in read]
        return await self._answer(question, excerpts, read=spans, trace=[f"keywords: {query}"])


class _Notes:
    """The notes of a conversation by the numbers of their turns, and their texts in the index.

    A turn whose note could not be written is remembered by its own words. ``documents`` lag behind
    the notes: one that a neighbour rewrote is embedded again only when all are.
    """

    def __init__(self, contents: Sequence[str]) -> None:
        self.contents = contents
        self.notes: dict[int, Note] = {}
        self.documents: dict[int, str] = {}
        self._evolved = 0

    @classmethod
    def of(cls, rows: Sequence[EditRecord], contents: Sequence[str]) -> _Notes:
        memory = cls(contents)
        for row in rows:
            memory.apply(row)
        return memory

    def apply(self, row: EditRecord) -> None:
        if row.op == "evolve" and row.outcome == "rejected":
            return
        if row.op == "note":
            note = Note(self.contents[row.chunk], **row.payload)
            self.notes[row.chunk] = note
            self.documents[row.chunk] = (
                f"content:{note.content} context:{note.context} "
                f"keywords: {', '.join(note.keywords)} tags: {', '.join(note.tags)}"
            )
            return
        note = self.notes[row.chunk]
        note.links = [*note.links, *row.payload["links"]]
        note.tags = row.payload["tags"] or note.tags
        for place, change in row.payload["neighbours"].items():
            other: Any = self.notes[int(place)]
            other.context, other.tags = change["context"], change["tags"]
        self._evolved += 1
        if self._evolved % REBUILT == 0:
            for place, known in self.notes.items():
                words = f"{' '.join(known.keywords)} {' '.join(known.tags)}"
                self.documents[place] = f"{known.content} , {known.context} {words}"
