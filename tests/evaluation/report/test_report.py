"""A whole report: its sentence, its tables, the papers' numbers, the page and the CSV."""

from __future__ import annotations

import csv
import io
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mgl.benchmarks.locomo import LOCOMO
from mgl.evaluation.papers.references import load_references
from mgl.evaluation.papers.suites import load_suites
from mgl.evaluation.records import BuildRecord, Spent
from mgl.evaluation.report.cells import Table
from mgl.evaluation.report.report import Chapter, make_report, render_page, to_csv
from mgl.evaluation.report.runs import read_run
from mgl.evaluation.runs.manifest import JudgedBy, Manifest
from tests.evaluation.report.folders import MODEL, Said, item, method, write_run

EVIL = "<script>alert('&')</script> | `x` \x07 _it_"
NAME = "f1_set_amem"
CATEGORIES = ("multi-hop", "temporal", "open-domain", "single-hop")


def made(*folders: Path, with_plots: bool = False) -> list[Chapter]:
    runs = [read_run(each) for each in folders]
    papers, suites = load_references().values(), load_suites().values()
    return make_report(runs, papers, suites, with_plots=with_plots)


def run(folder: Path, clusters: int = 6) -> Path:
    items = [
        item(f"q{n}", CATEGORIES[n % 4], f"conv-{n % clusters}", question={"text": EVIL})
        for n in range(24)
    ]
    said = {
        "gam": [Said({NAME: 0.5 + n % 5 / 10, "bleu1_amem": 0.3}) for n in range(24)],
        "turns": [Said({NAME: 0.1, "bleu1_amem": 0.3}, more={"answer": EVIL}) for n in range(24)],
        "other": [Said({NAME: 0.1 + n % 2 / 100, "bleu1_amem": 0.2}) for n in range(24)],
    }
    usage = {"boundaries": Spent(10, 5000, 60)}
    builds = [BuildRecord("gam", "conv-0", usage, {"nodes": 7, "sessions": 10})]
    methods = [method("gam", preset="paper"), method("turns"), method("other", "turns", k=3)]
    scorers = (NAME, "bleu1_amem")
    return write_run(folder, methods, items, said, scorers=scorers, builds=builds)


@pytest.fixture(scope="module")
def chapter(tmp_path_factory: pytest.TempPathFactory) -> Chapter:
    (found,) = made(run(tmp_path_factory.mktemp("report") / "run"), with_plots=True)
    return found


def tables(chapter: Chapter) -> dict[str, Table]:
    return {one.title: one for one in chapter.tables}


def test_a_sentence_says_what_the_runs_show(chapter: Chapter, tmp_path: Path) -> None:
    assert chapter.headline.startswith("In f1 set amem, points: gam is ahead of turns by 59.")
    assert chapter.headline.endswith("; no other pair differs significantly.")
    assert not any("spoken of" in note for note in chapter.notes)
    (few,) = made(run(tmp_path / "few", clusters=3))
    assert any("only these are spoken of" in note for note in few.notes)


def test_ours_stand_beside_what_is_printed_of_the_same_row(chapter: Chapter) -> None:
    found = tables(chapter)
    rows = {row[1].text: row for row in found["Beside the papers"].rows if row[0].text == "gam"}
    ours, printed = rows["f1 set amem"][2:4]
    assert "mean of categories" in ours.beside
    assert printed.text.startswith("40.00 (Qwen 2.5-7B)")
    assert "1370.18" in rows["question tokens"][3].text
    assert rows["question tokens"][2].text == "1,050 tokens"
    assert not any(row[0].text == "turns" for row in found["Beside the papers"].rows)
    other = found["Beside the papers, by part and under other settings"]
    staged = [row for row in other.rows if row[1].text.startswith("stage input tokens")]
    assert [(row[2].text, row[3].text) for row in staged] == [
        ("500.0 tokens", "932.36 (model not named)")
    ]


@pytest.mark.parametrize(
    ("judge", "shown"),
    [("locomo_mem0", "official judge locomo_mem0"), ("locomo", "judge locomo")],
)
def test_the_judge_is_plotted_and_set_beside_the_paper_and_says_whose_it_is(
    tmp_path: Path, judge: str, shown: str
) -> None:
    """Mnemis' Figure 3 and Table 1 are of verdicts, not of the benchmark's first scorer."""
    items = [item(f"q{n}", CATEGORIES[n % 4], f"conv-{n % 6}") for n in range(24)]
    scorer = "f1_locomo_official"
    said = {label: [Said({scorer: 0.3}, n % 2) for n in range(24)] for label in ("k-5", "mnemis")}
    methods = [method("k-5", "mnemis", k=5), method("mnemis", k=10)]
    folder = write_run(tmp_path / "run", methods, items, said, scorers=(scorer,), judge=judge)
    (chapter,) = made(folder, with_plots=judge == "locomo")
    beside = [row for row in tables(chapter)["Beside the papers"].rows if row[0].text == "mnemis"]
    assert (beside[0][1].text, beside[0][2].text) == (shown, "50.0")
    assert "89.8" in beside[0][3].text
    plots = {one.name: one.svg for one in chapter.plots}
    assert f"{shown}, %" in plots.get("locomo-mnemis-k", f"{shown}, %")
    assert bool(plots) == (judge == "locomo")


