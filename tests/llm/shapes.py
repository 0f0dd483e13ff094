"""Models of the kinds that memories ask replies in."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

SENTENCES = tuple(
    f'Sentence {n} says "so" of the {"café" if n % 2 else "日本"}; a back\\slash, a line\nend.'
    for n in range(100)
)


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AddNode(Strict):
    op: Literal["add_node"]
    src: Annotated[str, Field(min_length=1, max_length=160)]
    id: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,40}$")]
    type: Literal["entity", "event", "claim"]
    rank: Annotated[int, Field(ge=-12, le=1305)]


class DeleteNode(Strict):
    op: Literal["delete_node"]
    id: Literal["a", "b_2"]
    why: Annotated[str, Field(max_length=60)] | None = None


class Edits(Strict):
    operations: Annotated[
        list[Annotated[AddNode | DeleteNode, Field(discriminator="op")]], Field(max_length=8)
    ]


class Chosen(Strict):
    src: Literal[SENTENCES]  # type: ignore[valid-type]
    says: Annotated[str, Field(min_length=3, max_length=160)]


class Notes(Strict):
    notes: Annotated[list[Chosen], Field(min_length=1, max_length=3)]


class Report(Strict):
    first: bool = False
    title: Annotated[str, Field(min_length=1)]
    share: Annotated[float, Field(ge=0, le=1)]
    below: Annotated[float, Field(ge=-3, le=-1)]
    number: Annotated[int, Field(gt=0)] | None
    free: int
    several: Literal["one", 2, None]
    last: list[str] = []


class Figures(Strict):
    """Everything bounded, so that any model comes to an end."""

    share: Annotated[float, Field(ge=0, le=1)]
    number: Annotated[int, Field(gt=0)] | None
    several: Literal["one", 2, None]
    names: Annotated[list[Annotated[str, Field(max_length=20)]], Field(max_length=3)] = []


class AllOptional(Strict):
    a: int = 0
    b: Annotated[str, Field(max_length=5)] = ""
    c: bool = True


class Answer(Strict):
    answer: Annotated[str, Field(min_length=1, max_length=200)]
    sure: bool


SHAPES: tuple[type[BaseModel], ...] = (Edits, Notes, Report, Figures, AllOptional, Answer)


def reply(**fields: Any) -> type[BaseModel]:
    """A model of these fields, all required."""
    named: Any = {name: (kind, ...) for name, kind in fields.items()}
    made: type[BaseModel] = create_model("reply", **named)
    return made
