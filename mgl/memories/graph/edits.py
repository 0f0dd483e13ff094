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
from mgl.memories.propose import Proposal, StrictReply
from mgl.prompt import one_line
from mgl.store import EditRecord
from mgl.store.records import EditOutcome
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


class Rows:
    """Collects the rows of one chunk."""

    def __init__(self, passage: NumberedChunk) -> None:
        self.passage, self.chunk = passage, passage.chunk
        chunk = passage.chunk
        place = {"start": chunk.span.start, "end": chunk.span.end, "tokens": chunk.tokens}
        self.rows = [EditRecord(chunk.index, "chunk", place, "applied", span=chunk.span)]
        self._known: set[str] = set()

    def take(self, reply: Extraction, call_key: str | None) -> None:
        """Add what a reply says, item by item."""
        for proposal in reply.entities:
            self.entity(proposal.model_dump(), call_key)
        for proposal in reply.relations:
            self.relation(proposal.model_dump(), call_key)

    def fail(self, proposal: Proposal[Extraction]) -> None:
        """Add that no reply could be used."""
        self._add("reply", {"error": proposal.problem}, rejected=proposal.reason)

    def as_step(self, step: int) -> list[EditRecord]:
        """The rows of a chunk that was read once more, as a step of their own; the first says
        which chunk it is."""
        mark = EditRecord(step, "again", {"chunk": self.chunk.index}, "applied")
        return [mark, *(replace(row, chunk=step) for row in self.rows[1:])]

    def entity(self, said: Mapping[str, Any], call_key: str | None = None) -> None:
        """Add one entity: src, name, type and description."""
        name, wrong = _check_name(said["name"])
        text, cut = _cut_text(said["description"])
        fields = {"name": name, "type": said["type"], "description": text}
        if wrong is None:
            self._known.add(entity_key(name))
        repaired = "name_cleaned" if name != said["name"] else cut
        self._add("entity", fields, self._span(said["src"]), call_key, wrong, repaired)

    def relation(self, said: Mapping[str, Any], call_key: str | None = None) -> None:
        """Add one relation: src, source, target and description."""
        ends = [_check_name(said["source"]), _check_name(said["target"])]
        names = [name for name, _ in ends]
        text, cut = _cut_text(said["description"])
        fields = {"source": names[0], "target": names[1], "description": text}
        keys = [entity_key(name) for name in names]
        new = [name for name, key in zip(names, keys, strict=True) if key not in self._known]
        wrong = next((reason for _, reason in ends if reason is not None), None)
        if wrong is None and keys[0] == keys[1]:
            wrong = "self_relation"
        if wrong is None and not all(mentions(name, self.passage.chunk.text) for name in new):
            wrong = "unknown_end"
        span = self._span(said["src"])
        for name in new if wrong is None else ():
            self._known.add(entity_key(name))
            end = {"name": name, "type": UNKNOWN, "description": ""}
            self._add("entity", end, span, call_key, repaired="named_in_relation")
        repaired = cut if names == [said["source"], said["target"]] else "name_cleaned"
        self._add("relation", fields, span, call_key, wrong, repaired)

    def _span(self, src: int) -> Span:
        return self.passage.document.span(*self.passage.sentences[src - 1])

    def _add(
        self,
        op: str,
        payload: Mapping[str, Any],
        span: Span | None = None,
        call_key: str | None = None,
        rejected: str | None = None,
        repaired: str | None = None,
    ) -> None:
        outcome: EditOutcome = "rejected" if rejected else "repaired" if repaired else "applied"
        reason = rejected or repaired
        index = self.chunk.index
        self.rows.append(EditRecord(index, op, payload, outcome, reason, span, call_key=call_key))


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
