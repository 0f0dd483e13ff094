"""A peer in `mgl eval`: a run that is killed and goes on, and its replay without a model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mgl.evaluation.records import RunLog
from tests.cli.conftest import Mgl
from tests.cli.server import Server
from tests.evaluation.small_data import WRITERS
from tests.peers.scripting import install_toy

RUN = """
import sys
from pathlib import Path
import pytest
from mgl.cli import main
from mgl.retrieval import opening
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from tests.peers.scripting import install_toy

install_toy(pytest.MonkeyPatch(), Path(sys.argv[1]))
opening.open_embedder = lambda *_, **__: WordEmbedder()
opening.open_reranker = lambda *_, **__: WordReranker()
sys.argv[:2] = ["mgl"]
main()
"""


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.usefixtures("embeds_words")
def test_a_killed_run_pays_no_call_twice_and_replays(
    mgl: Mgl, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    WRITERS["locomo"](tmp_path / "locomo")
    out = tmp_path / "run"
    url = ("--base-url", server.url, "--concurrency", "1")
    command = ["eval", "run", "locomo", "--memory", "peer:toy", "--model", "qwen2.5-7b-instruct"]
    command += [*url, "--data", str(tmp_path / "locomo"), "--out", str(out)]
    server.stall_after = 1
    killed = subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path), *command],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    server.wait_for(2)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
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
