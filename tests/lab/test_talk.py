"""Conversations by the lab: appended to, continued, asked, looked at."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import InputError, StoreError, UsageError
from mgl.lab import Lab, ModelChoice, OwnModels
from mgl.lab.talk import UNKEPT, Talk
from mgl.lab.workplace import DATABASE
from mgl.llm.fakes import SchemaEngine
from mgl.memories.deletion import delete
from mgl.memories.gam import Gam
from mgl.memories.talk import Change
from mgl.memories.turns import UNMENTIONED, Voice
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.store.deletion import Redaction
from mgl.types import Answer, Conversation, Question, Turn
from tests.cli.server import Server
from tests.effort import within_cpu_seconds
from tests.memories.graph.conftest import Hearing

pytestmark = pytest.mark.usefixtures("embeds_words")

SERVED = "qwen2.5-7b-instruct"
MORNING = datetime(2023, 5, 8, 9, 0)
FIRST = ("I have got the job", "Wonderful, bye", "My horse is ill", "Oh no")
SECOND = ("The horse is well again", "I am glad")


@pytest.fixture
def lab(server: Server) -> Iterator[Lab]:
    with Lab.open(ModelChoice(SERVED, base_url=server.url)) as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path, server: Server) -> ModelChoice:
    """Another model on the same server."""
    text = Path("models", f"{SERVED}.yaml").read_text()
    (tmp_path / "other.yaml").write_text(text.replace(f"name: {SERVED}", "name: other"))
    return ModelChoice("other", base_url=server.url, models=tmp_path)


def turns(*sessions: tuple[str, ...]) -> list[Turn]:
    return [
        Turn(
            f"D{session}:{place}",
            "Ann" if place % 2 else "Bo",
            text,
            MORNING + timedelta(days=session, minutes=place),
            str(session),
        )
        for session, texts in enumerate(sessions, 1)
        for place, text in enumerate(texts, 1)
    ]


def gam(talk: Talk) -> Gam:
    assert isinstance(talk.memory, Gam)
    return talk.memory


def chat_log(path: Path, said: list[Turn]) -> Path:
    names = ("id", "speaker", "text", "session")
    path.write_text(
        "\n".join(json.dumps({name: getattr(turn, name) for name in names}) for turn in said)
    )
    return path


def test_an_answer_is_not_stored_if_its_turn_was_deleted_meanwhile(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hearing, home = Hearing(), tmp_path / "home"
    path = chat_log(tmp_path / "log.jsonl", turns(FIRST))
    choice = ModelChoice(SERVED, base_url=server.url)
    answer = Gam.answer

    async def interrupted(memory: Gam, question: Question) -> Answer:
        made = await answer(memory, question)
        with Store.open(home / DATABASE) as another:
            delete(another, memory.conversation.id, Redaction(frozenset({0})))
        return made

    with Lab.open(choice, home=home, observer=hearing) as lab:
        diary = lab.talk("diary")
        diary.extend(turns(FIRST))
        monkeypatch.setattr(Gam, "answer", interrupted)
        assert diary.ask("What is it?").answer.text == FIRST[0]
        assert lab.answers(diary.id) == []
        assert hearing.notes.count(UNKEPT) == 1
        result = lab.ask(path, "What is it?", memory="gam")
        assert result.answer.text == FIRST[0]
        assert lab.answers(result.memory_id) == []
        assert hearing.notes.count(UNKEPT) == 2
        again = lab.ask(path, "What is ill?", memory="gam")
        assert lab.answers(result.memory_id) == [again.answer]
    assert FIRST[0].encode() not in (home / DATABASE).read_bytes()


def test_a_talk_continues_after_reopening(server: Server) -> None:
    choice = ModelChoice(SERVED, base_url=server.url)
    with Lab.open(choice) as lab:
        first = lab.talk("diary")
        first.extend(turns(FIRST))
        assert gam(first).state.buffer == (0, 1, 2, 3)
    with Lab.open(choice) as lab:
        again = lab.talk("diary")
        assert again.id == first.id
        assert again.extend(turns(FIRST, SECOND)) == 6
        assert gam(again).state.topics["t1"].turns == (0, 1)
        assert gam(again).state.buffer == (2, 3, 4, 5)
        again.end_session()
        again.flush()
        assert again.stats().nodes == len(gam(again).state.topics) == 2
        assert again.memory.conversation.turns == tuple(turns(FIRST, SECOND))


def test_a_turn_with_a_plus_in_its_id_gets_a_reply_of_its_own(lab: Lab) -> None:
    talk = lab.talk("diary")
    talk.extend(
        [Turn("C", "Ann", "I write C", MORNING), Turn("C+", "Ann", "I write more", MORNING)]
    )
    said = talk.reply(Turn("C+", "Ann", "I write more", MORNING)).answer.text
    assert [(turn.id, turn.text) for turn in talk.read_turns()[2:]] == [("C++", said)]
    assert [talk.history.find_reply(turn) for turn in ("C", "C+")] == [None, "C++"]
    assert talk.roll.assistants == {"assistant"}
    assert talk.history.find_follows() == {2: 1}


def test_a_reply_and_a_chosen_id_make_way_for_a_turn_that_ends_in_a_plus(lab: Lab) -> None:
    """The reply to each turn that was then said was refused once it was written."""
    talk = lab.talk("diary")
    talk.append(Turn("2+", "Ann", "I write more", MORNING))
    assert talk.choose_id() == "3"
    said = talk.reply(Turn("2", "Ann", "I write C", MORNING)).answer.text
    assert [(turn.id, turn.text) for turn in talk.read_turns()[2:]] == [("2++", said)]
    again = talk.reply(Turn("2", "Ann", "I write C", MORNING)).answer
    assert (again.text, again.trace) == (said, ("replied to before",))


@pytest.mark.parametrize("asked", [False, True])
def test_another_model_continues_a_memory(server: Server, other: ModelChoice, asked: bool) -> None:
    """With the first model's options, also if nothing was said before it was asked."""
    with Lab.open(ModelChoice(SERVED, base_url=server.url)) as lab:
        first = lab.talk("diary", indicators="rules")
        if asked:
            assert first.ask("Who?").answer.text == UNMENTIONED
        else:
            first.extend(turns(FIRST))
    with Lab.open(other) as lab:
        again = lab.talk("diary")
        again.extend(turns(FIRST, SECOND))
        assert again.id == first.id
        assert "t1" in gam(again).state.topics
        (summary,) = lab.memories()
        assert (summary.id, summary.turns) == (first.id, 6)
        own = [call for call in lab.calls(first.id) if call.model_id == "other@main+openai"]
        assert {call.stage for call in own} == {"boundaries", "summary"}


