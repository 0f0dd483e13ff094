"""The examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import mgl

_ROOT = Path(mgl.__file__).parent
MODULES = sorted(
    ".".join(("mgl", *path.relative_to(_ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in _ROOT.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
