"""Servers that a command leaves running, each in a session of its own: started and stopped."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mgl.errors import EngineUnavailable, UsageError

START_S: Final = 120.0


def start_detached(kind: str, port: int) -> tuple[Mapping[str, Any], Path]:
    """Run this command again, without --detach, and wait until it answers on its port.

    Returns what its ``/health`` says, and its log. EngineUnavailable, with the error that it ended
    in, if it does not answer; UsageError if another holds the port.
    """
    from mgl.models import shipped
    from mgl.serving.logs import open_log
    from mgl.serving.records import token_environment

    path, token = _record(kind, port), secrets.token_hex(16)
    log = shipped.home() / kind / f"{port}.log"
    arguments = [each for each in sys.argv[1:] if each != "--detach"]
    with open_log(log) as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "mgl", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **token_environment(token)},
            start_new_session=True,
        )
    deadline = time.monotonic() + START_S
    while (health := _ask_health(port)) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            process.terminate()
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            errors, hints = (
                [line.removeprefix(mark) for line in said if line.startswith(mark)]
                for mark in ("error: ", "hint: ")
            )
            raise EngineUnavailable(
                (errors or ["it did not start"])[-1],
                hint=(hints or [f"see {log}; without --detach it runs in this terminal"])[-1],
            )
        time.sleep(0.1)
    if process.poll() is not None:
        raise UsageError(f"port {port} is taken", hint="choose another with --port")
    path.write_text(json.dumps({"token": token}), encoding="utf-8")
    return health, log


def stop_detached(kind: str, port: int) -> bool:
    """Stop the server that was left running on a port; False if there is none."""
    from mgl.serving.records import end_processes

    path = _record(kind, port)
    if not path.exists():
        return False
    end_processes(json.loads(path.read_text(encoding="utf-8"))["token"], patience_s=10)
    path.unlink()
    return True


def _record(kind: str, port: int) -> Path:
    from mgl.models import shipped

    return shipped.home() / kind / f"{port}.json"


def _ask_health(port: int) -> Mapping[str, Any] | None:
    """What the server on a port says of itself; None where none answers."""
    import httpx

    try:
        answer = httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).json()
        return answer if answer["status"] == "ok" else None
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None
