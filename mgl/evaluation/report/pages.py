"""The page of a report, and beside it a folder with a page for each question.

    >>> write_report(chapters, Path("report.html"), {"locomo": store})              # doctest: +SKIP

The page lists the questions, to be filtered, searched and compared; each leads to its own page with
everything behind its answers: what was retrieved, every prompt, every reply. So a report of a
hundred thousand answers opens as fast as a small one. No page asks the network for anything. The
report runs one script, its own; the others run none. Colours are the inspector's, light and dark;
on a narrow screen each row of a table is a card. What runs, models and papers wrote enters escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mgl.errors import ResourceError, UsageError, install_hint
from mgl.evaluation.audit import RIGHT, Auditor, read_dataset
from mgl.evaluation.report.cells import number
from mgl.evaluation.report.plots import Plot
from mgl.evaluation.report.report import Chapter
from mgl.evaluation.statistics import FEWEST_SOURCES
from mgl.llm.calls import RecordedRun
from mgl.models.permissions import make_private_folder, open_new_private
from mgl.prompt import one_line
from mgl.web.escape import asset, html_text, make_visible, script_hash, script_json

if TYPE_CHECKING:
    from jinja2 import Environment

_STYLE: Final = "style.css"
_PAGE: Final = re.compile(r"c\d+-\d+\.html")
_LISTED: Final = 240
"""How many characters the list shows of a question, a gold answer or an answer."""


def write_report(
    chapters: Sequence[Chapter], path: Path, stores: Mapping[str, RecordedRun | None]
) -> Path:
    """Write the page to ``path``, and the questions' to the folder beside it, which is returned.

    ``stores`` have the calls of each run, by its name. Pages that an earlier report left in the
    folder are removed. UsageError without jinja2, ResourceError if something cannot be written.
    """
    folder = _items_folder(path)
    environment = _open_templates()
    try:
        _write(path, render_page(chapters, folder.name))
        make_private_folder(folder)
        for old in folder.iterdir():
            if _PAGE.fullmatch(old.name):
                old.unlink()
        _write(folder / _STYLE, _read_style())
        for place, chapter in enumerate(chapters):
            _write_questions(environment, chapter, place, path, stores)
    except OSError as error:
        raise ResourceError(
            f"cannot write {error.filename or path} ({error.strerror})",
            hint="name a file in a writable folder",
        ) from error
    return folder


def render_page(chapters: Sequence[Chapter], folder: str) -> str:
    """Write the page, to be saved as UTF-8; the same report gives the same page.

    ``folder`` has the questions' pages, beside it. UsageError without jinja2.
    """
    template = _open_templates().get_template("report.html.j2")
    from markupsafe import Markup

    script = _read_asset("report.js")
    lists = [_list_rows(chapter, place, folder) for place, chapter in enumerate(chapters)]
    page = template.render(
        chapters=chapters,
        style=Markup(_read_style()),
        script=Markup(script),
        script_hash=script_hash(script),
        data=Markup(script_json([make_visible(each) for each in lists])),
        folder=folder,
        fewest=FEWEST_SOURCES,
        right=100 * RIGHT,
    )
    return page + "\n"


def _list_rows(chapter: Chapter, place: int, folder: str) -> dict[str, Any]:
    """What the script lists of a chapter: a row has the item's id, source and category (by their
    places), question, gold, and of each method the verdict's letter and the answer."""
    labels = _number(chapter.labels)
    sources = _number(str(each.item["source"]) for each in chapter.questions)
    categories = _number(str(each.item["category"]) for each in chapter.questions)
    rows = []
    for each in chapter.questions:
        answers: list[Any] = [None] * len(labels)
        for said in each.answers:
            text = said.record.reason or said.record.answer
            answers[labels[said.series.label]] = [said.verdict[0], one_line(text, _LISTED)]
        item = each.item
        rows.append(
            [
                item["id"],
                sources[str(item["source"])],
                categories[str(item["category"])],
                one_line(item["question"]["text"], _LISTED),
                one_line(" / ".join(item["golds"]), _LISTED),
                answers,
            ]
        )
    return {
        "pages": f"{folder}/c{place}-",
        "methods": list(labels),
        "sources": list(sources),
        "categories": list(categories),
        "rows": rows,
    }


def _number(names: Iterable[str]) -> dict[str, int]:
    """Number names from 0, in the order in which they first come."""
    return {name: place for place, name in enumerate(dict.fromkeys(names))}


def _write_questions(
    environment: Environment,
    chapter: Chapter,
    place: int,
    path: Path,
    stores: Mapping[str, RecordedRun | None],
) -> None:
    """Write a page for each question, source by source, so that each text is read once; each leads
    back to ``path``."""
    read = cache(read_dataset)
    auditors = {
        run.name: Auditor(run.manifest, run.log, stores.get(run.name), read) for run in chapter.runs
    }
    template = environment.get_template("item.html.j2")
    numbered = sorted(enumerate(chapter.questions), key=lambda pair: str(pair[1].item["source"]))
    for n, each in numbered:
        said = [(one, auditors[one.series.run.name].audit(one.record)) for one in each.answers]
        page = template.render(
            item=each.item,
            said=said,
            evidence=said[0][1].evidence if said else (),
            title=f"{chapter.title}: {each.item['id']}",
            chapter=f"{path.name}#c{place}",
            before=f"c{place}-{n - 1}.html" if n else "",
            after=f"c{place}-{n + 1}.html" if n + 1 < len(chapter.questions) else "",
        )
        _write(_items_folder(path) / f"c{place}-{n}.html", page + "\n")


def _items_folder(path: Path) -> Path:
    return path.with_name(f"{path.stem}-items")


def _open_templates() -> Environment:
    """Open the templates, which escape every text; UsageError without jinja2."""
    try:
        from jinja2 import Environment, FunctionLoader
        from markupsafe import Markup
    except ImportError as error:
        raise UsageError("the page needs jinja2", hint=install_hint("evaluation")) from error

    def escape(value: Any) -> Any:
        return Markup(html_text(value)) if type(value) is str else value

    environment = Environment(
        loader=FunctionLoader(_read_asset),
        autoescape=True,
        finalize=escape,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": lambda value: "no score" if value is None else number(value),
        "embed": lambda plot: Markup(_embed(plot)),
    }
    return environment


def _embed(plot: Plot) -> str:
    """The SVG of a plot as part of a page."""
    svg = re.sub(r"^.*?(?=<svg)", "", plot.svg, count=1, flags=re.DOTALL)
    svg = re.sub(r' (?:width|height)="[^"]*pt"', "", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{html_text(plot.title)}" ', 1)


def _read_asset(name: str) -> str:
    assets = resources.files("mgl.evaluation.report") / "assets"
    return (assets / name).read_text(encoding="utf-8")


def _read_style() -> str:
    return asset("palette.css") + _read_asset("report.css")


def _write(path: Path, text: str) -> None:
    with open_new_private(path, "w", encoding="utf-8", errors="replace", newline="") as file:
        file.write(text)
