"""Runs in a peer's own environment, knows nothing of mgl, and speaks JSON lines over stdio.

    python host.py ADAPTER.py     # one message a line: {"do": "read", ...} gives {"done": ...}

An adapter is a file with one class whose name ends in ``Adapter``: it is made with the settings of
``open``, and its methods ``read``, ``retrieve`` and ``answer`` are called with what a message
holds. What a peer prints goes to stderr. An exception comes back as {"failed": its kind and words}.
The process ends when its input does, also where whoever started it was killed, and removes its
folder.

Before a peer is imported, the clock stands still at the time that ``open`` names, and uuid4 counts.
So what a peer writes into its prompts is the same in every run, and its calls replay.
"""

import asyncio
import hashlib
import importlib.util
import inspect
import json
import os
import random
import shutil
import sys
import traceback
import uuid
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any


def freeze(moment: str, seed: str) -> None:
    """Stop the clock, and number what would be random."""
    import time_machine

    time_machine.travel(moment, tick=False).start()
    random.seed(0)
    numbers = count()

    def make_id() -> uuid.UUID:
        digest = hashlib.md5(f"{seed}:{next(numbers)}".encode(), usedforsecurity=False).digest()
        return uuid.UUID(bytes=digest, version=4)

    uuid.uuid4 = make_id
    uuid.uuid1 = lambda *_: make_id()


def load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("adapter", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return next(
        value
        for name, value in vars(module).items()
        if name.endswith("Adapter") and value.__module__ == module.__name__
    )


class PeerHost:
    """Keeps one adapter and does what messages ask of it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._adapter: Any = None

    async def do(self, message: dict[str, Any]) -> Any:
        what = message.pop("do")
        if what != "open":
            given = getattr(self._adapter, what)(**message)
            return await given if inspect.isawaitable(given) else given
        freeze(message.pop("now"), message.pop("seed"))
        made = load(self._path)(**message)
        self._adapter = await made if inspect.isawaitable(made) else made
        started = getattr(self._adapter, "start", None)
        if started is not None:
            await started()
        return None


async def serve(path: str) -> None:
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    host, loop = PeerHost(path), asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            said = {"done": await host.do(json.loads(line))}
        except Exception as error:
            traceback.print_exc()
            said = {"failed": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(said, ensure_ascii=True) + "\n")
        replies.flush()


if __name__ == "__main__":
    with suppress(BrokenPipeError):  # nobody waits for the reply any more
        asyncio.run(serve(sys.argv[1]))
    shutil.rmtree(Path.cwd(), ignore_errors=True)
    os._exit(0)  # whatever threads the peer has left
