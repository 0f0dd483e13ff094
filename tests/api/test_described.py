"""What the description allows is answered, and as it says: whatever is asked, in any order."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mgl.api.limits import Limits
from mgl.api.openapi import describe
from mgl.api.server import ALL
from mgl.lab.workplace import Workplace
from tests.api.conftest import HORSE, MEMORY, Client, open_server
from tests.api.requests import requests

DESCRIBED = describe(ALL)
NAMES = {
    "name": ["diary", "trip", "new"],
    "memory": ["diary", "trip", "book.txt"],
    "model": ["mgl/gam", "mgl/mnemis"],
}
USER = {"role": "user", "content": "It rains."}
TAKEN = {200, 201, 202, 404, 409}


@pytest.mark.heavy
@given(st.lists(requests(DESCRIBED, NAMES), min_size=1, max_size=20))
@settings(suppress_health_check=[*HealthCheck])
def test_what_is_described_is_answered_whatever_came_before(sent: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(Workplace, "preset", "small")
        asyncio.run(play(Path(folder), sent))


async def play(home: Path, sent: list[Any]) -> None:
    async with (
        open_server(home, limits=Limits(0), native_tools=True) as served,
        Client(served) as http,
    ):
        await http.append(HORSE, "It rains")
        await http.append(HORSE, name="trip", memory="mnemis")
        await http.read("Ann met Bo. Bo met Cy.", "book.txt")
        for method, path, body, options in sent:
            if path == "/v1/chat/completions":
                body = complete_chat(body)
            if path == "/v1/responses":
                body = complete_response(body)
            is_file = isinstance(body, bytes)  # of which no schema says what is in it
            content = body if is_file else json.dumps(body)  # with half characters, too
            answer = await http.request(method, path, content=content, **options)
            assert answer.status_code in (TAKEN | {400} if is_file else TAKEN), answer.text


def complete_response(body: dict[str, Any]) -> dict[str, Any]:
    """Add what no schema says: there is such a model, and something is said. What is made of other
    responses, and how a reply is formed, is left out."""
    left_out = {"text", "tools", "previous_response_id", "conversation"}
    kept = {name: value for name, value in body.items() if name not in left_out}
    return {**kept, "model": MEMORY, "user": "diary", "input": "Hello"}


def complete_chat(body: dict[str, Any]) -> dict[str, Any]:
    """Add what no schema says: the last message is the user's, and the model and its schema can be
    used."""
    # A memory keeps images, which the model alone refuses.
    body = {**body, "model": MEMORY, "user": "diary", "messages": [*body["messages"], USER]}
    if (form := body.get("response_format")) and form["type"] == "json_schema":
        held = {**form["json_schema"], "schema": {"type": "object"}}
        body["response_format"] = {**form, "json_schema": held}
    return body
