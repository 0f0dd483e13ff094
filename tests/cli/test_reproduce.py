"""``mgl reproduce`` from end to end: a paper of the test's own, over a model server."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from mgl.evaluation.papers.outlook import measure_reads
from mgl.evaluation.papers.suites import load_suites
from mgl.evaluation.runs.manifest import Manifest
from mgl.llm.capabilities import Speed
from mgl.openai.servers import Http
from mgl.serving import speed
from tests.cli.conftest import SERVED, Mgl
from tests.cli.server import MODEL, Server
from tests.evaluation.trial import rows, write_data

pytestmark = pytest.mark.usefixtures("plugin", "paper")

REFERENCE = """\
name: atlas
title: On capitals
source: here
memories: {Theirs: direct}
tables:
  - id: table1
    about: capitals
    at: "Table 1"
    benchmark: tiny
    judge: a person
    averaging: categories
    columns:
      - {name: even, metric: EM, ours: exact_match, part: {category: even}}
      - {name: all, metric: EM, ours: exact_match}
    groups:
      - model: Their model
        rows: {Theirs: 61.00 62.50, Others: 1.00 2.00}
  - {id: table2, about: a part, printed: none, notes: [none]}
  - {id: table3, about: two sets, printed: none, notes: [none]}
  - {id: table4, about: embedders, printed: none, notes: [none]}
  - {id: table5, about: judged, printed: none, notes: [none]}
  - {id: table6, about: chunks, printed: none, notes: [none]}
  - {id: figure1, about: a picture, printed: none, notes: [none]}
"""
SUITE = """\
name: atlas
entries:
  - id: table1
    about: capitals
    models: [qwen2.5-7b-instruct]
    runs:
      - benchmark: tiny
        scorers: [exact_match]
        methods:
          - {label: all-of-it, memory: direct, row: Theirs}
          - {label: parts, memory: passages, settings: {k: 1, tokens: 16}}
    left_out:
      - {rows: [Others], why: nobody has it}
  - {id: table2, about: a part, same_as: table1}
  - id: table3
    about: two sets
    models: [qwen2.5-7b-instruct]
    runs:
      - {name: here, benchmark: tiny, scorers: [exact_match], methods: [{label: m, memory: direct}]}
      - {name: away, benchmark: gone, scorers: [exact_match], methods: [{label: m, memory: direct}]}
  - id: table4
    about: embedders
    models: [qwen2.5-7b-instruct]
    runs:
      - {name: short, benchmark: tiny, embedder: 'qwen3-embedding-0.6b:128', reranker: identity,
         scorers: [exact_match], methods: [{label: m, memory: direct}]}
      - {name: plain, benchmark: tiny, scorers: [exact_match],
         methods: [{label: m, memory: direct}]}
  - id: table5
    about: judged
    models: [qwen2.5-7b-instruct]
    runs:
      - {benchmark: tiny, judges: [correctness], methods: [{label: m, memory: direct}]}
  - id: table6
    about: as many chunks as another
    models: [qwen2.5-7b-instruct]
    runs:
      - benchmark: tiny
        scorers: [exact_match]
        measured: rounds
        methods:
          - {label: plain, memory: naive-rag, settings: {k: 9}, reads: k}
          - {label: rounds, memory: hgmem, settings: {extraction: terms, chunk_tokens: 16,
             overlap_tokens: 0, steps: 1, chunks: 2}}
  - {id: figure1, not_made: a picture}
"""


@pytest.fixture
def paper(mgl_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A paper in the home folder, its benchmark's data in MGL_DATA, and a folder to run in."""
    for folder, text in (("references", REFERENCE), ("suites", SUITE)):
        place = mgl_home / "eval" / folder
        place.mkdir(parents=True)
        (place / "atlas.yaml").write_text(text)
    data = tmp_path / "data"
    data.mkdir()
    write_data(data / "tiny", {"north": ["Asgard", "Thule", "Mu"], "south": ["Aiaia"]})
    monkeypatch.setenv("MGL_DATA", str(data))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def listed(mgl: Mgl, *more: object) -> dict[str, list[dict[str, Any]]]:
    """Rows of the list by entry."""
    done = mgl("reproduce", "--list", "--json", *more, code=0)
    found: dict[str, list[dict[str, Any]]] = {}
    for row in json.loads(done.stdout):
        found.setdefault(row["entry"], []).append(row)
    return found


