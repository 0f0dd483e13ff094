"""The two seeds of each property, in a pytest of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

PROPERTY = """
import os
import pytest
from hypothesis import given, strategies as st

def note(number):
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition("::")[2].partition(" ")[0]
    with open({path!r}, "a") as file:
        print(test, number, file=file)
    assert test != {failing!r} or number == 0

@given(number=st.integers(0, 10**6))
def test_light(number):
    note(number)

@pytest.mark.heavy
@given(number=st.integers(0, 10**6))
def test_heavy(number):
    note(number)
"""
ROOT = Path(__file__).parent.parent


def run(folder: Path, *options: str, failing: str = "") -> tuple[defaultdict[str, list[str]], str]:
    """The examples of each run of the properties, and what pytest says."""
    tried = folder / "tried"
    tried.write_text("")
    test = folder / "test_property.py"
    test.write_text(PROPERTY.format(path=str(tried), failing=failing))
    plugins = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-p", "no:langsmith_plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *options, "-c", os.devnull, test],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'scripts/bench'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == bool(failing), done.stdout + done.stderr
    examples = defaultdict[str, list[str]](list)
    for line in tried.read_text().splitlines():
        name, _, number = line.partition(" ")
        examples[name].append(number)
    return examples, done.stdout


def test_a_property_runs_with_a_fixed_seed_and_with_a_fresh_one_which_is_named(
    tmp_path: Path,
) -> None:
    first, said = run(tmp_path, "-n", "1")
    assert [*first] == ["test_light[fixed]", "test_light[fresh]", "test_heavy[fresh]"]
    seed = int(said.splitlines()[0].rpartition("=")[2])
    assert said.count(f"again: --hypothesis-seed={seed}") == 2
    assert first["test_light[fixed]"] != first["test_light[fresh]"]
    failing = ("--nightly", f"--hypothesis-seed={seed}")
    again, said = run(tmp_path, "-n", "0", *failing, failing="test_light[fresh]")
    for name in ("test_light[fixed]", "test_heavy[fresh]"):
        assert again[name][:10] == first[name]
    assert again["test_light[fresh]"][:2] == first["test_light[fresh]"][:2]
    assert again["test_heavy[fixed]"]
    assert "- Seeds -" in said
    assert said.count(f"--hypothesis-seed={seed}") == 3
