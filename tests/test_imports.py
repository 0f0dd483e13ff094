"""The import rule: a room knows the rooms below it and no others (docs/design.md)."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import mgl

PACKAGE = Path(mgl.__file__).parent
LAYERS = (
    {"types", "errors", "prompt", "observer"},
    {"registry"},
    {"text", "models"},
    {"processes"},
    {"llm"},
    {"openai"},
    {"store"},
    {"retrieval", "serving"},
    {"memories"},
    {"baselines", "benchmarks", "web"},
    {"peers"},
    {"evaluation"},
    {"training"},
    {"lab"},
    {"cluster"},
    {"api"},
    {"integrations"},
    {"cli"},
)
HEIGHT = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}
SHARED_BY_MEMORIES = "graph"  # the document's entity graph, which HGMem reads


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(
        ".__init__"
    )


MODULES = {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def find_imports(path: Path) -> set[str]:
    """Find every mgl module that a file imports, wherever in the file it does so."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                names.add(full if full in MODULES else node.module)
    return {name for name in names if name.startswith("mgl.")}


def room(module: str) -> str:
    return module.split(".")[1]


def breaches() -> list[str]:
    found = []
    for module, path in MODULES.items():
        if module in ("mgl", "mgl.__main__"):
            continue
        for name in find_imports(path):
            here, there = room(module), room(name)
            if here != there and HEIGHT[there] >= HEIGHT[here]:
                found.append(f"{module} imports {name}")
            if here == there == "memories":
                own, other = module.split(".")[2:3], name.split(".")[2:3]
                kinds = {path.name for path in (PACKAGE / here).iterdir() if path.is_dir()}
                if other[0] in kinds - {*own, SHARED_BY_MEMORIES}:
                    found.append(f"{module} imports {name}")
    return sorted(found)


def test_every_room_knows_only_those_below() -> None:
    assert breaches() == []


def test_no_modules_import_each_other() -> None:
    graph = {name: find_imports(path) & MODULES.keys() - {name} for name, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_the_rule_sees_a_late_import(tmp_path: Path) -> None:
    breach = tmp_path / "breach.py"
    breach.write_text("def later():\n    from mgl.memories.mindgraph import MindGraph\n")
    assert find_imports(breach) == {"mgl.memories.mindgraph"}
