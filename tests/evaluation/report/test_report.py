"""A whole report: its sentence, its tables, the papers' numbers, the page and the CSV."""

from __future__ import annotations

import csv
import io
import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.locomo import LOCOMO
from mgl.errors import UsageError
from mgl.evaluation.audit import read_dataset
from mgl.evaluation.papers.references import load_references
from mgl.evaluation.papers.suites import load_suites
from mgl.evaluation.records import BuildRecord, Spent
from mgl.evaluation.report.cells import ReportTable
from mgl.evaluation.report.pages import render_page, write_report
from mgl.evaluation.report.report import Chapter, answers_to_csv, make_report, to_csv
from mgl.evaluation.report.runs import read_run
from mgl.evaluation.runs.manifest import JudgedBy, Manifest
from mgl.llm.base import Completion, Message, Request, Sampling, TokenUsage
from mgl.llm.calls import CallRecord
from mgl.store import Store
from mgl.web.escape import script_hash
from tests.evaluation.report.folders import MODEL, Said, item, method, write_run
from tests.evaluation.small_data import WRITERS

EVIL = "<script>alert('&')</script> | `x` \x07 _it_"
NAME = "f1_set_amem"
PAPERS, SUITES = load_references().values(), load_suites().values()
CATEGORIES = ("multi-hop", "temporal", "open-domain", "single-hop")


def made(*folders: Path, with_plots: bool = False) -> list[Chapter]:
    runs = [read_run(each) for each in folders]
    return make_report(runs, PAPERS, SUITES, with_plots=with_plots)


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


def tables(chapter: Chapter) -> dict[str, ReportTable]:
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


