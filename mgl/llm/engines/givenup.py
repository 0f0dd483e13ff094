"""Which ways of constraining a server gave up on, remembered for the engine's life.

A constraint that a server could not compile is not sent again in that way: the next looser one
is. What failed for several schemas that differ in their values alone (other ids in an enum, other
bounds) is not tried for the next one of that shape: some servers take seconds to refuse.

It does not know how constraints are sent: ``mgl.llm.engines.ways`` does.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from mgl.llm.base import Request
from mgl.llm.calls import content_hash
from mgl.llm.engines.ways import Way

__all__ = ["ENOUGH", "GivenUp"]

ENOUGH = 3
"""So many schemas of one shape that could not be compiled speak for all of that shape."""


class GivenUp:
    """Ways that failed, by schema and by the schema's shape."""

    def __init__(self) -> None:
        self._failed: defaultdict[tuple[str, str], set[str]] = defaultdict(set)

    def add(self, way: Way, request: Request) -> None:
        """Note that the way failed for this request's schema or choices."""
        exact, shape = _digests(request)
        self._failed[way.name, shape].add(exact)

    def holds(self, way: Way, request: Request) -> bool:
        """Whether the way is not to be tried for this request."""
        if not self._failed:
            return False
        exact, shape = _digests(request)
        failed = self._failed.get((way.name, shape), set())
        return exact in failed or len(failed) >= ENOUGH


def _digests(request: Request) -> tuple[str, str]:
    if request.choices:
        return content_hash(list(request.choices)), "choices"
    schema = dict(request.json_schema or {})
    return content_hash(schema), content_hash(_shape(schema))


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: None if key in ("enum", "const", "substring") else _shape(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return 0 if isinstance(value, int | float) else value
