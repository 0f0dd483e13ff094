"""Deleting by REST and by MCP, with jobs and open conversations."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from mgl.lab import Lab
from mgl.llm.base import Completion, Request
from tests.api.conftest import Client, Serve, TalkEngine
from tests.cli.server import story
from tests.leftovers import find_left
from tests.patience import PATIENCE_S

BOOK = f"{story(8)}\nThen Zorblat met Quaxby."
WORDS = ["zorblat", "quaxby", "vintorp"]


async def upload(http: Client, **more: Any) -> dict[str, Any]:
    return await http.upload(BOOK, "vintorp.txt", **more)


async def list_names(http: Client) -> list[str]:
    return [each["document"] for each in await http.memories()]


async def test_a_document_is_deleted_with_its_job(serve: Serve, mgl_home: Path) -> None:
    async with serve(preset="paper") as served, Client(served) as http:
        job = await upload(http, question=["How many met Zorblat?"])
        memory = (await http.finish(job["id"]))["memory_id"]
        kept = (await http.read(story(8), "other.txt"))["memory_id"]
        await http.ask(memory, "How many met?")
        said = (await http.ask(kept, "How many met?"))["answer"]
        assert set(find_left(mgl_home, WORDS)) == {*WORDS}
        plan = await http.delete("/api/memories/vintorp.txt", params={"dry_run": True})
        assert plan.status_code == 200
        assert (plan.json()["takes_source"], plan.json()["jobs"]) == (True, [job["id"]])
        assert (plan.json()["answers"], plan.json()["questions"]) == (1, 2)
        assert set(find_left(mgl_home, WORDS)) == {*WORDS}
        gone = await http.delete("/api/memories/vintorp.txt")
        assert gone.json() == plan.json()
        assert find_left(mgl_home, [*WORDS, memory, job["document_id"]]) == {}
        for path in (f"/api/jobs/{job['id']}", f"/api/memories/{memory}"):
            assert (await http.get(path)).status_code == 404
        assert await list_names(http) == ["other.txt"]
        assert (await http.ask(kept, "How many met?"))["answer"] == said
        for name in ("vintorp.txt", memory, "nothing"):
            assert (await http.delete(f"/api/memories/{name}")).status_code == 404
    assert find_left(mgl_home, WORDS) == {}


async def test_a_conversation_is_deleted_with_its_name_and_begins_anew(
    http: Client, mgl_home: Path
) -> None:
    await http.append("I keep a zorblat", "It is called Quaxby", name="vintorp")
    await http.append("I keep nothing", name="other")
    await http.chat("What is my zorblat called?", user="vintorp")
    await http.ask("vintorp", "What is the zorblat called?")
    plan = await http.delete("/api/conversations/vintorp", params={"dry_run": "true"})
    assert plan.json()["turns"] == 4
    assert (await http.delete("/api/conversations/vintorp")).json()["turns"] == 4
    assert find_left(mgl_home, WORDS) == {}
    for path in ("search?q=zorblat", "export", "nodes"):
        for room in ("memories", "conversations"):
            assert (await http.get(f"/api/{room}/vintorp/{path}")).status_code == 404
    assert (await http.delete("/api/conversations/vintorp")).status_code == 404
    assert await http.append("I am new here", name="vintorp") == ["1"]
    exported = (await http.get("/api/conversations/vintorp/export")).json()
    assert [turn["text"] for turn in exported["turns"]] == ["I am new here"]
    assert exported["forgotten"] == []
    assert find_left(mgl_home, WORDS[:2]) == {}


async def test_a_conversations_path_never_deletes_a_document(paper: Client) -> None:
    done = await paper.finish((await upload(paper))["id"])
    for name in ("vintorp.txt", done["memory_id"]):
        assert (await paper.delete(f"/api/conversations/{name}")).status_code == 404
    await paper.append("Hello", name="vintorp.txt")
    refused = await paper.delete("/api/memories/vintorp.txt")
    assert refused.status_code == 409
    assert "are called" in refused.json()["error"]["message"]
    assert (await paper.delete("/api/conversations/vintorp.txt")).json()["turns"] == 1
    assert (await paper.delete("/api/memories/vintorp.txt")).json()["turns"] is None


async def test_one_kind_of_memory_goes_alone(http: Client) -> None:
    for kind in ("gam", "mnemis"):
        await http.append(f"I like {kind}", memory=kind)
    gone = (await http.delete("/api/conversations/diary", params={"memory": "mnemis"})).json()
    assert (gone["takes_source"], len(gone["kept"])) == (False, 1)
    (left,) = await http.memories()
    assert (left["memory"], left["turns"]) == ("gam", 2)


async def delete_elsewhere(name: str) -> None:
    """As `mgl delete` does beside a server."""

    def delete() -> None:
        with Lab.open() as lab:
            lab.delete(name)

    await asyncio.to_thread(delete)


async def test_another_process_deletes_what_the_server_has_open(
    serve: Serve, mgl_home: Path
) -> None:
    async with serve(preset="paper") as served, Client(served) as http:
        await http.append("I keep a zorblat called Quaxby", name="vintorp")
        found = await http.get("/api/memories/vintorp/search", params={"q": "zorblat"})
        assert found.json()["results"]
        job = await upload(http)
        await http.finish(job["id"])
        for name in ("vintorp", "vintorp.txt"):
            await delete_elsewhere(name)
        assert (await http.get("/api/jobs")).json()["jobs"] == []
        assert (await http.get(f"/api/jobs/{job['id']}")).status_code == 404
        found = await http.get("/api/memories/vintorp/search", params={"q": "zorblat"})
        assert found.status_code == 404
        assert await http.append("I am new here", name="vintorp") == ["1"]
        found = await http.get("/api/memories/vintorp/search", params={"q": "zorblat"})
        assert [each["quote"] for each in found.json()["results"]] == ["I am new here"]
        await delete_elsewhere("vintorp")
    assert find_left(mgl_home, WORDS) == {}


class Waiting:
    """Holds a server's model in its next call, until it may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
        self.reached, self.goes_on = threading.Event(), threading.Event()
        generate = TalkEngine.generate

        async def wait(engine: TalkEngine, request: Request) -> Completion:
            if word in request.messages[-1].content and not self.goes_on.is_set():
                self.reached.set()
                await asyncio.to_thread(self.goes_on.wait, 60)
            return await generate(engine, request)

        monkeypatch.setattr(TalkEngine, "generate", wait)


