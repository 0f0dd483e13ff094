"""``scripts/bench/mnemis.py``: whole runs, with an engine that replies by rules."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import mnemis
import pytest

from mgl.lab.workplace import Workplace
from mgl.llm.base import Completion, Request
from mgl.memories.mnemis.retrieval import Reading
from mgl.memories.mnemis.state import Entity, Fact, Mention, State
from mgl.memories.table import Table
from mgl.retrieval.fakes import WordEmbedder
from mgl.types import Span
from tests.memories.mnemis.engine import MARKS, Model, in_pairs, nothing

SAID = [
    [("Ann", "I went to Rome with Bo in May."), ("Bo", "The ferry was late, Ann.")],
    [("Ann", "In Detroit I saw Robert Miller."), ("Bo", "Robert lives in Detroit.")],
    [("Ann", "Robert Miller went to Rome."), ("Bo", "Was the ferry late, Robert?")],
]
ASKED = [
    ("Where did Ann go?", "Rome", 1, ["D1:1"]),
    ("Whom did Ann see in Detroit?", "Robert", 4, ["D2:1", "D2:2"]),
    ("Was the ferry late twice?", "yes", 2, ["D1:2", "D3:2"]),
]


class Reader(Model):
    """Sorts in pairs, and selects all but for the question ``unhelped``, for which nothing is."""

    def __init__(self) -> None:
        super().__init__(in_pairs, lambda _: False)
        self.unhelped = "no question"

    async def generate(self, request: Request) -> Completion:
        self.select = nothing if self.unhelped in request.messages[0].content else lambda _: False
        return await super().generate(request)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    sessions = {
        f"session_{n}": [
            {"speaker": speaker, "dia_id": f"D{n}:{place}", "text": text}
            for place, (speaker, text) in enumerate(turns, 1)
        ]
        for n, turns in enumerate(SAID, 1)
    }
    questions = [
        {"question": text, "answer": answer, "category": category, "evidence": evidence}
        for text, answer, category, evidence in ASKED
    ]
    path = tmp_path / "locomo.json"
    sample = {"sample_id": "conv-1", "conversation": sessions, "qa": questions}
    path.write_text(json.dumps([sample]))
    return path


Runs = Callable[..., list[str]]


@pytest.fixture
def engine() -> Reader:
    return Reader()


@pytest.fixture
def runs(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    embeds_words: None,  # noqa: ARG001
    data: Path,
    engine: Reader,
) -> Runs:
    """Runs the script as a user does; gives the lines that it printed."""
    monkeypatch.setattr(Workplace, "engine", engine)
    monkeypatch.setattr(mnemis, "open_embedder", lambda *_: WordEmbedder())

    def ran(command: str, *words: str, preset: str = "paper") -> list[str]:
        options = ("--set", f"preset={preset}", "reflect=false")
        given = ["mnemis", command, "--data", str(data), *options, *words]
        monkeypatch.setattr(sys, "argv", given)
        capsys.readouterr()
        mnemis.main()
        return capsys.readouterr().out.splitlines()

    return ran


def row_of(lines: list[str], name: str) -> list[str]:
    """The cells of the first row under a name."""
    line = next(line for line in lines if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_build_is_found_again(runs: Runs) -> None:
    first = runs("ingest", "--sessions", "2")
    calls = int(row_of(first, "base graph")[1])
    assert calls == sum(
        int(row_of(first, stage)[1]) for stage in MARKS if f"| {stage} |" in str(first)
    )
    assert int(row_of(first, "hierarchy")[1]) > 0
    second = runs("ingest", "--sessions", "2")
    assert row_of(second, "base graph")[:5] == row_of(first, "base graph")[:5]
    assert any(line.startswith("this run: 0 calls") for line in second)


def test_one_build_serves_all_settings(runs: Runs, engine: Reader) -> None:
    runs("ingest", "--sessions", "2")
    assert "selection" not in engine.stages()
    asked = len(engine.asked)
    lines = runs("evidence", "--sessions", "2")
    assert set(engine.stages()[asked:]) == {"selection"}
    for setting in mnemis.SETTINGS:
        cells = row_of(lines, setting)
        assert (cells[1][-7:], cells[2][-7:], cells[3]) == ("(n = 2)", "(n = 1)", "–")
    assert row_of(lines, "S1 RAG")[1:] == row_of(lines, "S1 both")[1:]
    assert row_of(lines, mnemis.FUSED_TURNS)[1].startswith("1.000")


def test_a_route_that_finds_nothing_is_averaged_over_all_and_over_the_rest(
    runs: Runs, engine: Reader
) -> None:
    engine.unhelped = "Was the ferry late twice?"
    lines = runs("evidence")
    rows = [line for line in lines if line.startswith("| S2 only")]
    shares = [("(n = 3)" in row, "(n = 2)" in row) for row in rows]
    assert (True, False) in shares
    assert (False, True) in shares
    assert any("S2 only, questions with results" in row for row in rows)
    assert not any("S1 + S2, questions" in line for line in lines)


def test_system_one_alone_calls_no_model(runs: Runs, engine: Reader) -> None:
    lines = runs("evidence", "routes=system1", "k=1", preset="small")
    assert engine.asked == []
    assert row_of(lines, "S1 RAG")[5].startswith("0.500")
    assert not any("S2" in line for line in lines)


def test_selections_are_shown_by_layer(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = runs("selection", "--limit", "2")
    own = [line for line in lines if line.startswith("| conv-1/q0 |")]
    assert own[-1].split("|")[2].strip() == "0"
    assert any(line.startswith("questions that reach all: 100.0%") for line in lines)
    monkeypatch.setattr("mgl.memories.mnemis.selection.MOST_CALLS", 1)
    cut = runs("selection", "--limit", "1")
    assert int(cut[-1].rpartition(" ")[2]) > 0
    assert any(line.startswith("questions that reach nothing: 100.0%") for line in cut)


def test_growth_compares_the_calls_of_both_ways(runs: Runs) -> None:
    lines = runs("growth")
    sessions = [row_of(lines, name) for name in ("1", "2", "3")]
    assert sessions[0][2:4] == sessions[0][6:8]
    calls = [sum(int(row[column]) for row in sessions) for column in (2, 6)]
    assert any(f"{calls[1] / calls[0]:.1%} of the calls" in line for line in lines)
    assert row_of(runs("growth"), "all") == row_of(lines, "all")


@pytest.mark.parametrize(
    "words",
    [
        ("ingest", "--conversation", "conv-9"),
        ("evidence", "--sessions", "0"),
        ("evidence", "routes=system3"),
        ("selection", "depth=3"),
    ],
    ids=" ".join,
)
def test_errors_end_the_command(runs: Runs, words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        runs(*words, preset="small")


def test_the_graphs_episodes_are_the_sources_of_what_it_found() -> None:
    mention = [Mention(number, Span("made up", 0, 1)) for number in range(10)]
    state = State(
        facts=Table({"f1": Fact("f1", "e1", "e2", "met", (mention[7], mention[8]))}),
        entities=Table({"e1": Entity("e1", ("Ann",), (mention[1], mention[7], mention[2]))}),
    )
    found = {"episodes": ("1", "2"), "facts": ("f1",), "entities": ("e1",)}
    reading = Reading(found)  # type: ignore[arg-type]
    assert mnemis.episodes_of("S1 graph", reading, state) == [7, 8, 1, 2]
    assert mnemis.episodes_of("S1 both", reading, state) == (1, 2)
