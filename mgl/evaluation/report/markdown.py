"""A report as Markdown, as it goes into a paper's appendix: its tables, and where its plots lie."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

from mgl.evaluation.report.tables import Cell, Report, Table
from mgl.web.escape import visible

__all__ = ["to_markdown"]

_SPECIAL = re.compile(r"([\\`*\[\]<|]|(?<![^\W_])_|_(?![^\W_]))")


def to_markdown(report: Report, plots: str | None = None) -> str:
    """The report; ``plots`` is the folder in which its plots lie as ``NAME.svg``, None where they
    are not written, which is said."""
    return "\n".join(_lines(report, plots)) + "\n"


def _lines(report: Report, plots: str | None) -> Iterator[str]:
    yield f"# {_escaped(report.title)}"
    yield ""
    for note in report.notes:
        yield f"{_escaped(note)}\n"
    for chapter in report.chapters:
        yield f"## {_escaped(chapter.title)}\n"
        for note in chapter.notes:
            yield f"{_escaped(note)}\n"
        left_out = []
        for block in chapter.blocks:
            if isinstance(block, Table):
                yield from _table(block)
            elif plots is None:
                left_out.append(block.title)
            else:
                yield f"![{_escaped(block.title)}]({quote(f'{plots}/{block.name}.svg')})\n"
                yield f"*{_escaped(block.title)}.* {_escaped(block.about)}\n"
        if left_out:
            yield f"Plots, written with --out: {_escaped('; '.join(left_out))}.\n"
    yield "## How to read the figures\n"
    for told in report.reading:
        yield f"{_escaped(told)}\n"


def _table(table: Table) -> Iterator[str]:
    yield f"### {_escaped(table.title)}\n"
    yield f"| {' | '.join(map(_escaped, table.head))} |"
    numbers = [all(_numeric(row[place]) for row in table.rows) for place in range(len(table.head))]
    yield f"|{'|'.join('---:' if right else '---' for right in numbers)}|"
    for row in table.rows:
        yield f"| {' | '.join(map(_cell, row))} |"
    yield ""
    for note in table.notes:
        yield f"{_escaped(note)}\n"


def _cell(cell: Cell) -> str:
    beside = f"({_escaped(cell.beside)})" if cell.beside else ""
    return " ".join(part for part in (_escaped(cell.text), cell.interval, beside) if part)


def _numeric(cell: Cell) -> bool:
    return bool(cell.data) or cell.quiet or cell.text.replace(",", "").replace(".", "").isdecimal()


def _escaped(text: str) -> str:
    """The text on one line, with nothing in it that Markdown takes for a sign."""
    return _SPECIAL.sub(r"\\\1", visible(" ".join(text.split())))
