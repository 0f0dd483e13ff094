"""A conversation that is renamed keeps all that it has, and its old name leads to nobody's."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.api.memories import Memories
from mgl.errors import Conflict, MglError, StoreConflict, UsageError
from mgl.lab import Lab, OwnModels
from mgl.memories.base import is_memory_id
from mgl.openai.errors import NotServed
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import Conversation, Document, Question, Turn
from tests.api.conftest import Client, Served, TalkEngine

Names = (
    st.one_of(
        st.sampled_from(
            [
                *("a", "ac", "A", "a ", " a", "mem_", "mem", "run a"),
                *("%", "_", "0", "Zoë", "Zoe", "a/b", "/"),
            ]
        ),
        st.text("0123456789abcdef", min_size=1, max_size=12),
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8),
    )
    .map(lambda name: normalize("NFC", name))
    .filter(lambda name: name.strip() and name.strip() not in (".", ".."))
)
Verbs = st.sampled_from(
    [
        *("append", "append", "rename", "rename", "forget", "delete", "restart"),
        *("search", "export", "ask", "show", "nodes"),
    ]
)
Steps = st.lists(
    st.tuples(
        Verbs,
        st.sampled_from(["", "ann"]),
        st.integers(0, 5),
        st.integers(0, 5),
        st.integers(0, 16),
    ),
    min_size=4,
    max_size=16,
)


def open_lab(home: Path) -> Lab:
    engine = TalkEngine(native_tools=False)
    return Lab.open(OwnModels(engine, embedder=WordEmbedder(), reranker=WordReranker()), home=home)


@pytest.mark.heavy
@given(st.lists(Names, min_size=2, max_size=4, unique=True), Steps)
def test_nothing_is_lost_and_every_verb_sees_its_own(names: list[str], steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder), names, steps))


async def play(home: Path, names: list[str], steps: list[tuple[str, str, int, int, int]]) -> None:
    """Do the steps, each with the memories of a tenant, and compare with what names should hold.

    Names are the given ones, and the beginnings of ids that there are.
    """
    labs = {tenant: open_lab(home / tenant / "home") for tenant in ("", "ann")}
    opened = {tenant: Memories(lab) for tenant, lab in labs.items()}
    said: dict[str, dict[str, list[str]]] = {"": {}, "ann": {}}
    ids: dict[str, dict[str, str]] = {"": {}, "ann": {}}
    try:
        for number, (verb, tenant, place, goal, length) in enumerate(steps):
            memories, texts, known = opened[tenant], said[tenant], ids[tenant]
            begins = [
                part
                for each in labs[tenant].find_ids("")
                for part in (each[:length], each[4:][:length])
                if part.strip()
            ]
            offered = [*names, *begins]
            name, other = offered[place % len(offered)], names[goal % len(names)]
            if verb == "restart":
                labs[tenant].close()
                labs[tenant] = open_lab(home / tenant / "home")
                opened[tenant] = Memories(labs[tenant])
            elif verb == "append" and is_memory_id(name):
                with pytest.raises(UsageError, match="written as a memory's id"):
                    await memories.append(name, [Turn("", "user", "Hi.")])
            elif verb == "append":
                text = f"The otter no{number}x sleeps"
                await memories.append(name, [Turn("", "user", text)])
                texts.setdefault(name, []).append(text)
                known.setdefault(name, (await memories.find_conversation(name)).id)
            elif name not in texts:
                with pytest.raises(NotServed):
                    await memories.find_conversation(name)
            elif verb == "rename" and other in texts and other != name:
                with pytest.raises(Conflict):
                    await memories.rename(name, other)
            elif verb == "rename":
                await memories.rename(name, other)
                texts[other], known[other] = texts.pop(name), known.pop(name)
            elif verb == "delete":
                await memories.delete(name)
                del texts[name], known[name]
            else:
                shown = await do(memories, verb, known[name], texts[name])
                others = [each for of in said.values() for own in of.values() for each in own]
                assert not any(each in shown for each in others if each not in texts[name])
        for tenant, memories in opened.items():
            for name in names:
                if name not in said[tenant]:
                    with pytest.raises(NotServed):
                        await memories.show(name)
                    continue
                held = await memories.export(name)
                assert [turn["text"] for turn in held["turns"]] == said[tenant][name]
                assert (await memories.find_conversation(name)).id == ids[tenant][name]
    finally:
        for lab in labs.values():
            lab.close()


async def do(memories: Memories, verb: str, source: str, said: list[str]) -> str:
    """What is shown; the first turn is forgotten where that is the verb."""
    match verb:
        case "search":
            return str(await memories.search(source, "the otter"))
        case "ask":
            return str(await memories.ask(source, Question("Which otter?")))
        case "show":
            return str(await memories.show(source))
        case "nodes":
            return str(await memories.nodes(source))
    held = await memories.export(source)
    if verb == "forget" and held["turns"]:
        said.pop(0)
        return str(await memories.forget(source, [held["turns"][0]["id"]]))
    return str(held)


async def test_a_clients_chat_goes_on_in_the_conversation_that_was_renamed(http: Client) -> None:
    chat_id = {"metadata": {"chat_id": "3f9a"}}
    told = ["My horse is called Star."]
    told.append((await http.chat(*told, **chat_id))["content"])
    renamed = await http.patch("/api/conversations/3f9a", json={"name": "Horses"})
    assert (renamed.status_code, renamed.json()) == (200, {"name": "Horses"})
    said = await http.chat(*told, "It is black.", **chat_id)
    told += ["It is black.", said["content"]]
    assert said["conversation"] == "Horses"
    assert (await http.texts("Horses"))[::2] == ["My horse is called Star.", "It is black."]
    assert (await http.get("/api/conversations/3f9a")).status_code == 404
    await http.chat("It rains.", user="3f9a")  # named so by a person: another conversation
    await http.chat("It snows.", metadata={"conversation": "3f9a"})
    assert (await http.texts("3f9a"))[::2] == ["It rains.", "It snows."]
    await http.chat(*told, "It is old.", **chat_id)
    assert ((await http.texts("Horses"))[::2])[-1] == "It is old."
    assert len((await http.texts("3f9a"))[::2]) == 2


async def test_responses_go_on_in_the_conversation_that_was_renamed(http: Client) -> None:
    """By the id of the response before, and by the id that its conversation had then."""
    sent = {"model": "mgl/gam", "input": "My horse is called Star."}
    first = (await http.post("/v1/responses", json=sent)).json()
    identity = first["conversation"]["id"]
    path = f"/api/conversations/{identity}"
    assert (await http.patch(path, json={"name": "Horses"})).status_code == 200
    kept = (await http.get(f"/v1/responses/{first['id']}")).json()
    assert kept["output"][0]["content"][0]["text"] == first["output"][0]["content"][0]["text"]
    for number, before in enumerate(
        ({"previous_response_id": first["id"]}, {"conversation": identity})
    ):
        sent = {"model": "mgl/gam", "input": f"It is {number}.", **before}
        answer = await http.post("/v1/responses", json=sent)
        assert answer.status_code == 200, answer.text
    assert ((await http.texts("Horses"))[::2])[1:] == ["It is 0.", "It is 1."]
    assert (await http.delete(f"/v1/responses/{first['id']}")).status_code == 200
    assert (await http.get(f"/v1/responses/{first['id']}")).status_code == 404


async def test_ids_turns_and_traces_stay(http: Client) -> None:
    said = await http.chat("My horse is called Star.", user="a")
    (memory,) = await http.memories()
    source = f"/api/memories/{memory['memory_id']}"
    trace = f"{source}/trace?turn={quote(said['turn'] + '+')}"
    before = [(await http.get(path)).json() for path in (trace, f"{source}/log")]
    assert (await http.patch("/api/conversations/a", json={"name": "b"})).status_code == 200
    after = [(await http.get(path)).json() for path in (trace, f"{source}/log")]
    assert before[0]["calls"]
    for cited in before[0]["retrieved"]:
        cited["document"] = "b"
    assert after == before
    shown = (await http.get(source)).json()
    assert (shown["memory_id"], shown["document"]) == (memory["memory_id"], "b")
    found = await http.get("/api/conversations/b/search", params={"q": "horse"})
    assert found.json()["results"][0]["document"] == "b"
    await http.append("Hi.", name="a")
    refused = await http.patch("/api/conversations/b", json={"name": "a"})
    assert refused.status_code == 409


async def test_a_name_that_another_process_gave_away_opens_nothing_of_it(
    served: Served, http: Client
) -> None:
    """The server has the conversation open when `mgl rename` runs."""
    await http.chat("My horse is called Star.", user="a")
    lab = (await served.open_tenant("")).memories.lab
    with Store.open(lab._store.path) as store:
        store.rename_conversation(Conversation.from_name("a").id, "b")
    assert (await http.get("/api/conversations/a/export")).status_code == 404
    assert (await http.get("/api/memories/a")).status_code == 404
    await http.chat("It rains.", user="a")
    assert (await http.texts("a"))[0] == "It rains."
    assert (await http.texts("b"))[0] == "My horse is called Star."


def test_who_begins_a_conversation_while_its_name_is_given_away_writes_into_no_other(
    tmp_path: Path,
) -> None:
    with open_lab(tmp_path) as lab:
        begun = lab.talk("a"), lab.talk("b")  # nothing is stored yet
        lab.talk("a").append(Turn("1", "Ann", "Hello."))
        lab.rename("a", "b")
        for talk in begun:
            with pytest.raises(StoreConflict, match="meanwhile"):
                talk.append(Turn("1", "Bo", "Mine."))
        assert [turn.text for turn in lab.talk("b").memory.conversation.turns] == ["Hello."]


def test_a_document_takes_no_chats_name(tmp_path: Path) -> None:
    """What a client calls its chat leads there, whatever documents are called."""
    with open_lab(tmp_path) as lab:
        lab.talk("a").append(Turn("1", "Ann", "Hello."))
        lab.rename("a", "b")
        lab.keep(Document.from_text("a", "P1 met P2."))
        assert lab.find_chat("a") == "b"
        lab.delete("b")
        assert lab.find_chat("a") == "a"


def test_a_document_and_a_conversation_never_share_a_name_by_renaming(tmp_path: Path) -> None:
    with open_lab(tmp_path) as lab:
        lab.talk("a").append(Turn("1", "Ann", "Hello."))
        lab.keep(Document.from_text("story.txt", "P1 met P2."))
        with pytest.raises(Conflict, match="already"):
            lab.rename("a", "story.txt")
        with pytest.raises(Conflict, match="already"):
            lab.rename("story.txt", "a")
        lab.rename("a", "b")
        lab.rename("story.txt", "a")
        assert lab.talk("b").memory.conversation.turns


def test_a_name_is_checked_as_it_is_stored_and_where_it_is_written(tmp_path: Path) -> None:
    with open_lab(tmp_path) as lab:
        lab.talk("a").append(Turn("1", "Ann", "Hello."))
        document = Document.from_text("Zo\u00eb", "It rains.")
        for each in (document, Document.from_text("b", "It snows.")):
            lab.keep(each)
        for name in ("Zoe\u0308", ".", " ", "mem_0123456789ab"):
            with pytest.raises(MglError):
                lab.rename("a", name)
        with pytest.raises(Conflict):
            lab._store.rename_document(document.id, "b")
        lab._store.rename_document(document.id, "Zo\u00eb")
        lab.rename("a", "Ame\u0301")
        assert lab.talk("Am\u00e9").memory.conversation.turns


def test_a_store_of_before_is_renamed_too(tmp_path: Path) -> None:
    """Its conversations carry no mark that they are known by their names."""
    with Store.open(tmp_path / "mgl.sqlite") as store:
        old = replace(Conversation.from_name("a"), is_named=False)
        store.put_conversation(old)
        assert store.named_conversation("a").id == old.id
        store.rename_conversation(old.id, "b")
        assert store.named_conversation("b").id == old.id
        assert store.named_conversation("a").id not in (old.id, store.named_conversation("b").id)
