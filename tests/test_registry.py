from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mgl import registry
from mgl.cli.app import app
from mgl.errors import UsageError


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution that registers memories by entry points, as an installed one would."""
    (tmp_path / "toybox.py").write_text("class Toy:\n    pass\n")
    info = tmp_path / "toybox-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toybox\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[mgl.memories]\n"
        "toy = toybox:Toy\n"
        "broken = toybox_that_is_not_there:Toy\n"
        "mangled = toybox:Missing\n"
        "mindgraph = toybox:Toy\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("plugin")
def test_an_entry_point_adds_a_memory_and_cannot_replace_a_shipped_one() -> None:
    assert "toy" in registry.names("memory")
    assert registry.load("memory", "toy").__module__ == "toybox"
    assert registry.load("memory", "mindgraph").__name__ == "MindGraph"


def test_a_package_that_is_installed_while_mgl_runs_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a notebook, or beside a server."""
    monkeypatch.syspath_prepend(str(tmp_path))
    os.utime(tmp_path, (0, 0))  # a clock of the file system may be too coarse for this test
    assert "late" not in registry.names("memory")
    (tmp_path / "late-1.0.dist-info").mkdir()
    (tmp_path / "late-1.0.dist-info" / "METADATA").write_text("Name: late\nVersion: 1.0\n")
    (tmp_path / "late-1.0.dist-info" / "entry_points.txt").write_text(
        "[mgl.memories]\nlate = late:Late\n"
    )
    assert "late" in registry.names("memory")


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("name", ["broken", "mangled"])
def test_what_cannot_be_imported_is_named(name: str) -> None:
    with pytest.raises(UsageError, match=f"'{name}'.*cannot be imported"):
        registry.load("memory", name)


def test_an_unknown_name_gets_the_nearest_one_or_all() -> None:
    with pytest.raises(UsageError) as near:
        registry.load("memory", "mindgrph")
    assert near.value.hint == "did you mean 'mindgraph'?"
    with pytest.raises(UsageError) as far:
        registry.load("memory", "xyz")
    assert "mindgraph" in far.value.hint


def test_naming_imports_nothing() -> None:
    code = (
        "import sys\nfrom mgl import registry\nregistry.names('memory')\n"
        "print([name for name in sys.modules if name.startswith('mgl.memories')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.usefixtures("plugin")
def test_a_package_that_cannot_be_imported_does_not_hide_the_kinds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    app(["ask", "--kinds"], standalone_mode=False)
    printed = capsys.readouterr()
    assert "mindgraph" in printed.out
    assert "'broken'" in printed.err
    assert "'mangled'" in printed.err
