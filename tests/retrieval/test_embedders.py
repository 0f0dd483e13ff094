from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from mgl.errors import EngineRejected, EngineUnavailable
from mgl.retrieval.base import Embedder, EmbeddingTask
from mgl.retrieval.embedders import CachedEmbedder, DeferredEmbedder, unit_vectors
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store


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


@pytest.mark.parametrize("row", [[np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0]])
def test_a_vector_without_direction_is_refused(row: list[float]) -> None:
    with pytest.raises(EngineRejected):
        unit_vectors([[1.0, 0.0], row, [0.0, 1.0]], count=3, dims=2, model_id="m")


@pytest.mark.parametrize(
    "raw", [[[1.0, 0.0]], [[1.0], [1.0]], [1.0, 2.0], [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]]
)
def test_a_wrong_number_or_length_of_vectors_is_refused(raw: object) -> None:
    with pytest.raises(EngineRejected):
        unit_vectors(raw, count=2, dims=2, model_id="m")  # type: ignore[arg-type]


TEXTS = st.lists(st.lists(st.sampled_from("ann met bo lost ring \ud800".split())).map(" ".join))


@given(st.lists(TEXTS, max_size=4))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_cache_changes_nothing_and_asks_once(store: Store, asked: list[list[str]]) -> None:
    inner, plain = WordEmbedder(), WordEmbedder()
    inner.model_id = f"fresh {id(inner)} {asked}"
    embedder = CachedEmbedder(inner, store)
    for texts in asked:
        assert np.array_equal(embedder.embed(texts), plain.embed(texts))
    assert sorted(inner.embedded) == sorted({text for texts in asked for text in texts})


class PrefixEmbedder(WordEmbedder):
    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        return super().embed([f"{task} {text}" for text in texts])


def test_a_query_and_a_passage_of_the_same_words_are_two(store: Store) -> None:
    embedder = CachedEmbedder(PrefixEmbedder(), store)
    passage, query = embedder.embed(["Ann"]), embedder.embed(["Ann"], task="query")
    assert not np.array_equal(passage, query)
    assert np.array_equal(embedder.embed(["Ann"], task="query"), query)


def test_what_was_done_before_a_failure_is_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fails(WordEmbedder):
        def embed(
            self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
        ) -> NDArray[np.float32]:
            if "lost" in texts:
                raise EngineUnavailable("gone", hint="wait")
            return super().embed(texts, task=task)

    monkeypatch.setattr("mgl.retrieval.embedders._SLICE", 2)
    with pytest.raises(EngineUnavailable):
        CachedEmbedder(Fails(), store).embed(["ann", "bo", "lost"])
    inner = WordEmbedder()
    CachedEmbedder(inner, store).embed(["ann", "bo", "lost"])
    assert inner.embedded == ["lost"]


def test_an_embedder_starts_with_the_first_text(store: Store) -> None:
    started: list[Embedder] = []

    def start() -> Embedder:
        if not started:
            started.append(WordEmbedder())
            raise EngineUnavailable("not yet", hint="wait")
        started.append(WordEmbedder())
        return started[-1]

    deferred = DeferredEmbedder(start, model_id="fake/words:64", dims=64)
    CachedEmbedder(WordEmbedder(), store).embed(["Ann"])
    assert CachedEmbedder(deferred, store).embed(["Ann", "Ann"]).shape == (2, 64)
    assert deferred.embed([]).shape == (0, 64)
    deferred.close()
    assert started == []
    with pytest.raises(EngineUnavailable):
        deferred.embed(["Bo"])
    deferred.embed(["Bo"])
    deferred.embed(["Cy"])
    assert len(started) == 2


def test_threads_that_ask_at_once_get_the_one_vector_that_is_kept(store: Store) -> None:
    """Another batch gives another last digit: two of them must not come to be used."""

    class Unsteady(WordEmbedder):
        def embed(
            self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
        ) -> NDArray[np.float32]:
            time.sleep(0.02)
            return super().embed(texts, task=task) + np.float32(len(self.embedded) / 1e6)

    inner = Unsteady()
    embedder = CachedEmbedder(inner, store)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda n: embedder.embed(["Ann met Bo.", f"{n}"])[0], range(4)))
    assert inner.embedded.count("Ann met Bo.") == 1
    assert all((vector == made[0]).all() for vector in made)
