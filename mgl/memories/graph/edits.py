"""What a model proposes of a passage, the edits that it becomes, and the log that they make.

Every item cites a numbered sentence, so its span is exact by construction. Names are cleaned
(``repaired``) or refused, with the reason; the graph is made of what stands in the log.

An end of a relation that is not among the entities becomes one where the passage has its name: of
type ``UNKNOWN``, since nobody said what it is, and without a description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from textwrap import shorten
from typing import Annotated, Any, Final, TypeVar

from pydantic import create_model

from mgl.llm.constraints import max_chars, number, one_of, several
from mgl.memories.graph.names import NAME_CHARS, PRONOUNS, clean_name, entity_key, mentions
from mgl.memories.log import Draft, Vocabulary
from mgl.memories.propose import StrictReply
from mgl.memories.table import Table
from mgl.prompt import one_line
from mgl.text import numbered_sentences, sentence_spans
from mgl.text.groups import mark_days
from mgl.types import Chunk, Document, Span

ENTITY_TYPES: Final = ("person", "group", "place", "object", "event", "concept")
"""What an entity may be; the paper prints none."""

UNKNOWN: Final = "unknown"
"""The type of an entity that is only named as the end of a relation."""

MOST_ENTITIES, MOST_RELATIONS = 10, 8
"""So many of each a reply may hold."""
DECODED_NAME_CHARS, DESCRIPTION_CHARS = 60, 160
MOST_DESCRIPTION_CHARS: Final = 1000
SHOWN_CHARS: Final = 200


class Extraction(StrictReply):
    """What a passage tells of."""

    entities: list[Any]
    relations: list[Any]


@cache
def extraction_schema(
    sentences: int, entities: int = MOST_ENTITIES, relations: int = MOST_RELATIONS
) -> type[Extraction]:
    """The schema of a reply on a passage of ``sentences`` sentences, with so many items at most."""
    name = Annotated[str, max_chars(DECODED_NAME_CHARS)]
    text = Annotated[str, max_chars(DESCRIPTION_CHARS)]
    src = number(1, sentences)
    entity = create_model(
        "entity",
        __base__=StrictReply,
        src=(src, ...),
        name=(name, ...),
        type=(one_of(ENTITY_TYPES), ...),
        description=(text, ...),
    )
    relation = create_model(
        "relation",
        __base__=StrictReply,
        src=(src, ...),
        source=(name, ...),
        target=(name, ...),
        description=(text, ...),
    )
    return create_model(
        "extraction",
        __base__=Extraction,
        entities=(several(entity, entities), ...),
        relations=(several(relation, relations), ...),
    )


@dataclass(frozen=True, slots=True)
class NumberedChunk:
    """A chunk as it is shown: its sentences, as ranges of the document, are numbered from 1."""

    document: Document
    chunk: Chunk
    sentences: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, document: Document, chunk: Chunk) -> NumberedChunk:
        span = chunk.span
        return cls(document, chunk, tuple(sentence_spans(document.text, span.start, span.end)))

    def as_edit(self) -> ReadChunk:
        """The edit that begins the step of a chunk."""
        return ReadChunk(self.chunk.index, self.chunk.span, self.chunk.tokens)

    def number_sentences(self) -> str:
        """Its sentences on one line, with ``[n]`` before each."""
        start, end = self.sentences[0][0], self.sentences[-1][1]
        text, days = self.document.text, mark_days(self.document, start, end)
        return one_line(numbered_sentences(text, self.sentences, start, end, marks=days))


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """A chunk that was read, at the step with its number."""

    step: int
    span: Span
    tokens: int


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """A chunk that failed is read once more: what follows in this step is of that chunk."""

    chunk: int


@dataclass(frozen=True, slots=True)
class NameEntity:
    """What a passage tells of an entity; "" where it only names it."""

    name: str
    type: str
    description: str
    span: Span


@dataclass(frozen=True, slots=True)
class RelateEntities:
    """What a passage tells of two entities together; both were named before."""

    source: str
    target: str
    description: str
    span: Span


GraphEdit = ReadChunk | ReadAgain | NameEntity | RelateEntities


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk of the document, and what it tells."""

    span: Span
    tokens: int
    told: tuple[NameEntity | RelateEntities, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphLog:
    """What each chunk tells, by its number; ``named`` are the keys of the entities that the chunk
    ``current`` has named so far."""

    passages: Table[int, Passage] = field(default_factory=Table)
    current: int = 0
    named: frozenset[str] = frozenset()


LogT = TypeVar("LogT", bound=GraphLog)
EMPTY: Final = GraphLog()


def apply(log: LogT, edit: GraphEdit) -> LogT:
    """The log after an edit. ValueError for an edit that cannot be applied."""
    if isinstance(edit, ReadChunk):
        passages = log.passages.put(edit.step, Passage(edit.span, edit.tokens))
        return replace(log, passages=passages, current=edit.step, named=frozenset())
    if isinstance(edit, ReadAgain):
        return replace(log, current=edit.chunk, named=frozenset())
    named = log.named
    if isinstance(edit, NameEntity):
        named |= {entity_key(edit.name)}
    else:
        ends = {entity_key(edit.source), entity_key(edit.target)}
        if len(ends) < 2:
            raise ValueError("self_relation")
        if not ends <= named:
            raise ValueError("unknown_end")
    passage = log.passages[log.current]
    told = replace(passage, told=(*passage.told, edit))
    return replace(log, passages=log.passages.put(log.current, told), named=named)


EDITS: Final[Mapping[str, type[GraphEdit]]] = {
    "chunk": ReadChunk,
    "again": ReadAgain,
    "entity": NameEntity,
    "relation": RelateEntities,
}
VOCABULARY: Final = Vocabulary[GraphEdit, GraphLog](EDITS, apply, EMPTY, columns=("step", "span"))


@dataclass(frozen=True, slots=True)
class PassageDraft:
    """The step of a passage: what is proposed of it becomes edits."""

    passage: NumberedChunk
    draft: Draft[Any, Any]

    def take(self, reply: Extraction, call_key: str | None) -> None:
        """Add what a reply says, item by item."""
        for proposal in reply.entities:
            self.put_entity(proposal.model_dump(), call_key)
        for proposal in reply.relations:
            self.put_relation(proposal.model_dump(), call_key)

    def put_entity(self, said: Mapping[str, Any], call_key: str | None = None) -> None:
        """Add one entity: src, name, type and description."""
        name, wrong = _check_name(said["name"])
        text, cut = _cut_text(said["description"])
        self.draft.put(
            NameEntity(name, said["type"], text, self._span(said["src"])),
            rejected=wrong,
            repaired="name_cleaned" if name != said["name"] else cut,
            call_key=call_key,
        )

    def put_relation(self, said: Mapping[str, Any], call_key: str | None = None) -> None:
        """Add one relation: src, source, target and description."""
        (source, one), (target, other) = map(_check_name, (said["source"], said["target"]))
        text, cut = _cut_text(said["description"])
        span, wrong, log = self._span(said["src"]), one or other, self.draft.state
        new = {key: name for name in (source, target) if (key := entity_key(name)) not in log.named}
        joins_two = wrong is None and entity_key(source) != entity_key(target)
        if joins_two and all(mentions(name, self.passage.chunk.text) for name in new.values()):
            for name in new.values():
                end = NameEntity(name, UNKNOWN, "", span)
                self.draft.put(end, repaired="named_in_relation", call_key=call_key)
        is_cleaned = (source, target) != (said["source"], said["target"])
        self.draft.put(
            RelateEntities(source, target, text, span),
            rejected=wrong,
            repaired="name_cleaned" if is_cleaned else cut,
            call_key=call_key,
        )

    def _span(self, src: int) -> Span:
        return self.passage.document.span(*self.passage.sentences[src - 1])


def _check_name(said: str) -> tuple[str, str | None]:
    """A name as the log keeps it, and the reason if it is refused."""
    if len(one_line(said[: 4 * NAME_CHARS])) > NAME_CHARS:
        return said[:SHOWN_CHARS], "name_too_long"
    name = clean_name(said) if len(said) <= 4 * NAME_CHARS else ""
    if not name or not (key := entity_key(name)):
        return said[:SHOWN_CHARS], "no_name"
    return name, "pronoun" if key in PRONOUNS else None


def _cut_text(said: str) -> tuple[str, str | None]:
    """A description on one line, and the reason if it was cut."""
    line = one_line(said)
    if len(line) <= MOST_DESCRIPTION_CHARS:
        return line, None
    return shorten(line, MOST_DESCRIPTION_CHARS, placeholder=" […]"), "description_cut"