def test_another_preset_keeps_the_options_that_were_chosen(lab: Lab) -> None:
    lab.talk("diary", k=7, preset="paper").append(turns(FIRST)[0])
    config = gam(lab.talk("diary", preset="small"))._config
    assert (config.preset, config.indicators, config.k) == ("small", "rules", 7)
    config = gam(lab.talk("diary"))._config
    assert (config.preset, config.indicators, config.k) == ("paper", "prompt", 7)


def test_another_preset_leaves_out_options_that_its_kind_lacks(lab: Lab) -> None:
    lab.talk("diary", k=7, preset="small", anchoring="summary").append(turns(FIRST)[0])
    config = gam(lab.talk("diary", preset="paper"))._config
    assert (config.preset, config.k) == ("paper", 7)


def test_a_reply_is_remembered_and_uses_what_was_said_before(lab: Lab, server: Server) -> None:
    diary = lab.talk("diary", preset="small")
    first = diary.reply(Turn("1", "Ann", "My horse is called Star", MORNING), Voice("Eve"))
    assert first.answer.citations == ()
    spoken = [(turn.speaker, turn.text) for turn in diary.memory.conversation.turns]
    assert spoken == [("Ann", "My horse is called Star"), ("Eve", first.answer.text)]
    diary.extend([Turn(f"{n}", "Ann", f"It rains on day {n}", MORNING) for n in range(2, 12)])
    said = diary.reply(Turn("12", "Ann", "What is the horse called?", MORNING), Voice("Eve"))
    assert [citation.node_id for citation in said.answer.citations] == ["1"]
    now = " ".join(message["content"] for message in server.seen[-1]["messages"][1:])
    assert "What is the horse called?" in now
    assert "called Star" not in now


def test_a_conversation_of_a_file_is_asked_and_remembered(lab: Lab, tmp_path: Path) -> None:
    path = chat_log(tmp_path / "log.jsonl", turns(FIRST, SECOND))
    talk = lab.remember(lab.conversation(path))
    assert lab.memories() == []
    talk.run(talk.memory.build)
    assert len(talk.memory.conversation.turns) == 6
    assert talk.id == lab.build(path).memory_id
    for memory in ("gam", "turns", "transcript"):
        result = lab.ask(path, "What is ill?", memory=memory)
        assert result.answer.citations, memory
        assert result.answer.citations[0].document == "log"
    assert len(lab.memories()) == 3


