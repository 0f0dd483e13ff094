"""A server that speaks as vLLM does, counts as it does, and caches prefixes in blocks of words."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.openai.answering import Route, Server, chat, models, serving

MODEL = "Qwen/Qwen2.5-7B-Instruct"
BLOCK = 4


class Counting:
    """What the server holds and counts; every reply adds one node named after its block."""

    def __init__(self, hold_s: float = 0.0) -> None:
        self.ids: dict[str, int] = {}
        self.kept: set[tuple[str, tuple[int, ...]]] = set()
        self.counts: Counter[str] = Counter()
        self.hold_s = hold_s
        self.bodies: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._never = threading.Event()

    def routes(self) -> dict[str, Route]:
        return {
            "/v1/models": models(MODEL, max_model_len=8192, owned_by="vllm"),
            "/version": {"version": "0.32.0"},
            "/tokenize": self.tokenize,
            "/metrics": lambda _: self.metrics(),
            "/v1/chat/completions": self.complete,
        }

    def tokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        text = body.get("prompt") or body["messages"][-1]["content"]
        with self._lock:
            tokens = [self.ids.setdefault(word, len(self.ids)) for word in text.split()]
        return {"count": len(tokens), "tokens": tokens}

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        tokens = self.tokenize(body)["tokens"]
        self._never.wait(self.hold_s)
        with self._lock:
            self.bodies.append(body)
            cached = self._cached(body.get("cache_salt", ""), tokens)
            block = re.search(r"\(block (\d+)/", body["messages"][-1]["content"])
            node = {"op": "add_node", "src": 1, "id": f"n{block[1] if block else 0}"}
            operations = [{**node, "type": "event", "content": "something happened"}]
            text = json.dumps({"operations": operations})
            written = body["max_tokens"] if body.get("ignore_eos") else 12
            self.counts.update(
                requests=1, queries=len(tokens), hits=cached, prompt=len(tokens), written=written
            )
        usage = {
            "prompt_tokens": len(tokens),
            "completion_tokens": written,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        return chat(text) | {"usage": usage}

    def metrics(self) -> str:
        with self._lock:
            counts = dict(self.counts)
        lines = {
            "vllm:num_requests_running": 0,
            "vllm:num_requests_waiting": 0,
            "vllm:request_success_total": counts.get("requests", 0),
            "vllm:prefix_cache_queries_total": counts.get("queries", 0),
            "vllm:prefix_cache_hits_total": counts.get("hits", 0),
            "vllm:time_to_first_token_seconds_sum": counts.get("requests", 0) * 0.5,
            "vllm:time_to_first_token_seconds_count": counts.get("requests", 0),
        }
        page = "".join(f'{name}{{engine="0"}} {value}\n' for name, value in lines.items())
        return f'{page}vllm:cache_config_info{{block_size="{BLOCK}"}} 1.0\n'

    def _cached(self, salt: str, tokens: list[int]) -> int:
        found = 0
        ends = range(BLOCK, len(tokens) + 1, BLOCK)
        for end in ends:
            if (salt, tuple(tokens[:end])) not in self.kept or end >= len(tokens):
                break
            found = end
        self.kept.update((salt, tuple(tokens[:end])) for end in ends)
        return found


@contextmanager
def counting(hold_s: float = 0.0) -> Iterator[tuple[Server, Counting]]:
    held = Counting(hold_s)
    with serving(held.routes()) as server:
        yield server, held
