"""The conditions under which the methods of a table answer."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from scripts.conditions import HEAD, Conditions, list_conditions

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "conditions.md"


@pytest.fixture(scope="module")
def made() -> list[Conditions]:
    return list(list_conditions())


def test_the_methods_of_a_run_differ_by_what_they_read_alone(made: list[Conditions]) -> None:
    """HGMem §4.2 and §4.3. MindGraph answers by its own printed prompt (D.2)."""
    for run, methods in groupby(made, key=lambda each: each.run):
        shared = {each.shared for each in methods if each.method != "mindgraph"}
        assert len(shared) == 1, run
        ((_, sampling),) = shared
        if run.startswith("hgmem/"):
            assert (sampling.temperature, sampling.max_tokens) == (0.8, 2048)
    printed = {each.instruction.source for each in made if each.method == "mindgraph"}
    assert printed == {"MindGraph D.2"}


def test_the_page_shows_them(made: list[Conditions]) -> None:
    shown = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert shown == [HEAD, *(each.row for each in made)]
