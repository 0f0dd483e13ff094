"""The examples in the docstrings of this room."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import mgl.llm

MODULES = [module.name for module in pkgutil.iter_modules(mgl.llm.__path__)]
WITH_EXAMPLES = {
    "client",
    "constraints",
    "concurrency",
    "grammar",
    "patterns",
    "replies",
    "schemas",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"mgl.llm.{name}"))
    assert result.failed == 0
    assert result.attempted > 0 or name not in WITH_EXAMPLES
