"""Servers that a command leaves running, each in a session of its own: started and stopped.

A server is known by the token that it was started with, which its processes carry and its
``/health`` proves (``mgl.processes``). So one that was there before, or somebody else's, is
taken for no other, and only what was started here is stopped.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from mgl.errors import EngineUnavailable, MglError, ResourceError, StoreError, UsageError
from mgl.models import shipped
from mgl.models.files import write_whole
from mgl.processes import ask_health, end_processes, find_processes, new_token, start

Kind = Literal["up", "proxies"]

START_S: Final = 120.0
STOP_S: Final = 10.0
ABANDON_S: Final = 0.5  # less than the patience of the guard, who hears Ctrl-C as well
_NOUNS: Final[Mapping[Kind, str]] = {"up": "server", "proxies": "proxy"}
_FAILURES: Final = {each.exit_code: each for each in (UsageError, ResourceError, StoreError)}


def start_detached(
    kind: Kind, port: int, root: str, key: Mapping[str, str] | None = None
) -> tuple[Mapping[str, Any], Path]:
    """Run this command again, without --detach, and wait until that very server answers.

    ``root`` is its URL, ``key`` the variable that stands for --key, which all users would see among
    the arguments of its process. Returns what its ``/health`` says, and its log. UsageError if one
    that was detached here has the port already; else the error that it ended in, as where another
    program has the port. Whatever happens, a server that is not returned is not left running.
    """
    path, token = _record(kind, port), new_token()
    if (known := _read(path)) is not None and find_processes(known["token"]):
        raise UsageError(
            f"port {port} is taken by a {_NOUNS[kind]} of yours, which runs already",
            hint="choose another with --port, or end that one with --stop",
        )
    log = path.with_suffix(".log")
    command = [sys.executable, "-m", "mgl", *_find_arguments(sys.argv[1:])]
    started = start(command, log, token, env={**os.environ, **(key or {})})
    try:
        health = started.wait_for(lambda: ask_health(root, token), START_S)
        if health is None:
            raise _explain(started.log.read_end(), started.process.poll(), log)
        write_whole(path, json.dumps({"token": token, "root": root}).encode())
    except BaseException:
        started.end(patience_s=ABANDON_S)
        raise
    return health, log


def stop_detached(kind: Kind, port: int) -> str:
    """Stop the server that was left running on a port, and say what came of it.

    ResourceError if its record cannot be read, EngineUnavailable if it answers all the same.
    """
    noun, path = _NOUNS[kind], _record(kind, port)
    if (known := _read(path)) is None:
        there = ", ".join(find_detached(kind))
        return f"no {noun} was detached on port {port}" + (f", but at {there}" if there else "")
    is_found = bool(find_processes(known["token"]))
    end_processes(known["token"], patience_s=STOP_S)
    if ask_health(known["root"], known["token"]) is not None:
        raise EngineUnavailable(
            f"the {noun} on port {port} still answers, and its processes cannot be seen from here",
            hint="stop it as the user, and in the container, that started it",
        )
    path.unlink(missing_ok=True)
    if is_found:
        return f"stopped the {noun} on port {port}"
    return f"the {noun} that was detached on port {port} had ended already"


def find_detached(kind: Kind) -> list[str]:
    """The URLs of the servers that were left running and still run, the last started last."""
    paths = sorted(_record(kind, 0).parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
    known = [each for path in paths if (each := _read(path)) is not None]
    return [each["root"] for each in known if find_processes(each["token"])]


def _find_arguments(given: Sequence[str]) -> list[str]:
    """The arguments of a server that is left running."""
    kept, before = [], ""
    for each in given:
        if before != "--key" and each.partition("=")[0] not in ("--key", "--detach"):
            kept.append(each)
        before = each
    return kept


def _record(kind: Kind, port: int) -> Path:
    return shipped.home() / kind / f"{port}.json"


def _read(path: Path) -> dict[str, str] | None:
    """A record of a server; None if there is none."""
    try:
        known = json.loads(path.read_bytes())
        return {name: str(known[name]) for name in ("token", "root")}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResourceError(
            f"{path} cannot be read ({type(error).__name__})",
            hint="end the server that it is of, if there is one, and delete it",
        ) from error


def _explain(said: str, code: int | None, log: Path) -> MglError:
    """The error that a server ended in, by what it said."""
    errors, hints = (
        [line.removeprefix(mark) for line in said.splitlines() if line.startswith(mark)]
        for mark in ("error: ", "hint: ")
    )
    kind = EngineUnavailable if code is None else _FAILURES.get(code, EngineUnavailable)
    return kind(
        (errors or ["it did not start"])[-1],
        hint=(hints or [f"see {log}; without --detach it runs in this terminal"])[-1],
    )
