"""Evaluations and trainings in the inspector: who sees them, from where, and what a page shows."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from mgl.api.runs import Runs
from mgl.models.adapters import find_adapter, write_adapter
from mgl.openai.errors import NotServed
from mgl.training.data import Pair
from mgl.training.fitting import Epoch, FitSettings, Fitted
from mgl.training.records import Base, Course, Trained, Training, keep_training, read_course
from tests.api.conftest import Client, Serve, open_beside
from tests.evaluation.report.folders import Said, item, method, write_run
from tests.evaluation.report.test_report import EVIL, run
from tests.web.tab import Tab
from tests.web.test_axe import check_axe


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs that share a report, one below a folder, and one that is damaged."""
    folder = tmp_path / "runs"
    run(folder / "first")
    (folder / "some").mkdir()
    run(folder / "some" / "second")
    damaged = folder / "damaged"
    damaged.mkdir()
    (damaged / "manifest.json").write_text("{}")
    return folder


def train(home: Path, name: str = "mine") -> None:
    """An adapter of two epochs, the second kept, with a line of the page's kind in its example."""
    base = home / "base"
    base.mkdir(parents=True)
    (base / "model.safetensors").write_bytes(b"weights")

    def fit(work: Path) -> Trained:
        path = work / "adapter_model.safetensors"
        path.write_bytes(b"change")
        epochs = [Epoch(0.9, 0.25), Epoch(0.4, 0.5)]
        fitted = Fitted([], [], epochs, best=1, seconds=3.0)
        return Trained(fitted, {"mrr before": 0.25, "mrr": 0.5}, [path], [f"{EVIL}\n| 1 | 2 | 3 |"])

    row = Pair(EVIL, "a passage", (), "diary", "ours", "MIT")
    keep_training(Training(name, FitSettings(), home), "retriever", [row], fit, Base("tiny", base))


def test_a_training_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    train(tmp_path)
    course = read_course(find_adapter("mine", tmp_path))
    assert list(course.epochs) == [Epoch(0.9, 0.25), Epoch(0.4, 0.5)]
    assert course.best == 1
    assert course.examples == [f"{EVIL} | 1 | 2 | 3 |"]
    write_adapter("bare", tmp_path, {"kind": "retriever", "licence": "MIT"}, [])
    assert read_course(find_adapter("bare", tmp_path)) == Course()


def test_a_training_that_was_interrupted_is_listed_as_such(tmp_path: Path) -> None:
    (tmp_path / "training" / "begun").mkdir(parents=True)
    first, *rest = Runs(None, tmp_path).list_trainings()
    assert (first["name"], "not finished" in first["fault"]) == ("begun", True)
    assert all("fault" not in each for each in rest)


def test_runs_are_listed_with_their_scores_or_their_fault(runs: Path) -> None:
    listed = {each["name"]: each for each in Runs(runs).list_all()}
    assert set(listed) == {"first", "some/second", "damaged"}
    assert "not a valid manifest" in listed["damaged"]["fault"]
    first = listed["first"]
    assert (first["benchmark"], first["answers"], first["of"]) == ("locomo", 72, 72)
    scores = {each["label"]: each["score"] for each in first["methods"]}
    assert scores["turns"] == pytest.approx(0.1)


def test_runs_of_the_same_items_share_a_report(runs: Path) -> None:
    (chapter,) = Runs(runs).report(["first", "some/second"])
    scores = chapter["tables"][0]
    assert [row[0]["text"] for row in scores["rows"]][:2] == ["gam (first)", "turns (first)"]
    low, mean, high = scores["rows"][0][1]["drawn"]
    assert low < mean < high
    said = chapter["questions"][0]["answers"][1]
    assert (said["answer"], said["verdict"]) == (EVIL, "wrong")


def test_a_question_whose_first_answer_is_still_to_come_is_reported(tmp_path: Path) -> None:
    """Of a run that repeats each question, answers come in any order."""
    said = {"turns": [Said({"exact_match": 1.0})] * 4}
    folder = write_run(tmp_path / "run", [method("turns")], [item("q0"), item("q1")], said)
    records = folder / "records.jsonl"
    lines = records.read_text().splitlines(keepends=True)
    lines.remove(next(line for line in lines if '"answer"' in line))
    shown = Runs(tmp_path)
    before = shown.report(["run"])
    records.write_text("".join(lines))
    (chapter,) = shown.report(["run"])
    assert [chapter] != before, "a report follows its run"
    counted = {each["id"]: len(each["answers"]) for each in chapter["questions"]}
    assert counted == {"q0": 0, "q1": 1}


