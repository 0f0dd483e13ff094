"""Errors as they go from one process to another."""

from __future__ import annotations

import pickle

import pytest

from mgl import errors
from mgl.errors import MglError


@pytest.mark.parametrize("name", errors.__all__)
def test_an_error_survives_the_way_to_another_process(name: str) -> None:
    kind: type[MglError] = getattr(errors, name)
    there = pickle.loads(pickle.dumps(kind("it broke", hint="mend it")))
    assert type(there) is kind
    assert (there.message, there.hint, str(there)) == ("it broke", "mend it", "it broke (mend it)")
