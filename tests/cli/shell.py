"""Commands as a shell runs them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mgl.openai.detached import stop_detached
from tests.patience import PATIENCE_S
from tests.serving import conftest as serving


def run_shell(*arguments: object) -> str:
    """What `mgl` prints; it has to succeed."""
    words = [sys.executable, "-m", "mgl", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def free_port(kind: str) -> Iterator[int]:
    """A free port, on which nothing that was detached as this kind runs any more in the end."""
    number = serving.free_port()
    yield number
    stop_detached(kind, number)