def test_the_list_has_every_entry_with_what_it_would_cost(
    mgl: Mgl, server: Server, paper: Path
) -> None:
    broken = paper / "runs" / "broken" / "manifest.json"
    broken.parent.mkdir(parents=True)
    broken.write_text("{")
    found = listed(mgl, "--base-url", server.url)
    named = {name.rsplit("/", 1)[0] if name.count("/") == 2 else name for name in found}
    expected = {
        f"{name}/{one.id}" for name, suite in load_suites().items() for one in suite.entries
    }
    assert named == expected
    made = [row for own in found.values() for row in own if "methods" in row]
    known = [row for row in made if not row["entry"].startswith("atlas/")]
    assert all(row["cost"]["seconds"] > 0 for row in known), "as one 80 GB GPU would take"
    (row,) = found["atlas/table1"]
    assert (row["items"], row["lacks"], row["methods"]) == (4, [], ["all-of-it", "parts"])
    (here,), (away,) = found["atlas/table3/here"], found["atlas/table3/away"]
    assert (here["items"], away["items"]) == (4, None)
    assert away["lacks"] == ["the benchmark gone (install the package that has it)"]
    assert found["atlas/figure1"][0]["not_made"] == "a picture"
    assert found["atlas/table2"][0]["same_as"] == "atlas/table1"
    assert server.seen == []
    done = mgl("reproduce", "--list", "--base-url", server.url)
    assert "runs/broken: " in done.stderr, "it is told of, and not reckoned with"
    shown = done.stdout
    assert "atlas/figure1: a picture\n" in shown
    assert re.search(r"atlas/table2 +a part +0 +as atlas/table1\b", shown)
    assert re.search(r"gam/table1 .+ 280 +locomo +1,540 +\d+ +qwen2.5-7b-instruct +\S+ k ", shown)


