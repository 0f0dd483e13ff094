#!/usr/bin/env python3
"""Measure HGMem on novels: the graph of a book, one question step by step, two benchmarks.

    python scripts/bench/hgmem.py chapters    BOOK                      numbers and labels
    python scripts/bench/hgmem.py graph       BOOK                      chunks, failures, size, cost
    python scripts/bench/hgmem.py ask         BOOK --question "Who …?"  the memory at each step
    python scripts/bench/hgmem.py narrativeqa BOOK                      cascade score and cost
    python scripts/bench/hgmem.py nocha       [BOOK]                    claims and pairs

BOOK is ``--file FILE``, or ``--book WORDS`` of its title with ``--data FOLDER`` (MGL_DATA), which
holds ``narrativeqa`` and ``nocha``; ``nocha`` without it takes all books. ``--from-chapter 8
--to-chapter 10`` or ``--part START:END`` take a part. ``--set name=value ...`` sets options of
HGMem or of the graph; with ``--force-steps`` the benchmark also gives the score at each step.

Calls are logged in MGL_HOME: an interrupted run resumes, and what ran before is replayed. ``--out
FILE`` adds a JSON row per question; a row under the same settings is reused, so that a question
keeps what it cost. A question that failed counts as wrong.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from books import books_of, chapters, excerpt, find_book
from commands import Command, command_parser, run_command
from measuring import (
    JudgedClaim,
    KeptRows,
    claim_scores,
    entities_of_points,
    kept_or_made,
    percent,
    quantity,
    right_by_step,
)

from mgl.benchmarks.narrativeqa import NARRATIVEQA
from mgl.benchmarks.nocha import NOCHA
from mgl.errors import EngineError, EngineUnavailable, EngineUnusable, UsageError
from mgl.evaluation.scorers.cascade import cascade
from mgl.evaluation.scorers.choices import find_verdict
from mgl.evaluation.statistics import wilson_interval
from mgl.lab import Lab
from mgl.memories.options import read_settings
from mgl.store import EditRecord
from mgl.text import read_document
from mgl.text.reading import strip_gutenberg
from mgl.types import Document, Usage

Arguments = argparse.Namespace


# The book


def data_folder(arguments: Arguments) -> Path:
    if arguments.data is None:
        raise UsageError("no book is given", hint="--file FILE, or --data FOLDER and --book WORDS")
    return Path(arguments.data)


def read_book(arguments: Arguments) -> Document:
    if arguments.file is not None:
        return strip_gutenberg(read_document(arguments.file))
    return find_book(data_folder(arguments), arguments.book or "").read()


def take_part(document: Document, arguments: Arguments) -> Document:
    first, last = arguments.from_chapter, arguments.to_chapter
    if arguments.part is not None:
        return excerpt(document, *arguments.part)
    if first is None and last is None:
        return document
    return chapters(document, first or 1, last or len(document.sections))


@contextmanager
def as_file(document: Document) -> Iterator[Path]:
    """A temporary file that the lab reads as exactly this document."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{Path(document.name.replace('/', ' ')).stem}.txt"
        path.write_bytes(document.text.encode())
        yield path


def parse_part(text: str) -> tuple[int, int]:
    start, _, end = text.replace(",", "").partition(":")
    return int(start or 0), int(end)


def memory_options(arguments: Arguments) -> dict[str, Any]:
    forced = {"force_steps": True} if arguments.force_steps else {}
    return {**forced, **read_settings(arguments.set)}


# Asking


def build_graph(lab: Lab, path: Path, options: Mapping[str, Any]) -> None:
    """Build the graph that all questions share, and print its size and cost."""
    result = lab.build(path, memory="hgmem", **options)
    rows, stats = lab.edits(result.memory_id), result.stats
    read = {row.chunk for row in rows if row.op == "chunk"}
    failed = {row.chunk for row in rows if row.op == "reply"} - read
    rejected = sum(row.outcome == "rejected" for row in rows)
    print(f"graph {result.memory_id}: {len(read)} chunks read, {len(failed)} failed")
    print(f"  {stats.nodes} entities, {stats.edges} relations, {rejected} rows rejected")
    print(f"  {format_usage(result.usage)}", flush=True)


