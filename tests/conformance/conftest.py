from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.kinds import install_toys, keep_snapshots, write_toys


@pytest.fixture(scope="session")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a toy for the package of every peer."""
    folder = tmp_path_factory.mktemp("toys")
    write_toys(folder)
    return folder


@pytest.fixture(autouse=True)
def _little(toys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Toys are the peers, and snapshots are kept of little."""
    install_toys(monkeypatch, toys)
    keep_snapshots(monkeypatch)
