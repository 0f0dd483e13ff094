from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mgl.evaluation.papers.references import Paper
from mgl.evaluation.records import BuildRecord, Spent
from mgl.evaluation.report.data import Cell, Report, Table
from mgl.evaluation.report.report import make_report
from mgl.evaluation.report.runs import read_run
from mgl.evaluation.report.writers import to_csv, to_html, to_markdown
from tests.evaluation.report.folders import MODEL, Said, item, method, write_run

PAPER = Paper.model_validate(
    {
        "name": "gam",
        "title": "GAM",
        "source": "a paper",
        "memories": {"Ours": "gam"},
        "tables": [
            {
                "id": "table1",
                "about": "scores",
                "at": "Table 1",
                "benchmark": "locomo",
                "averaging": "categories",
                "columns": [{"name": "F1", "metric": "F1", "ours": "f1_set_amem"}],
                "groups": [
                    {"model": "Big", "rows": {"Ours": "43.14", "Mem0": "40.37"}},
                    {"model": "Qwen", "profile": MODEL, "rows": {"Ours": "40.00"}},
                ],
            }
        ],
    }
)
HOSTILE = "</td><script>alert(1)</script> | *x* `y` [z](http://e) <b>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    items = [item("q0", "large"), item("q1", "large"), item("q2", "small")]
    said = {
        "gam": [Said({"f1_set_amem": one}, verdict=1.0, ratio=0.1) for one in (1.0, 0.5, 0.0)],
        "direct": [Said({"f1_set_amem": 0.5}, ratio=1.0), Said(None, reason=HOSTILE), Said({})],
    }
    return write_run(
        tmp_path_factory.mktemp("runs") / "run",
        [method("gam"), method("direct")],
        items,
        said,
        scorers=("f1_set_amem",),
        judge="locomo",
        builds=[BuildRecord("gam", "s", {"build": Spent(3, 900, 90)}, {"nodes": 7, "edges": 4})],
        seconds=[
            {"unit": "build", "method": "gam", "source": "s", "wall_s": 12.0, "engine_s": 10.0},
            {"unit": "item", "method": "gam", "item": "q0", "wall_s": 2.0, "engine_s": 1.5},
            {"unit": "item", "method": "gam", "item": "q1", "wall_s": 4.0, "engine_s": 2.5},
        ],
    )


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    return make_report([read_run(folder)], [PAPER])


def table(report: Report, title: str) -> Table:
    blocks = (each for each in report.chapters[0].blocks if isinstance(each, Table))
    return next(each for each in blocks if each.title == title)


def row(report: Report, title: str, *first: str) -> dict[str, Cell]:
    found = table(report, title)
    rows = [dict(zip(found.head, cells, strict=True)) for cells in found.rows]
    return next(each for each in rows if [c.text for c in each.values()][: len(first)] == [*first])


def test_scores_have_counts_intervals_and_the_mean_of_the_scored(report: Report) -> None:
    direct = row(report, "Scores", "direct")
    assert [direct[name].text for name in ("items", "unscored", "failed")] == ["3", "1", "1"]
    score = direct["f1_set_amem, %"]
    assert score.text == "16.7"
    assert score.beside == "n 3 · few · 1 scored: 50.0"


def test_the_papers_number_stands_beside_with_model_and_averaging(report: Report) -> None:
    found = table(report, "Beside the papers")
    rows = [[cell.text for cell in cells] for cells in found.rows]
    assert [each[3:5] for each in rows] == [["40.00", "Qwen"], ["43.14", "Big"]]
    gam = row(report, "Beside the papers", "gam")
    assert gam["ours, %"].text == "37.5"  # mean of categories: (75 + 0) / 2, not 50 over questions
    assert gam["averaged over"].text == "categories, equal weights"
    assert gam["where"].text == "gam, Table 1"
    elsewhere = row(report, "In print, of methods and settings that are not run here", "Mem0")
    assert elsewhere["in print"].text == "40.37"


def at_lengths(folder: Path, *lengths: str) -> Report:
    """A run of an item of each length, and a paper that prints a number of the length 131072."""
    labels = {"length": "131072"}
    column = {"name": "128K", "metric": "acc", "ours": "exact_match", "part": labels}
    printed = PAPER.tables[0].model_dump() | {"columns": [column]}
    items = [item(f"q{n}", labels={"length": each}) for n, each in enumerate(lengths)]
    said = {"gam": [Said({"exact_match": 1.0})] * len(lengths)}
    found = read_run(write_run(folder, [method("gam")], items, said))
    return make_report([found], [Paper.model_validate(PAPER.model_dump() | {"tables": [printed]})])


def test_what_is_printed_of_the_part_that_all_items_are_of_stands_beside(tmp_path: Path) -> None:
    found = row(at_lengths(tmp_path / "run", "131072", "131072"), "Beside the papers", "gam")
    assert (found["in print"].text, found["ours, %"].text) == ("40.00", "100.0")


