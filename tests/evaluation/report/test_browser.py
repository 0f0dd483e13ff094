"""The page in a browser: what its list shows, and that nothing runs over a narrow screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgl.evaluation.report.pages import render_page, write_report
from mgl.evaluation.report.report import make_report
from mgl.evaluation.report.runs import read_run
from mgl.llm.base import Completion, Message, Request, TokenUsage
from mgl.llm.calls import CallRecord
from mgl.store import Store
from tests.evaluation.report.folders import Said, item, method, write_run
from tests.web.browser import driven
from tests.web.tab import Tab

pytestmark = pytest.mark.browser

MEASURE = """
  const root = document.documentElement;
  const cards = all("td").every((each) => getComputedStyle(each).display === "grid");
  const wide = all("section.block td, .plot, h1, p, label, select, input").filter(
    (each) => each.getBoundingClientRect().right > root.clientWidth + 1).length;
  return { over: root.scrollWidth - root.clientWidth, cards, wide };
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    names = ("f1_locomo_official", "f1_set_amem", "bleu1_amem", "exact_match", "f1_squad")
    long = "a_method_whose_label_is_far_longer_than_a_narrow_screen_is_wide"
    items = [item(f"q{n}", ("multi-hop", "single-hop")[n % 2]) for n in range(12)]
    said = {
        label: [Said(dict.fromkeys(names, n % 3 / 2), ratio=0.1 + n / 100) for n in range(12)]
        for label in ("a", long)
    }
    folder = tmp_path_factory.mktemp("report") / "run"
    write_run(folder, [method("a"), method(long)], items, said, scorers=names)
    return render_page(make_report([read_run(folder)]), "items")


@pytest.mark.parametrize(("width", "cards"), [(390, True), (1400, False)])
def test_a_page_fits_its_screen(
    tab: Tab, tmp_path: Path, page: str, width: int, cards: bool
) -> None:
    found = driven(tab, tmp_path, page, MEASURE, size=(width, 900))
    assert found == {"over": 0, "cards": cards, "wide": 0}


LOOK = """
  const form = one(".filter").elements;
  const see = () => [
    one(".count").textContent,
    all(".questions tbody tr").map((row) => row.querySelector(".beside").textContent),
  ];
  const set = (values) => {
    one(".filter").reset();
    for (const [name, value] of Object.entries(values)) form[name].value = value;
    one(".filter").dispatchEvent(new Event("input"));
    return see();
  };
  return {
    all: see()[0],
    more: all(".questions tbody tr").length,
    link: one(".questions tbody a").getAttribute("href"),
    category: set({ category: 1 })[0],
    source: set({ source: 0, verdict: "r", method: 0 })[0],
    failed: set({ verdict: "f" })[1],
    every: set({ verdict: "w", method: "every" })[0],
    split: set({ verdict: "split" })[0],
    text: set({ text: "Q59" })[1],
    compared: [set({ one: 0, other: 1 })[0], all(".questions thead th").map((e) => e.textContent)],
    said: [...one(".questions tbody tr").querySelectorAll("td")].map((e) => e.textContent),
    evil: document.title,
  };
"""


def test_questions_are_filtered_searched_and_compared(tab: Tab, tmp_path: Path) -> None:
    evil = "<img src=x onerror=\"document.title='taken'\">"
    items = [item(f"q{n}", ("one", "two")[n % 2], f"conv-{n % 3}", golds=[evil]) for n in range(60)]
    said = {
        "a": [Said({"exact_match": float(n < 30)}) for n in range(60)],
        "b": [Said({"exact_match": float(n < 20)}, more={"answer": evil}) for n in range(59)],
        "c": [Said({"exact_match": 0.0}) for n in range(60)],
    }
    said["b"].append(Said(None))
    folder = tmp_path / "run"
    write_run(folder, [method(label) for label in said], items, said)
    page = render_page(make_report([read_run(folder)], with_plots=False), "pages")
    found = driven(tab, tmp_path, page, LOOK)
    assert found["evil"] == "Evaluation: locomo"
    assert (found["all"], found["more"]) == ("60 of 60 questions", 50)
    assert found["link"] == "pages/c0-0.html"
    assert found["category"] == "30 of 60 questions"
    assert found["source"] == "10 of 60 questions"
    assert found["failed"] == ["q59 · conv-2 · two"] == found["text"]
    assert found["every"] == "29 of 60 questions", "the last one of b failed"
    assert found["split"] == "30 of 60 questions"
    assert found["compared"] == ["10 of 60 questions", ["question", "gold", "a", "b"]]
    assert found["said"] == [evil, "✓an answer", f"✗{evil}"]


def test_a_question_opens_its_page_and_its_prompts(tab: Tab, tmp_path: Path) -> None:
    said = {"a": [Said({"exact_match": 1.0}, more={"took": {"keys": ["k"]}})]}
    folder = write_run(tmp_path / "run", [method("a")], [item("q0")], said)
    out = tmp_path / "r.html"
    with Store.open(tmp_path / "calls.sqlite") as store:
        done = Completion("Two.", "stop", TokenUsage(7, 3, 0))
        request = Request((Message("user", "word " * 400),))
        store.add_call(CallRecord("k", "answer", "m", request, done, "ok", None, 2.0), None)
        write_report(make_report([read_run(folder)], with_plots=False), out, {"run": store})
    tab.show(out.as_uri(), size=(390, 800))
    tab.run("document.querySelector('.questions tbody a').click()")
    tab.wait("document.readyState == 'complete' && !!document.querySelector('.call')")
    opened = tab.run("""(() => {
      document.querySelector(".call summary").click();
      const root = document.documentElement;
      const styled = getComputedStyle(document.querySelector("pre")).whiteSpace;
      return [styled, root.scrollWidth - root.clientWidth,
              document.querySelector("nav a").getAttribute("href")];
    })()""")
    assert opened == ["pre-wrap", 0, "../r.html#c0"]
