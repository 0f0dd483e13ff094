"""Options of a memory as they are typed: ``name=value``, by the names of its configuration.

    >>> read_settings(["merge=false", "steps=5", "compat=released_code"])
    {'merge': False, 'steps': 5, 'compat': 'released_code'}

What is JSON is read as JSON, anything else as a text. Whether a memory has such an option and
takes such a value is for its configuration to say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, get_origin

from mgl import registry
from mgl.errors import UsageError, describe_fault

if TYPE_CHECKING:
    from pydantic import BaseModel

    from mgl.memories.base import MemoryKind


def read_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Options by name, the last of a name. UsageError for a pair without a name or a ``=``."""
    given: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{pair!r} sets nothing", hint="for instance: --set k=10")
        try:
            given[name.strip()] = json.loads(value)
        except json.JSONDecodeError:
            given[name.strip()] = value
    return given


def load_kind(name: str, preset: object = None) -> MemoryKind:
    """Load the kind of memory of this name: with preset "small" the one for small models, if there
    is one, else the paper's."""
    is_small = preset == "small" and registry.has("small memory", name)
    kind: MemoryKind = registry.load("small memory" if is_small else "memory", name)
    return kind


def choose_kind(
    name: str, options: Mapping[str, Any], preset: Callable[[], str], *, label: str = ""
) -> tuple[MemoryKind, BaseModel]:
    """Choose the kind of memory that a name and options mean, and configure it.

    ``preset`` gives the preset of the model that will be used; it is asked where the options name
    none. ``label`` names the memory in errors. UsageError as of ``configure``.
    """
    kind = load_kind(name)
    if "preset" in kind.Config.model_fields:
        if options.get("preset") is None:
            options = {**options, "preset": preset()}
        kind = load_kind(name, options["preset"])
    return kind, configure(label or name, kind, options)


class Configurable(Protocol):
    """Has options: the fields of its ``Config``."""

    Config: type[BaseModel]


def configure(name: str, kind: Configurable, options: Mapping[str, Any]) -> BaseModel:
    """Configure a kind of memory; None stands for an option's default.

    UsageError, with the options that there are, where one is unknown or cannot have its value.
    """
    from pydantic import ValidationError

    given = {option: value for option, value in options.items() if value is not None}
    try:
        return kind.Config.model_validate(given)
    except ValidationError as error:
        first = dict(error.errors()[0])
        problem = f"{name} cannot take {first['input']!r}: {describe_fault(first)}"
        if first["type"] == "extra_forbidden":
            problem = f"{name} has no option {'.'.join(map(str, error.errors()[0]['loc']))!r}"
        elif not first["loc"]:
            problem = describe_fault(first, f"the options of {name}")
        hint = f"its options are {', '.join(kind.Config.model_fields)}"
        raise UsageError(problem, hint=hint) from error


def describe_options(kind: MemoryKind) -> list[tuple[str, str]]:
    """List the options of a kind of memory, each with its default and what it is."""
    rows = []
    for name, field in kind.Config.model_fields.items():
        default = "none" if field.default is None else str(field.default)
        choices = [each for each in _find_choices(field.annotation) if each != default]
        others = f" (or {', '.join(choices)})" if choices else ""
        about = "" if field.description is None else f"; {field.description}"
        rows.append((name, f"{default}{others}{about}"))
    return rows


def _find_choices(annotation: Any) -> list[str]:
    """The words that a type allows: those of its Literals."""
    parts = get_args(annotation)
    if get_origin(annotation) is Literal:
        return [str(each) for each in parts]
    return [choice for part in parts for choice in _find_choices(part)]
