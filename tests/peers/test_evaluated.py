"""A peer in `mgl eval`: a run that is killed and goes on, and its replay without a model."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mgl.cli import main
from mgl.evaluation.records import RunLog
from mgl.retrieval import opening
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from tests.cli.conftest import Mgl
from tests.cli.server import Server
from tests.conformance.dying import FORKING
from tests.evaluation.small_data import WRITERS
from tests.peers.scripting import install_toy


def start(home: Path, folder: Path, words: list[str]) -> None:
    """The command line in this process, which has the toy installed in a folder."""
    os.environ["MGL_HOME"] = str(home)
    patch = pytest.MonkeyPatch()
    install_toy(patch, folder)
    patch.setattr(opening, "open_embedder", lambda *_, **__: WordEmbedder())
    patch.setattr(opening, "open_reranker", lambda *_, **__: WordReranker())
    patch.setattr(sys, "argv", ["mgl", *words])
    main()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.usefixtures("embeds_words")
def test_a_killed_run_pays_no_call_twice_and_replays(
    mgl: Mgl, server: Server, tmp_path: Path, mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    WRITERS["locomo"](tmp_path / "locomo")
    out = tmp_path / "run"
    url = ("--base-url", server.url, "--concurrency", "1")
    command = ["eval", "run", "locomo", "--memory", "peer:toy", "--model", "qwen2.5-7b-instruct"]
    command += [*url, "--data", str(tmp_path / "locomo"), "--out", str(out)]
    server.stall_after = 1
    killed = FORKING.Process(target=start, args=(mgl_home, tmp_path, command))
    killed.start()
    server.wait_for(2)
    killed.kill()
    killed.join()
    assert len(server.done) == 1

    server.stall_after = None
    install_toy(monkeypatch, tmp_path)
    resumed = mgl("eval", "resume", out, *url)
    assert resumed.exit_code == 0, resumed.stderr
    first = (out / "records.jsonl").read_bytes()
    paid = len(server.done)
    assert paid == len(set(server.done)), "each request was answered once"

    replayed = mgl("eval", "replay", out)
    assert "are identical (0 failed" in replayed.stderr
    assert len(server.done) == paid
    assert (out / "records.jsonl").read_bytes() == first

    log = RunLog(out / "records.jsonl")
    assert {stage for record in log.answers.values() for stage in record.usage} == {"answer"}
    (built,) = log.builds.values()
    assert list(built.usage) == ["build"]
    assert built.memory["counts"] == {"notes": 3, "empty": 0, "refused": 0}
    page = tmp_path / "report.html"
    assert mgl("report", out, "--out", page).exit_code == 0
    assert "What the packages counted" in page.read_text()
