"""Weights from a hub on this machine, by its own library."""

from __future__ import annotations

import hashlib
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgl.errors import ResourceError, ResourceUnreachable
from mgl.models.fetch import fetch_weights, find_weights
from mgl.models.files import find_parts
from mgl.models.profiles import HubSource, ModelProfile
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
    put_parts,
)
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("index")


FILES = {FILENAME: CONTENT, **dict(zip(SPLIT_NAMES, PARTS, strict=True))}


class Hub(http.server.BaseHTTPRequestHandler):
    """The files of one repository, served as the hub serves plain (not LFS) files."""

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        content = FILES.get(self.path.split("?")[0].removeprefix(f"/{REPO}/resolve/main/gguf/"))
        self.send_response(404 if content is None else 200)
        if content is None:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha1(content or b"").hexdigest()}"')
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        if body and content is not None:
            self.wfile.write(content)

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
        timeout=PATIENCE_S,
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
def test_every_file_of_a_split_model_is_fetched_and_counted(mgl_home: Path) -> None:
    answer = fetch_from_hub(SPLIT, mgl_home)
    first = Path(str(answer["path"]))
    assert [part.read_bytes() for part in find_parts(first)] == list(PARTS)
    done, totals = zip(*answer["seen"], strict=True)  # type: ignore[call-overload]
    assert list(done) == sorted(done)
    assert (done[-1], set(totals)) == (len(CONTENT), {len(CONTENT)})
    assert find_weights(SPLIT, mgl_home) == first


@pytest.mark.usefixtures("hub")
def test_a_hub_that_refuses_is_followed_by_the_registry(mgl_home: Path) -> None:
    put_parts(mgl_home)
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
