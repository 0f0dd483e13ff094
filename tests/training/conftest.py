"""A store of its own for each test, and an encoder to train for each file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mgl.store import Store
from tests.training import tiny


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "mgl.sqlite") as opened:
        yield opened


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.bert(tmp_path_factory.mktemp("bert"))
