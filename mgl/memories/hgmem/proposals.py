"""What a model proposes at each stage of a step, and the schemas that hold it to what there is.

Source: HGMem §3.4–3.5, Fig. 4–6. Points are named by their place in the memory as it is shown,
from 0. The paper's delimiter format is read into the same classes (``delimiters``). The bounds, of
which the paper names none, are ours: they keep each part of a reply finite. A reply that has them
all at their most is cut off, and leaves the memory as it is. Docstrings of what is a reply's schema
are sent with it.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, Field, RootModel, create_model

from mgl.llm.constraints import index_set, max_chars, number, several
from mgl.memories.hgmem.state import Case
from mgl.memories.propose import StrictReply

POINTS = 8
OBJECTS, OBJECT_CHARS = 16, 60
DESCRIPTION_CHARS, CONCERN_CHARS = 2000, 200

Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(min_length=1), max_chars(OBJECT_CHARS)]
Description = Annotated[str, Field(min_length=1), max_chars(DESCRIPTION_CHARS)]
Asked = Annotated[str, Field(min_length=1), max_chars(CONCERN_CHARS)]


class NewPoint(StrictReply):
    """Fig. 4, insertion: the related objects by name, and what is said of them together."""

    objects: Annotated[list[Name], Field(min_length=2)]
    description: Description


class PointUpdate(StrictReply):
    """Fig. 4, update. ``objects`` are printed there and change nothing (§3.5); the released code
    puts them in place of the point's vertices."""

    point: int
    objects: list[Text] = Field(default=[])
    description: Description


class Evolution(StrictReply):
    """Fig. 4: what is put into the memory, and what is said anew."""

    inserted: list[NewPoint] = Field(default=[])
    updated: list[PointUpdate] = Field(default=[])


class ProposedMerge(StrictReply):
    """Fig. 5: points that become one, and its description."""

    points: list[int]
    description: Description


class Merges(StrictReply):
    """Fig. 5; a point may be in several merges."""

    merges: list[ProposedMerge] = Field(default=[])


class Concern(StrictReply):
    """Fig. 6: what is wanted to be known; ``point`` is the one it targets (case 2.1)."""

    point: int | None = None
    concern: Asked


class Concerns(StrictReply):
    """Fig. 6: the case and its concerns; case 1 has no concerns."""

    judgement: Case
    concerns: list[Concern] = Field(default=[])


class FollowUp(StrictReply):
    """Fig. 7."""

    subquery: Asked


class _Update(StrictReply):
    point: int
    description: Description


@cache
def evolution_schema(points: int, *, update: bool, replace: bool) -> type[BaseModel]:
    """Fig. 4 for a memory of so many points; each of its two lists has ``POINTS`` at most.

    Without ``update`` points are only inserted; with ``replace`` an update names objects too.
    """
    names: Any = Annotated[list[Name], Field(min_length=2, max_length=OBJECTS)]
    new: type[BaseModel] = create_model("point", __base__=NewPoint, objects=(names, ...))
    fields: dict[str, Any] = {"inserted": (several(new, POINTS), ...)}
    if update and points:
        base: type[BaseModel] = PointUpdate if replace else _Update
        own: dict[str, Any] = {"point": (number(0, points - 1), ...)}
        if replace:
            own["objects"] = (names, ...)
        kind: type[BaseModel] = create_model("update", __base__=base, **own)
        fields["updated"] = (several(kind, min(POINTS, points)), ...)
    return create_model("evolution", __base__=StrictReply, **fields)


@cache
def merges_schema(points: int) -> type[Merges]:
    """Fig. 5 for a memory of two points or more."""
    kind = create_model("merge", __base__=ProposedMerge, points=(index_set(points, least=2), ...))
    return create_model("merges", __base__=Merges, merges=(several(kind, points - 1), ...))


@cache
def concerns_schema(cases: tuple[Case, ...], points: int, most: int) -> type[BaseModel]:
    """Fig. 6 with the cases that are open; a memory without points has no case 2.1."""
    options = tuple(_concerns(case, points, most) for case in cases)
    kind: type[BaseModel] = RootModel[Union[options]]  # type: ignore[valid-type]  # noqa: UP007
    return kind


def _concerns(case: Case, points: int, most: int) -> Any:
    fields: dict[str, Any] = {"judgement": (Literal[case], ...)}
    if case == "2.1":
        near: type[BaseModel] = create_model(
            "local", __base__=StrictReply, point=(number(0, points - 1), ...), concern=(Asked, ...)
        )
        fields["concerns"] = (several(near, most, least=1), ...)
    elif case == "2.2":
        wider: type[BaseModel] = create_model("global", __base__=StrictReply, concern=(Asked, ...))
        fields["concerns"] = (several(wider, most, least=1), ...)
    return create_model(f"case {case}", __base__=StrictReply, **fields)
