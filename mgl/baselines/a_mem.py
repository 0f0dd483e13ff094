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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field, create_model

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt, judge, number_items
from mgl.llm.base import Sampling
from mgl.llm.concurrency import for_each
from mgl.llm.constraints import index_set, max_chars, several
from mgl.memories.log import Draft, Vocabulary
from mgl.memories.propose import Proposal, StrictReply, propose
from mgl.memories.table import Table
from mgl.prompt import Prompt
from mgl.retrieval.ranking import nearest
from mgl.text.groups import format_turn
from mgl.types import Answer, Question, Span

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


@dataclass(frozen=True, slots=True)
class Note:
    """What is remembered of a turn, besides its words; ``links`` are the numbers of other notes."""

    keywords: tuple[str, ...] = ()
    context: str = ""
    tags: tuple[str, ...] = ()
    links: tuple[int, ...] = ()

    def show(self, content: str) -> str:
        """Write the note as it is shown to a model."""
        about = f" (context: {self.context})" if self.context else ""
        words = f" (keywords: {', '.join(self.keywords)})" if self.keywords else ""
        tags = f" (tags: {', '.join(self.tags)})" if self.tags else ""
        return f"{content}{about}{words}{tags}"


@dataclass(frozen=True, slots=True)
class IndexedNote:
    """A note as it was last embedded: when it came (``is_new``), or with all others."""

    note: Note
    is_new: bool

    def show(self, content: str) -> str:
        """Write the note as it is embedded."""
        note = self.note
        if self.is_new:
            words, tags = ", ".join(note.keywords), ", ".join(note.tags)
            return f"content:{content} context:{note.context} keywords: {words} tags: {tags}"
        return f"{content} , {note.context} {' '.join(note.keywords)} {' '.join(note.tags)}"


@dataclass(frozen=True, slots=True)
class WriteNote:
    """The note of the turn with the step's number; a turn whose note could not be written is
    remembered by its own words."""

    step: int
    span: Span
    keywords: tuple[str, ...] = ()
    context: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangedNote:
    """What a neighbour's context and tags are from now on."""

    context: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EvolveNotes:
    """What the coming of the step's note changes."""

    step: int
    span: Span
    links: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    neighbours: Mapping[int, ChangedNote] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoteLog:
    """The notes by the numbers of their turns. ``indexed`` lags behind: what a neighbour rewrote is
    embedded again only when all notes are."""

    notes: Table[int, Note] = field(default_factory=Table)
    indexed: Table[int, IndexedNote] = field(default_factory=Table)
    evolved: int = 0


def apply(log: NoteLog, edit: WriteNote | EvolveNotes) -> NoteLog:
    """Add a note, or what its coming changes."""
    notes = log.notes
    if isinstance(edit, WriteNote):
        note = Note(edit.keywords, edit.context, edit.tags)
        indexed = log.indexed.put(edit.step, IndexedNote(note, is_new=True))
        return replace(log, notes=notes.put(edit.step, note), indexed=indexed)
    note = notes[edit.step]
    note = replace(note, links=(*note.links, *edit.links), tags=edit.tags or note.tags)
    notes = notes.put(edit.step, note)
    for place, changed in edit.neighbours.items():
        notes = notes.put(place, replace(notes[place], context=changed.context, tags=changed.tags))
    evolved, indexed = log.evolved + 1, log.indexed
    if evolved % REBUILT == 0:
        indexed = Table({at: IndexedNote(each, is_new=False) for at, each in notes.items()})
    return NoteLog(notes, indexed, evolved)


