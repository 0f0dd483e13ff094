"""What keeps a run from its cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from mgl.cluster.actors import hash_code
from mgl.cluster.executor import _check_machines, _Sharded, connect
from mgl.errors import ResourceError, UsageError
from mgl.observer import SilentObserver
from tests.cli.conftest import Mgl
from tests.cluster.conftest import arguments


@pytest.mark.usefixtures("plugin")
def test_without_ray_it_says_what_to_install(
    mgl: Mgl, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    ran = mgl(*arguments(data, tmp_path / "run", "http://127.0.0.1:9/v1", "--executor", "ray"))
    assert ran.exit_code == 2
    assert "needs the package ray" in ran.stderr
    assert "'ray>=" in ran.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([("a", hash_code()), ("b", "0" * 64)], "b has another mgl"),
        (RuntimeError("No module named 'mgl'"), "No module named 'mgl'"),
    ],
)
def test_a_machine_with_other_code_or_none_is_refused(found: Any, said: str) -> None:
    worker = SimpleNamespace(describe_machine=SimpleNamespace(remote=lambda: None))

    def get(_ready: object) -> object:
        if isinstance(found, Exception):
            raise found
        return found

    ray = SimpleNamespace(
        wait=lambda references, **_: (references, []),
        get=get,
        exceptions=SimpleNamespace(RayError=RuntimeError),
    )
    with pytest.raises(ResourceError, match=said):
        _check_machines(ray, [worker, worker])


@pytest.mark.ray
def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the extra ray")
    given = ["eval", "run", "ruler", "--executor", "ray", "--ray-address", "127.0.0.1:9"]
    done = subprocess.run(
        [sys.executable, "-m", "mgl", *given],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), "MGL_HOME": str(tmp_path)},
    )
    assert done.returncode == 5, done.stderr


@pytest.mark.ray
def test_an_address_for_programs_outside_the_cluster() -> None:
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    assert not ray.is_initialized()
    with pytest.raises(UsageError), connect("ray://127.0.0.1:10001"):
        pass


def test_a_base_store_is_shipped_once_for_all_its_questions(tmp_path: Path) -> None:
    class Ray:
        shipped: ClassVar[list[bytes]] = []

        def put(self, stored: bytes) -> int:
            self.shipped.append(stored)
            return len(self.shipped)

    sharded = _Sharded(Ray(), [], SilentObserver())
    one, other = tmp_path / "one.sqlite", tmp_path / "other.sqlite"
    one.write_bytes(b"one")
    other.write_bytes(b"other")
    assert [sharded._ship(path) for path in (one, one, other, one)] == [1, 1, 2, 1]
    assert Ray.shipped == [b"one", b"other"]
