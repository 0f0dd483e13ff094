#!/usr/bin/env python3
"""Ask `mgl up` whatever its own description allows, and what that forbids, by Schemathesis.

    pip install schemathesis            # in an environment of its own: it brings a pytest plugin
    scripts/bench/schemas.py --schemathesis PATH/bin/st [--examples 100] [--seed 7]

A server in a process of its own, over a scripted engine, with conversations of both kinds, a
document and its job, and a second tenant. The names that exist are written into the description
that Schemathesis reads, so that requests get beyond 404. Checked: no answer of 500 or more, no
valid request that is refused, no invalid one that is accepted, statuses, types and shapes of
answers as described. Exit code 1 for any fault.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
from served import KEY, ServerProcess

CHECKS = (
    *("not_a_server_error", "status_code_conformance", "content_type_conformance"),
    *("response_schema_conformance", "positive_data_acceptance", "negative_data_rejection"),
)
HINT = "pip install schemathesis, and say where with --schemathesis PATH/bin/st"
PLACES = {
    **{f"path.{name}": name for name in ("memory", "name", "job", "model", "key", "training")},
    **{"body.topic": "topic", "body.merge": "topic", "body.turns[*]": "turn"},
}
"""Where names of what exists are put, and which."""
OFTEN = 0.8
HELD_TO = [
    {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 3},
]
"""Schemas that a reply can be held to."""


def fill(http: httpx.Client) -> None:
    """Keep something of each kind."""

    def post(path: str, body: Any, **params: Any) -> Any:
        kind = "content" if isinstance(body, bytes) else "json"
        answer = http.post(path, params=params, **{kind: body})
        return answer.raise_for_status().json()

    for name, memory in (("diary", "gam"), ("trip", "mnemis")):
        lines = [
            {
                "speaker": "Ann",
                "text": f"My horse {n} is called Star {n}.",
                "time": f"2024-05-{1 + n // 3:02}T10:{n:02}:00+02:00",
                "session": f"{n // 3}",
            }
            for n in range(9)
        ]
        log = "\n".join(map(json.dumps, lines)).encode()
        post(f"/api/conversations/{name}/file", log, memory=memory)
        post(f"/api/memories/{name}/ask", {"question": "What is my horse called?"})
    chat = {"model": "mgl/gam", "user": "chat", "messages": [{"role": "user", "content": "Hi"}]}
    post("/v1/chat/completions", chat)
    text = b"Ann met Bo in Lisbon. Bo gave Ann a horse. The horse is called Star."
    for memory in ("graph", "mindgraph"):
        job = post("/api/documents", text, name=f"{memory}.txt", memory=memory)
        while http.get(f"/api/jobs/{job['id']}").json()["state"] in ("waiting", "running"):
            time.sleep(0.1)


def list_names(http: httpx.Client) -> dict[str, list[str]]:
    """The names that exist, by what they name."""

    def find(path: str, part: str) -> list[Any]:
        found: list[Any] = http.get(path).raise_for_status().json()[part]
        return found

    memories = find("/api/memories", "memories")
    ids = [each["memory_id"] for each in memories]
    calls = [each["key"] for one in ids for each in find(f"/api/memories/{one}/calls", "calls")]
    exported = http.get("/api/memories/diary/export").json()
    return {
        "topic": [*exported["topics"]],
        "turn": [each["id"] for each in exported["turns"]],
        "memory": [*ids, *(each["document"] for each in memories)],
        "name": [each["document"] for each in memories if each["turns"] is not None],
        "job": [each["id"] for each in find("/api/jobs", "jobs")],
        "model": [each["id"] for each in find("/v1/models", "data")],
        "key": calls[-20:],
        "training": [each["name"] for each in find("/api/trainings", "trainings")],
    }


def narrow(description: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Add to a description what JSON Schema cannot say of any chat: which models there are, which
    schemas they can be held to, that the last message is the user's, and that images need a memory,
    which needs a name. The dimensions of an embedding, which only the embedder knows, are left out;
    the input of a response is a text."""
    narrowed: dict[str, Any] = copy.deepcopy({**description})
    schemas = narrowed["components"]["schemas"]
    schemas["_JsonSchema"]["properties"]["schema"] = {"enum": HELD_TO}
    schemas["EmbeddingRequest"]["properties"].pop("dimensions")
    schemas["ResponseRequest"]["properties"]["input"] = {"type": "string", "pattern": "[a-z]"}
    any_message = schemas["_ChatMessage"]
    text_message = copy.deepcopy(any_message)
    text_message["properties"]["content"] = {"type": ["string", "null"]}
    remembers = [name for name in names["model"] if name.startswith("mgl/")]
    plain = _narrow_chat(schemas["ChatRequest"], text_message)
    plain["properties"]["model"] = {"enum": [*{*names["model"]} - {*remembers}]}
    remembered = _narrow_chat(schemas["ChatRequest"], any_message)
    remembered["properties"] |= {"model": {"enum": remembers}, "user": {"enum": names["name"]}}
    remembered["required"] = [*remembered["required"], "user"]
    schemas["ChatRequest"] = {"anyOf": [plain, remembered]}
    return narrowed


