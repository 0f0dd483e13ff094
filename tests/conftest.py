"""What all tests share: a home of their own, no network, and the few real things they may ask for.

Real weights, data and servers come in by fixtures, which skip with their reason where the thing
is not to be had. A test without the marker ``weights`` or ``server`` reaches
127.0.0.1 and nothing else.

By default each property is tried with at most QUICK_EXAMPLES of each seed and tests marked ``slow``
are left out; ``--nightly`` runs all of both.

Each property runs twice: ``[fixed]`` tries the same examples in every run, ``[fresh]`` those of a
new seed, which the run prints first and last. ``--hypothesis-seed=N`` sets it. Properties marked
``heavy``, of which a single example takes long, run as ``[fresh]`` alone except with --nightly.

Stores start as copies of an empty one and do not sync: tests make thousands, and migrating each
took more time than most do with it.
"""

from __future__ import annotations

import gc
import ipaddress
import os
import random
import re
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
from hypothesis import HealthCheck, is_hypothesis_test, seed, settings
from platformdirs import user_data_path
from typer.testing import CliRunner, Result

from mgl.cli.app import app
from mgl.errors import ResourceUnreachable
from mgl.models.fetch import fetch_weights, find_weights
from mgl.models.profiles import load_profile
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store, file
from tests.cli.server import Server, serving
from tests.web.tab import Tab, open_tab

QUICK_EXAMPLES = 10

FIXED_SEED = 0

# A method that runs with two seeds has two objects of its class.
usual = settings(
    deadline=None, database=None, suppress_health_check=[HealthCheck.differing_executors]
)
settings.register_profile("quick", usual, max_examples=QUICK_EXAMPLES)
settings.register_profile("nightly", usual)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="slow tests, and every example")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("nightly" if config.getoption("--nightly") else "quick")
    if config.getoption("--hypothesis-seed") is None:
        given = getattr(config, "workerinput", {})
        config.option.hypothesis_seed = given.get("seed") or str(secrets.randbelow(10**9))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Have the workers of xdist draw from the same seed."""
    node.workerinput["seed"] = node.config.getoption("--hypothesis-seed")


def pytest_sessionstart(session: pytest.Session) -> None:
    if (reporter := session.config.pluginmanager.get_plugin("terminalreporter")) is not None:
        reporter.write_line(describe_seeds(session.config))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    terminalreporter.write_line(describe_seeds(config))


def describe_seeds(config: pytest.Config) -> str:
    fresh = config.getoption("--hypothesis-seed")
    return f"properties with seeds {FIXED_SEED} and {fresh}; again: --hypothesis-seed={fresh}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if is_hypothesis_test(metafunc.function):
        is_heavy = metafunc.definition.get_closest_marker("heavy") is not None
        seeds = ["fixed", "fresh"]
        if is_heavy and not metafunc.config.getoption("--nightly"):
            seeds = ["fresh"]
        metafunc.parametrize("_seeded", seeds, indirect=True)


@pytest.fixture(autouse=True)
def _seeded(request: pytest.FixtureRequest) -> None:
    """Seed what draws at random, in this test and in the code that it runs."""
    fresh = getattr(request, "param", "fixed") == "fresh"
    chosen = request.config.getoption("--hypothesis-seed") if fresh else FIXED_SEED
    random.seed(chosen)
    if is_hypothesis_test(request.function):
        seed(chosen)(getattr(request.function, "__func__", request.function))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report: pytest.TestReport = yield  # type: ignore[misc]
    if report.failed and is_hypothesis_test(getattr(item, "obj", None)):
        report.sections.append(("Seeds", describe_seeds(item.config)))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What modules load for their parameters is what ships, and nothing of this machine's.

    The garbage collector, which took a quarter of the time, has nothing to do here, and looks
    through none of what is collected later.
    """
    gc.disable()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MGL_HOME", os.devnull)
            return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--nightly"):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow and "slow" not in config.getoption("-m"):
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    for item in items:
        limit_examples(getattr(item, "obj", None))


