"""What holds for every command: help, exit codes, one clear line for each error."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from mgl import errors, registry
from mgl.cli.app import EPILOG, INTERRUPTED, app, main
from tests.cli.conftest import Mgl
from tests.privileges import unprivileged

HEAVY = ("pydantic", "rich", "httpx", "openvino_genai", "networkx", "pypdf", "sqlite3")


def find_modules(code: str) -> set[str]:
    """The modules that are imported once this code has run."""
    code = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_a_command_is_built_without_the_others_and_the_table_of_all_imports_nothing_heavy() -> None:
    table = "from mgl.cli.app import app; at_first = {*sys.modules}"
    build = "from typer.main import get_command; get_command(app).get_command(None, 'ask')"
    found = find_modules(f"{table}; assert not at_first & {{*{HEAVY}}}; {build}")
    assert "mgl.cli.ask" in found
    assert not {"mgl.cli.train", "mgl.cli.eval", "mgl.cli.up"} & found


@pytest.mark.parametrize(("words", "kinds"), [([], set()), (["--memory", "light"], {"light"})])
def test_help_imports_the_kind_that_it_describes_alone(words: list[str], kinds: set[str]) -> None:
    ask = f"app(['ask', *{words}, '--help'], standalone_mode=False)"
    found = find_modules(f"from mgl.cli.app import app; {ask}")
    places = {
        "light": "mgl.baselines.light",
        "emem": "mgl.baselines.emem",
        "gam": "mgl.memories.gam",
    }
    assert {kind for kind, place in places.items() if place in found} == kinds


def test_who_asks_needs_neither_readers_of_files_nor_training() -> None:
    found = find_modules("import mgl.lab, mgl.memories.gam")
    unneeded = {"mgl.text.reading", "mgl.text.conversations", "mgl.training.records", "faiss"}
    assert not unneeded & found


def test_help_names_every_exit_code(mgl: Mgl) -> None:
    text = mgl("--help").output
    kinds = [one for one in vars(errors).values() if hasattr(one, "exit_code")]
    codes = {kind.exit_code for kind in kinds} | {0, INTERRUPTED}
    for code in codes:
        assert f"\n    {code} " in text, code
    assert EPILOG.split("\n")[1] in text


def test_help_is_short_and_plain(mgl: Mgl) -> None:
    """Every command has one line of help, and every option a sentence, none of them cut off."""
    text = mgl("--help").output
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        subcommands = [] if "commands" not in dir(command) else list(command.commands.values())
        for each in (command, *subcommands):
            help_line = each.get_short_help_str(64)
            assert help_line.endswith("."), name
            assert not help_line.endswith("..."), name
            assert all(option.help and len(option.help) < 90 for option in each.params), name
        assert f"  {name} " in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert not any(line.endswith("...") for line in text.splitlines()[1:])


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("ask", "{missing}", "Who?"), 3, "missing.txt"),
        (("ask", "{empty}", "Who?"), 3, "empty.txt"),
        (("ask", "{book}", ""), 3, "question is empty"),
        (("build", "{book}", "--question", ""), 3, "question is empty"),
        (("ask", "{book}", "Who?", "--model", "qwen2.5-7b-instuct"), 2, "qwen2.5-7b-instuct"),
        (("ask", "{book}", "Who?", "--memory", "mindgrap"), 2, "mindgrap"),
        (("ask", "{book}", "Who?", "--model", "qwen2.5-7b-instruct"), 2, "model server"),
        (("ask", "{book}", "Who?", "--base-url", "http://x/v1", "--engine", "openvino"), 2, ""),
        (("ask", "{book}", "Who?", "--set", "chunk_tokens=3"), 2, "chunk_tokens"),
        (("ask", "{book}", "Who?", "--models", "{missing}"), 2, "missing.txt"),
        (("ask", "{book}", "Who?", "--weights", "{missing}"), 5, "missing.txt"),
        (("show", "abc"), 6, "no memory 'abc'"),
        (("models", "get", "nothing-like-it"), 2, "nothing-like-it"),
    ],
)
def test_bad_input_is_one_clear_line_with_what_to_do(
    mgl: Mgl, tmp_path: Path, book: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    (tmp_path / "empty.txt").touch()
    (tmp_path / "folder").mkdir()
    places = {
        "missing": tmp_path / "missing.txt",
        "empty": tmp_path / "empty.txt",
        "folder": tmp_path / "folder",
        "book": book,
    }
    result = mgl(*(argument.format(**places) for argument in arguments), code=code)
    assert result.stdout == ""
    error, hint = result.stderr.strip().split("\n")[-2:]
    assert error.startswith("error: ")
    assert says in error
    assert hint.startswith("hint: ")
    assert len(hint) > len("hint: ") + 8


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask",),
        ("frobnicate",),
        ("ask", "a", "b", "--preset", "x"),
        ("ask", "a", "b", "--set", "x"),
    ],
)
def test_arguments_that_do_not_parse_are_exit_2(mgl: Mgl, arguments: tuple[str, ...]) -> None:
    mgl(*arguments, code=2)


def test_a_home_that_is_not_writable_is_exit_5(mgl: Mgl, mgl_home: Path) -> None:
    changed = [(p, p.stat().st_mode) for p in (mgl_home, *mgl_home.parents[:2])]
    for folder, _ in changed:
        folder.chmod(0o555)
    try:
        with unprivileged():
            result = mgl("list")
    finally:
        for folder, mode in changed:
            folder.chmod(mode)
    assert result.exit_code == 5
    assert "cannot be written to" in result.stderr
    assert "MGL_HOME" in result.stderr


def test_a_server_that_is_down_is_exit_4(mgl: Mgl, book: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        result = mgl(
            "ask", book, "Who met?", "--model", "qwen2.5-7b-instruct", "--base-url", url, "--json"
        )
    assert result.exit_code == 4
    assert result.stdout == ""
    assert url.removesuffix("/v1") in result.stderr
    assert "hint: " in result.stderr


def test_a_damaged_database_is_exit_6_and_stays(mgl: Mgl, mgl_home: Path) -> None:
    (mgl_home / "mgl.sqlite").write_bytes(b"not a database" * 100)
    result = mgl("list", code=6)
    assert "move it away" in result.stderr
    assert "Traceback" not in result.stderr
    assert (mgl_home / "mgl.sqlite").read_bytes() == b"not a database" * 100


def run_main(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["mgl", *words])
    main()


@pytest.mark.usefixtures("capsys")
def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.StoreError):
        run_main(monkeypatch, "--debug", "show", "nothing")


def test_an_unexpected_error_is_one_line_and_exit_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("fault")

    monkeypatch.setattr("mgl.models.shipped.home", fail)
    with pytest.raises(SystemExit) as ended:
        run_main(monkeypatch, "list")
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("error: unexpected ZeroDivisionError: fault\nhint: ")
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "kind", "option"),
    [
        (("ask", "--memory", "mindgraph"), "mindgraph", "max_rounds"),
        (("chat", "--memory", "gam"), "gam", "buffer_tokens"),
        (("build", "--memory", "hgmem"), "hgmem", "answer_chunks"),
        (("ask", "--memory", "gam", "--preset", "small"), "gam", "anchoring"),
        (("chat", "--preset", "small", "--memory", "mnemis"), "mnemis", "compression"),
    ],
)
def test_help_lists_the_options_of_the_kind_that_is_chosen(
    mgl: Mgl, arguments: tuple[str, ...], kind: str, option: str
) -> None:
    lines = mgl(*arguments, "--help").output.splitlines()
    options = lines[next(n for n, line in enumerate(lines) if f"Options of {kind} " in line) :]
    assert len(next(line for line in options if line.startswith(f"  {option} ")).split()) > 2


@pytest.mark.parametrize("command", ["ask", "build", "add", "chat"])
def test_help_fits_a_screen_and_the_kinds_have_an_option_of_their_own(
    mgl: Mgl, command: str
) -> None:
    shown = mgl(command, "--help").output
    assert "--kinds" in shown
    assert len(shown.splitlines()) < 70
    listed = {line.split()[0] for line in mgl(command, "--kinds").stdout.splitlines() if line}
    talks = {"gam", "mnemis"}
    assert (talks if command in ("add", "chat") else set(registry.names("memory"))) <= listed
    assert ("hgmem" in listed) == (command in ("ask", "build"))
