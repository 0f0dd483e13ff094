"""Each name opens its own memory and no other's, whatever the names are and whoever asks."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import quote

import pytest

from mgl.errors import MglError, UsageError
from mgl.integrations.client import RestClient
from mgl.integrations.mem0 import Memory
from mgl.lab import Lab, OwnModels
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.types import Document, Turn
from tests.api.conftest import Client, Served, Site, TalkEngine, open_server

SECRET = "The otter number 0 sleeps"


async def keep_a_secret(served: Served) -> str:
    """The id of a memory that holds it."""
    memories = (await served.open_tenant("")).memories
    await memories.append("alice-private", [Turn("", "user", SECRET)])
    return (await memories.find_conversation("alice-private")).id


async def test_a_name_that_begins_an_id_or_is_one_opens_nothing(
    served: Served, http: Client
) -> None:
    identity = await keep_a_secret(served)
    for name in (identity[:-1], identity[4:], identity[4:6], "ALICE-PRIVATE", identity):
        for place in ("conversations", "memories"):
            path = f"/api/{place}/{quote(name, safe='')}"
            answers = [
                await http.get(path),
                await http.get(f"{path}/export"),
                await http.get(f"{path}/nodes"),
                await http.get(f"{path}/search", params={"q": "otter"}),
                await http.post(f"{path}/ask", json={"question": "Which otter?"}),
                await http.post(f"{path}/forget", json={"turns": ["1"]}),
            ]
            if (place, name) != ("memories", identity):
                assert [each.status_code for each in answers] == [404] * 6
                assert not any(SECRET in each.text for each in answers)
    for name, status in ((identity, 400), (f" {identity}", 200)):
        assert SECRET not in str(await http.chat("Which otter?", user=name, status=status))
    for name, status in ((identity, 200), (identity[:-1], 400), ("diary", 400)):
        await http.chat("Hi.", metadata={"memory": name}, status=status)
    held = await http.get(f"/api/memories/{identity}/export")
    assert [turn["text"] for turn in held.json()["turns"]][:1] == ["Hi."]


def test_integrations_take_names_as_they_are(site: Site) -> None:
    pytest.importorskip("langchain_core", reason="needs the extra langchain")
    from mgl.integrations.langchain import MglChatHistory

    identity = site.do(keep_a_secret, site.served)
    site.do(site.http.read, "P1 met P2. The badger slept.", "book.txt")
    given: Any = {"base_url": site.served.base_url, "api_key": site.key}
    memory = Memory(**given)
    for find in (partial(memory.search, "badger"), memory.get_all):
        assert find(filters={"user_id": "book.txt"}) == {"results": []}, "it is a document"
    memory.add("The badger.", user_id="book.txt")
    for name in (identity, identity[:5], identity[4:], identity[4:6]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            history = MglChatHistory(name, **given)
        assert history.messages == []
        history.clear()
        assert memory.search("otter", filters={"user_id": name}) == {"results": []}
        assert memory.get_all(filters={"user_id": name}) == {"results": []}
        if name != identity:
            memory.add("The badger.", user_id=name)
    with pytest.raises(UsageError, match="written as a memory's id"):
        memory.add("The badger.", user_id=identity)
    assert [turn["text"] for turn in RestClient(**given).turns("alice-private")] == [SECRET]


def test_an_id_of_mem0_names_one_user_and_one_turn(site: Site) -> None:
    """A turn ``x/1`` of ``a`` is not the turn ``1`` of ``a/x``."""
    given: Any = {"base_url": site.served.base_url, "api_key": site.key}
    client, memory = RestClient(**given), Memory(**given)
    client.add("a", [{"text": "gone", "id": "x/1"}, {"text": "kept", "id": "1"}])
    gone, _ = memory.get_all(filters={"user_id": "a"})["results"]
    memory.delete(gone["id"])
    assert [turn["text"] for turn in client.turns("a")] == ["kept"]


async def test_tools_of_agents_take_names_as_they_are(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="needs the extra mcp")
    from mcp.client import Client as Agent

    from mgl.api.mcp import make_mcp

    async with open_server(tmp_path) as served:
        identity = await keep_a_secret(served)
        memories = (await served.open_tenant("")).memories
        async with Agent(make_mcp(lambda _: memories)) as agent:
            for name in (identity, identity[:6], identity[4:8]):
                for tool, given in (
                    ("recall", {"query": "otter"}),
                    ("forget", {"turns": ["1"]}),
                ):
                    answer = await agent.call_tool(tool, {"conversation": name, **given})
                    assert answer.is_error
                    assert SECRET not in f"{answer.content}"
        held = await memories.export(identity)
        assert [turn["text"] for turn in held["turns"]] == [SECRET]


def test_python_takes_names_as_they_are() -> None:
    with Lab.open(
        OwnModels(TalkEngine(native_tools=False), embedder=WordEmbedder(), reranker=WordReranker())
    ) as lab:
        talk = lab.talk("alice-private")
        talk.append(Turn("1", "user", SECRET))
        for name in (talk.id[:-1], talk.id[4:], talk.id[:5], "Alice-private", " alice-private"):
            for look in (lab.find, lab.memory, lab.view, lab.export, lab.edits, lab.look_at):
                with pytest.raises(MglError, match="no memory"):
                    look(name)
            assert not lab.talk(name).memory.conversation.turns
        with pytest.raises(MglError, match="no memory"):
            lab.talk("mem_0123456789ab")


# Whatever a chat may be called, REST can address


NAMES = ["a/b", "/", "../x", "a/turns", "a%2Fb", "50%", "a?b#c", " a", "a\nb", "..."]


@pytest.mark.parametrize("name", [*NAMES, "\u200b", "Zoe\u0308", "日本語", "😀"])
async def test_a_name_is_the_same_in_chat_and_rest(http: Client, name: str) -> None:
    await http.chat(SECRET, user=name)
    await http.append("It rains.", name=name)
    texts = await http.texts(name)
    assert (texts[0], texts[-1]) == (SECRET, "It rains.")
    written = [f"UTF-8''{quote(name, safe='')}".encode()]
    if name.strip() == name and name.isprintable():
        written.append(name.encode())
    for header in written:
        replied = await http.chat(SECRET, headers=[(b"X-MGL-Conversation", header)])
        assert normalize("NFC", replied["conversation"]) == normalize("NFC", name)
    assert len(await http.memories()) == 1
    assert (await http.delete(f"/api/conversations/{quote(name, safe='')}")).status_code == 200
    assert await http.memories() == []


async def test_a_name_that_no_path_can_hold_is_refused(http: Client) -> None:
    for name in (".", "..", "mem_0123456789ab", "a" * 201):
        for more in ({"user": name}, {"metadata": {"conversation": name}}):
            refused = await http.chat(SECRET, **more, status=400)
            assert "name" in refused["error"]["message"]
    assert await http.memories() == []


async def test_accents_are_the_same_in_either_form(http: Client) -> None:
    for name in ("Zoë", "Zoe\u0308"):
        await http.append(name, name=name)
    assert await http.texts("Zoë") == ["Zoë", "Zoe\u0308"]


async def test_two_kinds_of_one_name_are_told_apart(http: Client) -> None:
    for kind in ("gam", "mnemis"):
        await http.append("It rains.", name="a", memory=kind)
    refused = await http.get("/api/conversations/a/export")
    assert refused.status_code == 409
    assert "memory=gam" in refused.json()["error"]["message"]
    for kind in ("gam", "mnemis"):
        for verb in ("", "/export", "/nodes", "/search"):
            query = {"memory": kind, **({"q": "rain"} if verb == "/search" else {})}
            shown = await http.get(f"/api/conversations/a{verb}", params=query)
            assert shown.status_code == 200, shown.text
        export = await http.get("/api/conversations/a/export", params={"memory": kind})
        assert export.json()["kind"] == kind


async def test_a_text_that_came_under_two_names_is_found_by_both(
    served: Served, http: Client
) -> None:
    lab = (await served.open_tenant("")).memories.lab
    for name in ("first.txt", "second.txt"):
        await lab.abuild(Document.from_text(name, "P1 met P2. The badger slept."))
    for name in ("first.txt", "second.txt"):
        shown = await http.get(f"/api/memories/{name}")
        assert shown.status_code == 200, name
    await lab.abuild(Document.from_text("first.txt", "P3 met P4."))  # now two are called so
    other = (await http.get("/api/memories/first.txt")).json()["memory_id"]
    assert other != (await http.get("/api/memories/second.txt")).json()["memory_id"]
    assert (await http.delete("/api/memories/first.txt")).status_code == 409
    assert (await http.delete("/api/memories/second.txt")).status_code == 200
    assert (await http.get("/api/memories/second.txt")).status_code == 404
    assert (await http.delete("/api/memories/first.txt")).status_code == 200
    assert (await http.get("/api/memories/first.txt")).status_code == 404
