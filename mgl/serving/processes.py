"""The processes of one server, found by the token in their environment.

    killed = end_processes(token, patience_s=20.0)

A server is started with ``MGL_SERVER=<token>`` in its environment, which its children inherit. Only
processes that carry it are ever signalled, whoever started them and whatever their numbers are. On
Linux a process that changes its title hides its environment from others unless ``SPT_NOENV`` is set
there; ``token_environment`` sets both. Other users' processes cannot be inspected; none is ours.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mgl.errors import EngineUnavailable

if TYPE_CHECKING:
    import psutil

_TOKEN: Final = "MGL_SERVER"
_TICK_S: Final = 0.1
_DEATH_S: Final = 15.0


def token_environment(token: str) -> Mapping[str, str]:
    """What the environment of a server's first process must contain."""
    return {_TOKEN: token, "SPT_NOENV": "1"}


def find_processes(token: str) -> list[psutil.Process]:
    """Find the living processes that carry a token, parents before their children."""
    import psutil

    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get(_TOKEN) == token:
                found.append(process)
    return found


def end_processes(
    token: str,
    *,
    patience_s: float,
    hurry: Callable[[], bool] = lambda: False,
    reap: Callable[[], object] = lambda: None,
) -> int:
    """End all processes that carry a token; returns how many had to be killed.

    The topmost are asked to stop, and stop their children. What is left after ``patience_s``
    seconds, or once ``hurry`` is true, is killed. ``reap`` is called while waiting, for the
    caller's own children. Raises EngineUnavailable if some survive even that.
    """
    import psutil

    found = find_processes(token)
    own = {process.pid for process in found}
    for process in found:
        with suppress(psutil.Error):
            if process.ppid() not in own:
                process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    while (left := find_processes(token)) and time.monotonic() < deadline and not hurry():
        reap()
        time.sleep(_TICK_S)
    killed = len(left)
    deadline = time.monotonic() + _DEATH_S
    while left:
        if time.monotonic() > deadline:
            numbers = ", ".join(str(process.pid) for process in left)
            raise EngineUnavailable(
                f"the server's processes {numbers} do not die",
                hint="a driver may hold them: look at the system's log, or restart the machine",
            )
        for process in left:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)
        reap()
        time.sleep(_TICK_S)
        left = find_processes(token)
    reap()
    return killed
