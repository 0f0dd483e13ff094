"""What a session keeps of what it was made with."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import ValuesView
from types import ModuleType

import pytest

from mgl.evaluation.judges.judge_prompts import CORRECTNESS
from mgl.evaluation.runs.provenance import prompts
from mgl.prompt import Prompt


class Lazy(OrderedDict[str, object]):
    """As the model tables of transformers, which load all models when they are looked into."""

    def values(self) -> ValuesView[object]:
        raise ValueError("a model is not there")


class Deprecated:
    """As torch's names of old, which warn when they are asked what they are."""

    @property
    def __class__(self) -> type:
        raise FutureWarning("old")


def test_prompts_are_found_and_nothing_else_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Prompt("test.own", source="ours", text="Say {what}", variables=("what",))
    listed = Prompt("test.listed", source="ours", text="Say so", variables=())
    module = ModuleType("someone_elses")
    vars(module).update(own=own, table={"a": listed, "b": 1}, lazy=Lazy(a=own), old=Deprecated())
    monkeypatch.setitem(sys.modules, "someone_elses", module)
    found = prompts()
    assert found["test.own"] == own.hash
    assert found["test.listed"] == listed.hash
    assert found[CORRECTNESS.name] == CORRECTNESS.hash
