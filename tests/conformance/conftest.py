from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.kinds import install_toys, keep_snapshots


@pytest.fixture(autouse=True)
def _toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_toys(monkeypatch, tmp_path)


@pytest.fixture(autouse=True)
def _snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_snapshots(monkeypatch)