def test_a_report_runs_its_own_script_loads_nothing_and_shows_what_others_wrote(
    chapter: Chapter,
) -> None:
    page = render_page([chapter], "items")
    parser = Tags()
    parser.feed(page)
    assert not {"link", "img", "iframe"} & {tag for tag, _ in parser.tags}
    assert not any(name.startswith("on") for _, attrs in parser.tags for name in attrs)
    assert [attrs for tag, attrs in parser.tags if tag == "script"] == [
        {"type": "application/json", "id": "items"},
        {},
    ]
    (policy,) = (attrs["content"] for _, attrs in parser.tags if "http-equiv" in attrs)
    script = page.rpartition("<script>")[2].partition("</script>")[0]
    assert f"script-src {script_hash(script)};" in str(policy)
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "<script>alert" not in page
    assert "\x07" not in page
    assert page == render_page([chapter], "items")
    assert chapter.headline in page
    assert all(f"<h3>{plot.title}</h3>" in page for plot in chapter.plots)
    ids = [attrs["id"] for _, attrs in parser.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def listed(page: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        page.partition('id="items">')[2].partition("</script>")[0]
    )
    return found


def write_data(folder: Path) -> Path:
    """A file of LoCoMo's with one conversation of three turns."""
    WRITERS["locomo"](folder)
    return folder / "locomo10.json"


def set_data(folder: Path, data: Path) -> None:
    """Make the manifest of a run name these files as its own."""
    manifest = Manifest.read(folder)
    arguments = manifest.arguments.model_copy(update={"data": data})
    facts = manifest.dataset.model_copy(update={"sha256": dict(LOCOMO.read(data).sha256)})
    manifest.model_copy(update={"arguments": arguments, "dataset": facts}).write(folder)


def test_each_question_has_a_page_with_everything_behind_its_answers(tmp_path: Path) -> None:
    data = write_data(tmp_path)
    about = item("c/q0", source="c", evidence=["D1:2"], question={"text": EVIL})
    took = {"keys": ["k1", "lost"], "own_s": 1.5, "replayed": 0}
    said = {
        "a": [Said({"exact_match": 1.0}, more={"retrieved": ("D1:3", "D1:2"), "took": took})],
        "b": [Said({"exact_match": 0.0}, more={"answer": EVIL})],
    }
    folder = write_run(tmp_path / "run", [method("a"), method("b")], [about], said)
    set_data(folder, data)
    (chapter,) = made(folder)
    (one,) = chapter.questions
    assert one.kind == "split"
    assert [each.verdict for each in one.answers] == ["right", "wrong"]
    out, old = tmp_path / "r.html", tmp_path / "r-items" / "c0-7.html"
    old.parent.mkdir()
    old.write_text("of an earlier report")
    with Store.open(tmp_path / "calls.sqlite") as store:
        request = Request((Message("user", f"Which? {EVIL}"),), sampling=Sampling(max_tokens=9))
        done = Completion("<b>Two</b>", "stop", TokenUsage(7, 3, 0))
        store.add_call(CallRecord("k1", "answer", "m", request, done, "ok", None, 2.0), None)
        pages = write_report([chapter], out, {"run": store})
    assert {each.name for each in pages.iterdir()} == {"c0-0.html", "style.css"}
    page = (pages / "c0-0.html").read_text()
    assert "(Monday, 08 May 2023) Bo: Bo met Ann in Rome." in page, "as a model reads it"
    assert page.count('<dt class="gold">D1:2') == 2, "as evidence, and where it was retrieved"
    assert "<dt>D1:3</dt><dd>(Monday, 08 May 2023) Ann: Cy lost the ring" in page
    assert "<pre>&lt;b&gt;Two&lt;/b&gt;</pre>" in page
    assert "answer · m · ok · 7 tokens in, 3 out · 2.0 s" in page
    assert "not in the log of calls" in page
    assert "<script" not in page
    assert "\x07" not in page
    (rows,) = listed(out.read_text())
    assert (rows["pages"], rows["methods"], rows["sources"]) == ("r-items/c0-", ["a", "b"], ["c"])
    ((id, _, _, question, gold, answers),) = rows["rows"]
    assert (id, gold, answers[0]) == ("c/q0", "gold", ["r", "an answer"])
    assert (question, answers[1][0]) == (answers[1][1], "w")


def test_questions_that_methods_differ_on_come_first(tmp_path: Path) -> None:
    scores = {"a": (1.0, 0.0, 1.0), "b": (1.0, 0.0, 0.0)}
    said = {label: [Said({"exact_match": one}) for one in own] for label, own in scores.items()}
    items = [item(f"q{n}") for n in range(3)]
    (chapter,) = made(write_run(tmp_path / "run", [method("a"), method("b")], items, said))
    found = [(each.item["id"], each.kind) for each in chapter.questions]
    assert found == [("q2", "split"), ("q1", "wrong"), ("q0", "right")]


def test_runs_over_the_same_files_read_them_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_data(tmp_path)
    about = item("c/q0", source="c", evidence=["D1:2"])
    for name in ("one", "two"):
        said = {name: [Said({"exact_match": 1.0})]}
        set_data(write_run(tmp_path / name, [method(name)], [about], said), data)
    (chapter,) = made(tmp_path / "one", tmp_path / "two")
    opened: list[Path] = []

    def read(benchmark: str, place: Path) -> Dataset:
        opened.append(place)
        return read_dataset(benchmark, place)

    monkeypatch.setattr("mgl.evaluation.report.pages.read_dataset", read)
    folder = write_report([chapter], tmp_path / "r.html", {})
    page = (folder / "c0-0.html").read_text()
    assert page.count('<section class="block method">') == 2
    assert "Bo: Bo met Ann in Rome." in page
    assert opened == [data]


def test_the_scores_of_each_source_stand_by_themselves(chapter: Chapter, tmp_path: Path) -> None:
    by_source = tables(chapter)["f1 set amem by source, %"]
    assert by_source.head == ("source", "gam", "turns", "other")
    assert [row[0].text for row in by_source.rows] == [f"conv-{n}" for n in range(6)]
    # gam's items 0, 6, 12 and 18 of conv-0 have 0.5, 0.6, 0.7 and 0.8.
    assert by_source.rows[0][1].text == "65.0"
    assert by_source.rows[0][1].interval is not None
    assert by_source.rows[0][1].interval.n == 4
    (alone,) = made(run(tmp_path / "alone", clusters=1))
    assert "f1 set amem by source, %" not in tables(alone)


def test_what_the_runs_took_is_not_folded_and_has_the_judges_tokens_and_the_money(
    tmp_path: Path,
) -> None:
    builds = [BuildRecord("a", "a source", {"boundaries": Spent(10, 5000, 60)})]
    said = {"a": [Said({"exact_match": 1.0}, 1.0), Said({"exact_match": 0.0}, 0.0), Said(None)]}
    items = [item(f"q{n}") for n in range(3)]
    folder = write_run(tmp_path / "r", [method("a")], items, said, judge="locomo", builds=builds)
    runs = [read_run(folder)]
    prices = {MODEL: (100.0, 200.0), "": (1000.0, 2000.0)}
    (chapter,) = make_report(runs, prices=prices, with_plots=False)
    table = tables(chapter)["What the runs took"]
    assert not table.folded
    texts = [cell.text for cell in table.rows[0]]
    assert texts[:4] == ["a", "5,000 in, 60 out", "2,000 in, 100 out", "400 in, 40 out"]
    assert table.rows[0][3].beside == "2 calls"
    # 7,000 tokens in at 100 and 160 out at 200 a million; 400 at 1,000 and 40 at 2,000.
    assert texts[5] == f"{0.7 + 0.032 + 0.4 + 0.08:.2f}" == "1.21"
    (unpriced,) = make_report(runs, prices={MODEL: (1.0, 2.0)}, with_plots=False)
    assert tables(unpriced)["What the runs took"].rows[0][5].text == "–"
    (free,) = make_report(runs, with_plots=False)
    assert "money" not in tables(free)["What the runs took"].head


def test_every_answer_is_a_line_of_csv(tmp_path: Path) -> None:
    said = {"a": [Said({"exact_match": 1.0}, 0.5), Said(None)] * 2}
    items = [item("q0", "multi-hop", golds=["x", "y"]), item("q1")]
    folder = write_run(tmp_path / "run", [method("a")], items, said, judge="locomo")
    lines = list(csv.DictReader(io.StringIO(answers_to_csv([read_run(folder)]))))
    assert [(one["item"], one["repeat"]) for one in lines] == [
        ("q0", "0"), ("q0", "1"), ("q1", "0"), ("q1", "1"),
    ]  # fmt: skip
    first, failed = lines[0], lines[2]
    assert (first["gold"], first["category"], first["verdict"]) == ("x / y", "multi-hop", "right")
    assert (first["locomo"], first["exact_match"]) == ("0.5", "1.0")
    assert (first["tokens_in"], first["judge_tokens_in"], first["seconds"]) == (
        "1000", "200", "2.0",
    )  # fmt: skip
    assert (failed["verdict"], failed["failed"]) == ("failed", "EngineTimeout: no answer")
    assert (failed["exact_match"], failed["answer"]) == ("", "")


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
    page = render_page([chapter], "items")
    assert "✓ stands for 50 or more of 100" in page


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("pandas", "a report needs pandas"),
        ("statsmodels.stats.proportion", "needs scipy and statsmodels"),
        ("matplotlib", "plots need matplotlib"),
        ("markupsafe", "the page needs jinja2"),
    ],
)
def test_without_the_extra_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, told: str
) -> None:
    said = {label: [Said({"exact_match": 1.0})] for label in ("a", "b")}
    folder = write_run(tmp_path / "run", [method("a"), method("b")], [item("q")], said)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=told) as caught:
        render_page(made(folder, with_plots=module == "matplotlib"), "items")
    assert "pip install" in caught.value.hint