async def test_a_document_is_deleted_while_a_job_builds_it(
    serve: Serve, mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Waiting(monkeypatch, "Zorblat")
    async with serve(preset="paper") as served, Client(served) as http:
        job = await upload(http)
        await asyncio.to_thread(waiting.reached.wait, 60)
        assert (await http.delete("/api/memories/vintorp.txt")).status_code == 200
        assert (await http.get("/api/jobs")).json()["jobs"] == []
        waiting.goes_on.set()
        other = await http.read(story(3), "other.txt")
        assert other["state"] == "done"  # after the job that was under way has ended
        assert await list_names(http) == ["other.txt"]
        assert (await http.get(f"/api/jobs/{job['id']}")).status_code == 404
    assert find_left(mgl_home, [*WORDS, job["document_id"]]) == {}


async def test_a_job_is_stopped_and_deleted_with_its_document(
    serve: Serve, mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, entered, goes_on = Lab.build_stored, threading.Event(), threading.Event()

    def wait(*arguments: Any, **named: Any) -> Any:
        entered.set()
        goes_on.wait(PATIENCE_S)
        return build(*arguments, **named)

    monkeypatch.setattr(Lab, "build_stored", wait)
    async with serve(preset="paper") as served, Client(served) as http:
        job = await upload(http, question=["Who is Quaxby?"])
        waits = await http.upload(story(3), "other.txt")
        await asyncio.to_thread(entered.wait, PATIENCE_S)
        events = asyncio.create_task(http.finish(job["id"]))
        await asyncio.sleep(0.2)
        gone = await http.delete(f"/api/jobs/{job['id']}")
        assert gone.json()["id"] == job["id"]
        assert (await events)["error"] == "this job was deleted"
        assert find_left(mgl_home, [*WORDS, job["document_id"]]) == {}
        assert (await http.delete(f"/api/jobs/{job['id']}")).status_code == 404
        goes_on.set()
        assert (await http.finish(waits["id"]))["state"] == "done"
        assert [each["id"] for each in (await http.get("/api/jobs")).json()["jobs"]] == [
            waits["id"]
        ]
        assert await list_names(http) == ["other.txt"]
    assert find_left(mgl_home, WORDS) == {}


async def test_a_job_that_is_done_leaves_its_memory_and_another_its_document(
    paper: Client,
) -> None:
    first = await paper.finish((await upload(paper))["id"])
    second = await upload(paper, question=["How many met?"])
    await paper.finish(second["id"])
    assert (await paper.delete(f"/api/jobs/{first['id']}")).status_code == 200
    assert (await paper.get(f"/api/memories/{first['memory_id']}")).status_code == 200
    assert (await paper.delete(f"/api/jobs/{second['id']}")).status_code == 200
    assert len(await list_names(paper)) == 2


async def test_a_job_whose_document_is_gone_is_not_begun_again(
    serve: Serve, mgl_home: Path
) -> None:
    async with serve(preset="paper") as served, Client(served) as http:
        job = await upload(http)
        await http.finish(job["id"])
        path = mgl_home / "jobs" / f"{job['id']}.json"
        left = path.read_text().replace('"state":"done"', '"state":"waiting"')
        await http.delete("/api/memories/vintorp.txt")
    path.write_text(left)  # as if the one who deleted had been killed
    path.with_name(f"{path.name}.77").write_text('{"document": "vintorp')
    async with serve(preset="paper") as served, Client(served) as http:
        assert (await http.get("/api/jobs")).json()["jobs"] == []
        assert served.engine.requests == []
    assert find_left(mgl_home, WORDS) == {}


async def test_a_reply_that_is_written_while_its_conversation_is_deleted_is_not_kept(
    http: Client, mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Waiting(monkeypatch, "zorblat")
    await http.append("I keep a quaxby", name="vintorp")
    answering = asyncio.create_task(http.chat("I have a zorblat.", user="vintorp", status=410))
    await asyncio.to_thread(waiting.reached.wait, 60)
    assert (await http.delete("/api/conversations/vintorp")).status_code == 200
    waiting.goes_on.set()
    assert (await answering)["error"]["code"] == "deleted"
    assert await list_names(http) == []
    assert find_left(mgl_home, WORDS) == {}
    await http.chat("I have a zorblat.", user="vintorp")
    assert "quaxby" not in str(await http.turns("vintorp"))


async def test_each_tenant_deletes_its_own(serve: Serve, mgl_home: Path) -> None:
    async with (
        serve(tenants=["ann"]) as served,
        Client(served) as http,
        Client(served, served._keys.add("ann")) as ann,
    ):
        for each in (http, ann):
            await each.append("I keep a zorblat", name="vintorp")
        assert (await ann.delete("/api/conversations/vintorp")).status_code == 200
        assert await list_names(ann) == []
        assert await list_names(http) == ["vintorp"]
    assert find_left(mgl_home / "tenants", WORDS) == {}
    assert find_left(mgl_home, WORDS)


async def test_an_agent_deletes_by_mcp(serve: Serve, mgl_home: Path) -> None:
    pytest.importorskip("mcp", reason="needs the extra mcp")
    from tests.api.test_mcp import call, connect

    async with serve() as served, connect(served) as agent:
        (tool,) = [
            each for each in (await agent.list_tools()).tools if each.name == "delete_memory"
        ]
        assert tool.annotations is not None
        assert tool.annotations.destructive_hint
        await call(agent, "remember", text="I keep a zorblat", conversation="vintorp")
        plan = await call(agent, "delete_memory", source="vintorp", dry_run=True)
        assert plan["turns"] == 1
        assert find_left(mgl_home, WORDS)
        assert await call(agent, "delete_memory", source="vintorp") == plan
        assert find_left(mgl_home, WORDS) == {}
        failed = await agent.call_tool("delete_memory", {"source": "vintorp"})
        assert failed.is_error
