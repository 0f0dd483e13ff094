"""What keeps a run from its cluster."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from mgl.cluster.connecting import _make_probe, check_code, connect
from mgl.cluster.executor import _Sharded
from mgl.errors import ResourceError, UsageError
from mgl.observer import SilentObserver
from tests.cluster.conftest import Mgl, arguments

OWN = _make_probe()()

LOOK = """
import sys
from ray import cloudpickle
sys.modules["mgl"] = None
print(cloudpickle.load(sys.stdin.buffer)())
"""


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
    "found", [("", "No module named 'mgl'"), ("0.0.9", "0" * 64), (OWN[0], "1" * 64)]
)
def test_a_machine_with_other_code_is_refused(found: tuple[str, str]) -> None:
    with pytest.raises(ResourceError) as error:
        check_code({"a": OWN, "b": found})
    assert "machine b" in error.value.message


@pytest.mark.ray
def test_a_machine_without_mgl_can_say_so() -> None:
    pytest.importorskip("ray", reason='ray is not installed: pip install "mgl[ray]"')
    from ray import cloudpickle

    done = subprocess.run(
        [sys.executable, "-I", "-c", LOOK],
        input=cloudpickle.dumps(_make_probe()),
        capture_output=True,
        check=True,
    )
    version, why = ast.literal_eval(done.stdout.decode())
    assert version == ""
    assert "mgl" in why


@pytest.mark.ray
def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason='ray is not installed: pip install "mgl[ray]"')
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
    ray = pytest.importorskip("ray", reason='ray is not installed: pip install "mgl[ray]"')
    assert not ray.is_initialized()
    with pytest.raises(UsageError), connect("ray://127.0.0.1:10001"):
        pass


def test_a_base_store_is_shipped_once_for_all_its_questions(tmp_path: Path) -> None:
    class Ray:
        shipped: ClassVar[list[bytes]] = []

        def put(self, stored: bytes) -> int:
            self.shipped.append(stored)
            return len(self.shipped)

    sharded = _Sharded(Ray(), None, [], SilentObserver(), False)
    one, other = tmp_path / "one.sqlite", tmp_path / "other.sqlite"
    one.write_bytes(b"one")
    other.write_bytes(b"other")
    assert [sharded._ship(path) for path in (one, one, other, one)] == [1, 1, 2, 1]
    assert Ray.shipped == [b"one", b"other"]
