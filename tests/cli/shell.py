"""Servers of a test that commands leave running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from mgl.openai.detached import stop_detached
from tests.serving import conftest as serving


@contextmanager
def free_port(kind: Literal["up", "proxies"]) -> Iterator[int]:
    """A free port, on which nothing that was detached as this kind runs any more in the end."""
    number = serving.free_port()
    yield number
    stop_detached(kind, number)
