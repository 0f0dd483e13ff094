"""What a model proposes of a passage, and how it becomes rows of the log.

Every item cites a numbered sentence, so its span is exact by construction. Names are cleaned
(``repaired``) or refused, with the reason; what stands in a row is what the graph is folded from.

An end of a relation that is not among the entities becomes one where the passage has its name: of
type ``UNKNOWN``, since nobody said what it is, and without a description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from textwrap import shorten
from typing import Annotated, Any, Final

from pydantic import create_model

from mgl.llm.constraints import max_chars, number, one_of, several
from mgl.memories.graph.names import NAME_CHARS, PRONOUNS, clean_name, entity_key, mentions
from mgl.memories.log import Draft, Vocabulary
from mgl.memories.propose import StrictReply
from mgl.prompt import one_line
from mgl.store import EditRecord
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

    def number_sentences(self) -> str:
        """Its sentences on one line, with ``[n]`` before each."""
        start, end = self.sentences[0][0], self.sentences[-1][1]
        text, days = self.document.text, mark_days(self.document, start, end)
        return one_line(numbered_sentences(text, self.sentences, start, end, marks=days))


@dataclass(frozen=True, slots=True)
class NameEntity:
    """What a passage tells of an entity; "" where it only names it."""

    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class RelateEntities:
    """What a passage tells of two entities together; both were named before."""

    source: str
    target: str
    description: str


GraphEdit = NameEntity | RelateEntities
Keys = frozenset[str]
"""The keys of the entities that one passage has named so far."""


def apply(known: Keys, edit: GraphEdit) -> Keys:
    """The keys after an edit. ValueError for an edit that cannot be applied."""
    if isinstance(edit, NameEntity):
        return known | {entity_key(edit.name)}
    ends = {entity_key(edit.source), entity_key(edit.target)}
    if len(ends) < 2:
        raise ValueError("self_relation")
    if not ends <= known:
        raise ValueError("unknown_end")
    return known


VOCABULARY: Final = Vocabulary[GraphEdit, Keys](
    {"entity": NameEntity, "relation": RelateEntities},
    apply,
    frozenset(),
)


class Rows(Draft[GraphEdit, Keys]):
    """The rows of one chunk; the state is the keys of the entities that it names."""

    def __init__(self, passage: NumberedChunk) -> None:
        self.passage, self.chunk = passage, passage.chunk
        index, span = self.chunk.index, self.chunk.span
        place = {"start": span.start, "end": span.end, "tokens": self.chunk.tokens}
        super().__init__(VOCABULARY, index, VOCABULARY.empty)
        self.rows.append(EditRecord(index, "chunk", place, "applied", span=span))

    def take(self, reply: Extraction, call_key: str | None) -> None:
        """Add what a reply says, item by item."""
        for proposal in reply.entities:
            self.entity(proposal.model_dump(), call_key)
        for proposal in reply.relations:
            self.relation(proposal.model_dump(), call_key)

    def as_step(self, step: int) -> list[EditRecord]:
        """The rows of a chunk that was read once more, as a step of their own; the first says
        which chunk it is."""
        mark = EditRecord(step, "again", {"chunk": self.chunk.index}, "applied")
        return [mark, *(replace(row, chunk=step) for row in self.rows[1:])]

    def entity(self, said: Mapping[str, Any], call_key: str | None = None) -> None:
        """Add one entity: src, name, type and description."""
        name, wrong = _check_name(said["name"])
        text, cut = _cut_text(said["description"])
        self.put(
            NameEntity(name, said["type"], text),
            rejected=wrong,
            repaired="name_cleaned" if name != said["name"] else cut,
            span=self._span(said["src"]),
            call_key=call_key,
        )

    def relation(self, said: Mapping[str, Any], call_key: str | None = None) -> None:
        """Add one relation: src, source, target and description."""
        (source, one), (target, other) = map(_check_name, (said["source"], said["target"]))
        text, cut = _cut_text(said["description"])
        span, wrong, known = self._span(said["src"]), one or other, self.state
        new = {key: name for name in (source, target) if (key := entity_key(name)) not in known}
        joins_two = wrong is None and entity_key(source) != entity_key(target)
        if joins_two and all(mentions(name, self.passage.chunk.text) for name in new.values()):
            for name in new.values():
                end = NameEntity(name, UNKNOWN, "")
                how = "named_in_relation"
                self.put(end, repaired=how, span=span, call_key=call_key)
        is_cleaned = (source, target) != (said["source"], said["target"])
        self.put(
            RelateEntities(source, target, text),
            rejected=wrong,
            repaired="name_cleaned" if is_cleaned else cut,
            span=span,
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
