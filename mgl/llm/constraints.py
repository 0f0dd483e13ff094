"""Field types that a model can be held to: what memories declare their edits with.

Each is a type for a field of a pydantic model, made per call from what exists at that moment. It
says the same thing twice: to the grammar that decoding is held to (``mgl.llm.schemas`` compiles the
JSON schema) and to the validation of the reply.

    >>> from pydantic import create_model
    >>> Reply = create_model("Reply", boundaries=(index_set(6), ...))
    >>> Reply.model_validate({"boundaries": [1, 4]}).boundaries
    [1, 4]

What a grammar can say is forced if the engine decodes under one. What no grammar can say (sets that
share no index) is a *rule*: a reply that breaks one gets feedback in one repair call, and each
breach is counted under the rule's name (``RULES``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, Field, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError

RULES: Final = ("not_increasing", "overlapping")
"""Names of the rules that only validation can check."""

ID_PATTERN: Final = r"^[a-z0-9_]{1,40}$"


def one_of(values: Sequence[str]) -> Any:
    """Exactly one of some texts, for instance the ids that exist."""
    return Literal[tuple(values)]


def new_id(pattern: str = ID_PATTERN) -> Any:
    """An id of this form, whether or not it exists."""
    return Annotated[str, Field(pattern=pattern)]


def number(least: int, most: int) -> Any:
    """An integer from ``least`` to ``most``: the number of a sentence, a turn, a point."""
    return Annotated[int, Field(ge=least, le=most)]


def max_chars(most: int) -> WithJsonSchema:
    """Annotates a text that is decoded to about ``most`` characters, and is never empty.

    The bound keeps a reply within its budget. Engines count it in tokens (a quarter of the
    characters), in words (a seventh), or not at all, so validation accepts longer texts.
    """
    return WithJsonSchema({"type": "string", "minLength": 1, "maxLength": most})


def part_of(text: str, most: int, sentences: Sequence[tuple[int, int]] = ()) -> Any:
    """A quote of consecutive words of a text, at most ``most`` characters.

    Only a grammar with substrings (llguidance) can enforce this. Other engines are held to one of
    the ``sentences`` (ranges of the text) or, without any, to ``most`` characters. An engine that
    decodes freely may quote a little wrong: the caller locates the quote in the text or rejects
    it.
    """
    described = {"type": "string", "minLength": 1, "maxLength": most, "substring": text}
    if sentences:
        described["sentences"] = [list(each) for each in sentences]
    return Annotated[str, Field(min_length=1), WithJsonSchema(described)]


def index_set(count: int, *, first: int = 0, least: int = 0) -> Any:
    """Strictly increasing integers from ``first`` to ``first + count - 1``, at least ``least``.

    The grammar forces the order for up to a few dozen integers; beyond that it is a rule.
    """
    item: Any = number(first, first + count - 1)
    size = Field(min_length=least, max_length=count)
    return Annotated[list[item], size, AfterValidator(_check_order), _Keyword("increasing", True)]


def several(item: type[BaseModel], most: int, *, least: int = 0) -> Any:
    """A list of ``least`` to ``most`` objects."""
    return Annotated[list[item], Field(min_length=least, max_length=most)]  # type: ignore[valid-type]


def _check_order(values: list[int]) -> list[int]:
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
    """Adds one of our keywords to a type's JSON schema."""

    name: str
    value: Any

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(core), self.name: self.value}
