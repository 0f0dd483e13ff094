from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.kinds import install_toys


@pytest.fixture(autouse=True)
def _toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_toys(monkeypatch, tmp_path)