def test_data_that_moved_do_not_end_a_reproduction(
    mgl: Mgl, server: Server, paper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("reproduce", "atlas/table1", "--limit", 1, "--base-url", server.url)
    done = mgl(*command)
    moved = paper.parent / "moved"
    (paper.parent / "data").rename(moved)
    monkeypatch.setenv("MGL_DATA", str(moved))
    again = mgl(*command)
    assert (again.exit_code, again.stdout) == (0, done.stdout), again.stderr
    mgl("eval", "replay", paper / "runs" / f"atlas-table1-{SERVED}", code=0)


@pytest.mark.parametrize("longer", [1, 2])
def test_the_context_is_compared_with_the_lengths_of_the_items_before_anything_starts(
    mgl: Mgl, server: Server, paper: Path, longer: int
) -> None:
    server.context_tokens = 4096
    long = [f"Country{number}" for number in range(500)]
    write_data(
        paper.parent / "data" / "tiny", {"north": long, "south": ["Mu"] if longer == 1 else long}
    )
    told = f"all-of-it: {longer} of 2 sources of tiny are longer than the 4,096 tokens of {SERVED}"
    command = ("reproduce", "atlas/table1", "--base-url", server.url)
    planned = mgl(*command, "--dry-run")
    where = "note" if longer == 1 else "missing 1"
    assert f"{where}: {told}" in planned.stdout
    if longer == 2:
        refused = mgl(*command)
        assert (refused.exit_code, server.seen) == (3, [])
        assert told in refused.stderr
        assert "gpu-80gb-long" in refused.stderr


def test_the_speed_of_a_vllm_server_is_measured_once_and_says_time_and_concurrency(
    mgl: Mgl, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def measure(http: Http, *_: Any, **__: Any) -> Speed:
        """Ask once: how fast the server is, tests of its own say by a clock of theirs."""
        message = {"role": "user", "content": "P1 met P2."}
        await http.post("chat/completions", {"messages": [message], "ignore_eos": True})
        return Speed(read=1000.0, written=50.0, at_once=3)

    monkeypatch.setattr(speed, "measure_speed", measure)
    server.version = "0.32.0"
    command = ("reproduce", "atlas/table1", "--limit", 1, "--base-url", server.url)
    long = ("reproduce", "gam/table1", "--dry-run", "--base-url", server.url)
    assert "one 80 GB GPU" in mgl(*long).stdout
    assert server.seen == []
    done = mgl(*command, code=0)
    assert f"measuring the speed of {MODEL}" in done.stderr
    assert "3 items in work at once" in done.stderr
    assert len([one for one in server.seen if one.get("ignore_eos")]) == 1
    calls = len(server.seen)
    assert f"measured on the server of {SERVED} with 3 requests at once" in mgl(*long).stdout
    assert len(server.seen) == calls
    named = mgl(
        *command[:2], "--base-url", server.url, "--concurrency", 2, "--out", "other", code=0
    )
    assert "items in work at once" not in named.stderr
    assert "measuring" not in named.stderr
    (session,) = Manifest.read(Path("other")).sessions
    assert session.concurrency == 2


def test_a_server_that_is_not_there_is_named_and_no_data(mgl: Mgl) -> None:
    done = mgl("reproduce", "atlas/table1", "--base-url", "http://127.0.0.1:9/v1", code=4)
    assert "127.0.0.1:9" in done.stderr
    assert "MGL_DATA" not in done.stderr


def test_no_model_judges_itself_unasked(mgl: Mgl, server: Server) -> None:
    command = ("reproduce", "atlas/table5", "--base-url", server.url)
    refused = mgl(*command)
    assert (refused.exit_code, server.seen) == (2, [])
    assert "--judge" in refused.stderr
    mgl(*command, "--judge", SERVED, code=0)


def test_an_official_judge_needs_its_script_and_a_variant_is_named(
    mgl: Mgl, server: Server, mgl_home: Path, paper: Path
) -> None:
    suite = mgl_home / "eval" / "suites" / "atlas.yaml"
    suite.write_text(SUITE.replace("judges: [correctness]", "judges: [locomo_mem0]"))
    command = ("reproduce", "atlas/table5", "--base-url", server.url, "--judge")
    refused = mgl(*command, SERVED)
    assert (refused.exit_code, server.seen) == (3, [])
    assert "the judge locomo_mem0" in refused.stderr
    assert "--judge locomo=PROFILE" in refused.stderr
    mgl(*command, f"locomo={SERVED}", code=0)
    folder = paper / "runs" / f"atlas-table5-{SERVED}"
    assert json.loads((folder / "manifest.json").read_text())["headline"] == "locomo"
    mgl(*command, f"nobody={SERVED}", code=2)


def test_a_table_is_made_with_the_papers_numbers_beside_it_and_then_its_cost_is_known(
    mgl: Mgl, server: Server, paper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = mgl("reproduce", "atlas/table1", "--dry-run", "--base-url", server.url, code=0)
    assert "left out: Others: nobody has it" in planned.stdout
    assert (server.seen, list(paper.iterdir())) == ([], [])

    done = mgl("reproduce", "atlas/table1", "--limit", 3, "--base-url", server.url, code=0)
    folder = paper / "runs" / f"atlas-table1-{SERVED}"
    assert len(rows(folder)) == 6
    assert re.search(
        r"all-of-it +exact_match +- +\d+\.\d \(mean of categories\) +3 +62\.50 \(Their model, ",
        done.stdout,
    ), done.stdout
    assert re.search(r"parts +exact_match +- +\d+\.\d +3 +-", done.stdout)

    calls = len(server.seen)
    assert calls > 0
    again = mgl("reproduce", "atlas/table1", "--limit", 3, "--base-url", server.url)
    assert (again.exit_code, again.stdout, len(server.seen)) == (0, done.stdout, calls)
    other = mgl("reproduce", "atlas/table1", "--limit", 2, "--base-url", server.url)
    assert (other.exit_code, len(server.seen)) == (2, calls)

    alone = {"atlas": load_suites()["atlas"]}
    monkeypatch.setattr("mgl.evaluation.papers.suites.load_suites", lambda: alone)
    (row,) = listed(mgl, "--base-url", server.url)["atlas/table1"]
    assert row["cost"]["calls"] == pytest.approx(8), "two methods, four items, a call each"
    assert row["cost"]["seconds"] > 0
    (row,) = listed(mgl, "--base-url", server.url, "--limit", 1)["atlas/table1"]
    assert row["cost"]["calls"] == pytest.approx(2)


@pytest.mark.usefixtures("embeds_words")
def test_the_method_that_is_measured_runs_first_and_the_others_read_as_many_chunks(
    mgl: Mgl, server: Server, paper: Path
) -> None:
    command = ("reproduce", "atlas/table6", "--limit", 2, "--base-url", server.url)
    done = mgl(*command, code=0)
    folder = paper / "runs" / f"atlas-table6-{SERVED}"
    first = folder.with_name(f"{folder.name}-rounds")
    reads = measure_reads(first, "rounds")
    assert f"rounds reads {reads.chunks} chunks on average" in done.stderr
    (method,) = Manifest.read(folder).methods
    assert (method.label, method.config["k"]) == ("plain", reads.chunks)
    assert [one.label for one in Manifest.read(first).methods] == ["rounds"]
    assert "plain" in done.stdout
    assert "rounds" in done.stdout
    calls = len(server.seen)
    again = mgl(*command)
    assert (again.exit_code, again.stdout, len(server.seen)) == (0, done.stdout, calls)
    mgl(*command, "--chunks-of", first, "--out", paper / "both", code=0)
    labels = [one.label for one in Manifest.read(paper / "both").methods]
    assert labels == ["plain", "rounds"]


def test_what_is_here_of_an_entry_is_made_and_the_rest_is_told(
    mgl: Mgl, server: Server, paper: Path
) -> None:
    done = mgl("reproduce", "atlas/table3", "--base-url", server.url, code=0)
    assert "estimate: " in done.stderr
    assert "away: missing: the benchmark gone" in done.stderr
    folder = paper / "runs" / f"atlas-table3-{SERVED}"
    assert len(rows(folder / "here")) == 4
    calls = len(server.seen)
    as_listed = mgl("reproduce", "atlas/table3/here", "--base-url", server.url)
    assert (as_listed.exit_code, len(server.seen)) == (0, calls)


def retrieving(folder: Path) -> list[tuple[str, str]]:
    """The embedder and the reranker of both runs of table4."""
    manifests = [Manifest.read(folder / name) for name in ("short", "plain")]
    return [(own.embedder, own.reranker) for one in manifests for own in one.models.values()]


def test_each_run_of_an_entry_has_its_own_retrieval_models_or_those_that_are_given(
    mgl: Mgl, server: Server, paper: Path
) -> None:
    command = ("reproduce", "atlas/table4", "--limit", 1, "--base-url", server.url)
    own = [("qwen3-embedding-0.6b:128", "identity"), ("all-minilm-l6-v2", "all-minilm-l6-v2")]
    out = paper / "out"
    mgl(*command, "--out", out, code=0)
    assert retrieving(out) == own
    shutil.rmtree(out / "plain")
    mgl(*command, "--out", out, code=0)
    assert retrieving(out) == own, "the run that goes on leaves its models to itself"

    mgl(*command, "--out", out, "--embedder", "bge-m3", code=2)
    given = ("--embedder", "bge-m3", "--reranker", "identity", "--out", paper / "given")
    mgl(*command, *given, code=0)
    assert retrieving(paper / "given") == [("bge-m3", "identity")] * 2


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ((), 2, "--list"),
        (("atlas/table1", "--list"), 2, "--list"),
        (("atlas/figure1",), 2, "a picture"),
        (("atlas/table9",), 2, "atlas has no table9"),
        (("atlas/table1", "--model", "nobody"), 3, "nobody"),
        (("atlas/table1", "--data", "."), 3, "Tiny"),
    ],
)
def test_what_cannot_be_made_is_refused_with_the_reason(
    mgl: Mgl, server: Server, arguments: tuple[str, ...], code: int, told: str
) -> None:
    done = mgl("reproduce", *arguments, "--base-url", server.url)
    assert (done.exit_code, server.seen) == (code, [])
    assert told in done.stderr
