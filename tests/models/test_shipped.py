from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

import mgl
from mgl.errors import ResourceError, UsageError
from mgl.models import shipped
from mgl.models.profiles import DEFAULT_PROFILE, load_profile, load_profiles

CHECKOUT = Path(mgl.__file__).parent.parent
CARRIED = {
    *("qwen2.5-coder-0.5b", DEFAULT_PROFILE, "smollm2-135m"),
    *("all-minilm-l6-v2", "all-mpnet-base-v2"),
}
"""Profiles whose weights a package registry has, so that they need no model hub."""
PROFILE = """\
name: {name}
description: {description}
licence: MIT
source: https://example.org/{name}
parameters: 1B
context_tokens: 4096
engine: openai
weights: {{format: safetensors, hub: {{repo: example/{name}}}}}
"""


def write_profile(folder: Path, name: str, description: str = "a test") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(PROFILE.format(name=name, description=description))
    return path


def test_home_is_the_callers_then_the_environments(mgl_home: Path, tmp_path: Path) -> None:
    assert shipped.home() == mgl_home
    assert shipped.home(tmp_path / "new" / "deep") == tmp_path / "new" / "deep"
    assert (tmp_path / "new" / "deep").is_dir()


def test_home_that_cannot_be_made_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ResourceError):
        shipped.home(tmp_path / "file" / "home")


def test_every_shipped_profile_parses_and_pins_what_it_fetches() -> None:
    profiles = load_profiles()
    assert DEFAULT_PROFILE in profiles
    in_process = [profile for profile in profiles.values() if profile.engine != "openai"]
    assert len(in_process) > 4
    carried = [profile for profile in profiles.values() if profile.weights.registry is not None]
    assert {profile.name for profile in carried} == CARRIED
    assert {profile.preset for profile in carried if profile in in_process} == {"small"}
    for profile in profiles.values():
        if (registry := profile.weights.registry) is not None:
            assert all("==" in package for package in registry.packages)
            assert len(set(registry.packages)) == len(registry.packages)
        elif profile in in_process:
            weights, folder = profile.weights, Path("/weights")
            files = {file.name for file, _ in weights.pins(folder / weights.filename)}
            assert len(files) == 1 + len(weights.more), "every file is pinned"
            assert profile.fetch_command == f"mgl models get {profile.name} --allow-hub"


def test_the_table_of_profiles_says_what_the_profiles_say() -> None:
    table = (CHECKOUT / "models" / "README.md").read_text()
    for profile in load_profiles().values():
        row = next(line for line in table.splitlines() if line.startswith(f"| {profile.name} |"))
        for value in (profile.engine, f"{profile.context_tokens:,}", profile.licence):
            assert value in row
        assert profile.task == "generate" or f"| {profile.task}" in row
        if profile.weights.total_bytes:
            assert f"{profile.weights.total_bytes / 1e9:.2f} GB" in row


def test_every_shipped_profile_says_what_its_memory_is_computed_from() -> None:
    for profile in load_profiles().values():
        assert profile.architecture is not None, profile.name
        billions = {"K": 1e3, "M": 1e6, "B": 1e9}
        told = float(profile.parameters[:-1]) * billions[profile.parameters[-1]]
        # What was unpacked from a GGUF file has an output layer of its own, which weighs much in
        # a small model.
        assert told * 0.9 < profile.architecture.parameters < told * 1.3, profile.name
        assert profile.native_tools <= (profile.tool_parser is not None), profile.name


def test_an_unknown_profile_is_refused_with_close_names() -> None:
    with pytest.raises(UsageError):
        load_profile("qwen2.5-coder-1.5")


def test_a_profile_name_is_not_a_path(tmp_path: Path) -> None:
    write_profile(tmp_path, "outside")
    with pytest.raises(UsageError):
        load_profile(f"../{tmp_path.name}/outside")


def test_the_first_place_that_has_a_profile_decides(mgl_home: Path, tmp_path: Path) -> None:
    def described() -> str:
        return load_profile("smollm2-135m", tmp_path / "given").description

    (tmp_path / "given").mkdir()
    assert described().startswith("For smoke tests")
    write_profile(mgl_home / "models", "smollm2-135m", "of the home folder")
    assert described() == "of the home folder"
    write_profile(tmp_path / "given", "smollm2-135m", "given")
    assert described() == "given"
    assert shipped.data_dirs("models")[0] == mgl_home / "models"
    assert shipped.data_dirs("models", tmp_path / "given")[0] == tmp_path / "given"
    assert DEFAULT_PROFILE in load_profiles(tmp_path / "given")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: [", "cannot be read"),
        ("just text", "not valid"),
        (PROFILE.format(name="other", description="x"), "calls itself 'other'"),
        (PROFILE.format(name="broken", description="x") + "colour: red\n", "colour"),
        (PROFILE.format(name="broken", description="x").replace("safetensors", "gguf"), "hub.file"),
    ],
)
def test_a_broken_profile_names_its_file(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text(content)
    with pytest.raises(UsageError, match=message):
        load_profile("broken", tmp_path)
    assert load_profile(DEFAULT_PROFILE, tmp_path).name == DEFAULT_PROFILE


def test_space_is_asked_of_the_disk_that_will_hold_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def disk_usage(path: Path) -> SimpleNamespace:
        asked.append(path)
        return SimpleNamespace(free=5_000_000)

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    shipped.require_space(tmp_path / "not" / "yet", 5_000_000)
    with pytest.raises(ResourceError):
        shipped.require_space(tmp_path / "not" / "yet", 6_000_000)
    assert asked == [tmp_path, tmp_path]
