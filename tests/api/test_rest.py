"""REST over a real connection: what goes in comes out, and jobs survive a restart."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from mgl.api.jobs import Jobs
from mgl.api.server import ALL
from mgl.errors import EngineRejected
from mgl.lab import Lab, OwnModels, estimates
from mgl.llm.base import Completion, Request
from mgl.llm.fakes import ScriptedEngine
from mgl.types import Document
from tests.api.conftest import HORSE, Client, Serve, Served
from tests.cli.server import story
from tests.patience import PATIENCE_S


async def test_a_conversation_is_appended_to_searched_asked_and_forgotten(http: Client) -> None:
    said = {"speaker": "Ann", "text": HORSE}
    assert await http.append(said, *(f"It rains on day {day}" for day in range(5))) == [*"123456"]
    found = (await http.get("/api/memories/diary/search", params={"q": "horse"})).json()["results"]
    assert (found[0]["quote"], found[0]["speaker"], found[0]["node_id"]) == (HORSE, "Ann", "1")
    answer = await http.ask("diary", "What is the horse called?", asker="Bo")
    assert answer["answer"] == HORSE
    assert answer["citations"][0]["node_id"] == "1"
    assert (await http.forget("1", dry_run=True))["turns"] == ["1"]
    assert HORSE in await http.texts()
    assert (await http.forget("1"))["turns"] == ["1"]
    assert "Star" not in (await http.get("/api/memories/diary/export")).text
    (memory,) = await http.memories()
    assert (memory["document"], memory["turns"]) == ("diary", 5)
    shown = (await http.get(f"/api/memories/{memory['memory_id']}")).json()
    assert shown["stats"]["chunks"] == 6


async def test_words_are_found_in_all_memories(http: Client) -> None:
    """Each passage once, those with the words as they were given first; nothing forgotten."""
    await http.read("Star is a horse.\n\nAnn met Bo.\n\nThe horse saw a Star.")
    for memory in ("gam", "mnemis"):
        sent = {"turns": [{"id": "1", "text": HORSE}], "memory": memory}
        await http.post("/api/conversations/diary/turns", json=sent)
    for words, quotes in (
        ("star", [HORSE, "Star is a horse.", "The horse saw a Star."]),
        ("horse saw", ["The horse saw a Star."]),
        ("horse star", [HORSE, "Star is a horse.", "The horse saw a Star."]),
        ("a horse", ["Star is a horse.", HORSE, "The horse saw a Star."]),
        ("cow", []),
    ):
        found = (await http.get("/api/search", params={"q": words})).json()["results"]
        assert [each["quote"] for each in found] == quotes, words
    one = {"q": "star", "limit": 1}
    (first,) = (await http.get("/api/search", params=one)).json()["results"]
    assert (first["document"], first["memory"], first["node_id"]) == ("diary", "mnemis", "1")
    forgotten = {"turns": ["1"]}
    await http.post(f"/api/memories/{first['memory_id']}/forget", json=forgotten)
    assert HORSE not in (await http.get("/api/search", params={"q": "star"})).text


@pytest.mark.parametrize("memory", ["gam", "mnemis"])
async def test_what_a_turn_says_is_corrected(http: Client, memory: str) -> None:
    """Its words are gone with all that was made of them; who said them, and when, stays."""
    said = {"speaker": "Ann", "text": HORSE, "time": "2024-05-01T10:00:00+00:00", "session": "1"}
    later = {**said, "id": "later", "text": "It rains", "time": "2024-05-09T10:00:00+00:00"}
    path = "/api/conversations/diary"
    turns = {"turns": [{**said, "id": "a/b"}, later], "memory": memory}
    await http.post(f"{path}/turns", json=turns)
    await http.post(f"{path}/ask", json={"question": "What is the horse called?"})
    new = {"text": " My horse is called Moon "}
    answer = await http.post(f"{path}/turns/a%2Fb", json=new)
    assert answer.status_code == 200, answer.text
    corrected = answer.json()["turn"]
    assert answer.json()["deleted"]["turns"] == ["a/b"]
    exported = (await http.get(f"{path}/export")).text
    page = (await http.get("/api/memories/diary/page")).text
    log = (await http.get("/api/memories/diary/log")).text
    assert "Star" not in exported + page + log
    (turn,) = (each for each in json.loads(exported)["turns"] if each["id"] == corrected)
    assert turn == {**said, "number": 2, "id": corrected, "text": "My horse is called Moon"}
    found = await http.get(f"{path}/search", params={"q": "What is the horse called?"})
    assert found.json()["results"][0]["node_id"] == corrected
    for turn, text in (("a/b", "x"), ("none", "x"), ("later", "It rains")):
        where = f"{path}/turns/{turn.replace('/', '%2F')}"
        refused = await http.post(where, json={"text": text})
        assert refused.status_code == (400 if turn == "later" else 404), refused.text
    assert len((await http.get(f"{path}/export")).json()["turns"]) == 2


async def test_a_kind_that_no_conversation_has_is_refused(http: Client) -> None:
    await http.append("Hm.")
    for query in ("memory=", "memory=none", "memory=gam&memory=-1"):
        for verb in ("", "/export", "/nodes"):
            reply = await http.get(f"/api/conversations/diary{verb}?{query}")
            assert (reply.status_code, reply.json()["error"]["param"]) == (400, "memory")
    assert (await http.get("/api/conversations/diary?memory=gam")).status_code == 200


async def test_a_conversation_may_begin_empty(http: Client) -> None:
    for _ in range(2):
        assert await http.append() == []
    (memory,) = await http.memories()
    assert (memory["document"], memory["turns"]) == ("diary", 0)
    page = (await http.get("/api/memories/diary/page")).json()
    assert (page["turns"], page["nodes"]) == ([], [])


async def test_a_chat_log_is_taken_in_once(http: Client) -> None:
    lines = [
        json.dumps({"speaker": "Ann", "text": f"word {n}", "time": f"2023-05-08T10:{n:02}"})
        for n in range(60)
    ]
    for _ in range(2):
        answer = await http.post("/api/conversations/log/file", content="\n".join(lines))
        assert (answer.status_code, answer.json()) == (201, {"turns": 60})
    turns = await http.turns("log")
    assert [turn["text"] for turn in turns] == [f"word {n}" for n in range(60)]
    assert turns[0]["time"] == "2023-05-08T10:00:00"


async def test_a_document_is_built_by_a_job_and_asked(paper: Client) -> None:
    done = await paper.read(story(20), "book.txt")
    assert (done["state"], done["document"]) == ("done", "book.txt")
    memory = f"/api/memories/{done['memory_id']}"
    events = {"Accept": "text/event-stream"}
    asked = await paper.post(f"{memory}/ask", json={"question": "How many met?"}, headers=events)
    told = [json.loads(line[6:]) for line in asked.text.splitlines() if "{" in line]
    assert told[-1]["result"]["answer"] == "20 met."
    nodes = (await paper.get(f"{memory}/nodes")).json()["nodes"]
    assert len(nodes) == 20
    assert nodes[3]["quote"] == "P3 met P4."
    found = await paper.get(f"{memory}/search", params={"q": "12", "limit": 1})
    assert [each["node_id"] for each in found.json()["results"]] == ["p12"]
    assert (await paper.get("/api/jobs")).json()["jobs"][0]["state"] == "done"
    late = await paper.post(f"/api/jobs/{done['id']}/cancel")
    assert late.json()["state"] == "done", "a finished job is not cancelled"


async def test_an_unfinished_job_goes_on_after_a_restart(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, entered, ended = Lab.build_stored, threading.Event(), threading.Event()

    def wait(*_: Any, **__: Any) -> Any:
        entered.set()
        ended.wait(PATIENCE_S)

    monkeypatch.setattr(Lab, "build_stored", wait)
    async with serve(preset="paper") as served, Client(served) as http:
        job = (await http.upload(story(8)))["id"]
        await asyncio.to_thread(entered.wait, PATIENCE_S)
        assert (await http.get(f"/api/jobs/{job}")).json()["state"] == "running"
    ended.set()
    monkeypatch.setattr(Lab, "build_stored", build)
    async with serve(preset="paper") as served, Client(served) as http:
        assert (await http.finish(job))["state"] == "done"
    async with serve(preset="paper") as served, Client(served) as http:
        assert (await http.get(f"/api/jobs/{job}")).json()["state"] == "done"
        assert served.engine.requests == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (EngineRejected("no such model", hint="choose another"), "no such model (choose another)"),
        (ZeroDivisionError("by zero"), "unexpected error; the server's log has it"),
    ],
)
async def test_a_job_that_failed_says_why(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, fault: Exception, said: str
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise fault

    monkeypatch.setattr(Lab, "build_stored", fail)
    async with serve() as served, Client(served) as http:
        done = await http.read("P1 met P2.")
        assert (done["state"], done["error"][: len(said)]) == ("failed", said)
        assert "by zero" not in done["error"]
    async with serve() as served, Client(served) as http:
        assert (await http.finish(done["id"]))["state"] == "failed"


async def test_a_listener_hears_how_a_job_ended_however_late_it_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise EngineRejected("no such model", hint="choose another")

    monkeypatch.setattr(Lab, "build_stored", fail)
    with Lab.open(OwnModels(ScriptedEngine([]))) as lab:
        jobs = Jobs(tmp_path, lab)
        job = await jobs.start(Document.from_text("b.txt", "P1 met P2."), "mindgraph")
        late, prompt = jobs.follow(job.id), jobs.follow(job.id)
        first = await anext(late)
        ended = [state async for state in prompt][-1]
        assert first["state"] == "waiting"
        assert ended["state"] == "failed"
        assert [state async for state in late] == [ended]


@pytest.mark.parametrize("name", ["/etc/hostname", "../../keys.json", "keys.json", "."])
async def test_a_name_is_never_read_as_a_path(
    http: Client, mgl_home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Neither the name of a document, of a memory, nor of a conversation, wherever it runs."""
    monkeypatch.chdir(mgl_home)
    paths = (name, name.replace("/", "%2F"))
    for path in paths:
        for end, sent in (("ask", {"question": "What?"}), ("forget", {"turns": ["1"]})):
            answer = await http.post(f"/api/memories/{path}/{end}", json=sent)
            assert answer.status_code == 404
        answer = await http.get(f"/api/memories/{path}/export")
        assert answer.status_code in (404, 307)
    job = await http.upload("P1 met P2.", name)
    assert job["document"] == (Path(name).name or "document")
    tenant = await http.served.open_tenant("")
    assert tenant.memories.lab.load(job["document_id"]).text == "P1 met P2."


