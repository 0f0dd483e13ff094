from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from mgl.errors import UsageError
from mgl.evaluation.report.data import Plot, Report
from mgl.evaluation.report.report import make_report
from mgl.evaluation.report.runs import read_run
from mgl.evaluation.report.writers import to_html, to_markdown
from mgl.evaluation.runs.manifest import Method
from tests.evaluation.report.folders import Said, item, method, write_run

ITEMS = [item("q0"), item("q1")]


def report(folder: Path, *methods: Method, more: dict | None = None, ratio: float | None = None):
    said = {
        one.label: [
            Said({"exact_match": float(n == 0)}, ratio=ratio, more=(more or {}) and more[n])
            for n in range(2)
        ]
        for one in methods
    }
    return make_report([read_run(write_run(folder, methods, ITEMS, said))])


def titles(found: Report) -> list[str]:
    return [plot.title for plot in found.plots()]


def test_nothing_is_plotted_where_nothing_varies(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert titles(report(tmp_path / "run", method("a", k=1))) == []


def test_a_score_is_plotted_by_the_option_that_methods_differ_in(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    swept = [method(f"steps-{n}", "hgmem", steps=n, merge=True) for n in (3, 1, 2)]
    found = report(tmp_path / "run", *swept)
    (plot,) = found.plots()
    assert plot.title == "exact_match by steps of hgmem"
    assert plot.about.startswith("After HGMem Fig. 3. n = 2 a point")
    words = [each.text for each in ET.fromstring(plot.svg).iter() if each.tag.endswith("text")]
    assert {"steps of hgmem", "exact_match, %"} <= set(words)


def test_methods_that_differ_in_two_options_are_on_no_line(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    two = [method("a", "gam", k=5, noise=0.0), method("b", "gam", k=10, noise=0.2)]
    assert titles(report(tmp_path / "run", *two)) == []


def test_a_run_from_before_an_option_is_on_no_line_of_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    three = [method("old", "gam"), method("k-5", "gam", k=5), method("k-10", "gam", k=10)]
    (plot,) = report(tmp_path / "run", *three).plots()
    assert plot.title == "exact_match by k of gam"
    assert "old" not in plot.svg


def test_plots_of_runs_that_stand_apart_have_names_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    swept = [method("k-5", "gam", k=5), method("k-10", "gam", k=10)]
    said = {one.label: [Said({"exact_match": 1.0})] * 2 for one in swept}
    runs = [
        read_run(write_run(tmp_path / f"run-{n}", swept, [item(f"q{n}"), item("q9")], said))
        for n in range(2)
    ]
    found = make_report(runs)
    assert [plot.name for plot in found.plots()] == ["locomo-gam-k", "locomo-2-gam-k"]
    assert "](my%20plots/locomo-2-gam-k.svg)" in to_markdown(found, "my plots")


def test_options_that_are_words_stand_beside_each_other(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    words = [method(each, "gam", partition=each) for each in ("semantic", "session", "window")]
    (plot,) = report(tmp_path / "run", *words).plots()
    assert plot.about.startswith("After GAM Fig. 3")
    assert all(f">{each}<" in plot.svg for each in ("semantic", "session", "window"))


def test_compaction_and_size_are_plotted_where_runs_have_them(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    more = [
        {"memory": {"tokens": 1000 * (n + 1), "nodes": 5 + n, "compaction_ratio": 0.1}}
        for n in range(2)
    ]
    found = report(tmp_path / "run", method("a"), method("b$x$"), more=dict(enumerate(more)))
    assert titles(found) == ["Score against compaction", "Graph size against length"]
    assert "b$x$" in next(found.plots()).svg


def test_a_page_has_each_id_once(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    swept = [method(f"k-{n}", "gam", k=n) for n in (1, 2)] + [
        method(f"s-{n}", "hgmem", steps=n) for n in (1, 2)
    ]
    found = report(tmp_path / "run", *swept)
    page = to_html(found)
    assert len(list(found.plots())) == 2
    ids = [part.split('"')[0] for part in page.split(' id="')[1:]]
    assert len(ids) == len(set(ids))


def test_markdown_says_where_its_plots_lie_or_that_they_are_left_out(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = report(tmp_path / "run", *[method(f"k-{n}", "gam", k=n) for n in (1, 2)])
    (plot,) = found.plots()
    assert isinstance(plot, Plot)
    assert f"(p/{plot.name}.svg)" in to_markdown(found, "p")
    assert "Plots, written with --out: exact_match by k of gam." in to_markdown(found)


@pytest.mark.parametrize("package", ["matplotlib", "scipy"])
def test_without_the_extra_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError) as caught:
        report(tmp_path / "run", *[method(f"k-{n}", "gam", k=n) for n in (1, 2)])
    assert "mgl[evaluation]" in caught.value.hint