def format_usage(usage: Usage) -> str:
    return f"{quantity(usage.total)}, {usage.seconds / 60:.1f} minutes"


def answers_by_step(rows: Sequence[EditRecord]) -> dict[int, str]:
    """The answer at each step, from 0; after a restart steps count from there."""
    start = max((row.chunk + 1 for row in rows if row.op == "restart"), default=0)
    answers = [row for row in rows if row.op == "answer" and row.outcome != "rejected"]
    return {row.chunk - start: row.payload["text"] for row in answers if row.chunk >= start}


def find_new_memory(lab: Lab, before: Collection[str]) -> str | None:
    """The id of the HGMem memory that was not there before."""
    new = (m.id for m in lab.memories() if m.record.kind == "hgmem" and m.id not in before)
    return next(new, None)


def ask_question(lab: Lab, path: Path, question: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Ask one question and return its row; a failed question is a row with an ``error``.

    ``tokens`` is set where this run took all steps of the question, ``seconds`` where it also
    issued all of its calls. EngineUnavailable and EngineUnusable are raised: no other question
    would survive them.
    """
    before = {memory.id for memory in lab.memories()}
    try:
        result = lab.ask(path, question, memory="hgmem", **options)
    except (EngineUnavailable, EngineUnusable):
        raise
    except EngineError as error:
        failed = {"answer": "", "error": error.message}
        if (memory := find_new_memory(lab, before)) is None:
            return failed
        return {**failed, "by_step": answers_by_step(lab.edits(memory)), "memory_id": memory}
    log, used = lab.edits(result.memory_id), result.usage.total
    applied = [row for row in log if row.outcome != "rejected"]
    fresh = result.memory_id not in before
    return {
        "answer": result.answer.text,
        "error": None,
        "stop": [row.payload["reason"] for row in applied if row.op == "stop"],
        "by_step": answers_by_step(log),
        "entities": list(entities_of_points(lab.view(result.memory_id)).values()),
        "merges": sum(row.op == "merge" for row in applied),
        "tokens": used.input_tokens + used.output_tokens if fresh else None,
        "seconds": round(result.usage.seconds, 2) if fresh and not used.replayed else None,
        "memory_id": result.memory_id,
    }


@dataclass(frozen=True)
class Task:
    """A question under its id; ``extra`` goes into its row as it is."""

    id: str
    question: str
    extra: Mapping[str, Any]


def run_tasks(
    lab: Lab, document: Document, tasks: Sequence[Task], arguments: Arguments
) -> list[dict[str, Any]]:
    """Ask all tasks about one document; print and keep each row before the next is asked."""
    options = memory_options(arguments)
    kept = None
    if arguments.out is not None:
        settings = {"model": lab.model_id, "document": document.id, "options": options}
        kept = KeptRows(arguments.out, {**settings, "embedder": arguments.embedder})
    rows = []
    with as_file(document) as path:
        build_graph(lab, path, options)
        for task in tasks[: arguments.limit]:

            def make(task: Task = task) -> dict[str, Any]:
                row = ask_question(lab, path, task.question, options)
                return {"question": task.question, **task.extra, **row}

            row = kept_or_made(kept, task.id, make)
            rows.append(row)
            answer = f"FAILED: {row['error']}" if row["error"] else row["answer"]
            print(f"{task.id}: {row['gold']} <- {answer}", flush=True)
    return rows


def format_costs(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines with the mean cost of a question and size of a point, failed questions left out."""
    good = [row for row in rows if not row["error"]]
    figures = {
        "tokens a question": [row["tokens"] for row in good if row["tokens"] is not None],
        "seconds a question": [row["seconds"] for row in good if row["seconds"] is not None],
        "points a question": [len(row["entities"]) for row in good],
        "merges a question": [row["merges"] for row in good],
        "entities a point": [size for row in good for size in row["entities"]],
    }
    return [
        f"failed: {len(rows) - len(good)} of {len(rows)}",
        *(f"{name}: {fmean(of):.2f} (n = {len(of)})" for name, of in figures.items() if of),
    ]


# Commands


def list_chapters(_lab: Lab, arguments: Arguments) -> None:
    for number, section in enumerate(read_book(arguments).sections, start=1):
        print(f"{number:3} {section.start:>9} to {section.end:>9}  {section.label}")


def graph(lab: Lab, arguments: Arguments) -> None:
    with as_file(take_part(read_book(arguments), arguments)) as path:
        build_graph(lab, path, memory_options(arguments))


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
    if not arguments.question:
        raise UsageError("no question is given", hint='--question "Who …?"')
    options = memory_options(arguments)
    with as_file(take_part(read_book(arguments), arguments)) as path:
        build_graph(lab, path, options)
        before = {memory.id for memory in lab.memories()}
        try:
            result = lab.ask(path, arguments.question, memory="hgmem", **options)
        except EngineError:
            if (memory := find_new_memory(lab, before)) is not None:
                print_steps(lab, memory)
            raise
    print(*result.answer.trace, sep="\n")
    print_steps(lab, result.memory_id)
    print(f"{result.answer.text} ({result.answer.confidence})")
    for citation in result.answer.citations:
        print(f"  [{citation.span.start}:{citation.span.end}] {' '.join(citation.quote.split())}")
    print(f"memory {result.memory_id}: {format_usage(result.usage)}")


def narrativeqa(lab: Lab, arguments: Arguments) -> None:
    book = find_book(data_folder(arguments), arguments.book or "")
    if book.benchmark != NARRATIVEQA.name or not book.questions:
        raise UsageError(
            f"NarrativeQA has no question on {book.title}", hint="name another with --book"
        )
    tasks = [Task(own.id, own.question.text, {"gold": list(own.golds)}) for own in book.questions]
    rows = run_tasks(lab, take_part(book.read(), arguments), tasks, arguments)
    right = sum(cascade(row["answer"], row["gold"]) is not None for row in rows)
    print(f"\nright: {percent(wilson_interval(right, len(rows)))}", *format_costs(rows), sep="\n")
    if arguments.force_steps:
        answers = [{int(at): text for at, text in row.get("by_step", {}).items()} for row in rows]
        for step, share in enumerate(right_by_step(answers, [row["gold"] for row in rows])):
            print(f"right at step {step}: {percent(share)}")


def nocha(lab: Lab, arguments: Arguments) -> None:
    words = (arguments.book or "").lower().split()
    known = books_of(NOCHA, data_folder(arguments))
    books = [book for book in known if all(word in book.title for word in words)]
    if not books:
        raise UsageError(f"NoCha has no book {arguments.book!r}", hint="leave out --book for all")
    rows = []
    for book in books:
        tasks = [
            Task(own.id, own.question.text, {"gold": own.golds == ("TRUE",), "pair": own.pair})
            for own in book.questions
        ]
        rows += run_tasks(lab, take_part(book.read(), arguments), tasks, arguments)
    judged = [JudgedClaim(row["pair"], row["gold"], find_verdict(row["answer"])) for row in rows]
    scores = claim_scores(judged)
    print(f"\nclaims: {percent(scores.claims)}", f"pairs: {percent(scores.pairs)}", sep="\n")
    print(f"undecided: {scores.undecided}; TRUE said of {scores.said_true}")
    print(*format_costs(rows), sep="\n")


COMMANDS: Mapping[str, Command] = {
    "chapters": list_chapters,
    "graph": graph,
    "ask": ask,
    "narrativeqa": narrativeqa,
    "nocha": nocha,
}


def make_parser() -> argparse.ArgumentParser:
    parser = command_parser(__doc__, COMMANDS)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--data", type=Path, default=os.environ.get("MGL_DATA"))
    parser.add_argument("--book", help="words of its title")
    parser.add_argument("--question")
    parser.add_argument("--from-chapter", type=int)
    parser.add_argument("--to-chapter", type=int)
    parser.add_argument("--part", type=parse_part, metavar="START:END", help="characters")
    parser.add_argument("--force-steps", action="store_true")
    return parser


if __name__ == "__main__":
    run_command(make_parser(), COMMANDS)
