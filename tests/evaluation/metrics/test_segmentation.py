"""Boundaries without a language model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.evaluation.metrics.segmentation import greetings, valleys


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["Hi!", "Hey!", "I paint."], []),
        (["I paint.", "Hi Ann!", "Hello Bo!", "Well."], [0]),
        (["I paint.", "Hi Ann!", "How are you?", "Good evening."], [0, 2]),
        (["I paint.", "This history is long.", "high up"], []),
        ([], []),
    ],
)
def test_a_greeting_opens_a_session(texts: list[str], found: list[int]) -> None:
    assert greetings(texts) == found


def test_a_change_of_subject_is_a_valley() -> None:
    one, other = np.eye(2, dtype=np.float32)
    turns = np.array([one] * 8 + [other] * 8 + [one] * 8)
    assert valleys(turns, window=4) == [7, 15]


def test_one_subject_has_none() -> None:
    assert valleys(np.ones((10, 3), dtype=np.float32)) == []


@settings(max_examples=50, deadline=None)
@given(count=st.integers(0, 30), window=st.integers(1, 8), seed=st.integers(0, 99))
def test_boundaries_lie_between_turns_in_order(count: int, window: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)
    found = valleys(vectors, window=window)
    assert found == sorted(set(found))
    assert all(0 <= place < count - 1 for place in found)
