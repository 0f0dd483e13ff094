from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mgl.retrieval.base import EmbeddingTask
from mgl.retrieval.cells import Cells
from mgl.retrieval.embedders import CachedEmbedder
from mgl.retrieval.fakes import WordEmbedder
from mgl.retrieval.turns import TurnIndex
from mgl.retrieval.vectors import HybridIndex, VectorIndex
from mgl.store import Store
from mgl.types import Turn
from tests.patience import PATIENCE_S

WORDS = ["ring", "sea", "lost", "ann", "bo", "rome"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
TEXTS = {10: "Ann met Bo in Rome.", -2: "The ring was lost at sea.", 2**40: "The sailors left."}


class Numbers:
    """Embeds "0.6 0.8" as that vector."""

    model_id = "numbers"
    dims = 2

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        del task
        return np.array([text.split() for text in texts], dtype=np.float32).reshape(-1, 2)

    def close(self) -> None:
        pass


changes = st.lists(
    st.tuples(st.booleans(), st.dictionaries(st.integers(-3, 9), texts, max_size=4)), max_size=8
)


@settings(deadline=None)
@given(changes, texts, st.none() | st.sets(st.integers(-4, 11)), st.integers(1, 8))
def test_a_stored_index_finds_what_a_loop_finds(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[bool, dict[int, str]]],
    query: str,
    among: set[int] | None,
    k: int,
) -> None:
    embedder = WordEmbedder()
    left: dict[int, str] = {}
    with Store.open(tmp_path_factory.mktemp("home") / "mgl.sqlite") as store:
        index, other = (VectorIndex(embedder, store, "talk") for _ in range(2))
        for removes, made in steps:
            if removes:
                index.remove(made)
                left = {identity: text for identity, text in left.items() if identity not in made}
            else:
                index.extend(made)
                left |= made
            assert len(other) == len(left)
        vector = embedder.embed([query], task="query")[0]
        cosine = {one: float(embedder.embed([text])[0] @ vector) for one, text in left.items()}
        allowed = [one for one in cosine if among is None or one in among]
        for found in (index, other, VectorIndex(embedder, store, "talk")):
            assert found.ids.tolist() == sorted(left)
            assert found.scores(query).tolist() == pytest.approx([cosine[i] for i in sorted(left)])
            hits = found.search(query, k, among)
            assert [hit.score for hit in hits] == pytest.approx(
                sorted((cosine[one] for one in allowed), reverse=True)[:k]
            )
            assert all(hit.score == pytest.approx(cosine[hit.id]) for hit in hits)
            assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.id))


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.booleans(), st.dictionaries(st.integers(0, 40), texts, max_size=12)),
        min_size=1,
        max_size=8,
    ),
    texts,
    st.none() | st.sets(st.integers(-2, 50), min_size=7),
    st.data(),
)
def test_an_index_in_cells_finds_what_an_exact_one_finds(
    steps: list[tuple[bool, dict[int, str]]],
    query: str,
    among: set[int] | None,
    data: st.DataObject,
) -> None:
    embedder = WordEmbedder()
    divided, exact = VectorIndex(embedder, exact_up_to=6), VectorIndex(embedder)
    divided.extend(dict.fromkeys(range(10), "ring"))
    exact.extend(dict.fromkeys(range(10), "ring"))
    for removes, made in steps:
        for index in (divided, exact):
            if removes:
                index.remove(made)
            else:
                index.extend(made)
        for k in (1, 5, 40):
            found, wanted = divided.search(query, k, among), exact.search(query, k, among)
            assert [hit.score for hit in found] == pytest.approx([hit.score for hit in wanted])
            own = divided.scores(query, [hit.id for hit in found])
            assert [hit.score for hit in found] == pytest.approx(own.tolist())
        if data.draw(st.booleans()):
            divided.wait()


def test_cells_are_made_after_some_searches_and_find_what_matters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = np.random.default_rng(5)
    centres = draw.normal(size=(60, 16))
    made = centres[draw.integers(60, size=4000)] + 0.4 * draw.normal(size=(4000, 16))
    made = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    monkeypatch.setattr("mgl.retrieval.cells.PROBED", 12)  # of 63
    monkeypatch.setattr("mgl.retrieval.cells.FILTERED", 12)

    class Given(WordEmbedder):
        def embed(
            self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
        ) -> NDArray[np.float32]:
            del task
            return made[[int(text) for text in texts]]

    embedder = Given(16)
    divided, exact = VectorIndex(embedder, exact_up_to=1000), VectorIndex(embedder)
    for index in (divided, exact):
        index.extend({number: f"{number}" for number in range(4000)})
    for number in range(3):
        assert divided.search(made[number], 10) == exact.search(made[number], 10)
    divided.wait()
    assert divided.is_divided
    assert not exact.is_divided
    for among in (None, range(0, 4000, 3), range(0, 4000, 5), range(600, 4000)):
        alike = 0
        for number in range(0, 400, 4):
            wanted = {hit.id for hit in exact.search(made[number], 10, among)}
            alike += len(wanted & {hit.id for hit in divided.search(made[number], 10, among)})
        assert alike >= 980


