"""Options of a memory as they are typed: ``name=value``, by the names of its configuration.

    >>> read_settings(["merge=false", "steps=5", "compat=released_code"])
    {'merge': False, 'steps': 5, 'compat': 'released_code'}

What is JSON is read as JSON, anything else as a text. Whether a memory has such an option and
takes such a value is for its configuration to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mgl.errors import UsageError

__all__ = ["read_settings"]


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