def test_what_is_printed_of_a_part_stands_beside_that_part(tmp_path: Path) -> None:
    report = at_lengths(tmp_path / "run", "131072", "4096")
    assert "Beside the papers" not in [each.title for each in report.chapters[0].blocks]
    title = "Beside the papers, under other settings and by part"
    found = row(report, title, "gam", "exact_match, length 131072")
    assert found["ours, %"].beside == "n 1"


def test_parts_that_are_numbers_stand_in_their_order(tmp_path: Path) -> None:
    report = at_lengths(tmp_path / "run", "16384", "4096", "131072")
    head = table(report, "exact_match by length, %").head
    assert head == ("method", "4096", "16384", "131072")


def test_pairs_that_each_have_both_parts_have_no_table_of_them(tmp_path: Path) -> None:
    claims = [("p0", "true"), ("p0", "false"), ("p1", "true"), ("p1", "false")]
    items = [
        item(f"q{n}", pair=pair, golds=[claim.upper()], labels={"claim": claim})
        for n, (pair, claim) in enumerate(claims)
    ]
    said = {"gam": [Said({"claim_accuracy": 1.0}, answer="TRUE")] * 4}
    folder = write_run(
        tmp_path / "run", [method("gam")], items, said, scorers=("claim_accuracy", "pair_accuracy")
    )
    titles = [each.title for each in make_report([read_run(folder)]).chapters[0].blocks]
    assert "claim_accuracy by claim, %" in titles
    assert "pair_accuracy by claim, %" not in titles


def test_printed_numbers_are_no_scores_of_ours(report: Report) -> None:
    kinds = {datum.value: datum.kind for datum in report.data()}
    assert kinds[43.14] == "print"
    ours = [datum for datum in report.data() if datum.kind == "score"]
    assert {datum.method for datum in ours} == {"gam", "direct"}


def test_cost_is_told_apart_for_building_answering_and_judging(report: Report) -> None:
    built, answered = row(report, "Cost", "gam", "builds"), row(report, "Cost", "gam", "answers")
    assert (built["tokens in"].text, built["wall s"].text) == ("900", "12")
    assert (answered["units"].text, answered["tokens in"].text) == ("3", "3,000")
    assert answered["tokens in"].beside == "1,000.0 each"
    assert (answered["wall s"].text, answered["wall s"].beside) == ("6", "3.0 each")
    assert row(report, "Cost", "gam", "verdicts")["calls"].text == "3"
    assert row(report, "Cost", "direct", "answers")["units"].text == "2"


def test_the_judges_unread_replies_are_counted(report: Report) -> None:
    title = f"The judge: locomo by {MODEL}"
    found = row(report, title, "locomo", "readable replies, %")
    assert found["found"].text == "60.0"
    assert found["beside"].text == "2 unreadable"


def test_the_report_states_its_rule(report: Report) -> None:
    for text in (to_markdown(report), to_html(report)):
        assert "counts 0" in text
        assert "the mean over the items that were scored" in text


class Tags(HTMLParser):
    """The tags of a page and what its attributes refer to."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.refers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.refers += [
            value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "action")
        ]


def test_the_page_holds_all_it_needs_and_runs_nothing(report: Report) -> None:
    page = to_html(report)
    tags = Tags()
    tags.feed(page)
    assert not {"script", "link", "img", "iframe", "object"} & set(tags.tags)
    assert all(each.startswith("#") for each in tags.refers)
    assert "default-src 'none'" in page
    assert not re.search(r"url\(\s*['\"]?(?!#)", page)
    assert "alert(1)" in page  # the reason of a failure, as a text
    assert tags.tags.count("h1") == 1


def test_every_cell_of_the_page_says_its_column(report: Report) -> None:
    page = to_html(report)
    assert page.count("<td ") == page.count("data-head=")


def test_markdown_keeps_its_tables_whatever_a_run_holds(report: Report) -> None:
    text = to_markdown(report)
    lines = text.splitlines()
    heads = [n for n, line in enumerate(lines) if set(line) <= set("|-:") and line]
    assert len(heads) > 5
    for head in heads:
        columns = len(re.findall(r"(?<!\\)\|", lines[head]))
        body = head - 1
        while body < len(lines) and lines[body].startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", lines[body])) == columns, lines[body]
            body += 1
    assert "<script" not in text.replace("\\<script", "")


def test_csv_has_a_line_a_figure(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(report))))
    assert len(rows) == len(list(report.data()))
    (score,) = (
        each
        for each in rows
        if (each["kind"], each["quantity"], each["method"], each["part"])
        == ("score", "f1_set_amem", "gam", "")
    )
    assert (float(score["value"]), score["n"], score["failed"]) == (0.5, "3", "0")
    difference = next(each for each in rows if each["kind"] == "difference")
    assert (difference["method"], difference["other"]) == ("gam", "direct")
    assert float(difference["p"]) <= float(difference["p_corrected"])


def test_the_same_run_gives_the_same_report(folder: Path, report: Report) -> None:
    assert to_html(make_report([read_run(folder)], [PAPER])) == to_html(report)


def test_a_row_is_as_long_as_its_head() -> None:
    with pytest.raises(ValueError, match="not as long"):
        Table("t", ("a", "b"), ((Cell("1"),),))
