from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mgl.errors import ResourceError, StoreConflict, StoreError, UsageError
from mgl.retrieval import generations, vectors
from mgl.retrieval.structures import RECALL, StructureKind
from mgl.retrieval.vectors import VectorIndex

DIMS = 8


def units(count: int, seed: int = 0, dims: int = DIMS) -> NDArray[np.float32]:
    made = np.random.default_rng(seed).standard_normal((count, dims), dtype=np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def filled(count: int = 20, **options: Any) -> VectorIndex:
    index = VectorIndex("toy", DIMS, **options)
    index.add(range(count), units(count))
    return index


def opened(folder: Path, **options: Any) -> VectorIndex:
    return VectorIndex.open(folder, **{"model_id": "toy", "dims": DIMS, **options})


def ids_of(index: VectorIndex, query: NDArray[np.float32], count: int = 1000) -> list[int]:
    return [hit.id for hit in index.search(query[None], count)[0]]


class Reference:
    """The same index as a dict, searched by a loop."""

    def __init__(self) -> None:
        self.vectors: dict[int, NDArray[np.float32]] = {}

    def search(
        self, query: NDArray[np.float32], count: int, among: set[int] | None
    ) -> list[tuple[int, float]]:
        scored = [
            (identity, float(vector.astype(np.float64) @ query))
            for identity, vector in self.vectors.items()
            if among is None or identity in among
        ]
        return sorted(scored, key=lambda item: -item[1])[:count]


ADD, REMOVE, REBUILD, REOPEN = "add", "remove", "rebuild", "reopen"
identities = st.integers(-3, 12)
steps = st.lists(
    st.tuples(st.sampled_from([ADD, ADD, ADD, REMOVE, REBUILD, REOPEN]), st.sets(identities)),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(steps, st.integers(1, 8), st.none() | st.sets(identities))
def test_whatever_is_done_the_search_is_that_of_a_loop(
    tmp_path_factory: pytest.TempPathFactory,
    done: list[tuple[str, set[int]]],
    count: int,
    among: set[int] | None,
) -> None:
    folder = tmp_path_factory.mktemp("index")
    index, reference = VectorIndex("toy", DIMS), Reference()
    for number, (step, ids) in enumerate(done):
        if step == ADD:
            new = sorted(ids - reference.vectors.keys())
            made = units(len(new), seed=number)
            index.add(new, made)
            reference.vectors.update(zip(new, made, strict=True))
        elif step == REMOVE:
            assert index.remove(ids) == len(ids & reference.vectors.keys())
            for identity in ids:
                reference.vectors.pop(identity, None)
        elif step == REBUILD:
            index.rebuild()
        else:
            index.save(folder)
            index = opened(folder)
    assert len(index) == len(reference.vectors)
    assert all((identity in index) == (identity in reference.vectors) for identity in range(-3, 13))
    query = units(1, seed=99)[0]
    (hits,) = index.search(query[None], count, among)
    expected = reference.search(query, count, among)
    assert [hit.id for hit in hits] == [identity for identity, _ in expected]
    assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected], abs=1e-6)


def test_ids_keep_their_64_bits() -> None:
    index = VectorIndex("toy", DIMS)
    ids = [2**62 + 1, 2**62 + 2, -(2**63), 2**63 - 1]
    index.add(ids, units(4))
    for identity, vector in zip(ids, units(4), strict=True):
        assert ids_of(index, vector, 1) == [identity]


def test_equal_scores_come_by_id() -> None:
    index = VectorIndex("toy", 2)
    index.add([5, 3, 9], [[1.0, 0.0]] * 3)
    assert ids_of(index, np.asarray([1.0, 0.0], np.float32), 2) == [3, 5]


@pytest.mark.parametrize("among", [[], [77]])
def test_where_none_may_be_found_none_is(among: list[int]) -> None:
    assert filled().search(units(2), 3, among) == [[], []]
    assert VectorIndex("toy", DIMS).search(units(1), 3) == [[]]


