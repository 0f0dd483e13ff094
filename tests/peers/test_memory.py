"""A peer as a memory, over a toy package that runs in a real process and calls a real proxy."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mgl import registry
from mgl.errors import EngineRejected, EngineUnavailable, ResourceError
from mgl.llm.base import Request
from mgl.llm.client import Client, Policy
from mgl.llm.engines.deferred import DeferredEngine
from mgl.llm.engines.recorded import REPLAYING, ModelFacts, RecordedCalls, RecordedEngine
from mgl.llm.fakes import Scripted, ScriptedEngine
from mgl.memories.base import Tools
from mgl.memories.deletion import delete
from mgl.observer import SilentObserver
from mgl.peers import environments, memory, process
from mgl.peers.environments import Peer
from mgl.peers.memory import PeerConfig, PeerMemory, Unit
from mgl.peers.process import HOST
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.store.deletion import Redaction
from mgl.types import Conversation, Document, Question, Turn
from tests.leftovers import left

TOY = Path(__file__).parent / "toy"
BOOK = Document.from_text("book.txt", "Ann left Rome.\nBo sold the boat.\nCarl lost the ring.")
TALK = Conversation.from_turns(
    "talk",
    [Turn(f"t{n}", "Ann" if n % 2 else "Bo", text) for n, text in enumerate(
        ("I left Rome", "I sold the boat", "Carl lost the ring"))],
)  # fmt: skip

QUESTION = Question("Who lost the ring?")


class Toy(PeerMemory):
    """A toy."""

    kind = "peer:toy"
    peer = "toy"
    reads = "either"
    Config = PeerConfig
    _config: PeerConfig

    async def _units(self) -> list[Unit]:
        if isinstance(self._source, Conversation):
            spoken = [n for n, turn in enumerate(self._source.turns) if turn.text]
            talk = self._source
            return [Unit(n, talk.turns[n].text, talk.span(n), turns=(n,)) for n in spoken]
        units, start = [], 0
        for place, line in enumerate(self._source.text.split("\n")):
            units.append(Unit(place, line, self._source.span(start, start + len(line))))
            start += len(line) + 1
        return units

    def _set_up(self) -> dict[str, str]:
        return {}

    def _batches(self, units: list[Unit]) -> list[list[Unit]]:  # type: ignore[override]
        return [[unit] for unit in units]


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The toy is installed: this Python runs it."""
    (tmp_path / "toy.txt").write_text("toy==1")
    monkeypatch.setattr(environments, "LOCKS", tmp_path)
    monkeypatch.setattr(memory, "PEERS", {"toy": Peer("toy", "toy", "1", "MIT", "notes")})
    monkeypatch.setattr(memory, "find_python", lambda *_: Path(sys.executable))
    monkeypatch.setattr(process, "ADAPTERS", TOY)
    monkeypatch.setattr(process, "_SETTINGS", {**process._SETTINGS, "PYTHONPATH": str(TOY)})
    monkeypatch.setattr(registry, "load", lambda *_: Toy)
    monkeypatch.setenv("MGL_API_KEY", "secret")


def over(store: Store, replies: list[Scripted]) -> tuple[Tools, ScriptedEngine, Client]:
    engine = ScriptedEngine(replies, model_id="tiny@1+fake")

    async def start() -> ScriptedEngine:
        return engine

    known = {"context_tokens": 32_768, "native_tools": False, "concurrency": 1}
    deferred = DeferredEngine(start, store, model_id=engine.model_id, **known)  # keeps counts
    client = Client(deferred, store.call_log(), Policy(max_retries=0))
    return Tools(client, store, SilentObserver(), WordEmbedder()), engine, client


def said(request: Request) -> str:
    prompt = request.messages[-1].content
    if '"memories"' in prompt:
        return '{"memories": [1], "answer": "Carl"}'
    return f"Carl, as asked: {prompt[-40:]}"


def prompts(engine: ScriptedEngine) -> list[str]:
    return [request.messages[-1].content for request in engine.requests]


async def test_it_reads_finds_and_its_find_is_answered_from(store: Store) -> None:
    tools, engine, client = over(store, [said] * 9)
    answer = await Toy(tools, BOOK).answer(QUESTION)
    assert answer.text.startswith("Carl")
    assert answer.retrieved == ("15-32", "33-52")  # both hold a word of the question
    asked = prompts(engine)
    assert [prompt.partition("] ")[2] for prompt in asked[:3]] == [
        "Note: Ann left Rome.",
        "Note: Bo sold the boat.",
        "Note: Carl lost the ring.",
    ]
    assert "[2] Carl lost the ring." in asked[3]
    usage = client.usage()
    assert (usage["build"].calls, sum(each.calls for each in usage.values())) == (3, 4)
    kind = Toy(tools, BOOK)
    rows = store.edits(kind.id)
    assert [row.op for row in rows] == ["read", "read", "read", "counts"]
    assert [BOOK.quote(row.span) for row in rows if row.span] == BOOK.text.split("\n")
    assert rows[-1].payload == {"notes": 3, "empty": 0, "refused": 0}


