"""``mgl build --memory graph``: what it costs, what it shows, and that nothing is paid twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Mgl
from tests.cli.server import Server

GRAPH = ("--memory", "graph", "--set", "chunk_tokens=24")


def test_a_dry_run_tells_the_cost_and_calls_no_model(
    mgl: Mgl, book: Path, server: Server, options: tuple[str, ...]
) -> None:
    command = ("build", book, *GRAPH, *options)
    told = mgl(*command, "--dry-run", code=0)
    assert "unknown" in told.stdout
    assert server.seen == []
    before = json.loads(mgl(*command, "--dry-run", "--json").stdout)
    assert (before["done"], before["seconds"]) == (0, None)

    built = mgl(*command, code=0)
    assert "mgl ask" not in built.output  # a graph answers nothing
    assert len(server.seen) == before["calls"] == before["chunks"]
    (listed,) = json.loads(mgl("list", "--json").stdout)
    calls = json.loads(mgl("log", listed["memory_id"], "--calls", "--json").stdout)
    assert before["input_tokens"] >= sum(call["input_tokens"] for call in calls)
    after = json.loads(mgl(*command, "--dry-run", "--json").stdout)
    assert (after["done"], after["calls"]) == (before["chunks"], 0)
    other = mgl("build", book, *GRAPH[:-1], "chunk_tokens=32", *options, "--dry-run")
    assert "about" in other.stdout
    assert "calls of this model on this machine" in other.stdout


@pytest.mark.usefixtures("embeds_words")
def test_a_dry_run_counts_what_the_questions_take(
    mgl: Mgl, book: Path, options: tuple[str, ...]
) -> None:
    small = ("--preset", "small", *options)
    for questions in ((), ("-q", "Who met P1?"), ("-q", "Who met P1?", "-q", "Who met P9?")):
        told = mgl("build", book, *small, *questions, "--dry-run").stdout
        (said,) = (line for line in mgl("build", book, *small, *questions).stderr.splitlines()
                   if line.startswith("to do: "))  # fmt: skip
        assert said.partition(" model calls")[0] == told.partition(" model calls")[0]


def test_what_a_graph_or_a_memory_cannot_do(
    mgl: Mgl, book: Path, server: Server, options: tuple[str, ...]
) -> None:
    for arguments in (
        ("ask", book, "Who?", *GRAPH, *options),
        ("build", book, "--memory", "naive-rag", "--dry-run"),
        ("build", book, "--memory", "naive-rag", "--retry-failed"),
        ("build", book, *GRAPH, "--retry-failed", "--dry-run"),
    ):
        mgl(*arguments, code=2)
    assert server.seen == []


def test_failed_chunks_are_read_again_on_request(
    mgl: Mgl, book: Path, server: Server, options: tuple[str, ...]
) -> None:
    command = ("build", book, *GRAPH, *options, "--retry-failed")
    made = mgl(*command, code=0)
    assert "0 failed chunks" in made.output
    asked = len(server.seen)
    mgl(*command, code=0)
    assert len(server.seen) == asked