UNREADABLE: list[tuple[str, str, Any]] = [
    ("POST", "/api/conversations/diary/turns", {}),
    ("POST", "/api/conversations/diary/turns", {"turns": [{"text": "a", "path": "/etc"}]}),
    ("POST", "/api/conversations/diary/turns", {"turns": [{"text": " "}]}),
    ("POST", f"/api/conversations/{'n' * 201}/turns", {"turns": [{"text": "a"}]}),
    ("POST", "/api/conversations/diary/turns", {"turns": [{"text": "a", "time": 0}]}),
    ("POST", "/api/conversations/diary/turns", {"turns": [{"text": 1}]}),
    ("POST", "/api/memories/diary/ask", {"question": "\x1c"}),
    ("POST", "/api/memories/diary/ask", {"question": "When?", "asked_at": "0001-01-01T00:00:00Z"}),
    ("POST", "/api/memories/diary/forget", {"turns": ["1"], "dry_run": "yes"}),
    ("POST", "/api/memories/diary/forget", {"turns": [], "before": None}),
    ("POST", "/api/documents", None),
    ("POST", "/api/documents?name=a.txt&memory=rlm", None),
    ("POST", "/api/documents?name=a.txt", None),
    ("GET", "/api/memories/diary/search", None),
    ("GET", "/api/memories/diary/search?q=a&limit=1000", None),
]


