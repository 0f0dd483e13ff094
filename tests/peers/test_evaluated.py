"""A peer in `mgl eval`: a run that is killed and goes on, and its replay without a model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mgl.evaluation.records import RunLog
from tests.cli.server import Server
from tests.evaluation.small_data import WRITERS

RUN = """
import sys
from pathlib import Path
from mgl import registry
from mgl.cli import main
from mgl.peers import environments, memory, process
from mgl.peers.environments import Peer
from mgl.retrieval import opening
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from tests.peers.test_memory import TOY

folder, *arguments = sys.argv[1:]
Path(folder, "toy.txt").write_text("toy==1")
environments.LOCKS = Path(folder)
memory.PEERS = {"toy": Peer("toy", "toy", "1", "MIT", "notes")}
memory.find_python = lambda *_: Path(sys.executable)
process.ADAPTERS = TOY
process._SETTINGS = {**process._SETTINGS, "PYTHONPATH": str(TOY)}
registry._SHIPPED["memory"]["peer:toy"] = "tests.peers.test_memory:Toy"
opening.open_embedder = lambda *_, **__: WordEmbedder()
opening.open_reranker = lambda *_, **__: WordReranker()
sys.argv = ["mgl", *arguments]
main()
"""


def start(folder: Path, home: Path, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(folder), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), "MGL_HOME": str(home)},
    )


def finish(process: subprocess.Popen[str]) -> str:
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_killed_run_pays_no_call_twice_and_replays(
    server: Server, mgl_home: Path, tmp_path: Path
) -> None:
    WRITERS["locomo"](tmp_path / "locomo")
    out = tmp_path / "run"
    model = ("--model", "qwen2.5-7b-instruct", "--base-url", server.url, "--concurrency", 1)
    command = ("eval", "run", "locomo", "--memory", "peer:toy", *model)
    server.stall_after = 1
    killed = start(tmp_path, mgl_home, *command, "--data", tmp_path / "locomo", "--out", out)
    server.wait_for(2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert len(server.done) == 1

    server.stall_after = None
    resume = ("eval", "resume", out, "--base-url", server.url, "--concurrency", 1)
    finish(start(tmp_path, mgl_home, *resume))
    first = (out / "records.jsonl").read_bytes()
    paid = len(server.done)
    assert paid == len(set(server.done)), "each request was answered once"

    said = finish(start(tmp_path, mgl_home, "eval", "replay", out))
    assert "are identical (0 failed" in said
    assert len(server.done) == paid
    assert (out / "records.jsonl").read_bytes() == first

    (built,) = RunLog(out / "records.jsonl").builds.values()
    assert built.memory["counts"] == {"notes": 3, "empty": 0, "refused": 0}
    page = tmp_path / "report.html"
    finish(start(tmp_path, mgl_home, "report", out, "--out", page))
    assert "What the packages counted" in page.read_text()
