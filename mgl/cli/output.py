"""What commands print: results to stdout, everything else to stderr.

Control characters in text from documents and models are replaced before it reaches a terminal.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mgl import prompt

if TYPE_CHECKING:
    from mgl.memories.results import MemorySummary, Stats
    from mgl.memories.view import GraphView, ViewNode
    from mgl.types import Answer, Citation, Span, Turn, Usage

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_EXAMPLES = 10
_WIDTH = 100


def say(text: str) -> None:
    """Print a line to stderr."""
    typer.echo(clean(text), err=True)


def say_interrupted(hint: str = "run the same command again to continue") -> None:
    say("interrupted: finished work is kept")
    say(f"hint: {hint}")


def confirm(question: str, *, refused: str, hint: str) -> bool:
    """Ask for a yes, typed or piped in; UsageError, with what is ``refused`` and a hint, where the
    input ends without an answer."""
    from mgl.errors import UsageError

    say(f"{question} [y/N]")
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:
        raise UsageError(refused, hint=hint) from None


def confirm_deletion() -> bool:
    """Ask whether to delete what was listed."""
    return confirm(
        "Delete this for good?",
        refused="nothing was deleted: there was nobody to confirm it",
        hint="--yes deletes without asking",
    )


def clean(text: str) -> str:
    """Replace control characters, except tab and newline, by U+FFFD."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str, width: int | None = None) -> str:
    """Put the text on one line, cut to ``width`` characters with an ellipsis."""
    return clean(prompt.one_line(text, width))


def write_file(path: Path, text: str) -> None:
    """Write a file as UTF-8; only its owner can read a new one. ResourceError if that fails."""
    from mgl.errors import ResourceError
    from mgl.models.permissions import open_new_private

    try:
        with open_new_private(
            path, "w", encoding="utf-8", errors="surrogatepass", newline=""
        ) as file:
            file.write(text)
    except OSError as error:
        raise ResourceError(
            f"cannot write {path} ({error.strerror})", hint="name a file in a writable folder"
        ) from error


def print_json(value: object) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    typer.echo(text)


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows in columns: on a terminal they wrap within its width, elsewhere never."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*head, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*(Text(one_line(cell), overflow="fold") for cell in row))
    console = Console(width=None if sys.stdout.isatty() else 10_000)
    with console.capture() as capture:
        console.print(table)
    typer.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def print_pairs(pairs: dict[str, str]) -> None:
    """Print names and values in two columns; a value may have several lines."""
    width = max(map(len, pairs)) + 2
    for name, value in pairs.items():
        for number, line in enumerate(value.split("\n")):
            typer.echo(f"{'' if number else f'{name}:':{width}}{clean(line)}")


def print_some(lines: Iterable[str], most: int = 20, rest: str = "") -> None:
    """Print the first of some lines, and how many more there are, and where the ``rest`` is."""
    every = [*lines]
    for line in every[:most]:
        typer.echo(f"  {one_line(line)}")
    if len(every) > most:
        typer.echo(f"  and {len(every) - most:,} more{rest}")


def print_answer(
    answer: Answer, talk: Sequence[Turn] | None = None, *, is_said: bool = False
) -> None:
    """Print an answer, its doubt first, unless it is said already, and what it cites: turns of a
    ``talk``, or passages of a document."""
    if not is_said:
        from mgl.memories.results import say_answer

        typer.echo(clean(say_answer(answer)))
    if talk is None:
        typer.echo("" if answer.confidence is None else f"\nconfidence: {answer.confidence}")
    for mark in answer.marks:
        if mark != "unconfirmed" or not answer.guesses:
            typer.echo(f"note: {mark.replace('_', ' ')}")
    if talk is None and not answer.citations:
        typer.echo("no passage is cited")
    elif talk is None:
        typer.echo(f"cited from {one_line(answer.citations[0].document)}:")
    turns = {turn.id: turn for turn in talk or ()}
    passages: dict[Span, Citation] = {}
    for citation in answer.citations:  # two nodes may stand on one passage
        passages.setdefault(citation.span, citation)
    for citation in passages.values():
        if citation.node_id in turns:
            typer.echo(f"  {format_turn(turns[citation.node_id], 200)}")
        else:  # a passage: of a document, or of several turns
            quote = one_line(citation.quote, None if talk is None else 200)
            typer.echo(f"  {_format_place(citation)} “{quote}”")


def _format_place(citation: Citation) -> str:
    section = citation.section
    where = "" if section is None else f" {section.kind} {one_line(section.label, 40)}"
    return f"[{citation.span.start}:{citation.span.end}] ({citation.node_id}{where})"


