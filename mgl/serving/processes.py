"""The processes of one server, told by the token in their environment.

    killed = end(token, patience_s=20.0)

A server is started with ``MGL_SERVER=<token>`` in its environment, which its own children
inherit. Only processes that carry it are ever signalled, whoever started them and whatever their
numbers are. A process that changes its title on Linux wipes what others see of its environment
unless ``SPT_NOENV`` is set there; ``marks`` sets both.

Processes of other users cannot be looked into, and are none of ours.
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

__all__ = ["carrying", "end", "marks"]

_TOKEN: Final = "MGL_SERVER"
_TICK_S: Final = 0.1
_DEATH_S: Final = 15.0


def marks(token: str) -> Mapping[str, str]:
    """What the environment of a server's first process has to hold."""
    return {_TOKEN: token, "SPT_NOENV": "1"}


def carrying(token: str) -> list[psutil.Process]:
    """The living processes that carry a token, parents before their children."""
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(_TOKEN) == token:
                found.append(process)
        except psutil.Error:
            continue
    return found


def end(
    token: str,
    *,
    patience_s: float,
    hurry: Callable[[], bool] = lambda: False,
    reap: Callable[[], object] = lambda: None,
) -> int:
    """End all processes that carry a token, and return how many had to be killed.

    The topmost are asked to stop and stop their children; what is left after ``patience_s``
    seconds, or once ``hurry`` says so, is killed. ``reap`` is called while waiting, for children
    of the caller's own.
    """
    _signal(_topmost(carrying(token)), signal.SIGTERM)
    until = time.monotonic() + patience_s
    while (left := carrying(token)) and time.monotonic() < until and not hurry():
        reap()
        time.sleep(_TICK_S)
    killed = {process.pid for process in left}
    until = time.monotonic() + _DEATH_S
    while left:
        if time.monotonic() > until:
            numbers = ", ".join(str(process.pid) for process in left)
            raise EngineUnavailable(
                f"the server's processes {numbers} do not die",
                hint="a driver may hold them: look at the system's log, or start the machine again",
            )
        _signal(left, signal.SIGKILL)
        reap()
        time.sleep(_TICK_S)
        left = carrying(token)
    reap()
    return len(killed)


def _topmost(processes: list[psutil.Process]) -> list[psutil.Process]:
    import psutil

    own = {process.pid for process in processes}
    found = []
    for process in processes:
        try:
            if process.ppid() not in own:
                found.append(process)
        except psutil.Error:
            continue
    return found


def _signal(processes: list[psutil.Process], number: signal.Signals) -> None:
    """Signal each; psutil refuses where the number has come to mean another process."""
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)