@pytest.mark.parametrize(
    ("ids", "made", "message"),
    [
        ([1], [[float("nan")] * DIMS], "length nan"),
        ([1], [[float("inf")] + [0.0] * (DIMS - 1)], "length inf"),
        ([1], [[0.0] * DIMS], "length 0"),
        ([1], [[1.0] * DIMS], "not 1"),
        ([1], [[1.0, 0.0]], "shape"),
        ([1, 2], units(1), "2 ids"),
        ([1, 1], units(2), "twice"),
        ([50, 3], units(2), r"\(3\)"),
        ([1.5], units(1), "64 bits"),
        ([2**63], units(1), "64 bits"),
    ],
)
def test_what_cannot_be_added_is_refused_and_changes_nothing(
    ids: Any, made: Any, message: str
) -> None:
    index = filled()
    with pytest.raises(UsageError, match=message):
        index.add(ids, made)
    assert len(index) == 20
    assert 50 not in index


def test_a_query_that_is_none_is_refused() -> None:
    index = filled()
    with pytest.raises(UsageError, match="length nan"):
        index.search([[float("nan")] * DIMS], 3)
    with pytest.raises(UsageError, match="0 hits"):
        index.search(units(1), 0)


def test_removing_what_is_not_there_says_so() -> None:
    index = filled()
    assert index.remove([3, 400]) == 1
    assert index.remove([3]) == 0
    assert 3 not in index


def test_a_removed_id_can_be_added_anew() -> None:
    index = filled()
    index.rebuild()
    index.remove([3])
    index.add([3], -units(20)[3:4])
    assert ids_of(index, -units(20)[3], 1) == [3]
    assert ids_of(index, units(20)[3])[-1] == 3


# On the disk


def test_an_index_of_another_embedder_is_refused(tmp_path: Path) -> None:
    filled().save(tmp_path)
    for other in ({"model_id": "toy@2"}, {"dims": DIMS + 1}):
        with pytest.raises(UsageError, match="holds vectors of toy"):
            opened(tmp_path, **other)
    with pytest.raises(StoreConflict):
        VectorIndex("toy@2", DIMS).save(tmp_path)


def test_a_folder_without_index_is_an_empty_one(tmp_path: Path) -> None:
    assert len(opened(tmp_path / "none")) == 0


def test_an_opened_index_maps_its_rows(tmp_path: Path) -> None:
    index = filled(2000)
    index.save(tmp_path)
    again = opened(tmp_path)
    assert isinstance(again._base.vectors.base, np.memmap)
    again.add([5000], units(1, seed=5))
    assert ids_of(again, units(1, seed=5)[0], 1) == [5000]


def test_a_saved_rebuild_leaves_no_trace_of_what_was_removed(tmp_path: Path) -> None:
    index = filled(2000)
    index.save(tmp_path)
    index.remove([7])
    vector = units(2000)[7].tobytes()

    def held() -> bool:
        return any(vector in path.read_bytes() for path in tmp_path.iterdir())

    index.save(tmp_path)
    assert held()
    index.rebuild()
    index.save(tmp_path)
    assert not held()


def test_many_removed_are_rebuilt_away_when_saved(tmp_path: Path) -> None:
    index = filled(2000)
    index.save(tmp_path)
    before = size_of(tmp_path)
    index.remove(range(1500))
    index.save(tmp_path)
    assert size_of(tmp_path) < 0.5 * before
    assert len(opened(tmp_path)) == 500


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_only_what_was_added_is_written_again(tmp_path: Path) -> None:
    index = filled(2000)
    index.save(tmp_path)
    base = {path.name for path in tmp_path.glob("rows-*")}
    index.add([9000], units(1, seed=3))
    index.save(tmp_path)
    assert {path.name for path in tmp_path.glob("rows-*")} == base
    assert 9000 in opened(tmp_path)


def test_the_second_writer_is_told(tmp_path: Path) -> None:
    filled().save(tmp_path)
    first, second = opened(tmp_path), opened(tmp_path)
    first.add([100], units(1))
    first.save(tmp_path)
    second.add([200], units(1))
    with pytest.raises(StoreConflict):
        second.save(tmp_path)
    assert 100 in opened(tmp_path)
    assert 200 not in opened(tmp_path)


class Died(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("rebuilt", [False, True])
@pytest.mark.parametrize("survived", range(8))
def test_dying_anywhere_in_a_save_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survived: int, rebuilt: bool
) -> None:
    index = filled(2000)
    index.save(tmp_path)
    before = ids_of(opened(tmp_path), units(1)[0])
    index.add([9000], units(1))
    if rebuilt:
        index.rebuild()
    calls = itertools.count()

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if next(calls) == survived:
                raise Died
            return real(*args, **kwargs)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(generations, "_to_disk", dying(generations._to_disk))
        patched.setattr(Path, "replace", dying(Path.replace))
        patched.setattr(np, "save", dying(np.save))
        patched.setattr(np, "savez", dying(np.savez))
        try:
            index.save(tmp_path)
        except Died:
            died = True
        else:
            died = False
    after = opened(tmp_path)
    assert len(after) == 2001 or (died and ids_of(after, units(1)[0]) == before)
    after.add([9500], units(1, seed=2))
    after.save(tmp_path)
    assert 9500 in opened(tmp_path)


