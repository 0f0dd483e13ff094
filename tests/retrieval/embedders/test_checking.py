from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mgl.errors import EngineRejected
from mgl.retrieval.embedders.checking import unit_vectors


@given(
    arrays(
        np.float32,
        st.tuples(st.integers(1, 5), st.integers(2, 8)),
        elements=st.floats(2**-10, 2**60, width=32),
    ),
    st.integers(1, 2),
)
def test_vectors_are_cut_and_keep_their_direction(raw: np.ndarray, dims: int) -> None:
    made = unit_vectors(raw, count=len(raw), dims=dims, model_id="m")
    assert made.shape == (len(raw), dims)
    assert made.dtype == np.float32
    assert np.linalg.norm(made, axis=1) == pytest.approx(np.ones(len(raw)), abs=1e-5)
    scale = np.linalg.norm(raw[:, :dims].astype(np.float64), axis=1, keepdims=True)
    assert made * scale == pytest.approx(raw[:, :dims].astype(np.float64), rel=1e-4)


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ([np.nan, 1.0], "number 1 holds numbers that are not finite"),
        ([np.inf, 1.0], "number 1 holds numbers that are not finite"),
        ([0.0, 0.0], "number 1 is zero"),
    ],
)
def test_a_vector_without_direction_is_refused(row: list[float], what: str) -> None:
    with pytest.raises(EngineRejected, match=what) as caught:
        unit_vectors([[1.0, 0.0], row, [0.0, 1.0]], count=3, dims=2, model_id="m")
    assert "1 of 3 texts" in caught.value.message
    assert "float32" in caught.value.hint


@pytest.mark.parametrize(
    "raw", [[[1.0, 0.0]], [[1.0], [1.0]], [1.0, 2.0], [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]]
)
def test_a_wrong_number_or_length_of_vectors_is_refused(raw: object) -> None:
    with pytest.raises(EngineRejected, match="for 2 texts of 2 dims"):
        unit_vectors(raw, count=2, dims=2, model_id="m")  # type: ignore[arg-type]


def test_no_texts_have_no_vectors() -> None:
    assert unit_vectors([], count=0, dims=3, model_id="m").shape == (0, 3)