def test_every_cell_is_a_line_of_the_csv(chapter: Chapter) -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv([chapter]))))
    found = {(one["table"], one["row"], one["column"]): one for one in lines}
    score = found["Scores", "gam", "f1 set amem, %"]
    assert (score["chapter"], score["text"], score["n"]) == ("locomo", "69.2", "24")
    assert float(score["value"]) == pytest.approx(0.6917, abs=1e-3)
    assert len(lines) == sum(len(row) - 1 for one in chapter.tables for row in one.rows)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_a_page_runs_nothing_loads_nothing_and_shows_what_others_wrote(chapter: Chapter) -> None:
    page = render_page([chapter])
    parser = Tags()
    parser.feed(page)
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in parser.tags}
    assert not any(name.startswith("on") for _, attrs in parser.tags for name in attrs)
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "&lt;script&gt;" in page
    assert "\x07" not in page
    assert page == render_page([chapter])
    assert chapter.headline in page
    assert all(f"<h3>{plot.title}</h3>" in page for plot in chapter.plots)
    ids = [attrs["id"] for _, attrs in parser.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_questions_are_opened_one_by_one_with_their_evidence(tmp_path: Path) -> None:
    turns = [{"speaker": "Ann", "dia_id": f"D1:{n}", "text": f"Line {n}."} for n in range(1, 4)]
    talk = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    asked = [{"question": "Which?", "answer": "2", "category": 4, "evidence": ["D1:2"]}]
    data = tmp_path / "locomo10.json"
    data.write_text(json.dumps([{"sample_id": "c", "conversation": talk, "qa": asked}]))
    about = item("c/q0", source="c", evidence=["D1:2"])
    said = {
        "a": [Said({"exact_match": 1.0}, more={"retrieved": ("D1:3", "D1:2")})],
        "b": [Said({"exact_match": 0.0})],
    }
    folder = write_run(tmp_path / "run", [method("a"), method("b")], [about], said)
    manifest = Manifest.read(folder)
    arguments = manifest.arguments.model_copy(update={"data": data})
    facts = manifest.dataset.model_copy(update={"sha256": dict(LOCOMO.read(data).sha256)})
    manifest.model_copy(update={"arguments": arguments, "dataset": facts}).write(folder)
    (chapter,) = made(folder)
    (one,) = chapter.questions
    assert one.kind == "split"
    dated = "(Monday, 08 May 2023) Ann: Line 2."
    assert one.evidence == (("D1:2", dated),), "as a model reads it"
    assert one.answers[0].read[1] == ("D1:2", dated, True)
    read = [(id, gold) for id, _, gold in one.answers[0].read]
    assert read == [("D1:3", False), ("D1:2", True)]
    assert [each.verdict for each in one.answers] == ["right", "wrong"]
    assert "Ann: Line 2." in render_page([chapter])
    data.unlink()
    (one,) = made(folder)[0].questions
    assert one.evidence == (("D1:2", ""),)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"sha256": "ef" * 32}, "files"),
        ({"scorers": ("f1_squad",)}, "scorers"),
        ({"judge": "locomo"}, "judge"),
    ],
)
def test_runs_that_cannot_be_compared_stand_apart_with_the_reason(
    tmp_path: Path, options: dict[str, object], what: str
) -> None:
    said = {"a": [Said({"exact_match": 1.0})]}
    one = write_run(tmp_path / "one", [method("a")], [item("q")], said)
    two = write_run(tmp_path / "two", [method("a")], [item("q")], said, **options)  # type: ignore[arg-type]
    chapters = made(one, two)
    assert [each.title for each in chapters] == ["locomo (one)", "locomo (two)"]
    assert f"Shown apart from two: other {what}." in chapters[0].notes


def test_a_model_that_judged_itself_is_named(tmp_path: Path) -> None:
    said = {"a": [Said({"exact_match": 1.0}, 1.0)]}
    own = (JudgedBy(judge="locomo", model=MODEL),)
    folder = write_run(
        tmp_path / "run", [method("a")], [item("q")], said, judge="locomo", judged_by=own
    )
    assert any("judged answers of its own" in note for note in made(folder)[0].notes)


def test_the_page_says_what_its_signs_and_counts_mean(tmp_path: Path) -> None:
    folder = write_run(
        tmp_path / "run", [method("gam")], [item("q0")], {"gam": [Said({"exact_match": 0.5})]}
    )
    (chapter,) = made(folder)
    assert chapter.notes[0].startswith("1 method, 1 of the benchmark's")
    page = render_page([chapter])
    assert "✓ stands for 50 or more of 100" in page
