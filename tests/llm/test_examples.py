"""The examples in the docstrings of this room."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import mgl.llm

MODULES = [module.name for module in pkgutil.iter_modules(mgl.llm.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"mgl.llm.{name}")).failed == 0
