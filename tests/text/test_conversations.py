from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from mgl.errors import InputError
from mgl.text import read_conversations
from mgl.text.conversations import parse_time
from mgl.types import Conversation


def line(**fields: object) -> str:
    return json.dumps(fields)


def only(path: Path) -> Conversation:
    [talk] = read_conversations(path)
    return talk


def refused(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        read_conversations(path)
    assert caught.value.hint
    return caught.value


class TestChatLog:
    def test_a_log(self, save) -> None:
        talk = only(
            save(
                "talk.jsonl",
                line(speaker="Ann", text="Hi.", time="2023-05-08T13:56", session="1", id="a")
                + "\r\n\n"
                + line(speaker="Bo", text="Hm\u2028so?", time="2023-05-08T14:00+00:00", session=2)
                + "\n",
            )
        )
        assert talk.name == "talk"
        first, second = talk.turns
        assert (first.id, first.speaker, first.text, first.session) == ("a", "Ann", "Hi.", "1")
        assert (second.id, second.text, second.session) == ("L3", "Hm\u2028so?", "2")
        assert second.time == datetime(2023, 5, 8, 14, tzinfo=UTC)

    def test_bad_lines_are_named_and_the_rest_is_read(self, save) -> None:
        bad = [
            '{"speaker": "Ann", "text": "cut',
            "[1, 2]",
            line(speaker="Ann"),
            line(text=7),
            line(text=" \n "),
            "[" * 100_000,
            "1" * 5_000,
        ]
        talk = only(save("talk.jsonl", "\n".join([line(text="one"), *bad, line(text="two")])))
        assert [(turn.id, turn.text) for turn in talk.turns] == [("L1", "one"), ("L9", "two")]
        assert [note.split(":")[0] for note in talk.notes] == [f"line {n}" for n in range(2, 9)]
        assert all("left out" in note for note in talk.notes)

    def test_what_is_not_understood_is_noted_and_the_turn_is_read(self, save) -> None:
        rows = [line(text="a", time="soon"), line(text="b", time=True), line(text="c", time="")]
        talk = only(save("talk.jsonl", "\n".join([*rows, line(text="d", speaker=["x"])])))
        assert [(turn.time, turn.speaker) for turn in talk.turns] == [(None, "")] * 4
        assert [note.split(":")[0] for note in talk.notes] == ["line 1", "line 2", "line 4"]


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2023-05-08", datetime(2023, 5, 8)),
        (" 2023-05-08 13:56 ", datetime(2023, 5, 8, 13, 56)),
        (
            "2023-05-08T13:56+09:00",
            datetime(2023, 5, 8, 13, 56, tzinfo=timezone(timedelta(hours=9))),
        ),
        (1683554160, datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        (1683554160000, datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        *[(bad, None) for bad in ("8 May", "", None, True, float("nan"), 1e300, [2023])],
    ],
)
def test_moments(value: object, time: datetime | None) -> None:
    assert parse_time(value) == time


def node(id: str, parent: str | None, role: str = "user", **message: object) -> dict[str, object]:
    content = {"content_type": "text", "parts": [id.upper()]}
    said = {"id": f"m-{id}", "author": {"role": role}, "content": content, **message}
    return {"id": id, "parent": parent, "children": [], "message": said}


def export(*nodes: dict[str, object], leaf: str, title: str | None = "Trip") -> dict[str, object]:
    root = {"id": "root", "parent": None, "children": [], "message": None}
    mapping = {str(each["id"]): each for each in (root, *nodes)}
    return {"title": title, "mapping": mapping, "current_node": leaf}


class TestChatGpt:
    def test_the_branch_that_was_shown_last(self, save) -> None:
        nodes = [
            node("a", "root", create_time=1683554160.0),
            node("b", "a", "assistant", create_time=1683554165.5),
            node("c", "a", "assistant"),
            node("d", "c"),
        ]
        talk = only(save("conversations.json", json.dumps([export(*nodes, leaf="b")])))
        assert talk.name == "Trip"
        assert [(t.id, t.speaker, t.text) for t in talk.turns] == [
            ("m-a", "user", "A"),
            ("m-b", "assistant", "B"),
        ]
        assert talk.turns[0].time == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
        assert talk.notes == ("left out: 2 messages of tools, the system or other branches",)

    def test_what_is_not_said_is_counted(self, save) -> None:
        thoughts = {"content_type": "thoughts"}
        nodes = [
            node("a", "root", "system"),
            node("b", "a"),
            node("c", "b", "assistant", recipient="python"),
            node("d", "c", "tool"),
            node("e", "d", "assistant", content=thoughts),
            node("f", "e", metadata={"is_visually_hidden_from_conversation": True}),
            node("g", "f", "assistant"),
        ]
        talk = only(save("conversations.json", json.dumps(export(*nodes, leaf="g"))))
        assert [turn.text for turn in talk.turns] == ["B", "G"]
        assert talk.notes == ("left out: 5 messages of tools, the system or other branches",)

    def test_pictures_voices_files_and_a_message_that_cannot_be_read(self, save) -> None:
        parts = [
            {"content_type": "image_asset_pointer", "asset_pointer": "x"},
            {"content_type": "audio_transcription", "text": "Look!"},
            {"content_type": "real_thing"},
            "Here.",
            7,
        ]
        content = {"content_type": "multimodal_text", "parts": parts}
        nodes = node("a", "root", content=content), node("b", "a", content="text")
        talk = only(save("c.json", json.dumps(export(*nodes, leaf="b"))))
        assert [turn.text for turn in talk.turns] == ["[image]\nLook!\n[file]\nHere."]
        assert talk.notes[0].startswith("message b: content:")

    def test_without_a_current_node_and_in_a_circle(self, save) -> None:
        lost = export(node("a", "root"), node("b", "a"), leaf="gone")
        circle = export(node("a", "b"), node("b", "a"), leaf="b", title=None)
        talks = read_conversations(save("c.json", json.dumps([lost, circle])))
        assert [[turn.text for turn in talk.turns] for talk in talks] == [["A", "B"], ["A", "B"]]
        assert [talk.name for talk in talks] == ["Trip", "c-2"]

    def test_conversations_without_turns_or_shape_are_told(self, save) -> None:
        good = export(node("a", "root"), leaf="a")
        empty = export(leaf="root")
        broken = {"mapping": {"a": 7}}
        talk = only(save("c.json", json.dumps([empty, broken, 5, good])))
        assert [note.split(":")[0] for note in talk.notes] == [
            "conversation 1 (Trip)",
            "conversation 2",
            "conversation 3",
        ]
        assert "no turns" in refused(save("d.json", json.dumps([empty]))).message


class TestLocomo:
    def sample(self, **changes: object) -> dict[str, object]:
        talk = {
            "speaker_a": "Ann",
            "speaker_b": "Bo",
            "session_10_date_time": "12:01 am on 9 June, 2023",
            "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "Back."}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [
                {"speaker": "Ann", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a red cat"},
                {"speaker": "Bo", "dia_id": "D2:2", "text": "", "blip_caption": "a dog "},
            ],
            "session_11_date_time": "9:00 am on 10 June, 2023",
            **changes,
        }
        return {"sample_id": "conv-1", "conversation": talk, "qa": []}

    def test_sessions_in_order_with_times_and_pictures(self, save) -> None:
        talk = only(save("l.json", json.dumps([self.sample()])))
        assert talk.name == "conv-1"
        assert [(turn.id, turn.session, turn.text) for turn in talk.turns] == [
            ("D2:1", "2", "Look! [image: a red cat]"),
            ("D2:2", "2", "[image: a dog]"),
            ("D10:1", "10", "Back."),
        ]
        assert [turn.time for turn in talk.turns] == [
            datetime(2023, 5, 8, 13, 56),
            datetime(2023, 5, 8, 13, 56),
            datetime(2023, 6, 9, 0, 1),
        ]
        assert talk.notes == ()

    def test_what_is_damaged_is_named(self, save) -> None:
        for changes in ({"session_2_date_time": "in May"}, {"session_10": [None]}):
            (place,) = (key for key in changes)
            talk = only(save("l.json", json.dumps([self.sample(), self.sample(**changes)])))
            assert len(talk.turns) == 3
            assert f"{place.split('_')[0]} {place.split('_')[1]}" in talk.notes[0]

    @pytest.mark.data
    def test_the_real_conversations(self, development_data: Path) -> None:
        talks = read_conversations(development_data / "locomo" / "locomo10.dev5.json")
        assert [len(talk.turns) for talk in talks] == [419, 369, 663, 629, 680]
        assert [len(talk.transcript.sections) for talk in talks] == [19, 19, 32, 29, 29]
        assert all(turn.time is not None for talk in talks for turn in talk.turns)
        assert all(talk.notes == () for talk in talks)


@pytest.mark.parametrize(
    "content",
    [
        *("", "\n \n", "\0" * 99, "[]", "{}", "7", '[{"a": 1}]', "[" * 100_000),
        *('[\n  {"mapping": \n', "Ann: Hi.\nBo: Hm.", '{"a": 1}\n{"a": 2}'),
    ],
    ids=range(11),
)
def test_what_holds_no_conversation(save, content: str) -> None:
    refused(save("c.json", content))
