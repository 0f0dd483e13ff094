from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

import mgl
from mgl.errors import InputError, ReplyInvalid, StoreError, UsageError
from mgl.lab import Lab
from mgl.lab.model import ModelChoice, NoModel, OwnModels
from mgl.lab.workplace import Workplace
from mgl.llm.base import Completion, Request
from mgl.llm.fakes import SchemaEngine
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.types import Question, Turn
from tests.cli.server import Server, story
from tests.memories.graph.conftest import Hearing

SERVED = "qwen2.5-7b-instruct"
QUESTION = "How many met?"


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text(story(12))
    return path


def test_a_build_tells_how_many_chunks_it_has_read(server: Server, book: Path) -> None:
    hearing = Hearing()
    with Lab.open(ModelChoice(SERVED, base_url=server.url), observer=hearing) as lab:
        chunks = lab.build(book, [QUESTION], chunk_tokens=24).stats.chunks
    told = [step for step in hearing.steps if step[0] == "build"]
    assert told == [("build", done, chunks) for done in range(chunks + 1)]


def test_a_memory_whose_chunks_a_short_context_made_smaller_is_found_again(
    book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workplace, "engine", SchemaEngine(context_tokens=8192))
    hearing = Hearing()
    with Lab.open(observer=hearing) as lab:
        built = lab.build(book, [QUESTION, "Who met P3?"], preset="paper")
        assert lab.memory(built.memory_id).record.config["chunk_tokens"] == 4096
        assert any("chunks have 4,096 tokens" in note for note in hearing.notes)
        assert lab.ask(book, QUESTION, preset="paper").memory_id == built.memory_id
        assert lab.view(built.memory_id).memory_id == built.memory_id


class Sick(SchemaEngine):
    """An engine that says nothing while it is sick."""

    def __init__(self) -> None:
        super().__init__()
        self.is_sick = False
        self.calls = 0

    async def generate(self, request: Request) -> Completion:
        self.calls += 1
        done = await super().generate(request)
        return replace(done, text="") if self.is_sick else done


@pytest.mark.usefixtures("embeds_words")
@pytest.mark.parametrize("is_told", [False, True], ids=["file", "talk"])
def test_a_question_asked_again_asks_the_model_again_if_it_had_no_usable_reply(
    book: Path, monkeypatch: pytest.MonkeyPatch, is_told: bool
) -> None:
    engine = Sick()
    monkeypatch.setattr(Workplace, "engine", engine)
    with Lab.open() as lab:
        if is_told:
            talk = lab.talk("diary")
            talk.append(Turn("1", "Ann", "Twelve met."))
            ask = partial(talk.ask, QUESTION)
        else:
            ask = partial(lab.ask, book, QUESTION, memory="direct")
        engine.is_sick = True
        with pytest.raises(ReplyInvalid):
            ask()
        engine.is_sick = False
        answer = ask().answer
        calls = engine.calls
        assert (ask().answer, engine.calls) == (answer, calls)