def format_turn(turn: Turn, width: int | None = None, *, is_deleted: bool = False) -> str:
    """Put a turn on one line: session, id, time, speaker, and its text cut to ``width``."""
    session = None if turn.session is None else f"session {one_line(turn.session)}"
    time = None if turn.time is None else f"{turn.time:%d %B %Y %H:%M}"
    place = ", ".join(part for part in (session, f"turn {one_line(turn.id)}", time) if part)
    speaker = f"{one_line(turn.speaker)}: " if turn.speaker else ""
    said = "(deleted)" if is_deleted else f"“{one_line(turn.text, width)}”"
    return f"[{place}] {speaker}{said}"


def format_progress(summary: MemorySummary) -> str:
    """Say how much of its source a memory has read."""
    if summary.turns is not None:
        return count(summary.turns, "turn")
    if not summary.record.chunks:
        return count(summary.chunks_done, "step")
    if summary.chunks_done >= summary.record.chunks:
        return "whole text"
    return f"{summary.chunks_done:,} of {count(summary.record.chunks, 'chunk')}"


def format_value(value: Any) -> str:
    """Put a JSON value on one line, without its empty parts."""
    if isinstance(value, dict):
        empty: tuple[Any, ...] = (None, "", [], {})
        told = {k: each for k, each in value.items() if each is not False and each not in empty}
        return ", ".join(f"{key} {format_value(each)}" for key, each in told.items())
    if isinstance(value, list):
        return ", ".join(format_value(each) for each in value) or "-"
    return "-" if value in (None, "") else one_line(f"{value}")


def print_stats(stats: Stats, unit: str, turns: int | None = None) -> None:
    """Print a memory's size, what it was read from (``turns``, or the steps of its log, in
    ``unit``), and how many of its edits were applied."""
    read = stats.chunks if turns is None else turns
    source = count(read, unit.removesuffix("s"))
    indexed = source if turns is not None else count(read or stats.edits_applied, "passage")
    refused = ", ".join(f"{reason} {n}" for reason, n in stats.edits_rejected.items())
    if not (stats.nodes or refused):
        has_index = read or stats.edits_applied
        typer.echo(f"{indexed} indexed" if has_index else "the text is read as it is")
        return
    typer.echo(
        f"graph: {count(stats.nodes, 'node')}, {count(stats.edges, 'edge')} from {source}; "
        f"edits: {stats.edits_applied} applied, {stats.edits_repaired} repaired, "
        f"{sum(stats.edits_rejected.values())} rejected{f' ({refused})' if refused else ''}"
    )


def count(number: int, noun: str) -> str:
    """Say how many there are: ``1 turn``, ``2 turns``, ``3 memories``."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def print_usage(usage: Usage) -> None:
    total = usage.total
    typer.echo(
        f"run: {count(total.calls, 'model call')} ({total.replayed} more replayed), "
        f"{total.input_tokens:,} input tokens ({total.cached_tokens:,} cached), "
        f"{total.output_tokens:,} output tokens, {usage.seconds:.1f} s"
    )


def print_nodes(view: GraphView) -> None:
    """Print a line per node, with what a hyperedge joins; of layers, the largest nodes of each."""
    labels = {node.id: node.label or node.id for node in view.nodes}
    parts: dict[str, list[str]] = {
        node.id: [] for node in view.nodes if node.hyperedge or node.layer
    }
    for edge in view.edges:
        for one, other in ((edge.source, edge.target), (edge.target, edge.source)):
            if one in parts and other not in parts:
                parts[one].append(labels[other])
        if edge.source in parts and edge.target in parts:
            parts[edge.source].append(labels[edge.target])
    if not view.top:
        for node in view.nodes:
            _print_node(node)
            if node.hyperedge:
                typer.echo(f"    joins: {one_line(', '.join(parts[node.id])) or '(nothing)'}")
        return
    for layer in range(view.top, -1, -1):
        nodes = [node for node in view.nodes if node.layer == layer]
        nodes.sort(key=lambda node: -len(parts.get(node.id, ())))
        typer.echo(f"layer {layer}: {count(len(nodes), 'node')}")
        for node in nodes[:_EXAMPLES]:
            _print_node(node)
            if layer:
                names = one_line(", ".join(parts[node.id]), _WIDTH) or "(nothing)"
                typer.echo(f"    holds {len(parts[node.id]):,}: {names}")
        if len(nodes) > _EXAMPLES:
            typer.echo(f"  … and {len(nodes) - _EXAMPLES:,} more")


def _print_node(node: ViewNode) -> None:
    name = "" if node.label in (node.id, node.content) else node.label
    place = f"[{node.span.start}:{node.span.end}]"
    said = ": ".join(one_line(part) for part in (name, node.content) if part)
    typer.echo(f"  {one_line(node.id)} ({node.kind}) {place} {said}")
