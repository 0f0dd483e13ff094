"""GAM's edits as rows of the log, and the schemas that a model proposes them under."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, create_model

from mgl.llm.constraints import index_set, max_chars
from mgl.memories.gam.state import (
    Append,
    Check,
    Consolidate,
    Edit,
    Forget,
    Freeze,
    Link,
    Mask,
    Relation,
    Rewrite,
    Unlink,
)
from mgl.store.vocabulary import Vocabulary

__all__ = [
    "Boundaries",
    "Cues",
    "Judged",
    "JudgedAll",
    "Summary",
    "boundaries_schema",
    "cues_schema",
    "judged_all_schema",
    "record",
    "resolved",
]

KEYWORDS, KEYWORD_CHARS, SUMMARY_CHARS = 8, 40, 400

_WORDS: Final = Vocabulary[Edit](
    {
        "append": Append,
        "check": Check,
        "consolidate": Consolidate,
        "link": Link,
        "unlink": Unlink,
        "rewrite": Rewrite,
        "freeze": Freeze,
        "forget": Forget,
        "mask": Mask,
    }
)


record: Final = _WORDS.record
resolved: Final = _WORDS.read


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Boundaries(_Reply):
    """E.3: indices of utterances after which the topic changes."""

    boundaries: list[int]


class Summary(_Reply):
    """E.2."""

    keywords: Annotated[
        list[Annotated[str, Field(min_length=1), max_chars(KEYWORD_CHARS)]],
        Field(min_length=1, max_length=KEYWORDS),
    ]
    summary: Annotated[str, Field(min_length=1), max_chars(SUMMARY_CHARS)]


class Judged(_Reply):
    """E.1."""

    relation: Relation
    confidence: Annotated[float, Field(ge=0.0, le=1.0)]


class JudgedAll(_Reply):
    """One judgement a candidate, in their order."""

    relations: list[Judged]


class Cues(_Reply):
    """Which utterances speak of time, and which are consistent."""

    temporal: list[int]
    consistent: list[int]


def boundaries_schema(first: int, count: int) -> type[Boundaries]:
    """Boundaries among ``count`` indices from ``first``."""
    return create_model(
        "boundaries", __base__=Boundaries, boundaries=(index_set(count, first=first), ...)
    )


def judged_all_schema(candidates: int) -> type[JudgedAll]:
    size = Field(min_length=candidates, max_length=candidates)
    return create_model(
        "relations", __base__=JudgedAll, relations=(Annotated[list[Judged], size], ...)
    )


def cues_schema(count: int) -> type[Cues]:
    """Cues of ``count`` utterances, numbered from 0."""
    return create_model(
        "cues", __base__=Cues, temporal=(index_set(count), ...), consistent=(index_set(count), ...)
    )
