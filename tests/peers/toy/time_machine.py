"""Stands in for the package that stops the clock, which a peer's environment has."""

import time
from datetime import datetime


class travel:  # noqa: N801
    def __init__(self, destination: str, *, tick: bool) -> None:
        assert not tick
        self._moment = datetime.fromisoformat(destination).timestamp()

    def start(self) -> None:
        time.time = lambda: self._moment
