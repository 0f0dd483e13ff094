"""Options as they are typed."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.memories import hgmem, mnemis
from mgl.memories.options import read_settings


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,8}", fullmatch=True),
        st.none() | st.booleans() | st.integers() | st.text(),
    )
)
def test_json_values_come_back(values: dict[str, object]) -> None:
    assert read_settings(f"{name}={json.dumps(value)}" for name, value in values.items()) == values


def test_what_is_not_json_is_a_text() -> None:
    given = read_settings(["preset=small", "note=a=b", "empty="])
    assert given == {"preset": "small", "note": "a=b", "empty": ""}


@pytest.mark.parametrize("pair", ["k", "=3"])
def test_a_pair_that_sets_nothing_is_refused(pair: str) -> None:
    with pytest.raises(UsageError):
        read_settings([pair])


@pytest.mark.parametrize("package", [hgmem, mnemis])
def test_a_papers_memory_knows_nothing_of_small_models(package: ModuleType) -> None:
    """What these need is a kind of its own, in one file."""
    (folder,) = map(Path, package.__path__)
    told = [path.name for path in folder.glob("*.py") if "small" in path.read_text().lower()]
    assert sorted(told) == ["__init__.py", "small.py"]
