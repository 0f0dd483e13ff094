"""A store of its own for each test, and an encoder to train for each file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training import tiny


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.bert(tmp_path_factory.mktemp("bert"))
