"""Write a report: as one HTML page, as Markdown for a paper's appendix, or as CSV for programs.

The page asks the network for nothing and runs no script. Its colours are the inspector's, light and
dark; on a narrow screen each row of a table is a card. What runs, models and papers wrote enters a
page or a text escaped.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from importlib import resources
from io import StringIO
from itertools import groupby
from typing import Final
from urllib.parse import quote

from mgl.evaluation.report.data import Cell, Chapter, Datum, Plot, Report, Table
from mgl.web.escape import asset, html_text, visible

__all__ = ["to_csv", "to_html", "to_markdown"]

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SPECIAL: Final = re.compile(r"([\\`*\[\]<|]|(?<![^\W_])_|_(?![^\W_]))")


def to_csv(report: Report) -> str:
    """Write one line a figure; the columns are the fields of ``Datum``, scores are of 1."""
    out = StringIO()
    names = [field.name for field in fields(Datum)]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(datum) for datum in report.data())
    return out.getvalue()


# HTML


def to_html(report: Report) -> str:
    """Write the page, to be saved as UTF-8; the same report gives the same page."""
    own = resources.files("mgl.evaluation.report") / "assets" / "report.css"
    style = asset("palette.css") + own.read_text(encoding="utf-8")
    links = "".join(
        f'<li><a href="#c{place}">{html_text(chapter.title)}</a></li>'
        for place, chapter in enumerate(report.chapters)
    )
    contents = f'<nav aria-label="Benchmarks"><ul>{links}</ul></nav>'
    return "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html_text(report.title)}</title><style>{style}</style></head><body>",
            f"<header><h1>{html_text(report.title)}</h1>",
            contents if len(report.chapters) > 1 else "",
            '<details class="reading" open><summary>How to read the figures</summary>',
            *(f"<p>{html_text(line)}</p>" for line in report.reading),
            "</details></header><main>",
            *(_html_chapter(chapter, place) for place, chapter in enumerate(report.chapters)),
            "</main></body></html>\n",
        )
    )


def _html_chapter(chapter: Chapter, place: int) -> str:
    parts = [f'<section id="c{place}"><h2>{html_text(chapter.title)}</h2>']
    parts += (f'<p class="said">{html_text(note)}</p>' for note in chapter.notes)
    for plotted, blocks in groupby(chapter.blocks, lambda block: isinstance(block, Plot)):
        drawn = "".join(_html_block(block) for block in blocks)
        parts.append(f'<div class="plots">{drawn}</div>' if plotted else drawn)
    return "".join((*parts, "</section>"))


def _html_block(block: Table | Plot) -> str:
    title = html_text(block.title)
    if isinstance(block, Plot):
        svg = re.sub(r"^.*?(?=<svg)", "", block.svg, count=1, flags=re.DOTALL)
        svg = re.sub(r' (?:width|height)="[^"]*pt"', "", svg)
        svg = svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
        note = f'<figcaption class="note">{html_text(block.about)}</figcaption>'
        return f'<figure class="plot"><h3>{title}</h3>{svg}{note}</figure>'
    inner = "".join(_html_table(block))
    if block.folded:
        return f'<details class="block"><summary>{title}</summary>{inner}</details>'
    return f'<section class="block"><h3>{title}</h3>{inner}</section>'


def _html_table(table: Table) -> Iterator[str]:
    head = "".join(f'<th scope="col">{html_text(each)}</th>' for each in table.head)
    yield f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>'
    for row in table.rows:
        yield f'<tr><th scope="row">{html_text(row[0].text)}</th>'
        yield from _html_cells(row[1:], table.head[1:])
        yield "</tr>"
    yield "</tbody></table></div>"
    for note in table.notes:
        yield f'<p class="note">{html_text(note)}</p>'


def _html_cells(cells: Iterable[Cell], heads: Iterable[str]) -> Iterator[str]:
    for cell, head in zip(cells, heads, strict=True):
        kinds = (("number", bool(cell.data)), ("quiet", cell.quiet))
        kind = " ".join(name for name, held in kinds if held)
        text = html_text(cell.text)
        parts = [f"<b>{text}</b>" if cell.interval else text]
        if cell.interval:
            parts.append(f' <span class="ends">{html_text(cell.interval)}</span>')
        if cell.span is not None:
            parts.append(_html_span(*cell.span))
        if cell.beside:
            parts.append(f'<span class="beside">{html_text(cell.beside)}</span>')
        yield f'<td class="{kind}" data-head="{html_text(head)}"><div>{"".join(parts)}</div></td>'


def _html_span(low: float, mean: float, high: float) -> str:
    """Draw an interval on the line from 0 to 1."""
    return (
        '<svg class="span" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<path class="whole" d="M0 5H100M0 1V9M100 1V9"/>'
        f'<path class="reach" d="M{100 * low:.1f} 5H{100 * high:.1f}"/>'
        f'<path class="mean" d="M{100 * mean:.1f} 0V10"/></svg>'
    )


# Markdown


def to_markdown(report: Report, plots: str | None = None) -> str:
    """Write Markdown; ``plots`` is the folder of the plots, as ``NAME.svg``, None if they are not
    written, which the text then says."""
    return "\n".join(_lines(report, plots)) + "\n"


def _lines(report: Report, plots: str | None) -> Iterator[str]:
    yield f"# {_escape(report.title)}\n"
    for chapter in report.chapters:
        yield f"## {_escape(chapter.title)}\n"
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
    numeric = [
        all(_is_number(row[place]) for row in table.rows) for place in range(len(table.head))
    ]
    yield f"|{'|'.join('---:' if right else '---' for right in numeric)}|"
    for row in table.rows:
        yield f"| {' | '.join(map(_cell_text, row))} |"
    yield ""
    yield from (f"{_escape(note)}\n" for note in table.notes)


def _cell_text(cell: Cell) -> str:
    beside = f"({_escape(cell.beside)})" if cell.beside else ""
    return " ".join(part for part in (_escape(cell.text), cell.interval, beside) if part)


def _is_number(cell: Cell) -> bool:
    return bool(cell.data) or cell.quiet or cell.text.replace(",", "").replace(".", "").isdecimal()


def _escape(text: str) -> str:
    """Put a text on one line, without anything that Markdown takes for a sign."""
    return _SPECIAL.sub(r"\\\1", visible(" ".join(text.split())))
