"""What is released: what the wheel is built of, and under which name people are told to install."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from mgl import DISTRIBUTION

ROOT = Path(__file__).parent.parent
SHIPPED = ("mgl", "models", "serving", "eval", "examples")
COMMAND = "mgl"
INSTALLS = re.compile(
    rf"""\b(?:install|upgrade|download|add|uvx|pipx\ run)\s+(?:-\S+\s+)*['"]?{COMMAND}(?![\w./-])
    | ['"`\s]{COMMAND}(?:\[[a-z]|\s?[=<>~!]=)""",
    re.VERBOSE,
)
"""Words that have somebody install the package that an index calls ``mgl``, which is not ours."""


def list_tracked(*folders: str) -> list[Path]:
    """List the files that git tracks, in these folders or in all; skip outside a checkout."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", *folders], check=True, capture_output=True, text=True
    )
    return [Path(name) for name in listed.stdout.split("\0") if name]


def test_no_file_that_ships_is_ignored() -> None:
    tracked = list_tracked(*SHIPPED)
    assert Path("mgl/evaluation/runs/runner.py") in tracked
    ignored = subprocess.run(
        ["git", "-C", ROOT, "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(map(str, tracked)),
        text=True,
        capture_output=True,
        check=False,  # 1: none is
    )
    assert (ignored.returncode, ignored.stdout) == (1, "")


def test_the_package_index_knows_it_by_its_own_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (project["name"], [*project["scripts"]]) == (DISTRIBUTION, [COMMAND])


def test_nothing_has_people_install_a_package_of_somebody_else() -> None:
    found = []
    for path in list_tracked():
        text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
        found += [f"{path}: {match[0].strip()}" for match in INSTALLS.finditer(text)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        (f"pip install {COMMAND}", True),
        (f"uv pip install --upgrade '{COMMAND}[server]'", True),
        (f"needs the extra ``{COMMAND}[ray]``", True),
        (f'dependencies = ["{COMMAND}>=0.1"]', True),
        (f"uv tool install\n{COMMAND}", True),
        (f"upgrade {COMMAND}, or move the file", True),
        (f"pip install {DISTRIBUTION}", False),
        (f"`{COMMAND} peer install mem0`, then `{COMMAND} ask`", False),
        ("python -m pip install -e '.[retrieval]'", False),
    ],
)
def test_the_guard_finds_an_installation_under_the_wrong_name(text: str, is_found: bool) -> None:
    assert bool(INSTALLS.search(text)) == is_found
