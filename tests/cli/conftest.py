from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tests.cli.server import story
from tests.evaluation.trial import plugin, trial

__all__ = ["plugin", "trial"]

Mgl = Callable[..., Result]
"""The fixture ``mgl``."""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text(story(20))
    return path