def test_what_is_no_conversation_is_refused(lab: Lab, tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text("Once there was a horse.\nIt was ill.")
    one, two, *_ = turns(FIRST)
    with pytest.raises(InputError):
        lab.ask(book, "Who?", memory="gam")
    with pytest.raises(InputError):
        lab.remember(Conversation.from_turns("talk", [one, one]))
    with pytest.raises(UsageError):
        lab.remember(Conversation.from_turns("talk", [one, two]), memory="mindgraph")
    for kind in ("mindgraph", "turns"):
        with pytest.raises(UsageError):
            lab.talk("diary", memory=kind)
    with pytest.raises(UsageError):
        lab.talk("  ")
    with pytest.raises(StoreError):
        lab.look_at("diary")
    lab.talk("diary")
    assert lab.memories() == [], "nothing was said yet"


def test_reading_and_correcting_need_no_model(server: Server) -> None:
    with Lab.open(ModelChoice(SERVED, base_url=server.url)) as lab:
        first = lab.talk("diary")
        first.extend(turns(FIRST, SECOND))
        state = gam(first).state
    asked = len(server.seen)
    with Lab.open("no-such-profile") as lab:
        talk = lab.look_at("diary")
        assert (talk.id, gam(talk).state) == (first.id, state)
        assert talk.usage().total.calls == 0
        talk.edit("t1", Change(summary="A job", frozen=True))
        assert talk.export()["topics"]["t1"]["frozen"]
        talk.edit("t1", Change(frozen=False))
        assert not gam(talk).state.topics["t1"].frozen
        assert talk.forget(["D1:3"], dry_run=True).turns == ("D1:3",)
        with pytest.raises(UsageError):
            talk.flush()
        assert talk.stats().nodes == 1
        with pytest.raises(InputError, match="take in itself"):
            talk.edit("t1", Change(summary="Both", merge="t1"))
    assert len(server.seen) == asked


@pytest.mark.heavy
@given(st.lists(st.tuples(st.sampled_from(["gam", "mnemis"]), st.integers(0, 3)), max_size=8))
def test_a_conversation_is_told_to_memories_of_two_kinds_by_turns(
    moves: list[tuple[str, int]],
) -> None:
    """Each has all that the other was told, and what the other deleted is gone from both."""
    engine = SchemaEngine()
    with tempfile.TemporaryDirectory() as home:
        said: list[str] = []
        with Lab.open(OwnModels(engine, embedder=WordEmbedder()), home=Path(home)) as lab:
            talks = {kind: lab.talk("diary", memory=kind) for kind in ("gam", "mnemis")}
            for number, (kind, what) in enumerate(moves):
                if what == 3 and said:
                    talks[kind].forget([said.pop(0)])
                    continue
                talks[kind].add([Turn(f"t{number}", "Ann", f"It rains for {number} days")])
                said.append(f"t{number}")
                if what == 2:
                    talks[kind].settle()
            for talk in talks.values():
                talk.settle()
                assert [turn["id"] for turn in talk.export()["turns"]] == said


def test_a_talk_is_read_by_many_threads_while_turns_are_added(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    diary = lab.talk("diary")
    steps = Store.steps

    def slowly(store: Store, memory_id: str) -> int:
        found = steps(store, memory_id)
        time.sleep(0.002)  # so that others come between
        return found

    monkeypatch.setattr(Store, "steps", slowly)
    with ThreadPoolExecutor(4) as pool:
        seen = pool.map(lambda _: len(diary.memory.conversation.turns), range(80))
        added = diary.add([Turn("", "Bo", f"note {n}") for n in range(20)])
        counts = list(seen)
    assert [turn.id for turn in diary.memory.conversation.turns] == [turn.id for turn in added]
    assert max(counts) <= 20
    assert gam(diary).state.turns == 20


@pytest.mark.parametrize("unit", ["one day ago ", "a" * 64, "Ann Bob of ", "word. ", "\n"])
def test_a_large_turn_is_searched_and_asks(lab: Lab, unit: str) -> None:
    talk = lab.talk("diary", preset="small")
    large = "x" + unit * ((1 << 19) // len(unit)) + "x"
    talk.add([Turn("", "Ann", "The horse is called Star."), Turn("", "Bo", large)])
    with within_cpu_seconds(15):
        assert "1" in [found.node_id for found in talk.search("What is the horse called?")]
        talk.search(large)
