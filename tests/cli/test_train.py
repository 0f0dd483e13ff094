"""``mgl train``: what is missing is said before anything is asked of a model."""

from __future__ import annotations

import pytest

from mgl.training import fitting
from tests.cli.conftest import Mgl


@pytest.mark.parametrize("kind", ["retriever", "reranker"])
def test_a_missing_extra_is_said_before_anything_is_asked(
    mgl: Mgl, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(fitting, "find_spec", lambda _: None)
    refused = mgl("train", kind, "ours", "--on", "work", code=2)
    assert "without the package torch" in refused.stderr
    assert "no memory" not in refused.stderr