def limit_examples(test: Any) -> None:
    """Cap what a test asks for by itself, which would go before the profile."""
    asked = getattr(test, "_hypothesis_internal_use_settings", None)
    if asked is not None and asked.max_examples > QUICK_EXAMPLES:
        function = getattr(test, "__func__", test)
        function._hypothesis_internal_use_settings = settings(asked, max_examples=QUICK_EXAMPLES)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Numbered folders: ``mktemp`` would look through those of all earlier tests for each."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def mgl_home(
    request: pytest.FixtureRequest, homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An empty MGL_HOME for each test, no model hub, and none of this machine's model servers."""
    folder = next(homes)
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("MGL_HOME", str(folder))
    monkeypatch.setenv("MGL_ENGINE_IDLE", "5")
    monkeypatch.setenv("HF_HOME", str(folder / "huggingface"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("mgl.serving.nearby.PORTS", ())
    if request.node.get_closest_marker("server") is None:
        monkeypatch.delenv("MGL_BASE_URL", raising=False)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _quick_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    empty = tmp_path_factory.mktemp("store") / "empty.sqlite"
    Store.open(empty).close()
    connect = file._connect

    def connect_copy(path: Path, *options: Any) -> sqlite3.Connection:
        if path.parent.is_dir() and not path.exists():
            part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
            with suppress(OSError):  # read-only, full, or made by another meanwhile
                shutil.copy(empty, part)
                os.link(part, path)
            part.unlink(missing_ok=True)
        connection = connect(path, *options)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "_connect", connect_copy)
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_tls_context() -> Iterator[None]:
    """Reading certificates takes each client of httpx 25 ms, and none of these needs one."""
    with pytest.MonkeyPatch.context() as patch:
        read = cache(httpx.create_ssl_context)
        patch.setattr("httpx._transports.default.create_ssl_context", read)
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_look_at_packages() -> Iterator[None]:
    """To read all packages' versions takes each run of ``mgl eval`` longer than its items do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mgl.evaluation.runs.provenance.version", cache(version))
        yield


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT interrupts, even where the tests run in the background and ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if any(request.node.get_closest_marker(name) for name in ("weights", "server")):
        return
    monkeypatch.setattr(socket.socket, "connect", _loopback_only(socket.socket.connect))
    monkeypatch.setattr(socket.socket, "connect_ex", _loopback_only(socket.socket.connect_ex))


def _loopback_only(connect: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = str(address[0])
            if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
                raise OSError(f"this test may not connect to {host}")
        return connect(self, address)

    return guarded


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "mgl.sqlite") as opened:
        yield opened


@pytest.fixture
def mgl() -> Callable[..., Result]:
    """The command line in this process: ``mgl("list", "--json", code=0)`` has to exit with 0."""

    def run(*arguments: object, code: int | None = None) -> Result:
        words = [str(argument) for argument in arguments]
        result = CliRunner().invoke(app, words)
        check_hint(words, result.stderr)
        assert code in (None, result.exit_code), result.output
        return result

    return run


def check_hint(words: list[str], said: str) -> None:
    """A hint names options of the command that was typed; others only in a command that it quotes
    between backticks."""
    if "hint: " not in said:
        return
    command = typer.main.get_command(app)
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    for line in said.splitlines():
        if line.startswith("hint: "):
            named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", re.sub("`[^`]*`", "", line)))
            assert named <= known, f"{line!r} of {' '.join(words)}"


@pytest.fixture
def server() -> Iterator[Server]:
    """A model server on this machine, as the command line's tests have it."""
    with serving() as running:
        yield running


@pytest.fixture
def embeds_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memories retrieve by words that texts share: without weights, and without the extra."""
    monkeypatch.setattr(
        "mgl.retrieval.opening.open_embedder", lambda *_args, **_options: WordEmbedder()
    )
    monkeypatch.setattr(
        "mgl.retrieval.opening.open_reranker", lambda *_args, **_options: WordReranker()
    )


@pytest.fixture(scope="session")
def smollm2_weights(pytestconfig: pytest.Config) -> Path:
    """The GGUF of smollm2-135m: from this machine, else fetched once into pytest's cache."""
    profile = load_profile("smollm2-135m")
    if (found := _on_this_machine("smollm2-135m")) is not None:
        return found
    try:
        return fetch_weights(profile, _weights_cache(pytestconfig))
    except ResourceUnreachable as error:
        pytest.skip(f"weights of smollm2-135m: {error}")


@pytest.fixture(scope="session")
def converted_weights(pytestconfig: pytest.Config) -> Path:
    """Where the engine keeps what it converts, as a home has it: converting takes half a minute."""
    folder = _weights_cache(pytestconfig) / "converted"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def minilm_weights(pytestconfig: pytest.Config) -> Path:
    """The model folder of all-minilm-l6-v2: from this machine, else fetched once."""
    profile = load_profile("all-minilm-l6-v2")
    if (found := _on_this_machine("all-minilm-l6-v2")) is not None:
        return found
    try:
        return fetch_weights(profile, _weights_cache(pytestconfig))
    except ResourceUnreachable as error:
        pytest.skip(f"weights of all-minilm-l6-v2: {error}")


@pytest.fixture(scope="session")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A tab of the one browser that these tests share: starting one takes seconds."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("no Chromium on this machine")
    with open_tab(found, tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe, a checker of accessibility, as the lock in tests/web pins it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm on this machine")
    folder = tmp_path_factory.mktemp("axe")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(Path(__file__).parent / "web" / name, folder)
    done = subprocess.run(
        [npm, "ci", "--ignore-scripts"], cwd=folder, capture_output=True, timeout=120, check=False
    )
    if done.returncode:
        pytest.skip("axe-core cannot be fetched from the registry of npm")
    return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def development_data() -> Path:
    """The folder of development data."""
    return _folder_from("MGL_DATA", "the development data")


@pytest.fixture
def papers() -> Path:
    """The folder with the papers' text."""
    return _folder_from("MGL_PAPERS", "the papers' text")


def _weights_cache(config: pytest.Config) -> Path:
    """The folder that all runs in this checkout fetch into; ``fetch_weights`` locks it."""
    if getattr(config, "cache", None) is None:
        pytest.skip("weights are kept in pytest's cache, which is switched off")
    return config.cache.mkdir("mgl-home")


# Read when the session starts: each test has a home of its own.
USERS_HOME = Path(os.environ.get("MGL_HOME") or user_data_path("mgl", appauthor=False))


def _on_this_machine(name: str) -> Path | None:
    if not USERS_HOME.is_dir():
        return None
    return find_weights(load_profile(name), USERS_HOME)


def _folder_from(variable: str, what: str) -> Path:
    configured = os.environ.get(variable)
    if not configured:
        pytest.skip(f"{variable} does not say where {what} is")
    folder = Path(configured)
    if not folder.is_dir():
        pytest.skip(f"{variable}={configured} is not a folder")
    return folder
