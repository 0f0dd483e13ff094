"""A peer as a memory, over a toy package that runs in a real process and calls a real proxy."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mgl.errors import EngineRejected, EngineUnavailable, ResourceError
from mgl.llm.base import Request
from mgl.llm.client import Client
from mgl.llm.engines.recorded import REPLAYING, ModelFacts, RecordedCalls, RecordedEngine
from mgl.llm.fakes import ScriptedEngine
from mgl.peers import environments, memory
from mgl.peers.host import load
from mgl.peers.memory import PeerConfig
from mgl.peers.process import HOST
from mgl.store import Store
from mgl.types import Conversation, Document, Question, Turn
from tests.patience import PATIENCE_S
from tests.peers.scripting import TOY, Toy, install_toy, last, script_tools

BOOK = Document.from_text("book.txt", "Ann left Rome.\nBo sold the boat.\nCarl lost the ring.")
TALK = Conversation.from_turns(
    "talk",
    [Turn(f"t{n}", "Ann" if n % 2 else "Bo", text) for n, text in enumerate(
        ("I left Rome", "I sold the boat", "Carl lost the ring"))],
)  # fmt: skip

QUESTION = Question("Who lost the ring?")


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_toy(monkeypatch, tmp_path)
    monkeypatch.setenv("MGL_API_KEY", "secret")


def said(request: Request) -> str:
    prompt = last(request)
    if '"memories"' in prompt:
        return '{"memories": [1], "answer": "Carl"}'
    return f"Carl, as asked: {prompt[-40:]}"


def prompts(engine: ScriptedEngine) -> list[str]:
    return [last(request) for request in engine.requests]


async def test_a_peer_that_embeds_nothing_needs_no_embedder(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Toy, "retrieves", False)
    tools, engine = script_tools(store, [said] * 3)
    toy = Toy(replace(tools, embedder=None), BOOK)
    await toy.build()
    assert len(engine.requests) == 3


async def test_it_reads_finds_and_replays_without_a_model_and_its_files_go(store: Store) -> None:
    tools, engine = script_tools(store, [said] * 9)
    toy = Toy(tools, BOOK)
    answer = await toy.answer(QUESTION)
    assert answer.text.startswith("Carl")
    assert answer.retrieved == ("15-32", "33-52")  # both hold a word of the question
    asked = prompts(engine)
    assert [prompt.partition("] ")[2] for prompt in asked[:3]] == [
        "Note: Ann left Rome.",
        "Note: Bo sold the boat.",
        "Note: Carl lost the ring.",
    ]
    assert "[2] Carl lost the ring." in asked[3]
    assert isinstance(tools.llm, Client)
    usage = tools.llm.usage()
    assert (usage["build"].calls, sum(each.calls for each in usage.values())) == (3, 4)
    rows = store.edits(toy.id)
    assert [row.op for row in rows] == ["read", "read", "read", "counts"]
    assert [BOOK.quote(row.span) for row in rows if row.span] == BOOK.text.split("\n")
    assert rows[-1].payload == {"notes": 3, "empty": 0, "refused": 0}

    facts = ModelFacts(
        "tiny", "tiny@1+fake", "openai", 32_768, False, 1, "paper", None, {}, "words", "words"
    )
    client = Client(RecordedEngine(store, facts), RecordedCalls(store), REPLAYING)
    replaying = Toy(replace(tools, llm=client), BOOK)
    assert await replaying.answer(QUESTION) == answer
    assert replaying._process is not None
    folder = replaying._process.folder
    assert (folder / "store.txt").exists()
    replaying._end()
    assert not folder.exists()


async def test_its_own_answer_is_taken_if_that_is_asked_for(store: Store) -> None:
    tools, engine = script_tools(store, [said] * 9)
    answer = await Toy(tools, BOOK, (), PeerConfig(mode="native")).answer(QUESTION)
    assert answer.text == "Carl, as asked: Native: Who lost the ring? ['HOME']"  # and no key
    assert len(engine.requests) == 4
    assert answer.compaction_ratio == pytest.approx(10 / 14)


async def test_a_killed_build_pays_no_call_twice_and_questions_share_one(store: Store) -> None:
    lost = EngineUnavailable("the server died", hint="start it")
    tools, _ = script_tools(store, [said, said, lost])
    with pytest.raises(EngineUnavailable, match="the server died"):
        await Toy(tools, BOOK).build()
    tools, engine = script_tools(store, [said] * 9)
    again = Toy(tools, BOOK)
    await asyncio.gather(*(again.answer(Question(f"Who {did}?")) for did in ("left", "sold")))
    (sent,) = [prompt for prompt in prompts(engine) if "Note: " in prompt]
    assert sent.endswith("Note: Carl lost the ring.")
    assert [row.op for row in store.edits(again.id)] == ["read", "read", "read", "counts"]


@pytest.mark.parametrize(
    ("text", "words"),
    [("Let it explode now.", "toy failed to read: KeyError: 'relations'"), ("die", "it ended")],
)
async def test_what_a_peer_fails_at_is_said(store: Store, text: str, words: str) -> None:
    tools, _ = script_tools(store, [said] * 9)
    with pytest.raises(EngineRejected, match=words):
        await Toy(tools, Document.from_text("b.txt", text)).build()


async def test_an_empty_conversation_starts_nothing_and_a_missing_peer_says_how(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools, engine = script_tools(store, [])
    mine = Toy(tools, Conversation.from_turns("empty", []))
    assert "Not mentioned" in (await mine.answer(QUESTION)).text
    assert (mine._process, engine.requests) == (None, [])
    monkeypatch.setattr(memory, "find_python", environments.find_python)
    with pytest.raises(ResourceError) as caught:
        await Toy(tools, BOOK).build()
    assert caught.value.hint == "`mgl peer install toy`"


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
    assert process.wait(PATIENCE_S) == 0
    assert not folder.exists()


def test_an_adapter_is_the_files_own_class_not_one_that_it_imports(tmp_path: Path) -> None:
    path = tmp_path / "adapter_file.py"
    path.write_text("from logging import LoggerAdapter\nclass DiaryAdapter: ...\n")
    assert load(str(path)).__name__ == "DiaryAdapter"
