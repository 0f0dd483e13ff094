from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import InputError, UsageError
from mgl.evaluation.measuring.verdicts import Pair, draw, pair_scores, read_verdicts, write_pairs


def some(count: int, *, merged: bool) -> list[Pair]:
    return [Pair(f"A{n}", f"B{n}", "It rained.", "Bo left.", merged) for n in range(count)]


@pytest.mark.parametrize(
    ("merged", "apart", "count", "drawn"),
    [(100, 100, 50, (25, 25)), (3, 100, 50, (3, 47)), (100, 4, 50, (46, 4)), (2, 3, 50, (2, 3))],
)
def test_half_of_each_sort_is_drawn(merged: int, apart: int, count: int, drawn: object) -> None:
    given = some(merged, merged=True), some(apart, merged=False)
    pairs = draw(*given, count, 7)
    assert (sum(p.merged for p in pairs), sum(not p.merged for p in pairs)) == drawn
    assert {p.among for p in pairs} == {merged, apart}
    assert pairs == draw(*given, count, 7)
    if count < merged + apart:
        assert pairs != draw(*given, count, 8)


def test_what_a_reader_wrote_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    pairs = [
        Pair('The "Big" one', "Bo", "He said:\n\tgo.", "Ünï.", True, 40),
        Pair("Ann", "Anna", "", "", False, 9),
        Pair("Cy", "Cyril", "", "", False, 9),
    ]
    write_pairs(path, pairs)
    lines = path.read_text().splitlines()
    assert len(lines) == 4
    assert all(said is None for _, said in read_verdicts(path))
    marked = [line.replace("\t\tmerged", "\t Y\tmerged") for line in lines]
    marked[2] = marked[2].replace("\t\tapart", "\tno\tapart")
    marked[3] = marked[3].replace("\t\tapart", "\t?\tapart")
    path.write_text("\n".join(marked))
    read = read_verdicts(path)
    assert [said for _, said in read] == [True, False, None]
    assert read[0][0].one == pairs[0].one
    assert read[0][0].one_said == "He said: go."
    with pytest.raises(UsageError, match="cannot be written"):
        write_pairs(path, pairs)


@pytest.mark.parametrize("cell", ["perhaps", "1"])
def test_another_verdict_is_refused_with_its_line(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "pairs.tsv"
    write_pairs(path, some(2, merged=True))
    lines = path.read_text().splitlines()
    lines[2] = lines[2].replace("\t\tmerged", f"\t{cell}\tmerged")
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match="line 3"):
        read_verdicts(path)


@pytest.mark.parametrize("text", ["", "a\tb\n", "one,other\n"])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.tsv"
    with pytest.raises(InputError, match="cannot be read"):
        read_verdicts(path)
    path.write_text(text)
    with pytest.raises(InputError, match="no file of pairs"):
        read_verdicts(path)


def test_recall_weighs_the_two_sorts_by_how_many_there_are() -> None:
    merged = [(Pair("a", "b", "", "", True, 40), said) for said in (True, True, True, False)]
    apart = [(Pair("a", "b", "", "", False, 400), said) for said in (True, False, False, None)]
    scores = pair_scores([*merged, *apart])
    assert scores.precision is not None
    assert scores.missed is not None
    assert scores.recall is not None
    assert (scores.precision.mean, scores.precision.n) == (0.75, 4)
    assert (scores.missed.n, scores.open) == (3, 1)
    assert scores.recall.mean == pytest.approx(30 / (30 + 400 / 3))
    assert pair_scores([]).precision is pair_scores([]).recall is None


VERDICTS = st.lists(st.sampled_from([True, False, None]), max_size=30)


@given(VERDICTS, VERDICTS, st.integers(30, 500), st.integers(30, 500))
def test_shares_lie_in_their_intervals(
    merged: list[bool | None], apart: list[bool | None], of_merged: int, of_apart: int
) -> None:
    verdicts = [(Pair("a", "b", "", "", True, of_merged), said) for said in merged]
    verdicts += [(Pair("a", "b", "", "", False, of_apart), said) for said in apart]
    scores = pair_scores(verdicts)
    for share in (scores.precision, scores.missed, scores.recall):
        assert share is None or 0 <= share.low <= share.mean <= share.high <= 1
