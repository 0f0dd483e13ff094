from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgl.errors import InputError
from mgl.evaluation.papers.references import (
    EMPTY,
    Paper,
    PrintedGroup,
    PrintedTable,
    load_references,
)

PAPERS = load_references()
TABLES = [(paper, table) for paper in PAPERS.values() for table in paper.tables]
READ = ("gam", "hgmem", "mindgraph", "mnemis")
"""The papers whose text there is to compare with."""
NEAR = 8_000
"""Characters before and after a table's own words; the longest table takes 6,000."""

VALID = """\
name: {name}
title: A paper
source: here
memories: {{Ours: gam}}
tables:
  - id: table1
    about: two methods
    at: "Table 1"
    benchmark: locomo
    averaging: categories
    n: 12
    columns:
      - {{name: F1, metric: F1, ours: f1_set_amem, part: {{category: temporal}}}}
      - {{name: average, metric: F1, ours: f1_set_amem}}
    groups:
      - model: A model
        profile: a-model
        rows:
          Ours: 40.00 ~41
          Theirs: _ 3.87×10^7
"""


def write_own(home: Path, text: str) -> None:
    """Put a paper of one's own into the home."""
    place = home / "eval" / "references"
    place.mkdir(parents=True)
    (place / "paper.yaml").write_text(text.format(name="paper"))


def test_every_table_and_figure_is_there_and_says_where_or_why_it_has_no_numbers() -> None:
    ids = {name: [table.id for table in paper.tables] for name, paper in PAPERS.items()}
    assert ids.keys() == {*READ, "beam", "hosted"}
    numbers = {"gam": (10, 6), "hgmem": (6, 10), "mindgraph": (2, 4), "mnemis": (9, 5)}
    for name, (tables, figures) in numbers.items():
        expected = {f"table{one}" for one in range(1, tables + 1)}
        expected |= {f"figure{one}" for one in range(1, figures + 1)}
        assert set(ids[name]) - {"section4.1", "section5.4"} == expected
    for paper in PAPERS.values():
        for table in paper.tables:
            assert (table.printed == "none") == (not table.groups)
            assert table.at if table.groups else table.notes
            assert table.printed == "all" or table.notes


def test_a_cell_says_all_that_its_number_is(mgl_home: Path) -> None:
    write_own(mgl_home, VALID)
    paper = load_references()["paper"]
    first, average, far = paper.cells()
    assert (first.value, first.text, first.categories) == (40.0, "40.00", None)
    assert (first.scorer, first.benchmark, first.memory) == ("f1_set_amem", "locomo", "gam")
    assert (first.model, first.profile, first.n) == ("A model", "a-model", 12)
    assert (average.value, average.text, average.categories) == (41.0, "~41", "category")
    assert (far.method, far.value, far.memory) == ("Theirs", 3.87e7, None)


def test_a_row_or_a_number_can_be_of_other_items_than_its_table(mgl_home: Path) -> None:
    text = VALID.replace("40.00 ~41", "40.00(?) ~41(11)")
    text = text.replace("profile: a-model", "profile: a-model\n        averaging: questions")
    write_own(mgl_home, text)
    first, average, _ = load_references()["paper"].cells()
    assert (first.text, first.n) == ("40.00", None)
    assert (average.text, average.n, average.categories) == ("~41", 11, None)


def test_categories_are_what_the_papers_tables_part_a_benchmark_by() -> None:
    cells = PAPERS["gam"].cells()
    over = {(cell.benchmark, cell.categories) for cell in cells if cell.categories}
    assert over == {("locomo", "category"), ("longdialqa", "series")}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("40.00 ~41", "40.00 41 42"),
        ("40.00 ~41", "40.00 many"),
        ("    n: 12", "    of: 12"),
        ("title: A paper", "title: ["),
    ],
)
def test_a_file_that_is_not_valid_is_refused(mgl_home: Path, old: str, new: str) -> None:
    assert old in VALID
    write_own(mgl_home, VALID.replace(old, new))
    with pytest.raises(InputError):
        load_references()


def test_averages_are_over_what_the_entry_says() -> None:
    """Of each row that has all categories: the average is within rounding of its rule, except in
    rows that a note names."""
    checked = set()
    for paper, table in TABLES:
        for group, name, line in lines(table):
            texts = line.split()
            for ours in {column.ours for column in table.columns if column.ours}:
                own = [i for i, column in enumerate(table.columns) if column.ours == ours]
                parts = [i for i in own if table.columns[i].part]
                whole = [i for i in own if not table.columns[i].part]
                if len(parts) < 3 or len(whole) != 1 or EMPTY in texts:
                    continue
                checked.add((paper.name, table.id))
                if any(excepted(note, name) for note in table.notes):
                    continue
                weights = [table.columns[i].n or 1 for i in parts]
                if (group.averaging or table.averaging) == "categories":
                    weights = [1] * len(parts)
                values = [float(texts[i]) for i in parts]
                mean = sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)
                place = paper.name, table.id, name
                assert mean == pytest.approx(float(texts[whole[0]]), abs=0.11), place
    assert checked >= {(name, id) for name in ("gam", "mnemis") for id in ("table1", "table6")}


def excepted(note: str, name: str) -> bool:
    return name in note and ("averages" in note.lower() or "overall" in note or "queries" in note)


@pytest.mark.papers
@pytest.mark.parametrize(
    ("paper", "table"),
    [
        pytest.param(paper, table, id=f"{paper.name}-{table.id}")
        for paper, table in TABLES
        if table.groups and paper.name in READ
    ],
)
def test_each_number_stands_in_the_papers_text_near_its_table(
    papers: Path, paper: Paper, table: PrintedTable
) -> None:
    """The rows of a table stand there as lines, number after number and in the same order, each
    below the name of its model; of numbers that are given in words each stands there."""
    text = re.sub(r"</?[a-z]+>|[*_]", "", (papers / f"{paper.name}.txt").read_text())
    assert table.at is not None
    words = table.at.replace("_", "")
    assert text.count(words) == 1
    middle = text.index(words)
    near = text[max(0, middle - NEAR) : middle + NEAR]
    if in_lines(table):
        models = {group.model for group in table.groups if group.model}
        place = 0
        for group, name, line in lines(table):
            row = r"\s+".join(map(re.escape, line.split()))
            place = 0 if group.setting else place
            found = re.compile(rf"(?<![\d.]){row}(?![\d.])").search(near, place)
            assert found is not None, f"{name}: {line}"
            place = found.start() + 1
            if len(models) > 1:
                assert max(models, key=lambda model: near.rfind(model, 0, place)) == group.model
    else:
        for _, name, line in lines(table):
            for number in line.replace(EMPTY, "").split():
                bare = re.escape(number.lstrip("~").rstrip("%"))
                assert re.search(rf"(?<![\d.]){bare}(?![\d]|\.\d)", near), f"{name}: {number}"


def in_lines(table: PrintedTable) -> bool:
    """Whether the text has the rows as they are here: not what it says in words, nor the one table
    that is turned about."""
    return table.printed == "all" and not any("changed about" in note for note in table.notes)


def lines(table: PrintedTable) -> Iterator[tuple[PrintedGroup, str, str]]:
    """The rows as the text has them: without what is added here about single numbers."""
    return (
        (group, name, re.sub(r"\((\d+|\?)\)", "", line))
        for group in table.groups
        for name, line in group.rows.items()
    )
