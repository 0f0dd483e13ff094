#!/usr/bin/env python3
"""Show HGMem's memory of one question step by step, and measure the points of many.

    python scripts/bench/hgmem.py ask --file BOOK --chapters 8:11 --question "Who …?"
    python scripts/bench/hgmem.py points

``ask`` prints the graph's size and cost, then the memory after each step. ``points`` reads what
MGL_HOME holds of HGMem, for instance after ``mgl eval run narrativeqa --memory hgmem``.
``--set name=value ...`` sets options of HGMem or of the graph. Calls are logged in MGL_HOME: an
interrupted run resumes, and what ran before is replayed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from commands import Command, command_parser, run_command
from measuring import quantity

from mgl.errors import EngineError, UsageError
from mgl.lab import Lab
from mgl.memories.options import read_settings
from mgl.memories.view import GraphView
from mgl.text import read_document
from mgl.text.reading import strip_gutenberg
from mgl.types import Document, Usage

Arguments = argparse.Namespace


def take_chapters(document: Document, wanted: str | None) -> str:
    """The text of some chapters, ``FIRST:LAST`` counted from 1; all of it where none are named."""
    if wanted is None:
        return document.text
    first, _, last = wanted.partition(":")
    count = len(document.sections)
    start, end = int(first or 1), int(last or count)
    if not 1 <= start <= end <= count:
        raise UsageError(
            f"{document.name} has {count} chapters, and {wanted} is no part of them",
            hint="they count from 1, headings before the first chapter among them",
        )
    return document.text[document.sections[start - 1].start : document.sections[end - 1].end]


@contextmanager
def as_file(name: str, text: str) -> Iterator[Path]:
    """A temporary file that the lab reads as exactly this text."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{Path(name).stem}.txt"
        path.write_bytes(text.encode())
        yield path


def format_usage(usage: Usage) -> str:
    return f"{quantity(usage.total)}, {usage.seconds / 60:.1f} minutes"


def print_steps(lab: Lab, memory: str) -> None:
    """Print the points of a question's memory after each step, what was rejected, and the stop."""
    view, log = lab.view(memory), lab.edits(memory)
    for step in range(view.steps):
        print(f"\nmemory {memory} after step {step}")
        now = view.at(step + 1)
        names = {node.id: node.label for node in now.nodes}
        for point in (node for node in now.nodes if node.hyperedge):
            held = sorted(names[edge.target] for edge in now.edges if edge.source == point.id)
            print(f"  {point.id} {{{', '.join(held)}}}: {point.content}")
        for row in log:
            if row.chunk == step and row.outcome == "rejected":
                print(f"  rejected {row.op}: {row.reason}")
    for row in log:
        if row.op == "stop":
            print(f"stopped: {row.payload['reason']}")


def ask(lab: Lab, arguments: Arguments) -> None:
    """Ask a question; the steps of one that fails are printed, too."""
    if not arguments.file or not arguments.question:
        raise UsageError("no book or no question", hint='--file BOOK --question "Who …?"')
    book, options = strip_gutenberg(read_document(arguments.file)), read_settings(arguments.set)
    with as_file(book.name, take_chapters(book, arguments.chapters)) as path:
        built = lab.build(path, memory="hgmem", **options)
        print(
            f"graph {built.memory_id}: {built.stats.nodes} entities, {built.stats.edges} relations"
        )
        print(f"  {format_usage(built.usage)}", flush=True)
        before = {memory.id for memory in lab.memories()}
        try:
            result = lab.ask(path, arguments.question, memory="hgmem", **options)
        except EngineError:
            for memory in lab.memories():
                if memory.record.kind == "hgmem" and memory.id not in before:
                    print_steps(lab, memory.id)
            raise
    print(*result.answer.trace, sep="\n")
    print_steps(lab, result.memory_id)
    print(f"{result.answer.text} ({result.answer.confidence})")
    for citation in result.answer.citations:
        print(f"  [{citation.span.start}:{citation.span.end}] {' '.join(citation.quote.split())}")
    print(f"memory {result.memory_id}: {format_usage(result.usage)}")


def count_entities(view: GraphView) -> list[int]:
    """How many entities each point joins that is there after the last step."""
    last = view.at(view.length)
    held = [edge.source for edge in last.edges]
    return [held.count(node.id) for node in last.nodes if node.hyperedge]


def points(lab: Lab, arguments: Arguments) -> None:
    """Print the mean number of points and merges of a question, and of entities of a point."""
    del arguments
    memories = [memory.id for memory in lab.memories() if memory.record.kind == "hgmem"]
    sizes = [count_entities(lab.view(memory)) for memory in memories]
    merges = [
        sum(row.op == "merge" and row.outcome != "rejected" for row in lab.edits(memory))
        for memory in memories
    ]
    figures = {
        "points a question": [len(each) for each in sizes],
        "merges a question": merges,
        "entities a point": [size for each in sizes for size in each],
    }
    for name, of in figures.items():
        print(f"{name}: {fmean(of):.2f} (n = {len(of)})" if of else f"{name}: none")


COMMANDS: dict[str, Command] = {"ask": ask, "points": points}


def make_parser() -> argparse.ArgumentParser:
    parser = command_parser(__doc__, COMMANDS)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--chapters", metavar="FIRST:LAST")
    parser.add_argument("--question")
    return parser


if __name__ == "__main__":
    run_command(make_parser(), COMMANDS)
