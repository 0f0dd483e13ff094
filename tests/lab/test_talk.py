"""Conversations by the lab: told, gone on with, asked, looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mgl.errors import InputError, StoreError, UsageError
from mgl.lab import Lab, ModelChoice
from mgl.lab.talk import UNKEPT, Talk
from mgl.lab.workplace import DATABASE
from mgl.memories.deletion import delete
from mgl.memories.gam import Gam
from mgl.observer import SilentObserver
from mgl.store import Store
from mgl.store.redaction import Redaction
from mgl.types import Answer, Conversation, Question, Turn
from tests.cli.server import Server, serving

pytestmark = pytest.mark.usefixtures("embeds_words")

SERVED = "qwen2.5-7b-instruct"
MORNING = datetime(2023, 5, 8, 9, 0)
FIRST = ("I have got the job", "Wonderful, bye", "My horse is ill", "Oh no")
SECOND = ("The horse is well again", "I am glad")


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def lab(server: Server) -> Iterator[Lab]:
    with Lab.open(ModelChoice(SERVED, base_url=server.url)) as opened:
        yield opened


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
    lines = [
        {
            "id": turn.id,
            "speaker": turn.speaker,
            "text": turn.text,
            "time": None if turn.time is None else turn.time.isoformat(),
            "session": turn.session,
        }
        for turn in said
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def export(path: Path, *names: str) -> Path:
    """A ChatGPT export with a conversation for each name."""
    path.write_text(
        json.dumps(
            [
                {
                    "title": name,
                    "current_node": "b",
                    "mapping": {
                        "a": {"id": "a", "message": None, "parent": None, "children": ["b"]},
                        "b": {
                            "id": "b",
                            "parent": "a",
                            "children": [],
                            "message": {
                                "id": "b",
                                "author": {"role": "user"},
                                "content": {"content_type": "text", "parts": [f"I am {name}"]},
                                "create_time": 1_683_500_000.0,
                            },
                        },
                    },
                }
                for name in names
            ]
        )
    )
    return path


def test_a_talk_is_told_asked_and_cites_turns(lab: Lab) -> None:
    diary = lab.talk("diary")
    assert diary.extend(turns(FIRST)) == 4
    result = diary.ask(Question("Did Ann get the job?", asker="Bo"))
    assert result.memory_id == diary.id
    assert [citation.node_id for citation in result.answer.citations] == ["D1:1"]
    assert result.answer.text == FIRST[0]
    assert set(result.usage.by_stage) >= {"answer"}
    assert lab.answers(diary.id) == [result.answer]


class Hearing(SilentObserver):
    """Remembers the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def deleting(monkeypatch: pytest.MonkeyPatch, path: Path, number: int) -> None:
    """Another process deletes a turn while GAM's model answers."""
    answer = Gam.answer

    async def interrupted(memory: Gam, question: Question) -> Answer:
        made = await answer(memory, question)
        with Store.open(path) as other:
            delete(other, memory.conversation.id, Redaction(frozenset({number})))
        return made

    monkeypatch.setattr(Gam, "answer", interrupted)


