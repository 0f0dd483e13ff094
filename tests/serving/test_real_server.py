"""What mgl does with a real vLLM server, which ``mgl serve`` runs (scripts/test-serving)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel, create_model

from mgl import processes
from mgl.errors import ContextOverflow, EngineRejected
from mgl.lab import Lab
from mgl.lab.engines import open_engine
from mgl.llm.base import Message, Request, Sampling
from mgl.llm.calls import MemoryCallLog
from mgl.llm.capabilities import ServerEndpoint
from mgl.llm.client import Client, Policy
from mgl.llm.constraints import max_chars, one_of, part_of
from mgl.memories.base import Tools
from mgl.memories.mindgraph import MindGraph, MindGraphConfig
from mgl.models.profiles import load_profile
from mgl.observer import SilentObserver
from mgl.openai.engine import OpenAIEngine
from mgl.openai.requests import write_messages
from mgl.serving import records
from mgl.serving.probe import probe
from mgl.serving.records import ServerRecord
from mgl.store import Store
from mgl.text import read_document
from mgl.types import Document, Question
from tests.conftest import USERS_HOME

pytestmark = pytest.mark.server

STORY = Path(__file__).parents[2] / "examples" / "a-scandal-in-bohemia.txt"
ASK = [Message("user", "Name a town, and say something of it.")]
QUESTION = Question("Who is Irene Adler to the King, and what does he want of her?")
BACK_S = 400.0


@pytest.fixture(scope="module")
def record() -> ServerRecord:
    """The server that MGL_BASE_URL names and ``mgl serve`` runs; any other is somebody's, and
    these tests kill its engine."""
    named = os.environ.get("MGL_BASE_URL")
    running = records.list_running(USERS_HOME)
    found = next((record for record in running if record.base_url == named), None)
    if found is None:
        pytest.skip("MGL_BASE_URL names no server of `mgl serve` (scripts/test-serving starts one)")
    return found


async def connected(record: ServerRecord, adapter: str | None = None) -> OpenAIEngine:
    engine = await open_engine(
        load_profile(record.model),
        ServerEndpoint(
            record.base_url,
            record.api_key,
            adapter,
            await probe(record.base_url, record.api_key, record.served_name),
        ),
    )
    assert isinstance(engine, OpenAIEngine)
    return engine


def chapter(characters: int) -> Document:
    return Document.from_text("chapter", read_document(STORY).text[:characters])


@pytest.mark.parametrize("cite", ["sentence", "quote"])
async def test_a_chapter_becomes_a_graph(record: ServerRecord, cite: str, tmp_path: Path) -> None:
    log, story = MemoryCallLog(), chapter(4000)
    config = MindGraphConfig(cite=cite, chunk_tokens=400, max_operations=2, build_tokens=700)  # type: ignore[arg-type]
    with Store.open(tmp_path / "chapter.db") as store:
        client = Client(await connected(record), log)
        store.put_document(story)
        memory = MindGraph(Tools(client, store, SilentObserver()), story, [QUESTION], config)
        await memory.build()
        reasons = {row.reason for row in store.edits(memory.id) if row.outcome != "applied"}
        graph = memory.state
        await client.aclose()
    outcomes = Counter(call.outcome for call in log.records)
    assert set(outcomes) == {"ok"}
    assert {call.completion and call.completion.way for call in log.records} == {
        "structured_outputs.grammar (lark)"
    }
    assert graph.nodes
    assert all(story.quote(node.span) == node.quote for node in graph.nodes)
    assert not {reason for reason in reasons if reason and reason.startswith("quote_")}


async def test_texts_are_counted_here_as_the_server_counts_them(record: ServerRecord) -> None:
    engine = await connected(record)
    lines = chapter(3000).text.splitlines()
    here = await engine.count_tokens(lines)
    assert engine._tokenizer is not None
    engine._tokenizer = None
    assert await engine.count_tokens(lines) == here
    await engine.aclose()


async def test_what_is_said_has_no_control_tokens_and_is_quoted_with_them(
    record: ServerRecord,
) -> None:
    engine = await connected(record)
    await engine.count_tokens(["finds the tokenizer"])
    assert engine._tokenizer is not None
    added = engine._tokenizer.get_added_tokens_decoder()
    special = {number: one.content for number, one in added.items() if one.special}

    async def find_control(text: str) -> list[int]:
        request, _ = engine._control.mark(Request((Message("user", text),)))
        body = {
            "model": record.served_name,
            "messages": write_messages(request),
            "add_generation_prompt": True,
        }
        ids: list[int] = (await engine._http.post("/tokenize", body))["tokens"]
        assert len(ids) == await engine.count_prompt_tokens(request)
        return [number for number in ids if number in special]

    spelled = " and ".join(special.values())
    assert await find_control(spelled) == await find_control("hello")
    for token in list(special.values())[:4]:
        quoted = create_model("quoted", quote=(one_of([f"a {token} b"]), ...))
        llm = Client(engine, MemoryCallLog())
        reply = await llm.complete([Message("user", f"Quote: a {token} b")], quoted)
        assert reply.parsed.model_dump() == {"quote": f"a {token} b"}
    await engine.aclose()


async def test_errors_are_told_apart(record: ServerRecord) -> None:
    engine = await connected(record)
    with pytest.raises(ContextOverflow):
        await engine.generate(Request((Message("user", "town " * engine.context_tokens),)))
    with pytest.raises(EngineRejected) as refused:
        await probe(record.base_url, "a wrong key", record.served_name)
    assert "MGL_API_KEY" in refused.value.hint
    await engine.aclose()
    with pytest.raises(EngineRejected):
        await open_engine(
            load_profile("qwen2.5-32b-instruct"),
            ServerEndpoint(record.base_url, record.api_key),
        )


class Town(BaseModel):
    name: str
    about: Annotated[str, max_chars(60)]


async def test_replies_keep_to_schema_choice_and_grammar(record: ServerRecord) -> None:
    client = Client(await connected(record), MemoryCallLog())
    reply = await client.complete(ASK, Town, sampling=Sampling(max_tokens=300))
    assert reply.parsed is not None
    assert 0.0 <= await client.probability_of_yes(ASK) <= 1.0
    text = 'She said "no" and left.\nThe dog – a black one – ran away.'
    quote: type[BaseModel] = create_model(
        "quote", src=(part_of(text, 40), ...), id=(one_of(["the_dog", "she"]), ...)
    )
    said = await client.complete([Message("user", f"Quote from: {text}")], quote)
    assert said.parsed is not None
    assert said.parsed.model_dump()["src"] in text
    await client.aclose()


async def test_an_adapter_answers_beside_its_base(record: ServerRecord) -> None:
    if not record.adapters:
        pytest.skip("the server has no adapter (scripts/test-serving gives it one)")
    (name,) = record.adapters
    request, said = Request(tuple(ASK), sampling=Sampling(max_tokens=20)), []
    for adapter in (None, name, None):
        engine = await connected(record, adapter)
        said.append((await engine.generate(request)).text)
        await engine.aclose()
    assert said[0] == said[2] != said[1]


async def test_a_build_goes_on_when_its_server_is_back(
    record: ServerRecord, tmp_path: Path
) -> None:
    """The engine is killed in the middle of a build; the supervisor starts the server again."""
    log, story = MemoryCallLog(), chapter(5000)
    config = MindGraphConfig(cite="sentence", chunk_tokens=300, max_operations=3, build_tokens=700)
    engine = await connected(record)
    client = Client(engine, log, Policy(outage_s=BACK_S))
    killed = 0
    with Store.open(tmp_path / "killed.db") as store:
        tools = Tools(client, store, SilentObserver())
        store.put_document(story)
        memory = MindGraph(tools, story, [QUESTION], config)
        build = asyncio.create_task(memory.build())
        while len(store.chunks_done(memory.id)) < 2:
            assert not build.done()
            await asyncio.sleep(0.05)
        for process in await asyncio.to_thread(processes.find_processes, record.token):
            if "EngineCore" in " ".join([*process.cmdline(), process.name()]):
                process.send_signal(signal.SIGKILL)
                killed += 1
        assert killed
        await build
    completed = [call.key for call in log.records if call.completion is not None]
    assert len(completed) == len(set(completed))
    assert "unavailable" in {call.outcome for call in log.records}
    await client.aclose()
    now = records.read_record(USERS_HOME, int(record.base_url.rsplit(":", 1)[1].split("/")[0]))
    assert now is not None
    assert now.restarts > record.restarts


def test_commands_find_the_server_by_themselves(
    record: ServerRecord, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MGL_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "servers").mkdir(parents=True)
    (tmp_path / "home" / "servers" / "run").symlink_to(USERS_HOME / "servers" / "run")
    book = tmp_path / "book.txt"
    book.write_text(read_document(STORY).text[:1500])
    with Lab.open() as lab:
        result = lab.ask(book, "Who is she?", memory="passages")
        (call, *_) = lab.calls(result.memory_id)
    assert result.answer.text
    assert call.model_id.startswith(f"{record.model}@")
