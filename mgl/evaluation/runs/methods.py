"""What a run compares: memories with their settings, each with every model.

    >>> settings = {"k": 5, "plain.beta": 0}
    >>> methods(["gam", "plain=gam"], settings, {"m": "paper"})     # doctest: +SKIP

``NAME`` stands for a memory, ``LABEL=NAME`` for one more of the same kind with settings of its
own. ``option=value`` sets an option of every memory that has it, ``LABEL.option=value`` of one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mgl import registry
from mgl.errors import UsageError
from mgl.memories.base import MemoryKind
from mgl.memories.options import configured

__all__ = ["Method", "methods"]


@dataclass(frozen=True)
class Method:
    """One memory with one model: its label, kind and model in the run's manifest.

    ``settings`` are those that were given, ``config`` is all that the memory is configured by.
    """

    label: str
    memory: str
    model: str
    settings: Mapping[str, Any]
    config: Mapping[str, Any]


def methods(
    memories: Sequence[str],
    settings: Mapping[str, Any],
    presets: Mapping[str, str],
    *,
    taken: Collection[str] = (),
) -> list[Method]:
    """Every memory with every model; ``presets`` are the models, each with its profile's preset.
    ``taken`` are settings that the benchmark has, and a memory need not.

    A label is the memory's, with ``@model`` where there are several models. UsageError for a
    memory that is unknown or named twice, and for a setting that no memory, or not the one that it
    is for, has.
    """
    labels = _labels(memories)
    kinds: dict[str, MemoryKind] = {
        label: registry.load("memory", name) for label, name in labels.items()
    }
    given = _given(kinds, settings, taken)
    return [
        Method(
            label=label if len(presets) == 1 else f"{label}@{model}",
            memory=labels[label],
            model=model,
            settings=given[label],
            config=configured(
                label,
                kind,
                given[label],
                lambda preset=preset: preset,  # type: ignore[misc]
            ).model_dump(mode="json"),
        )
        for model, preset in presets.items()
        for label, kind in kinds.items()
    ]


def _labels(memories: Sequence[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for written in memories:
        label, _, name = (part.strip() for part in written.partition("="))
        if not label:
            raise UsageError(
                f"{written!r} names no memory", hint="for instance: --memory gam,turns"
            )
        if label in labels:
            raise UsageError(
                f"there are two memories {label!r}",
                hint=f"give one of them another label: --memory other={name or label}",
            )
        labels[label] = name or label
    if not labels:
        raise UsageError("there is no memory to evaluate", hint="for instance: --memory gam,turns")
    return labels


def _given(
    kinds: Mapping[str, MemoryKind], settings: Mapping[str, Any], taken: Collection[str]
) -> dict[str, dict[str, Any]]:
    """The settings of each label."""
    given: dict[str, dict[str, Any]] = {label: {} for label in kinds}
    own = {name: value for name, value in settings.items() if "." in name}
    for name in settings.keys() - own.keys():
        takers = [label for label, kind in kinds.items() if name in kind.Config.model_fields]
        if not takers and name not in taken:
            options = sorted({one for kind in kinds.values() for one in kind.Config.model_fields})
            raise UsageError(
                f"none of {', '.join(kinds)} has an option {name!r}",
                hint=f"their options are {', '.join(options)}",
            )
        for label in takers:
            given[label][name] = settings[name]
    for name, value in own.items():
        label, _, option = name.rpartition(".")
        if name in taken:
            continue
        if label not in given:
            raise UsageError(
                f"{name!r} sets an option of {label!r}, which is not evaluated",
                hint=f"what is evaluated: {', '.join(given)}",
            )
        given[label][option] = value
    return {label: dict(sorted(own.items())) for label, own in given.items()}
