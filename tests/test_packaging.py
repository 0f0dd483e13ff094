"""What is released: its name on an index, what the archives hold, and that it runs installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgl import DISTRIBUTION
from tests.cli.server import serving, story

ROOT = Path(__file__).parent.parent
SHIPPED = ("mgl", "models", "serving", "eval", "examples")
COMMAND = "mgl"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOAD_COMMANDS = """
from typer.main import get_command
from mgl.cli.app import app

def load(group):
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            load(command)

load(get_command(app))
"""
"""Load the module of every command: none needs an extra for that."""
INSTALLS = re.compile(
    rf"""\b(?:install|upgrade|download|add|uvx|pipx\ run)\s+(?:-\S+\s+)*['"]?{COMMAND}(?![\w./-])
    | ['"`\s]{COMMAND}(?:\[[a-z]|\s?[=<>~!]=)""",
    re.VERBOSE,
)
"""Words that have somebody install the package that an index calls ``mgl``, which is not ours."""


def list_files(*folders: str) -> list[Path]:
    """List what a commit of everything would hold, in these folders or in all.

    Skips outside a checkout.
    """
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    words = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run([*words, *folders], check=True, capture_output=True, text=True).stdout
    names = [Path(name) for name in listed.split("\0") if name]
    return [name for name in names if (ROOT / name).is_file()]


def test_no_file_that_ships_is_ignored() -> None:
    shipped = list_files(*SHIPPED)
    assert Path("mgl/evaluation/runs/runner.py") in shipped
    ignored = subprocess.run(
        ["git", "-C", ROOT, "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(map(str, shipped)),
        text=True,
        capture_output=True,
        check=False,  # 1: none is
    )
    assert (ignored.returncode, ignored.stdout) == (1, "")


def test_the_package_index_knows_it_by_its_own_name() -> None:
    assert (PROJECT["name"], [*PROJECT["scripts"]]) == (DISTRIBUTION, [COMMAND])


def test_nothing_has_people_install_a_package_of_somebody_else() -> None:
    found = []
    for path in list_files():
        text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
        found += [f"{path}: {match[0].strip()}" for match in INSTALLS.finditer(text)]
    assert found == []


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """An sdist, and a wheel that is built of that sdist alone."""
    pytest.importorskip("hatchling", reason="needs the extra dev")
    folder = tmp_path_factory.mktemp("archives")
    for name in list_files():
        (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "tree" / name)
    build(folder / "tree", "sdist", folder)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    build(folder / sdist.name.removesuffix(".tar.gz"), "wheel", folder)
    (wheel,) = folder.glob("*.whl")
    yield sdist, wheel
    shutil.rmtree(folder)


def build(tree: Path, target: str, out: Path) -> None:
    words = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", out]
    subprocess.run(words, cwd=tree, check=True, capture_output=True)


def test_the_sdist_holds_the_tree_and_the_wheel_what_runs(archives: tuple[Path, Path]) -> None:
    sdist, wheel = archives
    with tarfile.open(sdist) as archive:
        held = {Path(*Path(each.name).parts[1:]) for each in archive if each.isfile()}
    assert held == {*list_files(), Path("PKG-INFO")}
    files = {
        path if path.parts[0] == "mgl" else "mgl" / Path("_shipped") / path
        for path in list_files(*SHIPPED)
    }
    info = Path("-".join(wheel.name.split("-")[:2]) + ".dist-info")
    about = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    with zipfile.ZipFile(wheel) as packed:
        assert {*map(Path, packed.namelist())} == files | {info / name for name in about}


class Environment:
    """An environment that holds the wheel, with a home and a working folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)

    def install(self, *words: str | Path) -> None:
        """Install into it by the pip of the Python that runs the tests."""
        pip = [sys.executable, "-m", "pip", "--python", self.folder / "bin" / "python", "install"]
        subprocess.run([*pip, "--quiet", *words], check=True, env=os.environ | {"PYTHONPATH": ""})

    def run(self, command: str, *words: str) -> str:
        """Run a command of the environment away from the checkout; it has to succeed."""
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        env = {"PATH": os.defpath, "HOME": str(work), "MGL_HOME": str(work / "home")}
        done = subprocess.run(
            [self.folder / "bin" / command, *words],
            cwd=work,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def check_installed(environment: Environment) -> None:
    """Check that mgl runs out of the environment, finds its data, and answers a question."""
    where = "import mgl; from mgl.models.shipped import data_dirs; print(mgl.__file__)"
    kinds = "print(*(p for k in ('models','serving','eval','examples') for p in data_dirs(k)))"
    paths = environment.run("python", "-c", f"{where}; {kinds}").split()
    assert len(paths) == 5
    assert all(Path(path).is_relative_to(environment.folder.resolve()) for path in paths)
    (environment.folder / "work" / "book.txt").write_text(story(8))
    with serving() as server:
        model = ("--model", "qwen2.5-7b-instruct", "--base-url", server.url)
        assert f"mgl {PROJECT['version']};" in environment.run("mgl", "doctor", *model)
        asked = environment.run("mgl", "ask", "book.txt", "How many met?", "--json", *model)
    assert json.loads(asked)["citations"]


def test_the_wheel_runs_without_the_checkout(archives: tuple[Path, Path], tmp_path: Path) -> None:
    """What it depends on is borrowed from the environment that runs the tests."""
    environment = Environment(tmp_path / "environment")
    environment.install("--no-index", "--no-deps", archives[1])
    (site,) = environment.folder.glob("lib/python*/site-packages")
    borrowed = [path for path in sys.path if Path(path).name == "site-packages"]
    (site / "borrowed.pth").write_text("\n".join(borrowed))
    check_installed(environment)


@pytest.mark.slow
def test_the_wheel_runs_in_an_empty_environment(
    archives: tuple[Path, Path], tmp_path: Path
) -> None:
    """Dependencies come from the registry, and no extra is there."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    if subprocess.run([*pip, "--dest", tmp_path, "typer"], check=False).returncode:
        pytest.skip("no package registry can be reached")
    environment = Environment(tmp_path / "environment")
    environment.install(archives[1])
    check_installed(environment)
    environment.run("python", "-c", LOAD_COMMANDS)
