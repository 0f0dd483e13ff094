"""The two seeds of each property, in a pytest of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROPERTY = """
import os
from hypothesis import given, strategies as st

@given(number=st.integers(0, 10**6))
def test_numbers(number):
    test = os.environ["PYTEST_CURRENT_TEST"].partition("[")[2].partition("]")[0]
    with open({path!r}, "a") as file:
        print(test, number, file=file)
    assert test != {failing!r}
"""
ROOT = Path(__file__).parent.parent


def run(folder: Path, seed: int | None, failing: str = "") -> tuple[dict[str, list[str]], str]:
    """The examples of each run of the property, and what pytest says."""
    tried = folder / "tried"
    tried.write_text("")
    test = folder / "test_property.py"
    test.write_text(PROPERTY.format(path=str(tried), failing=failing))
    given = [] if seed is None else [f"--hypothesis-seed={seed}"]
    options = ["-q", "-n", "1", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *given, "-c", os.devnull, test],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'scripts/bench'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == bool(failing), done.stdout + done.stderr
    examples: dict[str, list[str]] = {"fixed": [], "fresh": []}
    for line in tried.read_text().splitlines():
        name, _, number = line.partition(" ")
        examples[name].append(number)
    return examples, done.stdout


def test_a_property_runs_with_a_fixed_seed_and_with_a_fresh_one(tmp_path: Path) -> None:
    first, said = run(tmp_path, None)
    seed = int(said.splitlines()[0].rpartition("=")[2])
    assert said.count(f"again: --hypothesis-seed={seed}") == 2
    assert first["fixed"] != first["fresh"]
    again, _ = run(tmp_path, seed)
    assert again == first
    other, _ = run(tmp_path, seed + 1)
    assert other["fixed"] == first["fixed"]
    assert other["fresh"] != first["fresh"]


def test_a_failure_names_the_seed(tmp_path: Path) -> None:
    _, said = run(tmp_path, 7, failing="fresh")
    assert "test_numbers[fresh]" in said
    assert "- Seeds -" in said
    assert said.count("--hypothesis-seed=7") == 3
