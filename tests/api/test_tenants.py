"""Tenants see their own memories and nothing else, whatever both do, by all three protocols."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mgl.api.limits import Limits
from mgl.lab.workplace import DATABASE, Workplace
from tests.api.conftest import Client, open_server

WORDS = {"": "quagga", "ann": "zeppelin"}
"""What each says, and the other never does."""

TEXT = {"text": "other words"}

Step = tuple[str, str, str, int]
Steps = st.lists(
    st.tuples(
        st.sampled_from([*WORDS]),
        st.sampled_from(
            ["append", "chat", "ask", "search", "find", "list", "forget", "export", "page"]
        ),
        st.sampled_from(["diary", "work"]),
        st.integers(0, 5),
    ),
    min_size=4,
    max_size=14,
)


@given(Steps)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_two_tenants_never_see_each_other(monkeypatch: pytest.MonkeyPatch, steps: Any) -> None:
    monkeypatch.setattr(Workplace, "preset", "small")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder), steps))
        for name, word in WORDS.items():
            (other,) = {*WORDS.values()} - {word}
            place = Path(folder, "tenants", name) if name else Path(folder)
            for path in place.glob(f"{DATABASE}*"):
                assert other.encode() not in path.read_bytes()


async def play(home: Path, steps: list[Step]) -> None:
    said: dict[str, dict[str, list[str]]] = {name: {} for name in WORDS}
    async with (
        open_server(home, tenants=["ann"], limits=Limits(0)) as served,
        Client(served) as owner,
        Client(served, served._keys.add("ann")) as ann,
    ):
        for number, (tenant, what, talk, place) in enumerate(steps):
            (other,) = {*WORDS.values()} - {WORDS[tenant]}
            text = f"The {WORDS[tenant]} number {number}"
            answer = await do(ann if tenant else owner, said[tenant], text, what, talk, place)
            assert other not in answer.text
            known = talk in said[tenant]
            needs = what in ("ask", "search", "forget", "export", "page")
            assert answer.status_code == (404 if needs and not known else answer.status_code)
            if what == "list":
                listed = {each["document"] for each in answer.json()["memories"]}
                assert listed == set(said[tenant])
            elif what == "find":
                found = [each["quote"] for each in answer.json()["results"]]
                own = [text for texts in said[tenant].values() for text in texts]
                assert sorted(text for text in found if WORDS[tenant] in text) == sorted(
                    text for text in own if WORDS[tenant] in text
                )
            elif what == "export" and known:
                texts = [each["text"] for each in answer.json()["turns"]]
                assert [text for text in texts if WORDS[tenant] in text] == said[tenant][talk]


async def do(
    http: httpx.AsyncClient,
    said: dict[str, list[str]],
    text: str,
    what: str,
    talk: str,
    place: int,
) -> httpx.Response:
    """Do one step, and note what it changes."""
    if what == "append":
        said.setdefault(talk, []).append(text)
        turns = {"turns": [{"text": text}]}
        return await http.post(f"/api/conversations/{talk}/turns", json=turns)
    if what == "chat":
        said.setdefault(talk, []).append(text)
        sent = {"model": "mgl/gam", "user": talk, "messages": [{"role": "user", "content": text}]}
        answer = await http.post("/v1/chat/completions", json=sent)
        reply = answer.json()["choices"][0]["message"]["content"]
        said[talk] += [reply] if any(word in reply for word in WORDS.values()) else []
        return answer
    if what == "ask":
        sent = {"question": "Which number was it?"}
        return await http.post(f"/api/memories/{talk}/ask", json=sent)
    if what == "search":
        return await http.get(f"/api/memories/{talk}/search", params={"q": "the number"})
    if what == "find":
        return await http.get("/api/search", params={"q": "number", "limit": 100})
    if what == "page":
        return await http.get(f"/api/memories/{talk}/page")
    if what == "list":
        return await http.get("/api/memories")
    if what == "export":
        return await http.get(f"/api/memories/{talk}/export")
    return await forget(http, said, talk, place)


async def forget(
    http: httpx.AsyncClient, said: dict[str, list[str]], talk: str, place: int
) -> httpx.Response:
    """Forget one of the turns of a conversation, if it exists."""
    exported = await http.get(f"/api/memories/{talk}/export")
    turns = exported.json().get("turns", [])
    if not turns:
        return await http.post(f"/api/memories/{talk}/forget", json={"turns": ["1"]})
    chosen = turns[place % len(turns)]["id"]
    answer = await http.post(f"/api/memories/{talk}/forget", json={"turns": [chosen]})
    gone = answer.json()["turns"]
    assert chosen in gone
    for turn in turns:
        if turn["id"] in gone and turn["text"] in said[talk]:
            said[talk].remove(turn["text"])
    return answer


@pytest.mark.parametrize("tenant", ["", "ann"])
async def test_an_id_of_another_is_no_id(tmp_path: Path, tenant: str) -> None:
    """The exact id of a memory, and of a job, under another's key."""
    async with open_server(tmp_path, tenants=["ann"]) as served:
        keys = {"": served.key, "ann": served._keys.add("ann")}
        mine = {"Authorization": f"Bearer {keys[tenant]}"}
        other = {"Authorization": f"Bearer {keys['' if tenant else 'ann']}"}
        async with httpx.AsyncClient(base_url=served.root) as http:
            turns = {"turns": [{"text": "hello"}]}
            await http.post("/api/conversations/diary/turns", json=turns, headers=mine)
            (memory,) = (await http.get("/api/memories", headers=mine)).json()["memories"]
            given = await http.post(
                "/api/documents", params={"name": "a.txt"}, content=b"P1 met P2.", headers=mine
            )
            source, job = f"/api/memories/{memory['memory_id']}", f"/api/jobs/{given.json()['id']}"
            shown = [f"{source}/{part}" for part in ("export", "page", "trace?turn=1")]
            for path in (source, *shown, job, f"{job}/events"):
                assert (await http.get(path, headers=other)).status_code == 404
            renamed = await http.patch(source, json={"name": "x"}, headers=other)
            corrected = await http.post(f"{source}/turns/1", json=TEXT, headers=other)
            assert (renamed.status_code, corrected.status_code) == (404, 404)
            assert "hello" in (await http.get(f"{source}/export", headers=mine)).text
            assert json.loads((await http.get("/api/jobs", headers=other)).text) == {"jobs": []}
