"""What a session keeps of what it was made with."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import OrderedDict
from collections.abc import ValuesView
from types import ModuleType

import pytest

from mgl.evaluation.runs.provenance import find_prompts
from mgl.prompt import Prompt
from tests.patience import PATIENCE_S


class Lazy(OrderedDict[str, object]):
    """As the model tables of transformers, which load all models when they are looked into."""

    def values(self) -> ValuesView[object]:
        raise ValueError("a model is not there")


class Deprecated:
    """As torch's names of old, which warn when they are asked what they are."""

    @property
    def __class__(self) -> type:
        raise FutureWarning("old")


def module(name: str, monkeypatch: pytest.MonkeyPatch, **values: object) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(values)
    monkeypatch.setitem(sys.modules, name, made)
    return made


def test_prompts_are_found_and_nothing_else_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Prompt("test.own", source="ours", text="Say {what}", variables=("what",))
    listed = Prompt("test.listed", source="ours", text="Say so", variables=())
    shared = Prompt("test.shared", source="ours", text="Say it")
    other = Prompt("test.other", source="ours", text="Say no")
    helper = module("elses.helper", monkeypatch, shared=shared)
    module("elses.other", monkeypatch, other=other)
    module("torch", monkeypatch, foreign=Prompt("test.foreign", source="ours", text="No"))
    tools = {"helper": helper, "torch": sys.modules["torch"]}
    held = {"own": own, "table": {"a": listed, "b": 1}, "lazy": Lazy(a=own), "old": Deprecated()}
    memory = type("Memory", (), {"__module__": "elses.memory"})
    module("elses.memory", monkeypatch, Memory=memory, **held, **tools)
    for part in (memory, memory()):
        assert find_prompts([part]) == {one.name: one.hash for one in (listed, own, shared)}


ALONE = """
import json
from mgl import registry
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.runs.provenance import find_prompts
parts = [registry.load("memory", "mindgraph"), registry.load("memory", "direct"), JUDGES["locomo"]]
alone = find_prompts(parts)
registry.load("memory", "hgmem")
print(json.dumps([alone, find_prompts(parts)]))
"""


def test_what_is_not_yet_used_is_found_and_what_is_of_others_is_not() -> None:
    said = subprocess.check_output([sys.executable, "-c", ALONE], timeout=PATIENCE_S)
    alone, among = json.loads(said)
    assert alone == among
    assert {"mindgraph.build", "claiming.supported", "reading.answer"} <= alone.keys()
    assert any(name.startswith("judging.") for name in alone)
    assert not any(name.startswith(("gam.", "mnemis.")) for name in alone)
