"""A sandbox for Python that a model wrote: a process without network, files and rights.

    async with Sandbox(text, reply) as sandbox:
        ran = await sandbox.run("print(len(context))")

The process (``mgl.baselines.sandboxed``) starts with an empty environment, no descriptors but two
pipes, and namespaces of its own: no network, not even loopback; as its whole file system an empty
folder of ``DISK_BYTES`` in memory; no other process in sight. It cannot fork or gain a capability.
Under root it becomes nobody; an ordinary user gets a user namespace. Memory, processor time, open
files and output are bounded. ``llm_query(prompt)`` in the code is answered by ``reply`` here.

The bound of memory counts the process's own. The kernel's memory for it (semaphores, queues, locks,
tables of pages) is held small by a filter of system calls, where the kernel has seccomp; elsewhere
``unfiltered`` says why there is none, and code may take more than the bound.

Code that takes too long, or that ends its process or breaks the pipe, costs its variables: the
process is ended, a new one starts, and the output says so. Hash seed and ``random`` are fixed and
addresses are left out of the output, so that the same code prints the same; clocks are not.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from mgl.errors import UsageError

MEMORY_BYTES: Final = 1 << 30
DISK_BYTES: Final = 16 << 20
OUTPUT_CHARS: Final = 20_000
MOST_NAMES: Final = 50
NAME_CHARS: Final = 80
LINE_BYTES: Final = 16 << 20
CPU_SECONDS: Final = 1800
START_SECONDS: Final = 60
FORGED: Final = "the code wrote to the pipe that it is run through"
MODULES: Final = (
    *("bisect", "collections", "copy", "dataclasses", "datetime", "_strptime", "decimal"),
    *("difflib", "enum", "fractions", "functools", "hashlib", "heapq", "itertools", "json"),
    *("math", "operator", "random", "re", "statistics", "string", "textwrap", "time"),
    *("typing", "unicodedata"),
)
"""What the code can import: there are no files from which it could import anything else."""

_SCRIPT: Final = Path(__file__).with_name("sandboxed.py")
_ADDRESS: Final = re.compile(r"\bat 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Ran:
    """What code printed, an error included: the first OUTPUT_CHARS, and how many there were
    ``more``. ``names`` are the variables, MOST_NAMES at most; ``final`` is what it ended with
    by FINAL or FINAL_VAR."""

    output: str
    more: int = 0
    names: tuple[str, ...] = ()
    final: str | None = None


class _Message(BaseModel):
    """A message of the process, which is trusted in nothing."""

    model_config = ConfigDict(extra="forbid", strict=True)

    ready: bool = False
    unfiltered: str | None = None
    refused: str | None = None
    query: str | None = None
    number: int = 0
    output: str = ""
    more: int = 0
    names: list[str] = []
    final: str | None = None


class _BrokenError(Exception):
    """The process can be used no more; the text says why."""


class Sandbox:
    """A Python whose variables last from one run to the next; ``context`` is one of them.

    ``seconds`` bound one run without the time in which ``reply`` answers. ``unsafe`` leaves out
    what needs namespaces: the code then has the user's files and network. UsageError on entering
    where the system gives no namespaces.
    """

    def __init__(
        self,
        context: str,
        reply: Callable[[str], Awaitable[str]],
        *,
        seconds: float = 60,
        unsafe: bool = False,
        modules: Sequence[str] = MODULES,
    ) -> None:
        self._context = context
        self._reply = reply
        self._seconds = seconds
        self._unsafe = unsafe
        self._modules = modules
        self._process: asyncio.subprocess.Process | None = None
        self._runs = 0
        self.unfiltered: str | None = None
        """Why the kernel does not filter system calls, where it does not."""

    async def __aenter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="mgl-sandbox-")
        try:
            await self._start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()
        self._folder.cleanup()

    async def run(self, code: str) -> Ran:
        """Run code; whatever it does, there is an output, and the next code can be run."""
        if self._process is None:
            await self._start()
        try:
            return await self._run(code)
        except _BrokenError as error:
            await self._stop()
            return Ran(
                f"Error: {error}. Python was started again; all variables but context are lost."
            )

    async def _run(self, code: str) -> Ran:
        self._runs += 1
        await self._send(code=code, number=self._runs)
        left = self._seconds
        while True:
            start = time.monotonic()
            said = await self._receive(left)
            left -= time.monotonic() - start
            if said.query is not None:
                await self._send(reply=await self._reply(said.query))
                continue
            if said.number != self._runs:
                raise _BrokenError(FORGED)
            output = _ADDRESS.sub("at 0x", said.output)
            names = tuple(name[:NAME_CHARS] for name in said.names[:MOST_NAMES])
            return Ran(output[:OUTPUT_CHARS], said.more, names, said.final)

    async def _start(self) -> None:
        settings = {
            "folder": self._folder.name,
            "unsafe": self._unsafe,
            "modules": self._modules,
            "output_chars": OUTPUT_CHARS,
            "memory_bytes": MEMORY_BYTES,
            "disk_bytes": DISK_BYTES,
            "cpu_seconds": CPU_SECONDS,
        }
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-s", "-S", "-P", "-B", str(_SCRIPT), json.dumps(settings)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            # Python's own allocator maps memory, which the filter of system calls refuses.
            env={"PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc", "PYTHONUTF8": "1"},
            start_new_session=True,
            limit=LINE_BYTES,
        )
        try:
            with suppress(_BrokenError):  # one that refuses says so and reads nothing
                await self._send(context=self._context)
            said = await self._receive(START_SECONDS)
            refused, self.unfiltered = said.refused, said.unfiltered
        except _BrokenError as error:
            refused = str(error)
        if refused is not None:
            raise UsageError(
                f"code that a model writes cannot be confined on this system: {refused}",
                hint="use a Linux system that allows namespaces, or run the code with your own "
                "rights by --set unsafe=true",
            )

    async def _send(self, **message: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            async with asyncio.timeout(START_SECONDS):
                await self._process.stdin.drain()
        except (OSError, TimeoutError) as error:
            raise _BrokenError("the code ended its Python") from error

    async def _receive(self, seconds: float) -> _Message:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                line = await self._process.stdout.readline()
        except TimeoutError as error:
            raise _BrokenError(f"the code took more than {self._seconds:g} seconds") from error
        except ValueError as error:
            raise _BrokenError("the code sent more than can be read at once") from error
        if not line:
            raise _BrokenError("the code ended its Python")
        try:
            return _Message.model_validate_json(line)
        except ValidationError as error:
            raise _BrokenError(FORGED) from error

    async def _stop(self) -> None:
        """End the process and, with it, all of its namespace."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.kill()
        if process.stdin is not None:
            process.stdin.close()
            with suppress(OSError):
                await process.stdin.wait_closed()
        if process.stdout is not None:
            while await process.stdout.read(LINE_BYTES):  # else its pipe is never closed
                pass
        await process.wait()