def test_an_answer_is_given_and_not_kept_where_its_turn_was_deleted_meanwhile(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hearing, home = Hearing(), tmp_path / "home"
    path = chat_log(tmp_path / "log.jsonl", turns(FIRST))
    with Lab.open(ModelChoice(SERVED, base_url=server.url), home=home, observer=hearing) as lab:
        diary = lab.talk("diary")
        diary.extend(turns(FIRST))
        deleting(monkeypatch, home / DATABASE, 0)
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


def test_a_talk_goes_on_after_reopening(server: Server) -> None:
    with Lab.open(ModelChoice(SERVED, base_url=server.url)) as lab:
        first = lab.talk("diary")
        first.extend(turns(FIRST))
        assert gam(first).state.buffer == (0, 1, 2, 3)
    with Lab.open(ModelChoice(SERVED, base_url=server.url)) as lab:
        again = lab.talk(" diary ")
        assert again.id == first.id
        assert again.extend(turns(FIRST, SECOND)) == 6
        assert gam(again).state.topics["t1"].turns == (0, 1)
        assert gam(again).state.buffer == (2, 3, 4, 5)
        again.end_session()
        again.flush()
        assert again.stats().nodes == len(gam(again).state.topics) == 2
        assert [turn.id for turn in again.memory.conversation.turns] == [
            turn.id for turn in turns(FIRST, SECOND)
        ]


def test_another_model_goes_on_with_the_same_memory(server: Server, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(
        Path("models", f"{SERVED}.yaml").read_text().replace(f"name: {SERVED}", "name: other")
    )
    with Lab.open(ModelChoice(SERVED, base_url=server.url)) as lab:
        first = lab.talk("diary", indicators="rules")
        first.extend(turns(FIRST))
    with Lab.open(ModelChoice("other", base_url=server.url, models=tmp_path)) as lab:
        again = lab.talk("diary")
        again.extend(turns(FIRST, SECOND))
        assert again.id == first.id
        assert "t1" in gam(again).state.topics
        (summary,) = lab.memories()
        assert (summary.id, summary.turns) == (first.id, 6)
        models = {call.model_id for call in lab.calls(first.id)}
        stages = {call.stage for call in lab.calls(first.id)}
        assert models == {"other@main+openai"}
        assert stages == {"boundaries", "summary"}, "the first model's rules are kept to"


def test_another_model_goes_on_with_one_that_was_asked_before_anything_was_said(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "other.yaml").write_text(
        Path("models", f"{SERVED}.yaml").read_text().replace(f"name: {SERVED}", "name: other")
    )
    with Lab.open(ModelChoice(SERVED, base_url=server.url)) as lab:
        first = lab.talk("diary", preset="small")
        assert first.ask("Who?").answer.text == "Not mentioned in the conversation."
    with Lab.open(ModelChoice("other", base_url=server.url, models=tmp_path)) as lab:
        again = lab.talk("diary")
        again.append(turns(FIRST)[0])
        assert again.id == first.id


def test_a_conversation_of_ones_own_making_is_held_to_what_a_reader_gives(lab: Lab) -> None:
    one, two, *_ = turns(FIRST)
    for said, says in (
        ([one, replace(two, id=one.id)], "two turns have the id 'D1:1'"),
        ([one, replace(two, text=" \n")], "turn 'D1:2' has no text"),
    ):
        with pytest.raises(InputError, match=says):
            lab.remember(Conversation.from_turns("talk", said))
    assert lab.memories() == []


def test_another_preset_brings_its_own_options_and_keeps_those_that_were_chosen(lab: Lab) -> None:
    lab.talk("diary", k=7, preset="paper").append(turns(FIRST)[0])
    config = gam(lab.talk("diary", preset="small"))._config
    assert (config.preset, config.indicators, config.k) == ("small", "rules", 7)
    config = gam(lab.talk("diary"))._config
    assert (config.preset, config.indicators, config.k) == ("paper", "prompt", 7)


def test_what_is_said_in_a_talk_is_replied_to_and_both_are_remembered(lab: Lab) -> None:
    diary = lab.talk("diary", preset="small")
    said = diary.reply(Turn("1", "Ann", "I have a horse", MORNING), name="Eve")
    assert said.answer.citations == ()
    spoken = [(turn.speaker, turn.text) for turn in diary.memory.conversation.turns]
    assert spoken == [("Ann", "I have a horse"), ("Eve", said.answer.text)]


def test_a_reply_stands_on_what_was_said_before_the_turns_that_are_shown(
    lab: Lab, server: Server
) -> None:
    diary = lab.talk("diary", preset="small")
    diary.append(Turn("1", "Ann", "My horse is called Star", MORNING))
    diary.extend([Turn(f"{n}", "Ann", f"It rains on day {n}", MORNING) for n in range(2, 12)])
    said = diary.reply(Turn("12", "Ann", "What is the horse called?", MORNING), name="Eve")
    assert [citation.node_id for citation in said.answer.citations] == ["1"]
    prompt = server.seen[-1]["messages"][-1]["content"]
    now = prompt.split("The conversation now:")[1]
    assert "What is the horse called?" in now
    assert "called Star" not in now


def test_a_conversation_of_a_file_is_asked_and_remembered(lab: Lab, tmp_path: Path) -> None:
    path = chat_log(tmp_path / "log.jsonl", turns(FIRST, SECOND))
    talk = lab.remember(lab.conversation(path))
    assert lab.memories() == []
    talk.run(talk.memory.build)
    assert len(talk.memory.conversation.turns) == 6
    assert talk.id == lab.build(path, memory="gam").memory_id
    for memory in ("gam", "turns", "transcript"):
        result = lab.ask(path, "What is ill?", memory=memory)
        assert result.answer.citations, memory
        assert result.answer.citations[0].document == "log"
    assert len(lab.memories()) == 3


def test_a_file_of_several_conversations_needs_a_name(lab: Lab, tmp_path: Path) -> None:
    path = export(tmp_path / "export.json", "Ann", "Bo")
    with pytest.raises(InputError, match="holds 2 conversations") as caught:
        lab.conversation(path)
    assert "Ann, Bo" in caught.value.hint
    with pytest.raises(InputError, match="none is called 'Cy'"):
        lab.conversation(path, "Cy")
    result = lab.ask(path, "Who am I?", memory="turns", conversation="Bo")
    assert result.answer.text == "I am Bo"


def test_a_document_is_no_conversation_nor_the_other_way_round(lab: Lab, tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text("Once there was a horse.\nIt was ill.")
    with pytest.raises(InputError, match="holds a turn"):
        lab.ask(book, "Who?", memory="gam")
    with pytest.raises(UsageError, match="reads documents"):
        lab.remember(Conversation.from_turns("talk", turns(FIRST)), memory="mindgraph")
    for kind in ("mindgraph", "turns"):
        with pytest.raises(UsageError, match="turn by turn") as caught:
            lab.talk("diary", memory=kind)
        assert "gam" in caught.value.hint
    assert lab.memories() == []


def test_a_talk_that_is_not_there_is_not_begun_by_looking(lab: Lab) -> None:
    for look in (lab.known_talk, lab.look_at):
        with pytest.raises(StoreError, match="no conversation 'diary'"):
            look("diary")
    with pytest.raises(UsageError, match="needs a name"):
        lab.talk("  ")
    lab.talk("diary")
    assert lab.memories() == [], "nothing was said yet"


def test_looking_and_changing_by_hand_need_no_model(server: Server) -> None:
    with Lab.open(ModelChoice(SERVED, base_url=server.url)) as lab:
        first = lab.talk("diary")
        first.extend(turns(FIRST, SECOND))
        state = gam(first).state
    asked = len(server.seen)
    with Lab.open("no-such-profile") as lab:
        talk = lab.look_at("diary")
        assert talk.id == first.id
        assert gam(talk).state == state
        assert talk.usage().total.calls == 0
        with pytest.raises(UsageError, match="without a model"):
            talk.flush()
        assert talk.stats().nodes == 1
    assert len(server.seen) == asked
