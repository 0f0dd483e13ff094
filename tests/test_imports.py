"""The import rule: who may know whom (docs/design.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mgl

PACKAGE = Path(mgl.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOFS = ("memories", "baselines", "benchmarks", "evaluation", "training", "cluster", "cli", "lab")
FORBIDDEN = {
    "memories": ("cluster", "baselines", "benchmarks", "evaluation", "training", "cli", "lab"),
    "baselines": ("cluster", "benchmarks", "evaluation", "training", "cli", "lab"),
    "benchmarks": ("cluster", "memories", "baselines", "evaluation", "training", "cli", "lab"),
    "evaluation": ("cluster", "memories", "baselines", "training", "cli", "lab"),
    "cluster": ("memories", "baselines", "benchmarks", "training", "cli", "lab"),
    "training": ("cluster", "memories", "baselines", "cli", "lab"),
    "lab": ("cluster", "cli"),
    "llm": ("serving", *ROOFS),
    "cli": (),
}
PROTOCOLS = ("mgl.memories.base",)


def imported(path: Path) -> set[str]:
    """Every mgl module that a file imports, wherever in the file it does so."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return {name for name in names if name.split(".")[0] == "mgl"}


def room(dotted: str) -> str:
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 else ""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_keeps_to_its_rooms(path: Path) -> None:
    here = path.relative_to(PACKAGE.parent).with_suffix("").parts
    own_room = here[1] if len(here) > 1 else ""
    if here in (("mgl", "__init__"), ("mgl", "__main__")):
        return
    for name in imported(path):
        if name.startswith(PROTOCOLS):
            continue
        if own_room not in FORBIDDEN:
            assert room(name) not in ROOFS, f"shared room {own_room} imports {name}"
        assert room(name) not in FORBIDDEN.get(own_room, ()), f"{own_room} imports {name}"
        if own_room in ("memories", "baselines") and room(name) == own_room:
            kind = name.split(".")[2:3]
            assert not kind or kind[0] in ("base", "record", here[2]), f"{here[2]} imports {name}"


def test_the_rule_sees_a_breach(tmp_path: Path) -> None:
    breach = tmp_path / "breach.py"
    breach.write_text("def later():\n    from mgl.memories.mindgraph import MindGraph\n")
    assert "mgl.memories.mindgraph" in imported(breach)