def test_what_changes_while_cells_are_made_is_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, changed, train = Event(), Event(), Cells.train

    def train_slowly(sample: NDArray[np.float32], count: int) -> Cells:
        begun.set()
        assert changed.wait(PATIENCE_S)
        return train(sample, count)

    monkeypatch.setattr(Cells, "train", train_slowly)
    index = VectorIndex(Numbers(), exact_up_to=3)
    index.extend({1: "1 0", 2: "0.6 0.8", 3: "0 1", 4: "-1 0"})
    for _ in range(3):
        assert [hit.id for hit in index.search("1 0", 1)] == [1]
    assert begun.wait(PATIENCE_S)
    index.extend({5: "1 0", 4: "0.8 0.6"})
    index.remove([1, 2])
    assert [hit.id for hit in index.search("1 0", 9)] == [5, 4, 3]
    changed.set()
    index.wait()
    assert index.is_divided
    assert [hit.id for hit in index.search("1 0", 9)] == [5, 4, 3]


def test_cells_of_what_was_read_before_another_process_wrote_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it wrote before they were begun."""
    with Store.open(tmp_path / "mgl.sqlite") as store:
        index = VectorIndex(Numbers(), store, "talk", exact_up_to=3)
        other = VectorIndex(Numbers(), store, "talk")
        index.extend({1: "0.6 0.8", 2: "0.6 0.8", 3: "0 1", 4: "-1 0"})

        class Late(Thread):
            def start(self) -> None:
                other.extend({5: "1 0"})
                assert 5 in index
                super().start()

        monkeypatch.setattr("mgl.retrieval.vectors.threading.Thread", Late)
        for _ in range(3):
            index.search("1 0", 1)
        index.wait()
        assert [hit.id for hit in index.search("1 0", 1)] == [5]


def test_ids_keep_their_64_bits_and_equal_scores_come_by_id() -> None:
    index = VectorIndex(Numbers())
    index.extend(dict.fromkeys((2**62 + 2, -(2**63), 2**63 - 1, 2**62 + 1), "1 0"))
    found = index.search(np.array([1, 0], np.float32), 4)
    assert [hit.id for hit in found] == [-(2**63), 2**62 + 1, 2**62 + 2, 2**63 - 1]
    assert found[0].score == 1


def test_what_is_not_there_has_no_cosine() -> None:
    index = VectorIndex(Numbers())
    index.extend({5: "0.6 0.8"})
    scores = index.scores("1 0", [5, 6])
    assert scores[0] == pytest.approx(0.6)
    assert np.isnan(scores[1])
    assert index.search("1 0", 3, [6]) == []
    assert 5 in index
    assert 6 not in index


def test_a_vector_is_kept_once_and_goes_with_its_last_text(tmp_path: Path) -> None:
    path = tmp_path / "mgl.sqlite"
    inner = WordEmbedder()
    with Store.open(path) as store:
        embedder = CachedEmbedder(inner, store)
        one, other = (VectorIndex(embedder, store, name) for name in ("one", "other"))
        one.extend(TEXTS)
        other.extend({1: TEXTS[10]})
        assert inner.embedded == list(TEXTS.values())
        one.remove(TEXTS)
        kept, *gone = store.vectors(embedder.model_id, list(TEXTS.values()))
        assert kept is not None
        assert gone == [None, None]
        store.drop_indexes("other@")
    held = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    for vector in WordEmbedder().embed(list(TEXTS.values())):
        assert vector.tobytes() not in held


def test_a_hybrid_takes_from_both_and_keeps_to_what_is_among() -> None:
    index = HybridIndex(WordEmbedder())
    index.extend({1: "sea", 2: "ring", 3: "ring of the sea"})
    assert [hit.id for hit in index.search("ring", 3)] == [2, 3, 1]
    assert [hit.id for hit in index.search("ring", 1)] == [2]
    assert [hit.id for hit in index.search("ring", 3, {1, 3})] == [3, 1]
    index.remove([2])
    assert 2 not in index
    assert [hit.id for hit in index.search("ring", 3)] == [3, 1]


def test_ids_are_looked_for_together_and_the_store_is_asked_once_for_each_index(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [Turn(f"{number}", "Ann", text) for number, text in enumerate(TEXTS.values())]
    hybrid, said = HybridIndex(WordEmbedder(), store, "a"), TurnIndex(WordEmbedder(), store, "b")
    hybrid.extend(dict(enumerate(TEXTS.values())))
    said.add_turns(turns, range(3))
    hybrid.words.remove([1])
    said.vectors.remove([1])
    asked, find = list[str](), store.index_version
    monkeypatch.setattr(store, "index_version", lambda name: asked.append(name) or find(name))
    for index in (hybrid, said):
        assert index.find_missing(range(100)) == [1, *range(3, 100)]
    assert len(asked) == len(set(asked)) == 4