async def test_what_cannot_be_read_is_refused_and_writes_nothing(http: Client) -> None:
    for method, path, body in UNREADABLE:
        answer = await http.request(method, path, json=body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["message"]
    assert await http.memories() == []


async def test_what_is_not_there_and_what_is_not_possible_are_told_apart(http: Client) -> None:
    await http.read("P1 met P2.", "book.txt")
    for name, memory in (("diary", "gam"), ("trip", "mnemis"), ("both", "gam")):
        sent = {"turns": [{"text": HORSE}], "memory": memory}
        await http.post(f"/api/conversations/{name}/turns", json=sent)
    await http.post("/api/conversations/both/turns", json={**sent, "memory": "mnemis"})
    for path, body, status in (
        ("diary/forget", {"turns": ["9"]}, 404),
        ("diary/forget", {"topics": ["t9"]}, 404),
        ("diary/edit", {"topic": "t9", "frozen": True}, 404),
        ("trip/forget", {"topics": ["t1"]}, 409),
        ("book.txt/forget", {"turns": ["1"]}, 409),
        ("book.txt/edit", {"topic": "t1", "frozen": True}, 409),
        ("both/ask", {"question": "What?"}, 409),
    ):
        answer = await http.post(f"/api/memories/{path}", json=body)
        assert answer.status_code == status, answer.text


async def test_a_document_gets_another_name_and_is_found_by_both(http: Client) -> None:
    source = (await http.read("P1 met P2."))["memory_id"]
    named = await http.patch(f"/api/memories/{source}", json={"name": "Ann's book"})
    assert (named.status_code, named.json()) == (200, {"name": "Ann's book"})
    for name in ("b.txt", "Ann's book"):
        shown = (await http.get(f"/api/memories/{name}")).json()
        assert (shown["memory_id"], shown["document"]) == (source, "Ann's book")
    for name in (source, " ", "a" * 201):
        refused = await http.patch(f"/api/memories/{source}", json={"name": name})
        assert refused.status_code == 400, refused.text


async def test_turns_that_are_sent_again_are_known_by_their_ids(http: Client) -> None:
    """A client that gives ids, and no times, may repeat what was not answered."""
    sent: Any = [{"id": "a", "text": HORSE}, {"id": "b", "text": "It rains"}]
    for _ in range(2):
        assert await http.append(*sent) == ["a", "b"]
    sent.append({"text": "It snows"})
    assert await http.append(*sent) == ["a", "b", "3"]
    assert await http.texts() == [HORSE, "It rains", "It snows"]
    await http.forget("a")
    await http.append(*sent)
    assert [turn["id"] for turn in await http.turns()] == ["b", "3", "4"]
    await http.append({"id": "b", "text": "It snows"}, status=409)


async def test_what_is_not_there_is_said_without_telling_where_things_are(
    http: Client, mgl_home: Path
) -> None:
    for path in ("/api/memories/nobody", "/api/jobs/none", "/api/none", "/inspect/none"):
        answer = await http.get(path)
        assert answer.status_code == 404
        assert str(mgl_home) not in answer.text


async def test_the_description_names_all_that_is_served(serve: Serve) -> None:
    async with serve() as served, Client(served) as http:
        described = (await http.get("/api/openapi.json")).json()
    assert {
        (method.upper(), path) for path, each in described["paths"].items() for method in each
    } == {(each.method, each.path.replace(":path", "")) for each in ALL}
    names = set(described["components"]["schemas"])
    refs = {part.split('"')[0] for part in json.dumps(described).split("#/components/schemas/")[1:]}
    assert refs <= names


async def test_a_large_document_wants_to_be_confirmed(
    paper: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "MOST_CHARACTERS", 100)
    log = "\n".join(json.dumps({"text": f"word {n}"}) for n in range(60)).encode()
    for path, params, content in (
        ("/api/documents", {"name": "book.txt"}, story(20).encode()),
        ("/api/conversations/log/file", {}, log),
    ):
        refused = await paper.post(path, params=params, content=content)
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "confirm"
        assert (await paper.get("/api/memories")).json() == {"memories": []}
    assert (await paper.get("/api/jobs")).json() == {"jobs": []}
    for path, params, content in (
        ("/api/documents", {"name": "book.txt", "confirm": "true"}, story(20).encode()),
        ("/api/conversations/log/file", {"confirm": "true"}, log),
    ):
        assert (await paper.post(path, params=params, content=content)).is_success


class _Stuck:
    """Answers so many calls; the next one goes on until it is cancelled."""

    def __init__(self, served: Served, answers: int) -> None:
        self.cancelled = threading.Event()
        self.waiting = threading.Event()
        self._left = answers
        self._answer = served.engine.generate
        served.engine.generate = self.generate  # type: ignore[method-assign]

    async def generate(self, request: Request) -> Completion:
        self._left -= 1
        if self._left >= 0:
            return await self._answer(request)
        self.waiting.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        raise AssertionError


async def test_a_cancelled_job_stops_keeps_what_it_did_and_is_not_begun_again(
    serve: Serve,
) -> None:
    book = {"text": story(400), "memory": "graph"}
    async with serve(preset="paper") as served, Client(served) as http:
        stuck = _Stuck(served, answers=2)
        job, later = [(await http.upload(**book))["id"] for _ in range(2)]
        assert await asyncio.to_thread(stuck.waiting.wait, 30)
        for each in (later, job):
            cancelled = await http.post(f"/api/jobs/{each}/cancel")
            assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
        assert await asyncio.to_thread(stuck.cancelled.wait, 30)
        assert (await http.finish(job))["state"] == "cancelled"
        assert (await http.post("/api/jobs/none/cancel")).status_code == 404
    async with serve(preset="paper") as served, Client(served) as http:
        assert (await http.read(story(3), "other.txt"))["state"] == "done"
        asked = len(served.engine.requests)
        for each in (job, later):
            assert (await http.post(f"/api/jobs/{each}/cancel")).json()["state"] == "cancelled"
        done = await http.read(**book)
        assert done["state"] == "done"
        made = {each["memory_id"]: each for each in await http.memories()}[done["memory_id"]]
        assert len(served.engine.requests) - asked == made["calls"] - 2


async def test_the_list_holds_while_memories_begin_and_go(
    served: Served, http: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("diary", "trip"):
        await http.append("I moved to Lisbon.", name=name)
    lab = (await served.open_tenant("")).memories.lab
    read = lab.costs

    def costs() -> Any:
        before = read()
        lab.delete("trip")
        talk = lab.talk("later")
        talk.run(talk.memory.build)
        return {id: each for id, each in before.items() if id in read()}

    monkeypatch.setattr(lab, "costs", costs)
    listed = await http.get("/api/memories")
    assert listed.status_code == 200
    assert [each["document"] for each in listed.json()["memories"]] == ["diary"]
