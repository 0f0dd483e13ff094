"""Progress of the calls in flight, in tokens, for someone who waits for a long one.

    progress = TokenProgress(observer)
    progress.update(call, read=2048, prompt=7900, written=0, budget=700)
    progress.end(call)

An engine reports what it knows: the one in this process after each step of its batch, a server with
each token that it streams. Short calls are not reported.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol

from mgl.observer import Observer

READING: Final = "prompt read (tokens)"
WRITING: Final = "reply written (tokens)"
PATIENCE_S: Final = 5.0
"""Seconds after which a call is reported."""
LONG_PROMPT: Final = 1024
"""Tokens from which a prompt is reported at once."""


Listener = Callable[[str], None]
"""Is called with the text of a reply so far, from any thread."""

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Stream the replies of the calls within to a listener, where the engine can."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def find_listener() -> Listener | None:
    """Find the listener of a call that is made now."""
    return _LISTENER.get()


class Progress(Protocol):
    """What an engine tells how far each call is, in tokens; from any thread."""

    def update(
        self, call: Hashable, *, read: int, prompt: int, written: int = 0, budget: int = 0
    ) -> None: ...

    def end(self, call: Hashable) -> None: ...


@dataclass(slots=True)
class _Call:
    since: float
    read: int = 0
    prompt: int = 0
    written: int = 0
    budget: int = 0


class TokenProgress:
    """Sums up the calls in flight for an observer; safe to use from several threads."""

    def __init__(self, observer: Observer, clock: Callable[[], float] = time.monotonic) -> None:
        self._observer = observer
        self._clock = clock
        self._calls: dict[Hashable, _Call] = {}
        self._lock = threading.Lock()

    def update(
        self, call: Hashable, *, read: int, prompt: int, written: int = 0, budget: int = 0
    ) -> None:
        """Record how far a call is: tokens read of its prompt, written of its reply's budget."""
        now = self._clock()
        with self._lock:
            known = self._calls.setdefault(call, _Call(now))
            known.read, known.prompt, known.written, known.budget = read, prompt, written, budget
            calls = list(self._calls.values())
            if prompt < LONG_PROMPT and now - min(one.since for one in calls) < PATIENCE_S:
                return
        done, total = sum(one.read for one in calls), sum(one.prompt for one in calls)
        if done < total:
            self._observer.progress(READING, done, total)
        else:
            budgets = sum(one.budget for one in calls)
            self._observer.progress(WRITING, sum(one.written for one in calls), budgets)

    def end(self, call: Hashable) -> None:
        """Forget a call, whether it has succeeded, failed or was cancelled."""
        with self._lock:
            self._calls.pop(call, None)