KILLED = """
import sys
import numpy as np
from pathlib import Path
from mgl.retrieval.vectors import VectorIndex

index = VectorIndex.open(Path(sys.argv[1]), model_id="toy", dims=4)
for number in range(len(index), 100_000):
    index.add([number], np.eye(4, dtype=np.float32)[number % 4][None])
    index.save(Path(sys.argv[1]))
    print(number, flush=True)
"""


def test_a_killed_process_leaves_all_that_it_saved(tmp_path: Path) -> None:
    for wait in (1, 7, 23):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        said = [int(next(process.stdout)) for _ in range(wait)]
        os.kill(process.pid, signal.SIGKILL)
        said += [int(line) for line in process.stdout if line.endswith("\n")]
        process.wait()
        process.stdout.close()
        index = opened(tmp_path, dims=4)
        assert len(index) >= said[-1] + 1
        assert all(number in index for number in range(len(index)))


@pytest.mark.parametrize("pattern", ["rows-*", "ids-*", "overlay-*", "manifest.json"])
@pytest.mark.parametrize("harm", ["cut", "gone"])
def test_a_damaged_index_is_said_to_be(tmp_path: Path, pattern: str, harm: str) -> None:
    filled(2000).save(tmp_path)
    (path,) = tmp_path.glob(pattern)
    if harm == "cut":
        path.write_bytes(path.read_bytes()[:100])
    elif pattern == "manifest.json":
        path.write_text('{"format": 2}')
    else:
        path.unlink()
    with pytest.raises(StoreError) as caught:
        opened(tmp_path)
    assert "again" in caught.value.hint


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ResourceError):
        filled().save(blocked)


# Beyond the exact search


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faiss", reason="needs the [retrieval] extra")
    monkeypatch.setattr(vectors, "EXACT_UP_TO", 500)


@pytest.mark.retrieval
@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_a_structure_finds_what_the_exact_search_finds(tmp_path: Path, kind: StructureKind) -> None:
    exact, index = filled(4000, structure="exact"), filled(4000, structure=kind)
    exact.rebuild()
    index.save(tmp_path)
    index = opened(tmp_path, structure=kind)
    assert exact.structure is None
    note = index.structure
    assert note is not None
    assert note.kind == kind
    assert note.recall >= RECALL
    removed = range(0, 400)
    for one in (exact, index):
        one.remove(removed)
        one.add(range(5000, 5300), units(300, seed=4))
    for among in (None, range(1000, 1100), range(3500), range(4000, 6000)):
        queries = units(50, seed=7)
        wanted, found = exact.search(queries, 10, among), index.search(queries, 10, among)
        same = 0
        for right, given_hits in zip(wanted, found, strict=True):
            ids = {hit.id for hit in given_hits}
            assert ids.isdisjoint(removed)
            assert among is None or ids <= set(among)
            assert len(ids) == 10
            same += len({hit.id for hit in right} & ids)
        assert same >= 0.95 * 500
        best_right = [hits[0].score for hits in wanted]
        assert [hits[0].score for hits in found] == pytest.approx(best_right, abs=0.05)


@pytest.mark.retrieval
@pytest.mark.usefixtures("small_limit")
def test_a_structure_is_built_when_an_index_has_grown(tmp_path: Path) -> None:
    index = filled(400)
    index.save(tmp_path)
    assert index.structure is None
    index.add(range(1000, 1600), units(600, seed=1))
    index.save(tmp_path)
    assert opened(tmp_path).structure is not None
    assert {path.suffix for path in tmp_path.glob("structure-*")} == {".faiss"}


@pytest.mark.retrieval
@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("harm", ["cut", "gone"])
def test_a_damaged_structure_is_said_to_be(tmp_path: Path, harm: str) -> None:
    filled(2000).save(tmp_path)
    (path,) = tmp_path.glob("structure-*")
    if harm == "cut":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        path.unlink()
    with pytest.raises(StoreError):
        opened(tmp_path)
