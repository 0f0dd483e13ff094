from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.models.packing import PARTS, write_wheel


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that is the only package index pip knows."""
    folder = tmp_path / "index"
    folder.mkdir()
    for number, content in enumerate(PARTS, 1):
        write_wheel(folder, number, content)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder
