"""What a home holds is its owner's alone, whatever the umask and whatever was there before."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.models import shipped
from mgl.models.files import hold_lock, write_whole
from mgl.models.permissions import (
    create_private,
    make_private_folder,
    open_new_private,
    open_private,
    restrict,
)
from tests.privileges import no_umask

pytestmark = pytest.mark.skipif(os.name != "posix", reason="this system has no such permissions")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def _no_umask() -> Iterator[None]:
    with no_umask():
        yield


@given(umask=st.integers(0, 0o777))
def test_what_is_made_is_private_under_any_umask(
    tmp_path_factory: pytest.TempPathFactory, umask: int
) -> None:
    root = tmp_path_factory.mktemp("made")
    before = os.umask(umask)
    try:
        make_private_folder(root / "a" / "b")
        create_private(root / "a" / "empty")
        for number, open_ in enumerate((open_private, open_new_private)):
            with open_(root / "a" / f"log{number}", "ab") as log:
                log.write(b"said")
        write_whole(root / "c" / "record.json", b"{}")
        with hold_lock(root / "d" / "lock"):
            held = mode(root / "d" / "lock")
    finally:
        os.umask(before)
    assert held == 0o600
    for path in root.rglob("*"):
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    make_private_folder(shared / "own")
    make_private_folder(shared)
    assert (mode(shared), mode(shared / "own")) == (0o755, 0o700)
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "file")


def test_a_log_that_others_could_read_is_restricted_with_a_note(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log"
    path.touch()
    path.chmod(0o664)
    with open_private(path, "ab") as log:
        log.write(b"said")
    assert mode(path) == 0o600
    assert caplog.messages == [f"other users could use {path}; now only you can"]


def test_a_file_that_its_owner_named_and_shared_stays_shared(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.touch()
    path.chmod(0o644)
    with open_new_private(path, "w") as file:
        file.write("page")
    assert mode(path) == 0o644


@pytest.mark.usefixtures("_no_umask")
def test_a_home_is_made_for_its_owner_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert mode(shipped.home(tmp_path / "data" / "mgl")) == 0o700
    assert mode(tmp_path / "data") == 0o700
    assert caplog.messages == []


@pytest.mark.usefixtures("_no_umask")
def test_an_older_home_is_restricted_once_with_one_note(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "mgl"
    private = (
        "mgl.sqlite",
        "mgl.sqlite-wal",
        "keys.json",
        "jobs/a.json",
        "tenants/ann/mgl.sqlite",
        "tenants/ann/jobs/b.json",
        "up/8788.log",
        "up/8788.json",
        "proxies/8787.log",
        "engines/k.log",
        "locks/w.lock",
        "servers/run/8000.json",
        "servers/log/8000.log",
        "adapters/tales/record.md",
        "training/tales/course.json",
    )
    public = (
        "weights/m/model.gguf",
        "peers/mem0/bin/python",
        "servers/vllm/bin/python",
        "mine.txt",
    )
    for name in (*private, *public):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    outside = tmp_path / "outside"
    outside.touch()
    (home / "jobs" / "link.json").symlink_to(outside)
    assert shipped.home(home) == home
    for name in private:
        assert mode(home / name) == 0o600, name
        assert mode((home / name).parent) in ((0o700,) if "/" in name else (mode(home),))
    for path in (*(home / name for name in public), outside):
        assert mode(path) == 0o666, path
    assert mode(home) == 0o700
    (note,) = caplog.messages
    assert note.startswith(f"other users could use {home} (")
    shipped.home(home)
    assert caplog.messages == [note]


def test_a_home_whose_files_have_no_modes_works_and_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As FAT and some network drives are: what asks for other permissions is refused."""
    home = tmp_path / "mgl"
    home.mkdir(mode=0o755)
    (home / "mgl.sqlite").touch(0o644)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    monkeypatch.setattr(os, "fchmod", refuse)
    for _ in range(2):
        assert shipped.home(home) == home
    write_whole(home / "jobs" / "a.json", b"{}")
    with open_private(home / "mgl.sqlite", "ab") as file:
        file.write(b"x")
    assert caplog.messages == [f"other users can use {home}, and its permissions cannot be changed"]


def test_a_folder_that_is_shared_by_design_stays_shared(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "like-tmp"
    home.mkdir()
    home.chmod(0o1777)
    shipped.home(home)
    assert mode(home) == 0o1777
    assert "cannot be changed" in caplog.text


def test_a_link_to_a_home_restricts_what_it_leads_to(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    real.chmod(0o755)
    link.symlink_to(real)
    shipped.home(link)
    assert mode(real) == 0o700


def test_what_is_missing_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        restrict(tmp_path / "none")
    assert caplog.messages == []
