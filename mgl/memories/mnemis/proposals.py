"""What a model proposes while an episode is taken in, and the schemas that hold it to what is.

An item cites the number of a sentence before it says anything, so its span is exact by
construction. Each of some entities or names has a field of its own, so none is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model

from mgl.llm.constraints import max_chars, number, one_of, several

__all__ = [
    "NEW",
    "NONE",
    "Facts",
    "Names",
    "Same",
    "StatedFact",
    "Summary",
    "facts_schema",
    "names_schema",
    "same_entities_schema",
    "same_facts_schema",
    "summaries_schema",
]

NEW: Final = "new"
NONE: Final = "none"
NAME_CHARS, SUMMARY_CHARS, TAG_CHARS, FACT_CHARS, TIME_CHARS, TAGS = 60, 240, 24, 200, 40, 3

ProposalT = TypeVar("ProposalT", bound=BaseModel)
Time = Annotated[str, max_chars(TIME_CHARS)] | None


class _Proposal(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Names(_Proposal):
    """What an episode tells of, by name."""

    entities: list[str]


class Summary(_Proposal):
    """What an entity is."""

    src: int
    summary: Annotated[str, max_chars(SUMMARY_CHARS)]
    tags: Annotated[
        list[Annotated[str, max_chars(TAG_CHARS)]], Field(min_length=1, max_length=TAGS)
    ]


class StatedFact(_Proposal):
    """A fact between two entities, by their names; times in words."""

    src: int
    source: str
    target: str
    fact: Annotated[str, max_chars(FACT_CHARS)]
    valid_at: Time = None
    invalid_at: Time = None


class Facts(_Proposal):
    facts: list[StatedFact]


class Same(_Proposal):
    """What a new fact is to known ones: their ids, or ``none``."""

    same: str
    contradicts: list[str]


def names_schema(most: int) -> type[Names]:
    """At most so many names."""
    names = Annotated[list[Annotated[str, max_chars(NAME_CHARS)]], Field(max_length=most)]
    return create_model("names", __base__=Names, entities=(names, ...))


def same_entities_schema(candidates: Mapping[str, Sequence[str]]) -> type[BaseModel]:
    """For each label one of its candidates' ids, or ``new``."""
    fields: dict[str, Any] = {
        label: (one_of((*known, NEW)), ...) for label, known in candidates.items()
    }
    return create_model("same_entities", __base__=_Proposal, **fields)


def summaries_schema(ids: Sequence[str], sentences: int) -> type[BaseModel]:
    """A ``Summary`` of each id."""
    item = create_model("summary", __base__=Summary, src=(number(1, sentences), ...))
    fields: dict[str, Any] = dict.fromkeys(ids, (item, ...))
    return create_model("summaries", __base__=_Proposal, **fields)


def facts_schema(names: Sequence[str], first: int, last: int, most: int) -> type[Facts]:
    """Facts that join two of some names, from the sentences ``first`` to ``last``."""
    end = one_of(names)
    item = create_model(
        "fact",
        __base__=StatedFact,
        src=(number(first, last), ...),
        source=(end, ...),
        target=(end, ...),
    )
    return create_model("facts", __base__=Facts, facts=(several(item, most), ...))


def same_facts_schema(candidates: Mapping[str, Sequence[str]]) -> type[BaseModel]:
    """For each label what the new fact is to its candidates."""
    fields: dict[str, Any] = {}
    for label, known in candidates.items():
        each: Any = one_of(known)
        ended: Any = Annotated[list[each], Field(max_length=len(known))]
        item = create_model(
            "same", __base__=Same, same=(one_of((*known, NONE)), ...), contradicts=(ended, ...)
        )
        fields[label] = (item, ...)
    return create_model("same_facts", __base__=_Proposal, **fields)
