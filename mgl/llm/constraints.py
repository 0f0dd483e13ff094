"""What a memory declares its edits with: types whose values a model can be held to.

Each is a type for a field of a pydantic model, made per call from what exists at that moment. It
says the same thing twice: to the grammar that decoding is held to (``mgl.llm.schemas`` reads the
JSON schema it gives) and to the validation of the reply.

    >>> from pydantic import create_model
    >>> Reply = create_model("Reply", boundaries=(index_set(6), ...))
    >>> Reply.model_validate({"boundaries": [1, 4]}).boundaries
    [1, 4]

What a grammar can say is forced where the engine decodes under one. What none can say (sets that
share no index, an index that no set holds) is a *rule*: a reply that breaks one is told which, in
one repair call, and each break is counted under the rule's name (``RULES``).

It knows no memory; each declares its own edits in its own folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, Field, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError

__all__ = [
    "RULES",
    "bounded",
    "covering",
    "disjoint",
    "index_set",
    "new_id",
    "number",
    "one_of",
    "part_of",
    "sentence_of",
    "several",
]

RULES: Final = ("not_increasing", "overlapping", "uncovered")
"""Names of the rules that validation holds beyond what a grammar can force."""

ID_PATTERN: Final = r"^[a-z0-9_]{1,40}$"


def one_of(values: Sequence[str]) -> Any:
    """Exactly one of some texts: ids that exist."""
    return Literal[tuple(values)]


def new_id(pattern: str = ID_PATTERN) -> Any:
    """An id that need not exist, by its form."""
    return Annotated[str, Field(pattern=pattern)]


def number(least: int, most: int) -> Any:
    """An integer between two, inclusive: the number of a sentence, a turn, a point."""
    return Annotated[int, Field(ge=least, le=most)]


def bounded(most: int) -> WithJsonSchema:
    """Annotates a text that is decoded to about ``most`` characters, and never empty.

    The bound keeps a reply within its budget. An engine holds it in tokens (a quarter of the
    characters), in words (a seventh), or not at all; a text that is somewhat longer is no reason
    to throw a reply away, so validation does not ask for it.
    """
    return WithJsonSchema({"type": "string", "minLength": 1, "maxLength": most})


def sentence_of(sentences: Sequence[str]) -> Any:
    """A quote that is one of some sentences.

    Decoding is held to it and validation is not: a quote from an engine that decodes freely may be
    a little off, and whoever cites it locates it in the text or refuses it.
    """
    return _quote({"enum": list(dict.fromkeys(sentences))})


def part_of(text: str, most: int) -> Any:
    """A quote of some words of a text in a row, of ``most`` characters; as ``sentence_of``.

    Only a grammar that knows substrings (llguidance) can hold decoding to it.
    """
    return _quote({"type": "string", "minLength": 1, "maxLength": most, "substring": text})


def _quote(described: dict[str, Any]) -> Any:
    return Annotated[str, Field(min_length=1), WithJsonSchema(described)]


def index_set(count: int, *, first: int = 0, least: int = 0) -> Any:
    """Strictly increasing integers from ``first``, of ``count`` there are, ``least`` at least.

    The order is forced where there are no more than some dozens, and a rule beyond.
    """
    item: Any = number(first, first + count - 1)
    size = Field(min_length=least, max_length=count)
    return Annotated[list[item], size, AfterValidator(_increasing), _Keyword("increasing", True)]


def several(item: type[BaseModel], most: int, *, least: int = 0) -> Any:
    """A list of objects, bounded so that a reply fits its budget."""
    return Annotated[list[item], Field(min_length=least, max_length=most)]  # type: ignore[valid-type]


def disjoint(items: Any, field: str) -> Any:
    """A list of objects whose index sets in ``field`` share nothing: merges. A rule."""

    def check(values: list[BaseModel]) -> list[BaseModel]:
        holder: dict[int, int] = {}
        for place, value in enumerate(values):
            for index in getattr(value, field):
                if index in holder:
                    raise PydanticCustomError(
                        "overlapping",
                        "{index} is in {field} of both item {one} and item {other}",
                        {"index": index, "field": field, "one": holder[index], "other": place},
                    )
                holder[index] = place
        return values

    return Annotated[items, AfterValidator(check)]


def covering(items: Any, field: str, count: int, *, first: int = 0) -> Any:
    """A list of objects whose index sets in ``field`` together hold every index. A rule."""

    def check(values: list[BaseModel]) -> list[BaseModel]:
        held = {index for value in values for index in getattr(value, field)}
        missing = [index for index in range(first, first + count) if index not in held]
        if missing:
            raise PydanticCustomError(
                "uncovered",
                "{field} of no item holds {missing}",
                {"field": field, "missing": ", ".join(map(str, missing[:20]))},
            )
        return values

    return Annotated[items, AfterValidator(check)]


def _increasing(values: list[int]) -> list[int]:
    for before, after in pairwise(values):
        if after <= before:
            raise PydanticCustomError(
                "not_increasing",
                "{after} comes after {before}: each index once, in increasing order",
                {"before": before, "after": after},
            )
    return values


@dataclass(frozen=True, slots=True)
class _Keyword:
    """Adds a keyword of ours to a type's JSON schema."""

    name: str
    value: Any

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(core), self.name: self.value}
