"""A model server on 127.0.0.1 that speaks the OpenAI protocol and reads like a machine.

It turns every sentence "P3 met P4." that the last message shows into a node, links neighbours,
and answers with the nodes that there are. Of conversations it remembers what ``talking`` says.
The same request always gets the same reply. A probe
finds that it honours ``response_format`` and refuses every other constraint; what a probe asks is
no chat request that is counted.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mgl.serving.probe import QUESTIONS, WORDS
from tests.cli.talking import reply_about_talk
from tests.patience import PATIENCE_S

MODEL = "Qwen/Qwen2.5-7B-Instruct"
SENTENCE = re.compile(r"P(\d+) met P\d+\.")
REFUSED = ("structured_outputs", "grammar", "ebnf", "regex")
NODE_ID = re.compile(r'"id": ?"(p\d+)"')


def story(sentences: int) -> str:
    """A text whose every sentence is one fact, in paragraphs of four."""
    parts = [f"P{n} met P{n + 1}." + ("\n\n" if n % 4 == 3 else " ") for n in range(sentences)]
    return "".join(parts).rstrip()


class Server(ThreadingHTTPServer):
    """``seen`` holds the chat requests that arrived, ``done`` those that were answered.

    ``probes`` counts the requests of probes, which are in neither; ``keys`` are what all requests
    brought. ``context_tokens`` is what it says of its model, and ``version`` is vLLM's, which it
    then claims to be; while it is ``busy`` it answers no chat request.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, delay: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.delay = delay
        self.stall_after: int | None = None
        self.context_tokens = 32_768
        self.busy = False
        self.version: str | None = None
        self.seen: list[dict[str, Any]] = []
        self.done: list[str] = []
        self.probes = 0
        self.keys: set[str | None] = set()
        self.closing, self.going_on = threading.Event(), threading.Event()
        self.arrived = threading.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def wait_for(self, requests: int, timeout: float = PATIENCE_S) -> None:
        """Return once so many chat requests have arrived."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.seen) >= requests, timeout), (
                f"{len(self.seen)} of {requests} requests came"
            )

    def hold(self, number: int) -> None:
        """Let a reply take its time; from ``stall_after`` on none comes before ``go_on``."""
        if self.stall_after is not None and number > self.stall_after:
            self.going_on.wait()
        else:
            self.closing.wait(self.delay)

    def go_on(self) -> None:
        """Send the replies that stall, and stall none any more."""
        self.stall_after = None
        self.going_on.set()


@contextmanager
def serving(delay: float = 0.0) -> Iterator[Server]:
    server = Server(delay)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.go_on()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.server.keys.add(self.headers["Authorization"])
        if self.path == "/v1/models":
            served = {"id": MODEL, "max_model_len": self.server.context_tokens}
            self._send({"object": "list", "data": [served]})
        elif self.path == "/version" and self.server.version is not None:
            self._send({"version": self.server.version})
        else:
            self._send({"error": {"message": "no such page"}}, 404)

    def do_POST(self) -> None:
        self.server.keys.add(self.headers["Authorization"])
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            text = body.get("prompt") or json.dumps(body.get("messages"))
            tokens = text.split()
            self._send({"count": len(tokens), "tokens": tokens})
            return
        if self.path != "/v1/chat/completions":
            self._send({"error": {"message": "no such page"}}, 404)
            return
        if body["messages"][-1]["content"] in QUESTIONS:
            self.server.probes += 1
            self._probed(body)
            return
        if self.server.busy:
            self._send({"error": {"message": "busy"}}, 503)
            return
        with self.server.arrived:
            self.server.seen.append(body)
            number = len(self.server.seen)
            self.server.arrived.notify_all()
        self.server.hold(number)
        reply = reply_to(body)
        self.server.done.append(json.dumps(body, sort_keys=True))
        self._complete(body, reply)

    def _probed(self, body: dict[str, Any]) -> None:
        if any(name in body for name in REFUSED):
            self._send({"error": {"message": "unknown parameter: structured_outputs"}}, 400)
        elif "response_format" in body:
            self._complete(body, json.dumps({"word": WORDS[0]}))
        else:
            self._complete(body, "It is Paris.")

    def _complete(self, body: dict[str, Any], reply: str) -> None:
        self._send(
            {
                "id": "c1",
                "object": "chat.completion",
                "model": MODEL,
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": reply},
                        "logprobs": _logprobs(reply) if body.get("logprobs") else None,
                    }
                ],
                "usage": {
                    "prompt_tokens": len(json.dumps(body["messages"]).split()),
                    "completion_tokens": len(reply.split()),
                    "total_tokens": 0,
                },
            }
        )

    def _send(self, value: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(value).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


def _logprobs(reply: str) -> dict[str, Any]:
    """A token is a word, or one other character; the server is as sure of each."""
    return {"content": [{"token": t, "logprob": -0.1} for t in re.findall(r"\w+|\W", reply)]}


def reply_to(body: dict[str, Any]) -> str:
    first, last = (body["messages"][place]["content"] for place in (0, -1))
    prompt = first if "Reply to the last message of" in first else last
    if prompt is first and "\n[1] " not in first and len(body["messages"]) > 2:
        return str(body["messages"][1]["content"])
    schema = json.dumps(body.get("response_format") or body.get("structured_outputs") or "")
    if (said := reply_about_talk(prompt, schema)) is not None:
        return said
    if '"entities"' in schema:
        return json.dumps(_entities(prompt))
    if '"operations"' in schema:
        return json.dumps({"operations": _operations(prompt)})
    nodes = sorted(set(NODE_ID.findall(prompt)))
    final = {"cited_nodes": nodes[:2], "answer": f"{len(nodes)} met.", "confidence": "high"}
    if '"step"' in schema:
        return json.dumps({"step": {"action": "answer", **final}})
    return json.dumps(final)


def _entities(prompt: str) -> dict[str, Any]:
    """Of a passage with numbered sentences: who is in it, and who met whom."""
    entities, relations = [], []
    for src, one, other in re.findall(r"\[(\d+)\] P(\d+) met P(\d+)\.", prompt):
        said = {"src": int(src), "description": f"P{one} met P{other}."}
        entities.append({"type": "person", "name": f"P{one}", **said})
        relations.append({"source": f"P{one}", "target": f"P{other}", **said})
    return {"entities": entities[:10], "relations": relations[:8]}


def _operations(prompt: str) -> list[dict[str, Any]]:
    known = set(NODE_ID.findall(prompt))
    found = {int(match[1]): match[0] for match in SENTENCE.finditer(prompt)}
    new = {n: quote for n, quote in sorted(found.items()) if f"p{n}" not in known}
    made: list[dict[str, Any]] = []
    for n, quote in new.items():
        made.append(
            {
                "op": "add_node",
                "src": quote,
                "id": f"p{n}",
                "type": "event",
                "content": f"person {n} met another",
            }
        )
        if n - 1 in new or f"p{n - 1}" in known:
            made.append(
                {
                    "op": "add_edge",
                    "src": quote,
                    "source": f"p{n - 1}",
                    "target": f"p{n}",
                    "relation": "before",
                }
            )
    return made
