"""The page in a browser: nothing runs over the edge of a narrow screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from tab import Tab

from mgl.evaluation.report.report import make_report, render_page
from mgl.evaluation.report.runs import read_run
from tests.evaluation.report.folders import Said, item, method, write_run
from tests.web.browser import driven

pytestmark = pytest.mark.browser

MEASURE = """
  const root = document.documentElement;
  const cards = all("td").every((each) => getComputedStyle(each).display === "grid");
  const wide = all("section.block td, .plot, h1, p").filter(
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
    page = render_page(make_report([read_run(folder)]))
    return page.replace("<html ", '<html data-ready="true" ')


@pytest.mark.parametrize(("width", "cards"), [(390, True), (1400, False)])
def test_a_page_fits_its_screen(
    tab: Tab, tmp_path: Path, page: str, width: int, cards: bool
) -> None:
    found = driven(tab, tmp_path, page, MEASURE, size=(width, 900))
    assert found == {"over": 0, "cards": cards, "wide": 0}
