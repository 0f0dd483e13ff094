"""Ctrl-C that is answered whatever the command is doing.

Python hears a signal between two of its own instructions, and an engine in this process may hold
the interpreter for minutes while it reads a prompt. So a command that runs a model runs in a child,
and what the shell waits for is its guard: it passes signals on, and kills a child that has not
ended by itself ``PATIENCE_S`` seconds after Ctrl-C. Everything finished is on disk by then. In a
chat Ctrl-C stops the reply. A second one within ``AGAIN_S`` seconds ends the command, unless its
prompt is back by then: there Ctrl-C is a key, and no signal.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from typing import Final, NoReturn

from mgl.cli.output import INTERRUPTED, say_interrupted

PATIENCE_S: Final = 1.0
AGAIN_S: Final = 2.0
COMMANDS: Final = frozenset({"ask", "build", "add", "chat", "proxy", "up"})
_TICK_S: Final = 0.1
_PASSED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FROM_A_PROCESS: Final = 0  # si_code; the terminal signals the child as well
_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG


def guard_command(words: list[str]) -> bool:
    """Go on in a child if these words run a model, on Linux; the guard itself does not return.

    Returns whether this is such a child.
    """
    command = next((word for word in words if not word.startswith("-")), "")
    if sys.platform != "linux" or command not in COMMANDS:
        return False
    import ctypes

    signals = {*_PASSED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    guard = os.getpid()
    child = os.fork()
    if child:
        _stand_guard(child, signals, goes_on=command == "chat")
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != guard:  # killed before the line above
        os._exit(INTERRUPTED)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return True


def _stand_guard(child: int, signals: set[signal.Signals], *, goes_on: bool) -> NoReturn:
    deadline: float | None = None
    last = -math.inf
    while True:
        heard = signal.sigtimedwait(signals, _TICK_S)
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
        if heard is not None and heard.si_signo in _PASSED_ON:
            if heard.si_code <= _FROM_A_PROCESS:
                os.kill(child, heard.si_signo)
            if heard.si_signo == signal.SIGINT:
                now = time.monotonic()
                if deadline is None and (not goes_on or now - last < AGAIN_S):
                    deadline = now + PATIENCE_S
                last = now
        if goes_on and deadline is not None and _is_at_prompt():
            deadline, last = None, -math.inf
        if deadline is not None and time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            say_interrupted()
            os._exit(INTERRUPTED)


def _is_at_prompt() -> bool:
    """Whether the terminal is read key by key, Ctrl-C too, as a prompt reads it."""
    import termios

    try:
        modes = termios.tcgetattr(0)[3]
    except termios.error:  # no terminal
        return False
    return not modes & termios.ISIG
