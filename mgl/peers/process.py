"""One peer at work: a process in its own environment that does what it is told, line by line.

It gets an environment of its own: no keys and no settings of the user, telemetry off, a proxy that
refuses for everything that is not this machine, and a folder that goes with it. Its output is the
protocol of ``mgl.peers.host``; what it prints is kept in a log in that folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from mgl.errors import EngineRejected
from mgl.processes import new_token, start

HOST: Final = Path(__file__).parent / "host.py"
ADAPTERS: Final = Path(__file__).parent / "adapters"
END_S: Final = 5.0
_REFUSING: Final = "http://127.0.0.1:9"
_SETTINGS: Final = {
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "GRAPHITI_TELEMETRY_ENABLED": "false",
    "HF_HUB_OFFLINE": "1",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "MEM0_TELEMETRY": "False",
    "NO_PROXY": "127.0.0.1,localhost",
    "PIP_NO_INDEX": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "SEMAPHORE_LIMIT": "1",
    "HTTP_PROXY": _REFUSING,
    "HTTPS_PROXY": _REFUSING,
}


class PeerProcess:
    """Starts an adapter; ``folder`` is what it may write to, and is removed in the end."""

    def __init__(self, name: str, python: Path) -> None:
        self._name = name
        self._kept = tempfile.TemporaryDirectory(prefix=f"mgl-{name}-")
        self.folder = Path(self._kept.name)
        inherited = {
            each: os.environ[each] for each in ("PATH", "SYSTEMROOT") if each in os.environ
        }
        home = str(self.folder)
        own = {"HOME": home, "MEM0_DIR": home, "TIKTOKEN_CACHE_DIR": home, "TMPDIR": home}
        self._started = start(
            [str(python), "-P", "-s", "-B", str(HOST), str(ADAPTERS / f"{name}.py")],
            self.folder / "log.txt",
            new_token(),
            env={**inherited, **_SETTINGS, **own},
            cwd=self.folder,
            talks=True,
        )

    def do(self, what: str, **message: Any) -> Any:
        """Have something done and wait for it; EngineRejected where the peer fails at it."""
        process, log = self._started.process, self._started.log
        assert process.stdin is not None
        assert process.stdout is not None
        line = b""
        with suppress(OSError):
            process.stdin.write(json.dumps({"do": what, **message}).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        said = json.loads(line) if line else {"failed": f"it ended: {log.read_last_line()}"}
        if "failed" in said:
            raise EngineRejected(
                f"{self._name} failed to {what}: {said['failed']}",
                hint="its model may be too small for its prompts; --set mode=retrieval asks less",
            )
        return said["done"]

    @property
    def is_alive(self) -> bool:
        return not self._started.has_ended

    def close(self) -> None:
        """End the process, and with it all that it started, and remove its folder."""
        process = self._started.process
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
        self._started.end(patience_s=0.0)
        self._kept.cleanup()
