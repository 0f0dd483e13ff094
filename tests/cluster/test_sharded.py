"""Runs over a local cluster of two workers: the bytes of one process, whatever is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from mgl.cluster import shard
from mgl.errors import UsageError
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import Record, item_to_json
from mgl.evaluation.runs.manifest import Manifest
from mgl.evaluation.runs.units import execute_here
from mgl.lab.model import ModelChoice
from mgl.lab.workplace import DATABASE, Workplaces
from mgl.models import shipped
from mgl.observer import SilentObserver
from mgl.store import Store
from mgl.store.owners import RUN
from tests.cli.conftest import Mgl
from tests.cli.server import Server, serving
from tests.cluster.conftest import SERVED, arguments
from tests.evaluation.trial import TINY, result, rows
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("plugin", "ray")]


@pytest.fixture
def expected(
    mgl: Mgl, data: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[bytes, bytes]:
    """What the run gives in one process, from a home of its own."""
    with monkeypatch.context() as patch:
        patch.setenv("MGL_HOME", str(tmp_path / "apart"))
        ran = mgl(*arguments(data, tmp_path / "here", server.url))
    assert ran.exit_code == 0, ran.stderr
    return result(tmp_path / "here")


def test_a_sharded_run_gives_the_bytes_of_a_run_in_one_process(
    mgl: Mgl, data: Path, server: Server, tmp_path: Path, expected: tuple[bytes, bytes]
) -> None:
    out, calls = tmp_path / "run", len(server.seen)
    with serving() as second:
        urls = f"{server.url}, {second.url}"
        ran = mgl(*arguments(data, out, urls, "--executor", "ray"))
        assert ran.exit_code == 0, ran.stderr
        assert len(second.seen) > 0 < len(server.seen) - calls
        assert len(second.seen) + len(server.seen) == 2 * calls
    assert result(out) == expected
    assert "2 workers of a Ray cluster" in ran.stderr
    assert f"items, {SERVED}: 18 of 18" in ran.stderr
    assert "builds: 3 of 3" in ran.stderr
    assert "probing the server" in ran.stderr, "what workers say is passed on"
    assert [one.executor for one in Manifest.read(out).sessions] == ["ray"]
    with Store.open(shipped.home() / DATABASE) as store:
        assert store.calls(f"{RUN}{out}"), "a deletion leaves what a run owns"

    replayed = mgl("eval", "replay", out)
    assert replayed.exit_code == 0, replayed.stderr
    assert "30 records" in replayed.stderr


def workers() -> list[psutil.Process]:
    """The workers that this process's cluster runs."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it may end meanwhile
            if "ray::Worker" in " ".join(one.cmdline()):
                found.append(one)
    return found


def test_a_worker_that_is_killed_changes_nothing(
    mgl: Mgl, data: Path, server: Server, tmp_path: Path, expected: tuple[bytes, bytes]
) -> None:
    out, calls = tmp_path / "run", len(server.seen)
    server.delay = 0.3
    killed: list[int] = []

    def kill() -> None:
        server.wait_for(calls + 6)
        for one in workers()[:1]:
            killed.append(one.pid)
            one.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    ran = mgl(*arguments(data, out, server.url, "--executor", "ray", "--json"))
    killer.join()
    assert ran.exit_code == 0, ran.stderr
    assert len(json.loads(ran.stdout)["methods"]) == 2, "what Ray tells is not in the result"
    assert len(killed) == 1
    assert result(out) == expected
    assert calls <= len(server.seen) - calls <= calls + 8, "what was in flight is issued again"


def test_a_run_whose_process_is_killed_is_gone_on_with(
    mgl: Mgl,
    ray: Any,
    data: Path,
    server: Server,
    tmp_path: Path,
    plugin: Path,
    expected: tuple[bytes, bytes],
) -> None:
    out, calls = tmp_path / "run", len(server.seen)
    server.stall_after = calls + 20
    address = ray.get_runtime_context().gcs_address
    search = os.pathsep.join([str(plugin), str(Path.cwd()), *filter(None, sys.path)])
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "mgl"),
            *arguments(data, out, server.url, "--executor", "ray", "--ray-address", address),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": search},
    )
    server.wait_for(calls + 21, timeout=PATIENCE_S)
    process.kill()
    process.communicate()
    server.stall_after = None
    before = len(server.seen)
    again = mgl("eval", "resume", out, "--base-url", server.url, "--executor", "ray")
    assert again.exit_code == 0, again.stderr
    assert result(out) == expected
    assert len({row["method"] + row["item"]["id"] for row in rows(out)}) == len(rows(out)) == 18
    assert len(server.seen) - before <= calls - 20 + 8, "no more than was in flight is lost"


def test_more_servers_than_workers(mgl: Mgl, data: Path, tmp_path: Path, server: Server) -> None:
    urls = ",".join([server.url] * 3)
    ran = mgl(*arguments(data, tmp_path / "run", urls, "--executor", "ray"))
    assert ran.exit_code == 2
    assert "there are 3 servers and 2 workers" in ran.stderr


def test_a_judge_asks_through_the_workers(ray: Any, data: Path, server: Server) -> None:
    item = TINY.read(data).items[0]
    record = Record("direct", item_to_json(item), answer="Asgardpolis")
    seat = Seat("correctness", SERVED, "correctness")
    with Workplaces.open_home(ModelChoice(base_url=server.url), SilentObserver()) as places:
        execute = shard(ray, places, [server.url], concurrency=1)
        with places.open(SERVED) as place, execute(place) as executor:
            verdict = place.run(lambda: executor.judge(record, seat))
        assert len(server.seen) > 0, verdict
        with places.open(SERVED) as place, execute_here(place) as local:
            again = place.run(lambda: local.judge(record, seat))
    assert verdict == replace(again, took=verdict.took)
    assert verdict.usage


def test_a_model_of_the_process_is_refused(ray: Any) -> None:
    with Workplaces.open_home(ModelChoice(), SilentObserver()) as places:
        execute = shard(ray, places, (), concurrency=1)
        with (
            places.open("smollm2-135m") as place,
            pytest.raises(UsageError),
            execute(place),
        ):
            pass