def _narrow_chat(chat: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """A chat of some messages, of which the last is the user's."""
    narrowed: dict[str, Any] = copy.deepcopy({**chat})
    text = {"type": "string", "minLength": 1, "pattern": "[a-z]"}
    user = {
        "type": "object",
        "required": ["role", "content"],
        "properties": {"role": {"const": "user"}, "content": text},
    }
    narrowed["properties"]["messages"] = {
        "anyOf": [
            {
                "type": "array",
                "prefixItems": [*[message] * more, user],
                "minItems": more + 1,
                "maxItems": more + 1,
            }
            for more in range(4)
        ]
    }
    return narrowed


def configure(options: argparse.Namespace, names: Mapping[str, Sequence[str]]) -> str:
    """Write Schemathesis' configuration: most names exist, and a file may be refused, since no
    schema says what is in it."""
    checks = "\n".join(f"{each}.enabled = true" for each in CHECKS)
    known = "\n".join(f"{name}.values = {json.dumps(each)}" for name, each in names.items())
    bound = "\n".join(
        f'"{place}" = {{ dictionary = "{name}", probability = {OFTEN} }}'
        for place, name in PLACES.items()
        if name in names
    )
    return f"""
seed = {options.seed}
continue-on-failure = true
headers = {{ Authorization = "Bearer {KEY}" }}
request-timeout = 60
[output]
sanitization.enabled = false
[generation]
max-examples = {options.examples}
database = "none"
[checks]
enabled = false
{checks}
[dictionaries]
{known}
[parameters]
{bound}
[[operations]]
include-operation-id = ["take_in_file_talk", "read_document"]
checks.positive_data_acceptance.expected-statuses = ["2XX", "400", "404", "409"]
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--schemathesis", default="st", help="its command [default: st]")
    parser.add_argument("--examples", type=int, default=50, help="requests an operation")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args(arguments)
    command = shutil.which(options.schemathesis)
    if command is None:
        print(f"there is no command {options.schemathesis!r}: {HINT}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        home, described, settings = (Path(folder, each) for each in ("home", "api.json", "st.toml"))
        with ServerProcess(home, tenants=["ann"]) as server:
            with httpx.Client(base_url=server.root, headers=server.headers, timeout=60) as http:
                fill(http)
                description = http.get("/api/openapi.json").raise_for_status().json()
                names = list_names(http)
            settings.write_text(configure(options, names))
            ended = []
            for mode in ("positive", "negative"):
                if mode == "positive":
                    described.write_text(json.dumps(narrow(description, names)))
                else:
                    described.write_text(json.dumps(description))
                print(f"{mode} data, seed {options.seed}", flush=True)
                told: list[str | Path] = ["run", described, "--url", server.root, "--mode", mode]
                ran = subprocess.run([command, "--config-file", settings, *told], cwd=folder)
                ended.append(ran.returncode)
    return int(any(ended))


if __name__ == "__main__":
    sys.exit(main())