def test_the_same_question_and_text_are_the_same_memory(
    server: Server, book: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.txt"
    copy.write_text(book.read_text())
    with Lab.open(ModelChoice(SERVED, base_url=server.url)) as lab:
        first = lab.ask(book, QUESTION)
        second = lab.ask(copy, f" {QUESTION}\n")
        assert lab.ask(book, QUESTION).usage.total.calls == 0
    assert second.memory_id == first.memory_id
    assert {citation.document for citation in second.answer.citations} == {"copy.txt"}


@pytest.mark.parametrize("removed", [False, True])
def test_a_memory_is_asked_by_its_id_though_an_option_of_it_was_removed(
    server: Server, book: Path, removed: bool
) -> None:
    with Lab.open(ModelChoice(SERVED, base_url=server.url)) as lab:
        built = lab.build(book, chunk_tokens=24)
        if removed:
            with closing(sqlite3.connect(lab._store.path)) as connection, connection:
                connection.execute("UPDATE memories SET config = json_set(config, '$.gone', 7)")
        calls = len(server.seen)
        book.unlink()
        for question in (QUESTION, "Who met P3?"):
            assert lab.ask(built.memory_id, question).memory_id == built.memory_id
        assert len(server.seen) == calls + 2
        other = lab.ask(built.memory_id, QUESTION, chunk_tokens=48)
        assert other.memory_id != built.memory_id
        with pytest.raises(InputError):
            lab.ask("nothing-of-this-name", QUESTION)


def test_what_cannot_work_is_refused_before_anything_is_done(book: Path) -> None:
    with Lab.open(ModelChoice(SERVED, base_url="http://127.0.0.1:9/v1")) as lab:
        with pytest.raises(InputError):
            lab.ask(book, "  ")
        for options in ({"chunk_tokens": -1}, {"colour": "blue"}, {"memory": "hgmemory"}):
            with pytest.raises(UsageError):
                lab.ask(book, QUESTION, **options)  # type: ignore[arg-type]
        with pytest.raises(StoreError):
            lab.view("ffff")
        for kind in ("gam", "mnemis"):
            with pytest.raises(InputError, match=f"{kind} reads conversations") as refused:
                lab.ask(book, QUESTION, memory=kind)
            assert "--memory mindgraph for a document" in refused.value.hint
        assert lab.memories() == []


@pytest.mark.parametrize(
    "choice",
    [
        ModelChoice(SERVED),
        ModelChoice("smollm2-135m", engine="openai"),
        ModelChoice("smollm2-135m", engine="openvino", base_url="http://x"),
        ModelChoice(SERVED, base_url="http://x", weights=Path("w")),
        ModelChoice("bge-m3"),
    ],
)
def test_choices_that_contradict_themselves(choice: ModelChoice, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        choice.engine_for(choice.load_profile(tmp_path))


def test_a_server_may_run_a_profile_made_for_this_process(tmp_path: Path) -> None:
    choice = ModelChoice("smollm2-135m", base_url="http://x/v1", api_key="sesame")
    assert choice.engine_for(choice.load_profile(tmp_path)) == "openai"
    assert "sesame" not in repr(choice)


async def test_without_a_model_every_call_is_refused() -> None:
    model = NoModel("m")
    for call in (model.complete, model.count_tokens, model.count_prompt_tokens):
        with pytest.raises(UsageError):
            await call([])


def test_the_package_exports_these_names_and_loads_them_when_asked() -> None:
    assert mgl.__all__ == [
        *("Answer", "AskResult", "BuildResult", "Citation", "Conversation", "Document", "Lab"),
        *("MglError", "ModelChoice", "Question", "Span", "Turn", "Usage"),
    ]
    assert all(getattr(mgl, name).__name__ == name for name in mgl.__all__)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        mgl.nothing_like_it  # noqa: B018


@pytest.mark.usefixtures("embeds_words")
def test_a_chat_log_is_remembered_as_a_conversation_whichever_memory_is_named(
    server: Server, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"speaker": "Ann", "text": "I ride."}\n{"speaker": "Bo", "text": "I see."}\n')
    table = tmp_path / "table.json"
    table.write_text('{"P0 met P1.": 1}')
    hearing = Hearing()
    with Lab.open(ModelChoice(SERVED, base_url=server.url), observer=hearing) as lab:
        talk = lab.memory(lab.ask(log, "Who rides?", memory="mindgraph").memory_id)
        assert (talk.record.kind, talk.turns) == ("gam", 2)
        assert any("remembers this chat log" in note for note in hearing.notes)
        text = lab.memory(lab.ask(table, "Who met?", memory="mindgraph").memory_id)
        assert (text.record.kind, text.turns) == ("mindgraph", None)


@pytest.mark.usefixtures("embeds_words")
def test_a_chat_log_under_another_name_is_said_to_be_found_by_its_own_alone(
    server: Server, tmp_path: Path
) -> None:
    log, copy = tmp_path / "log.jsonl", tmp_path / "copy.jsonl"
    for path in (log, copy):
        path.write_text('{"speaker": "Ann", "text": "I ride."}\n')
    hearing = Hearing()
    with Lab.open(ModelChoice(SERVED, base_url=server.url), observer=hearing) as lab:
        first, second = (lab.ask(path, "Who rides?").memory_id for path in (log, copy))
        assert first == second
        (note,) = [note for note in hearing.notes if "copy" in note]
        name, other = lab.transcript(first).name, lab.conversation(copy).name
        assert note == f"{other} has the turns of {name}, and is found by that name"
        assert [each.id for each in lab.find_called(name)] == [first]
        assert lab.find_called(other) == []


@pytest.mark.usefixtures("embeds_words")
def test_a_question_about_a_conversation_is_asked_today(server: Server, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"speaker": "Ann", "text": "I rode yesterday."}\n')
    with Lab.open(ModelChoice(SERVED, base_url=server.url)) as lab:
        lab.ask(log, Question("When did I ride?", asker="Ann"))
        asked = server.seen[-1]["messages"][-1]["content"]
        assert f"Today is {datetime.now():%A, %d %B %Y}.\nQuestion by Ann: When" in asked
        then = datetime(2023, 5, 9)
        lab.ask(log, Question("When did I ride?", asked_at=then))
        assert "Today is Tuesday, 09 May 2023." in server.seen[-1]["messages"][-1]["content"]


def test_an_engine_an_embedder_and_a_reranker_of_ones_own(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"speaker": "Ann", "text": "I ride."}\n')
    with Lab.open(OwnModels(SchemaEngine(), WordEmbedder(), WordReranker())) as lab:
        result = lab.ask(log, "Who rides?")
        assert lab.model_id == SchemaEngine().model_id
        assert {call.model_id for call in lab.calls(result.memory_id)} == {lab.model_id}
        assert result.answer.trace[0] == "alike by fake/words:64, judged by fake/words"
        assert lab.memory(result.memory_id).record.config["preset"] == "paper"


async def test_the_lab_can_be_awaited(server: Server, book: Path) -> None:
    with Lab.open(ModelChoice(SERVED, base_url=server.url)) as lab:
        built = await lab.abuild(book, chunk_tokens=24)
        one, two = await asyncio.gather(
            lab.aask(built.memory_id, QUESTION), lab.aask(built.memory_id, "Who met P3?")
        )
    assert one.answer.text == two.answer.text == "12 met."


def test_what_a_build_takes_is_said_before_it_from_what_earlier_ones_took(
    server: Server, book: Path, tmp_path: Path
) -> None:
    hearing, longer = Hearing(), tmp_path / "longer.txt"
    longer.write_text(story(36))
    told = {"memory": "mindgraph", "chunk_tokens": 24}
    with Lab.open(ModelChoice(SERVED, base_url=server.url), observer=hearing) as lab:
        lab.ask(book, QUESTION, **told)
        assert not any("to do:" in note for note in hearing.notes)
        calls = len(server.seen) - 1
        cost = lab.estimate(longer, **told)
        assert 2 * calls < cost.calls < 4 * calls
        assert cost.basis == (f"{calls} calls of this model on this machine",)
        built = lab.build(longer, **told)
        assert abs(built.usage.total.calls - cost.calls) <= 2
        (said,) = [note for note in hearing.notes if "to do:" in note]
        assert f"{cost.calls} model calls" in said
        lab.build(longer, **told)
        assert hearing.notes.count(said) == 1