class AMem(Baseline[NoteLog]):
    """Writes a note a turn, links it to its neighbours and rewrites them."""

    kind = "a-mem"
    reads = "conversation"
    retrieves = True
    vocabulary = Vocabulary(
        {"note": WriteNote, "evolve": EvolveNotes}, apply, NoteLog(), columns=("step", "span")
    )
    Config = AMemConfig
    _config: AMemConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (NOTE, EVOLVE)

    async def _count_steps(self) -> int:
        return len(self.conversation.turns)

    async def _read(self) -> None:
        total = len(self.conversation.turns)
        analysed: dict[int, Proposal[Analysis]] = {}

        async def analyse(number: int) -> None:
            with self._note_shown([self.conversation.line_span(number)]):
                analysed[number] = await self._analyse(number)

        async def take_in(draft: Draft[Any, NoteLog], number: int) -> None:
            if not self._says(number):
                return
            if number not in analysed:
                ahead = [n for n in range(number, min(number + AHEAD, total)) if self._says(n)]
                await for_each(ahead, analyse, at_once=AHEAD)
            await self._take_in(draft, analysed[number])

        await self._go_on("notes", total, take_in)

    def _says(self, number: int) -> bool:
        return bool(self.conversation.turns[number].text)

    def _content(self, number: int) -> str:
        return format_turn(self.conversation.turns[number])

    def _documents(self, memory: NoteLog) -> dict[int, str]:
        """The notes as they were embedded."""
        return {at: each.show(self._content(at)) for at, each in memory.indexed.items()}

    def _choose_sampling(self) -> Sampling:
        config = self._config
        return Sampling(config.temperature, max_tokens=REPLY_TOKENS, seed=config.seed)

    async def _analyse(self, number: int) -> Proposal[Analysis]:
        prompt = NOTE.render(text=self._content(number))
        return await propose(
            self._tools.llm, prompt, Analysis, sampling=self._choose_sampling(), stage="note"
        )

    async def _take_in(self, draft: Draft[Any, NoteLog], said: Proposal[Analysis]) -> None:
        """Put the note of a turn, and what its coming changes."""
        number, before = draft.step, draft.state
        span = self.conversation.line_span(number)
        edit = WriteNote(number, span)
        if (reply := said.reply) is not None:
            words = tuple(reply.keywords), reply.context, tuple(reply.tags)
            edit = WriteNote(number, span, *words)
        draft.put(edit, **judge(said, failed="repaired"))
        if said.reply is None:
            return
        content = self._content(number)
        near = await nearest(
            self._tools.required_embedder,
            content,
            self._documents(before),
            self._config.neighbours,
        )
        if not near:
            return
        found = [place for place, _ in near]
        shown = [before.notes[place].show(self._content(place)) for place in found]
        evolved = await self._evolve(draft.state.notes[number].show(content), shown)
        if (change := evolved.reply) is None:
            draft.put(EvolveNotes(number, span), **judge(evolved))
            return
        links = tuple(found[place - 1] for place in change.links)
        changed = {
            place: ChangedNote(each.context, tuple(each.tags))
            for place, each in zip(found, change.neighbours, strict=False)
        }
        if links or change.tags or changed:
            edit_ = EvolveNotes(number, span, links, tuple(change.tags), changed)
            draft.put(edit_, **judge(evolved))

    async def _evolve(self, note: str, near: Sequence[str]) -> Proposal[_Evolution]:
        schema = create_model(
            "evolution",
            __base__=_Evolution,
            links=(index_set(len(near), first=1), ...),
            neighbours=(several(NoteChange, len(near)), ...),
        )
        prompt = EVOLVE.render(note=note, neighbours=number_items(near))
        sampling = self._choose_sampling()
        return await propose(self._tools.llm, prompt, schema, sampling=sampling, stage="evolve")

    async def _respond(self, question: Question) -> Answer:
        config, tools, memory = self._config, self._tools, self.state
        prompt = KEYWORDS.render(question=question.text)
        said = await propose(
            tools.llm, prompt, NoteKeywords, sampling=self._choose_sampling(), stage="keywords"
        )
        words = ", ".join(said.reply.keywords) if said.reply else ""
        query = words or question.text
        found = await nearest(tools.required_embedder, query, self._documents(memory), config.k)
        read: dict[int, None] = {}
        for place, _ in found:
            links = memory.notes[place].links
            read.update(dict.fromkeys([place, *links[: config.k + 1]]))
        talk = self.conversation
        excerpts = [
            Excerpt(
                memory.notes[place].show(self._content(place)),
                talk.turns[place].id,
                talk.span(place),
            )
            for place in sorted(read)
        ]
        spans = [talk.line_span(place) for place in read]
        return await self._answer(question, excerpts, read=spans, trace=[f"keywords: {query}"])
