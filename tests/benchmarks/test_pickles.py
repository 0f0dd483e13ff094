"""Pickles of plain values are read, and no others: what a pickle may do is not done."""

from __future__ import annotations

import os
import pickle
from collections import OrderedDict, defaultdict
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.benchmarks.files import load_plain_pickle

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(value=PLAIN, protocol=st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_values_come_back(value: Any, protocol: int) -> None:
    assert load_plain_pickle(pickle.dumps(value, protocol)) == value


class Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.putenv, ("MGL_PICKLE_RAN", "1")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "value",
    [Runs(), [Runs()], defaultdict(list), OrderedDict(), date(2024, 1, 1), {1}, b"a", os.getcwd],
    ids=["runs", "in_a_list", "defaultdict", "ordered", "date", "set", "bytes", "function"],
)
def test_what_would_be_imported_is_refused_before_it_is(value: Any, protocol: int) -> None:
    with pytest.raises(ValueError, match="it holds"):
        load_plain_pickle(pickle.dumps({"a": value}, protocol))
    assert "MGL_PICKLE_RAN" not in os.environ


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b".",
        b"It rained.",
        pickle.dumps([1, 2])[:-3],
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fab.",
        b"\x80\x04h\x05.",
    ],
)
def test_damage_is_told(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        load_plain_pickle(data)


@pytest.mark.parametrize("put", [b"r\xff\xff\xff\x7f", b"p2147483647\n"])
def test_no_memory_is_reserved_for_more_places_than_there_are_bytes(put: bytes) -> None:
    with pytest.raises(ValueError, match="it is damaged at byte 3"):
        load_plain_pickle(b"\x80\x04]" + put + b".")
