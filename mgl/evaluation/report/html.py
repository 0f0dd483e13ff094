"""A report as one HTML file that asks the network for nothing and runs no script.

Its colours are those of the inspector's pages, light and dark. On a narrow screen each row of a
table is a card of its own. What runs, models and papers wrote enters it as escaped text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import resources
from itertools import groupby
from typing import Final

from mgl.evaluation.report.drawing import for_page
from mgl.evaluation.report.tables import Cell, Chapter, Plot, Report, Table
from mgl.web.escape import html_text
from mgl.web.pieces import asset

__all__ = ["to_html"]

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def to_html(report: Report) -> str:
    """The page; the same report gives the same page. Write it as UTF-8."""
    style = asset("palette.css") + _style()
    return "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html_text(report.title)}</title><style>{style}</style></head><body>",
            f"<header><h1>{html_text(report.title)}</h1>",
            *(f'<p class="missing">{html_text(note)}</p>' for note in report.notes),
            _contents(report),
            '<details class="reading" open><summary>How to read the figures</summary>',
            *(f"<p>{html_text(told)}</p>" for told in report.reading),
            "</details></header><main>",
            *(_chapter(chapter, place) for place, chapter in enumerate(report.chapters)),
            "</main></body></html>\n",
        )
    )


def _style() -> str:
    folder = resources.files("mgl.evaluation.report") / "assets"
    return (folder / "report.css").read_text(encoding="utf-8")


def _contents(report: Report) -> str:
    if len(report.chapters) < 2:
        return ""
    links = (
        f'<li><a href="#c{place}">{html_text(chapter.title)}</a></li>'
        for place, chapter in enumerate(report.chapters)
    )
    return f'<nav aria-label="Benchmarks"><ul>{"".join(links)}</ul></nav>'


def _chapter(chapter: Chapter, place: int) -> str:
    parts = [f'<section id="c{place}"><h2>{html_text(chapter.title)}</h2>']
    parts += (f'<p class="said">{html_text(note)}</p>' for note in chapter.notes)
    for plotted, blocks in groupby(chapter.blocks, lambda block: isinstance(block, Plot)):
        drawn = "".join(_block(block) for block in blocks)
        parts.append(f'<div class="plots">{drawn}</div>' if plotted else drawn)
    return "".join((*parts, "</section>"))


def _block(block: Table | Plot) -> str:
    if isinstance(block, Plot):
        named = f'<svg role="img" aria-label="{html_text(block.title)}" '
        svg = for_page(block.svg).replace("<svg ", named, 1)
        return (
            f'<figure class="plot"><h3>{html_text(block.title)}</h3>{svg}'
            f'<figcaption class="note">{html_text(block.about)}</figcaption></figure>'
        )
    inner = "".join(_table(block))
    if block.folded:
        return (
            f'<details class="block"><summary>{html_text(block.title)}</summary>{inner}</details>'
        )
    return f'<section class="block"><h3>{html_text(block.title)}</h3>{inner}</section>'


def _table(table: Table) -> Iterator[str]:
    head = "".join(f'<th scope="col">{html_text(each)}</th>' for each in table.head)
    yield f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>'
    for row in table.rows:
        yield f'<tr><th scope="row">{html_text(row[0].text)}</th>'
        yield from _cells(row[1:], table.head[1:])
        yield "</tr>"
    yield "</tbody></table></div>"
    for note in table.notes:
        yield f'<p class="note">{html_text(note)}</p>'


def _cells(cells: Iterable[Cell], heads: Iterable[str]) -> Iterator[str]:
    for cell, head in zip(cells, heads, strict=True):
        kind = " ".join(
            name for name, held in (("number", bool(cell.data)), ("quiet", cell.quiet)) if held
        )
        text = html_text(cell.text)
        parts = [f"<b>{text}</b>" if cell.interval else text]
        if cell.interval:
            parts.append(f' <span class="ends">{html_text(cell.interval)}</span>')
        if cell.span is not None:
            parts.append(_span(*cell.span))
        if cell.beside:
            parts.append(f'<span class="beside">{html_text(cell.beside)}</span>')
        yield (f'<td class="{kind}" data-head="{html_text(head)}"><div>{"".join(parts)}</div></td>')


def _span(low: float, mean: float, high: float) -> str:
    """The interval on the line from 0 to 1."""
    return (
        '<svg class="span" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<path class="whole" d="M0 5H100M0 1V9M100 1V9"/>'
        f'<path class="reach" d="M{100 * low:.1f} 5H{100 * high:.1f}"/>'
        f'<path class="mean" d="M{100 * mean:.1f} 0V10"/></svg>'
    )
