"""Write a report: as one HTML page, as Markdown for a paper's appendix, or as CSV for programs.

The page asks the network for nothing and runs no script. Its colours are the inspector's, light and
dark; on a narrow screen each row of a table is a card. What runs, models and papers wrote enters a
page or a text escaped.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from importlib import resources
from io import StringIO
from typing import Any, Final
from urllib.parse import quote

from mgl.errors import UsageError
from mgl.evaluation.report.data import COLUMNS, NONE, Cell, Plot, Report, Table
from mgl.web.escape import asset, html_text, visible

__all__ = ["to_csv", "to_html", "to_markdown"]

_SPECIAL: Final = re.compile(r"([\\`*\[\]<|]|(?<![^\W_])_|_(?![^\W_]))")


def to_csv(report: Report) -> str:
    """Write one line a number; scores are of 1."""
    out = StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(report.data())
    return out.getvalue()


def to_html(report: Report) -> str:
    """Write the page, to be saved as UTF-8; the same report gives the same page.

    UsageError without jinja2.
    """
    try:
        from jinja2 import Environment
        from markupsafe import Markup
    except ImportError as error:
        raise UsageError(
            "the page needs jinja2", hint="python -m pip install 'mgl[evaluation]'"
        ) from error

    def escape(value: Any) -> Any:
        return Markup(html_text(value)) if type(value) is str else value

    assets = resources.files("mgl.evaluation.report") / "assets"
    text = (assets / "report.html.j2").read_text(encoding="utf-8")
    style = asset("palette.css") + (assets / "report.css").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, finalize=escape, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.from_string(text)
    return page.render(report=report, style=Markup(style), embed=_embed_plot) + "\n"


def _embed_plot(plot: Plot) -> Any:
    """The SVG of a plot as part of a page."""
    from markupsafe import Markup

    svg = re.sub(r"^.*?(?=<svg)", "", plot.svg, count=1, flags=re.DOTALL)
    svg = re.sub(r' (?:width|height)="[^"]*pt"', "", svg)
    label = html_text(plot.title)
    return Markup(svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1))


def to_markdown(report: Report, plots: str | None = None) -> str:
    """Write Markdown; ``plots`` is the folder of the plots, as ``NAME.svg``, None if they are not
    written, which the text then says."""
    return "\n".join(_lines(report, plots)) + "\n"


def _lines(report: Report, plots: str | None) -> Iterator[str]:
    yield f"# {_escape(report.title)}\n"
    for chapter in report.chapters:
        yield f"## {_escape(chapter.title)}\n"
        yield f"**{_escape(chapter.headline)}**\n"
        yield from (f"{_escape(note)}\n" for note in chapter.notes)
        left_out = []
        for block in chapter.blocks:
            if isinstance(block, Table):
                yield from _table_lines(block)
            elif plots is None:
                left_out.append(block.title)
            else:
                yield f"![{_escape(block.title)}]({quote(f'{plots}/{block.name}.svg')})\n"
                yield f"*{_escape(block.title)}.* {_escape(block.about)}\n"
        if left_out:
            yield f"Plots, written with --out: {_escape('; '.join(left_out))}.\n"
    yield "## How to read the figures\n"
    yield from (f"{_escape(line)}\n" for line in report.reading)


def _table_lines(table: Table) -> Iterator[str]:
    yield f"### {_escape(table.title)}\n"
    yield f"| {' | '.join(map(_escape, table.head))} |"
    numeric = [all(map(_is_number, column)) for column in zip(*table.rows, strict=True)]
    yield f"|{'|'.join('---:' if right else '---' for right in numeric)}|"
    for row in table.rows:
        yield f"| {' | '.join(map(_cell_text, row))} |"
    yield ""
    yield from (f"{_escape(note)}\n" for note in table.notes)


def _cell_text(cell: Cell) -> str:
    return _escape(cell.text) + (f" ({_escape(cell.beside)})" if cell.beside else "")


def _is_number(cell: Cell) -> bool:
    plain = cell.text.replace(",", "").replace(".", "")
    return cell.datum is not None or cell.text == NONE or plain.isdecimal()


def _escape(text: str) -> str:
    """Put a text on one line, without anything that Markdown takes for a sign."""
    return _SPECIAL.sub(r"\\\1", visible(" ".join(text.split())))
