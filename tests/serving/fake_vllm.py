"""A server that starts, answers, crashes and refuses to end as vLLM does, in a process of its own.

    python fake_vllm.py --port 8000 --name tiny [--crash FILE] [--times N] …

It is run as a file, with the standard library alone. ``GET /crash`` makes it crash, with what
``--crash`` holds as its last words.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any

STARTING = """\
(APIServer pid=1) INFO 11-22 01:39:53 [api_utils.py:286] non-default args: {'port': 0}
(EngineCore pid=2) INFO 11-22 01:40:12 [core.py:133] Initializing a V1 LLM engine (v0.32.0)
(Worker pid=3) INFO 11-22 01:40:23 [cpu_model_runner.py:68] Starting to load model /m...
Loading safetensors checkpoint shards:   0% Completed | 0/2 [00:00<?, ?it/s]\r\
Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<00:00,  1.75it/s]\r
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", default="tiny")
    parser.add_argument("--load-until", type=Path, help="answers once this file is there")
    parser.add_argument("--crash", type=Path, help="holds its last words")
    parser.add_argument("--times", type=int, default=0, help="crashes while starting, so often")
    parser.add_argument("--child", action="store_true", help="has a child in a session of its own")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if chosen.child:
        wait = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        subprocess.Popen([sys.executable, "-S", "-c", wait], start_new_session=True)
    print(STARTING, end="", flush=True)
    if chosen.times and _count(chosen.crash) <= chosen.times:
        _crash(chosen.crash)
    while chosen.load_until is not None and not chosen.load_until.exists():
        time.sleep(0.02)
    server = _Server(("127.0.0.1", chosen.port), _Handler)
    _Handler.name, _Handler.words = chosen.name, chosen.crash
    print("INFO:     Application startup complete.", flush=True)
    server.serve_forever()


def _count(beside: Path) -> int:
    """How often this has been started, this time included."""
    with beside.with_suffix(".starts").open("a+") as starts:
        starts.write("x")
        starts.seek(0)
        return len(starts.read())


def _crash(words: Path | None) -> None:
    print(words.read_text() if words else "Segmentation fault", flush=True)
    os._exit(1)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Bind without asking for the machine's name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]


class _Handler(BaseHTTPRequestHandler):
    name = ""
    words: Path | None = None

    def do_GET(self) -> None:
        if self.path == "/crash":
            _crash(self.words)
        if self.path == "/health":
            self._send(200, None)
        elif self._known():
            listed = [{"id": self.name, "parent": None, "max_model_len": 2048}]
            self._send(200, {"object": "list", "data": listed})

    def _known(self) -> bool:
        known = self.headers["Authorization"] == f"Bearer {os.environ.get('VLLM_API_KEY')}"
        if not known:
            self._send(401, {"error": "Unauthorized"})
        return known

    def _send(self, status: int, value: Any) -> None:
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    main()
