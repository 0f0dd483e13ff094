"""The examples of a memory, a benchmark and an engine of one's own, used as a newcomer would."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from mgl import Lab, registry
from mgl.benchmarks.checking import check_dataset
from mgl.lab import OwnModels
from mgl.llm.fakes import ScriptedEngine
from mgl.types import Conversation

PLUGIN = Path(__file__).parent.parent / "examples" / "plugin"
TALK = [("Ann", "I adopted a cat."), ("Bo", "Lovely!"), ("Ann", "I moved to Lisbon.")]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin's modules and entry points, as if it were installed."""
    info = tmp_path / "site" / "mgl_plugin_example-0.1.dist-info"
    info.mkdir(parents=True)
    groups = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [f"[{group}]\n{_write_entries(names)}" for group, names in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(info.parent))
    monkeypatch.syspath_prepend(str(PLUGIN))


def _write_entries(names: dict[str, str]) -> str:
    return "".join(f"{name} = {target}\n" for name, target in names.items())


def _write_talk(folder: Path) -> Path:
    file = folder / "talk.jsonl"
    file.write_text("".join(json.dumps({"speaker": w, "text": t}) + "\n" for w, t in TALK))
    return file


@pytest.mark.usefixtures("installed")
def test_a_memory_is_asked_by_its_name(tmp_path: Path) -> None:
    engine = ScriptedEngine(['{"memories": [1], "answer": "Lisbon"}'])
    with Lab.open(OwnModels(engine), home=tmp_path / "home") as lab:
        result = lab.ask(_write_talk(tmp_path), "Where do I live?", memory="recent", k=1)
    assert result.answer.text == "Lisbon"
    assert [cited.quote for cited in result.answer.citations] == ["I moved to Lisbon."]
    assert "cat" not in engine.requests[0].messages[-1].content


@pytest.mark.usefixtures("installed")
def test_a_benchmark_is_read_by_its_name(tmp_path: Path) -> None:
    says = [["2024-05-01", "I adopted a cat."], ["2024-05-02", "It rained."]]
    line = json.dumps({"says": says, "ask": "Which pet?", "gold": "a cat", "day": 1})
    (tmp_path / "diary.jsonl").write_text(line + "\n")
    dataset = registry.load("benchmark", "diary").read(tmp_path)
    checked = check_dataset(dataset)
    assert (checked.without_gold, checked.evidence) == ((), {})
    source = dataset.sources["diary-1"]()
    assert isinstance(source, Conversation)
    assert [turn.text for turn in source.turns] == ["I adopted a cat.", "It rained."]


def test_a_function_is_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PLUGIN))
    make_engine = import_module("function_engine").FunctionEngine

    def reply(prompt: str) -> str:
        number = re.findall(r"\[(\d+)\] .*Lisbon", prompt)[0]
        return json.dumps({"memories": [int(number)], "answer": "Lisbon"})

    with Lab.open(OwnModels(make_engine(reply, "rule@1")), home=tmp_path / "home") as lab:
        result = lab.ask(_write_talk(tmp_path), "Where do I live?", memory="transcript")
    assert (result.answer.text, len(result.answer.citations)) == ("Lisbon", 1)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test imports the plugin's modules anew."""
    for name in ("recent_memory", "diary_benchmark", "function_engine"):
        monkeypatch.delitem(sys.modules, name, raising=False)
