"""The adapters that ship."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgl.models.adapters import LORA, RECORD, find_adapter, list_adapters
from mgl.models.profiles import load_profile

LARGEST = 3_000_000


@pytest.mark.parametrize("name", ["evidence", "topics"])
def test_a_shipped_adapter_is_whole_small_and_free(name: str, mgl_home: Path) -> None:
    assert name in list_adapters(mgl_home)
    adapter = find_adapter(name, mgl_home)
    manifest = adapter.manifest
    assert sum(adapter.file(file).stat().st_size for file in manifest.files) <= LARGEST
    assert LORA in manifest.files
    assert "NC" not in manifest.licence
    assert manifest.sources
    assert manifest.base_sha256 == load_profile(manifest.base).weights.sha256
    assert "| 1 | " in (adapter.folder / RECORD).read_text(encoding="utf-8")