async def test_of_a_conversation_it_cites_turns(store: Store) -> None:
    tools, _, _ = over(store, [said] * 9)
    answer = await Toy(tools, TALK).answer(Question("Who left Rome?"))
    assert answer.retrieved == ("t0",)
    assert [citation.quote for citation in answer.citations] == ["Bo: I left Rome"]


async def test_its_own_answer_is_taken_if_that_is_asked_for(store: Store) -> None:
    tools, engine, _ = over(store, [said] * 9)
    answer = await Toy(tools, BOOK, (), PeerConfig(mode="native")).answer(QUESTION)
    assert answer.text == "Carl, as asked: Native: Who lost the ring? ['HOME']"  # and no key
    assert len(engine.requests) == 4
    assert answer.compaction_ratio == pytest.approx(10 / 14)


async def test_a_killed_build_pays_no_call_twice(store: Store) -> None:
    lost = EngineUnavailable("the server died", hint="start it")
    tools, _, _ = over(store, [said, said, lost])
    with pytest.raises(EngineUnavailable, match="the server died"):
        await Toy(tools, BOOK).build()
    tools, engine, _ = over(store, [said] * 9)
    again = Toy(tools, BOOK)
    await again.build()
    (sent,) = prompts(engine)
    assert sent.endswith("Note: Carl lost the ring.")
    assert [row.op for row in store.edits(again.id)] == ["read", "read", "read", "counts"]


async def test_questions_that_come_together_have_it_read_once(store: Store) -> None:
    tools, _, _ = over(store, [said] * 9)
    await Toy(tools, BOOK).build()
    tools, engine, _ = over(store, [said] * 9)
    again = Toy(tools, BOOK)
    await asyncio.gather(*(again.answer(Question(f"Who {did}?")) for did in ("left", "sold")))
    assert not any("Note: " in prompt for prompt in prompts(engine)), "each note is in the log"


async def test_opened_again_it_replays_without_a_model(store: Store) -> None:
    tools, _, _ = over(store, [said] * 9)
    first = await Toy(tools, BOOK).answer(QUESTION)
    facts = ModelFacts(
        "tiny", "tiny@1+fake", "openai", 32_768, False, 1, "paper", None, {}, "words", "words"
    )
    client = Client(RecordedEngine(store, facts), RecordedCalls(store), REPLAYING)
    replaying = Toy(replace(tools, llm=client), BOOK)
    assert await replaying.answer(QUESTION) == first


@pytest.mark.parametrize(
    ("text", "words"),
    [("Let it explode now.", "toy failed to read: KeyError: 'relations'"), ("die", "it ended")],
)
async def test_what_a_peer_fails_at_is_said(store: Store, text: str, words: str) -> None:
    tools, _, _ = over(store, [said] * 9)
    with pytest.raises(EngineRejected, match=words):
        await Toy(tools, Document.from_text("b.txt", text)).build()


async def test_what_a_deletion_takes_is_read_no_more(store: Store) -> None:
    tools, _, _ = over(store, [said] * 9)
    mine = Toy(tools, TALK)
    await mine.answer(QUESTION)
    assert delete(store, TALK.id, Redaction(frozenset({2})))
    assert left(store.path, ["Carl lost the ring"]) == []
    tools, engine, _ = over(store, [said] * 9)
    await Toy(tools, TALK).answer(QUESTION)
    assert not any("Carl lost" in prompt for prompt in prompts(engine))


async def test_of_an_empty_conversation_nothing_is_asked(store: Store) -> None:
    tools, engine, _ = over(store, [])
    mine = Toy(tools, Conversation.from_turns("empty", []))
    assert "Not mentioned" in (await mine.answer(QUESTION)).text
    assert (mine._process, engine.requests) == (None, [])


async def test_one_that_is_not_installed_says_how(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "find_python", environments.find_python)
    tools, _, _ = over(store, [said] * 9)
    with pytest.raises(ResourceError) as caught:
        await Toy(tools, BOOK).build()
    assert caught.value.hint == "`mgl peer install toy`"


async def test_its_files_go_with_it(store: Store) -> None:
    tools, _, _ = over(store, [said] * 9)
    mine = Toy(tools, BOOK)
    await mine.build()
    assert mine._process is not None
    folder = mine._process.folder
    assert (folder / "store.txt").exists()
    mine._end()
    assert not folder.exists()


@pytest.mark.parametrize("busy", [False, True])
def test_its_files_go_though_whoever_started_it_was_killed(tmp_path: Path, busy: bool) -> None:
    """A process that loses its parent loses both pipes, in the middle of its work or not."""
    folder = tmp_path / "held"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-P", str(HOST), str(TOY / "toy.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={"PYTHONPATH": str(TOY)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    if busy:
        process.stdin.write(b'{"do": "nothing"}\n')
    process.stdin.close()
    process.stdout.close()
    assert process.wait(60) == 0
    assert not folder.exists()