def test_no_name_leads_out_of_the_folder(runs: Path, tmp_path: Path) -> None:
    outside = run(tmp_path / "outside")
    (runs / "link").symlink_to(outside)
    (runs / "half").mkdir()
    (runs / "half" / "manifest.json").write_bytes((outside / "manifest.json").read_bytes())
    (runs / "half" / "records.jsonl").symlink_to(outside / "records.jsonl")
    shown = Runs(runs, tmp_path)
    assert {"link", "half"}.isdisjoint(each["name"] for each in shown.list_all())
    for name in ("link", "half", "../outside", str(outside), "first/../../outside", "", "."):
        with pytest.raises(NotServed):
            shown.report([name])
        with pytest.raises(NotServed):
            shown.show_training(name)


async def test_only_the_owner_sees_them(serve: Serve, runs: Path, mgl_home: Path) -> None:
    train(mgl_home)
    async with serve(runs=runs, tenants=["bea"]) as served:
        async with Client(served) as http:
            assert len((await http.get("/api/runs")).json()["runs"]) == 3
            found = await http.get("/api/runs/report", params={"name": "first"})
            assert found.json()["chapters"][0]["title"] == "locomo"
            assert (await http.get("/api/runs/report")).status_code == 400
            names = [one["name"] for one in (await http.get("/api/trainings")).json()["trainings"]]
            assert {"mine", "evidence"} <= set(names)
            mine = (await http.get("/api/trainings/mine")).json()
            assert (mine["sources"], mine["best"]) == (1, 1)
        key = served._keys.add("bea")
        bearer = {"Authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(base_url=served.root, headers=bearer) as http:
            assert (await http.get("/api/runs")).json() == {"runs": []}
            assert (await http.get("/api/trainings")).json() == {"trainings": []}
            for path in ("/api/runs/report?name=first", "/api/trainings/mine"):
                assert (await http.get(path)).status_code == 404


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
def test_a_reader_goes_through_them_by_keyboard(
    serve: Serve, runs: Path, mgl_home: Path, tab: Tab, axe: str, dark: bool
) -> None:
    """From the memories to a question's answers and to a training; axe finds nothing on the way."""
    train(mgl_home)
    with open_beside(serve(runs=runs)) as site:
        tab.unlock(site.root, site.key)
        size = (390, 844) if dark else (1440, 900)
        tab.show(f"{site.root}/inspect/", size=size, dark=dark)
        _follow(tab, "Evaluations")
        check_axe(tab, axe)
        tab.run("document.querySelector('#search').focus()")
        for sign in "SOME":
            tab.press(sign)
        shown = "[...document.querySelectorAll('tbody tr')].filter((e) => e.offsetHeight).length"
        assert tab.run(shown) == 1
        assert tab.run("document.querySelector('output').textContent") == "1 of 3"
        tab.run("document.querySelector('#search').value = ''")
        tab.run("document.querySelector('#search').dispatchEvent(new Event('input'))")
        _follow(tab, "first")
        assert tab.run("document.querySelector('h2').textContent") == "locomo"
        tab.run("document.querySelector('.questions summary').focus()")
        tab.press("Enter", 13)
        assert EVIL[:8] in tab.wait("document.querySelector('.cards')?.textContent")
        assert "Gold answer" in tab.run("document.querySelector('.card').textContent")
        assert tab.run("document.querySelectorAll('main script, main img').length") == 0
        check_axe(tab, axe)
        _follow(tab, "Trainings")
        check_axe(tab, axe)
        _follow(tab, "mine")
        assert tab.run("document.querySelectorAll('.curve circle').length") == 4
        assert "0.2500" in tab.run("document.querySelector('tbody').textContent")
        assert tab.run("document.documentElement.scrollWidth <= innerWidth")
        check_axe(tab, axe)


def _follow(tab: Tab, name: str) -> None:
    """Tab to a link by its name, and open it."""
    tab.run("window.asItWas = true")
    for _ in range(30):
        tab.press("Tab", 9)
        if tab.run("document.activeElement.textContent") == name:
            break
    tab.press("Enter", 13)
    tab.wait("!window.asItWas && document.documentElement.dataset.ready")
