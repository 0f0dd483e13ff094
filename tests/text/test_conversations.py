from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from mgl.errors import InputError
from mgl.text import read_conversations
from mgl.text.conversations import choose_conversation, join_conversations, parse_time
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
        *('[\n  {"mapping": \n', "It rained.\nNote: it rained.", '{"a": 1}\n{"a": 2}'),
    ],
    ids=range(11),
)
def test_what_holds_no_conversation(save, content: str) -> None:
    refused(save("c.json", content))


def said(talk: Conversation) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.text) for turn in talk.turns]


HI = [("user", "Hi."), ("assistant", "Hello.")]
MESSAGES = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": [{"type": "text", "text": "Hi."}]},
    {"role": "assistant", "content": None, "tool_calls": []},
    {"role": "assistant", "content": "Hello."},
]


class TestMessages:
    @pytest.mark.parametrize(
        "content",
        [
            "\n".join(map(json.dumps, MESSAGES)),
            json.dumps(MESSAGES),
            json.dumps({"model": "m", "messages": MESSAGES}),
            json.dumps({"messages": MESSAGES}) + "\n" + json.dumps({"messages": []}),
        ],
        ids=["lines", "list", "request", "requests"],
    )
    def test_messages_as_openai_has_them(self, save, content: str) -> None:
        talk = only(save("talk.txt", content))
        assert said(talk) == HI
        assert len(talk.notes) >= 2

    def test_several(self, save) -> None:
        lines = "\n".join(json.dumps({"id": f"c{n}", "messages": MESSAGES}) for n in range(2))
        talks = read_conversations(save("talks.jsonl", lines))
        assert [talk.given_id for talk in talks] == ["c0", "c1"]
        assert [said(talk) for talk in talks] == [HI, HI]

    def test_a_picture(self, save) -> None:
        parts = [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "Hi."}]
        assert said(only(save("t.json", json.dumps([{"role": "user", "content": parts}])))) == [
            ("user", "[image]\nHi.")
        ]

    def test_sharegpt(self, save) -> None:
        turns = [("system", "Be kind."), ("human", "Hi."), ("gpt", "Hello.")]
        chat = {"id": "c1", "conversations": [{"from": who, "value": text} for who, text in turns]}
        talk = only(save("t.json", json.dumps([chat])))
        assert (said(talk), talk.given_id) == ([("human", "Hi."), ("gpt", "Hello.")], "c1")

    def test_open_webui(self, save) -> None:
        messages = [
            {"id": f"m{n}", "role": role, "content": text, "timestamp": 1764000000 + n}
            for n, (role, text) in enumerate(HI)
        ]
        talk = only(save("t.json", json.dumps([{"title": "Tea", "chat": {"messages": messages}}])))
        assert (talk.name, said(talk)) == ("Tea", HI)
        assert [turn.id for turn in talk.turns] == ["m0", "m1"]

    def test_authors_with_names_of_their_own(self, save) -> None:
        message = {"id": "1", "type": "Default", "content": "Hi.", "author": {"nickname": "Ann"}}
        assert said(only(save("t.json", json.dumps({"messages": [message]})))) == [("Ann", "Hi.")]

    @pytest.mark.parametrize("nested", [True, False])
    def test_librechat_as_it_was_shown_last(self, save, nested: bool) -> None:
        flat = [
            {"messageId": id, "parentMessageId": parent, "sender": who, "text": text}
            for id, parent, who, text in [
                ("m1", "0", "User", "Hi."),
                ("m2", "m1", "GPT", "What?"),
                ("m3", "m1", "GPT", "Hello."),
                ("m4", "m3", "User", "Tea?"),
            ]
        ]
        first, second, third, last = flat
        tree = [first | {"children": [second, third | {"children": [last]}]}]
        export = {"title": "Tea", "messages": tree if nested else flat}
        talk = only(save("t.json", json.dumps(export)))
        assert said(talk) == [("User", "Hi."), ("GPT", "Hello."), ("User", "Tea?")]
        assert talk.notes == ("left out: messages of other branches: 1",)


class TestLines:
    @pytest.mark.parametrize(
        "line", ["{}：{}", "{}： {}", "**{}:** {}", "**{}**: {}", "{}: {}"], ids=ascii
    )
    def test_ways_to_write_a_name(self, save, line: str) -> None:
        turns = [("小明", "你好：吗"), ("Ann", "Hi.")]
        text = "\n".join(line.format(*turn) for turn in turns)
        assert said(only(save("talk.txt", text))) == turns

    def test_what_only_looks_like_json_is_not_called_damaged(self, save) -> None:
        with pytest.raises(InputError, match="no conversation of a known format"):
            read_conversations(save("talk.txt", "[18:02] <ann> Hi.\n"))

    def test_names_and_what_they_say(self, save) -> None:
        text = "User: I like tea.\nAssistant: Fine.\n\n- green\nNote: hot.\nUser: Yes: now."
        talk = only(save("talk.txt", text))
        assert said(talk) == [
            ("User", "I like tea."),
            ("Assistant", "Fine.\n\n- green\nNote: hot."),
            ("User", "Yes: now."),
        ]
        assert [turn.id for turn in talk.turns] == ["L1", "L2", "L6"]

    def test_names_of_one_line_each(self, save) -> None:
        talk = only(save("talk.txt", "Ann: Hi.\nBo: Hm.\nZoë Q: Yes.\n"))
        assert said(talk) == [("Ann", "Hi."), ("Bo", "Hm."), ("Zoë Q", "Yes.")]

    @pytest.mark.parametrize(
        ("lines", "times"),
        [
            (
                ["31/12/2020, 22:05 - Ann: Hi.", "01/01/2021, 00:01 - Bo B.: Hm."],
                [datetime(2020, 12, 31, 22, 5), datetime(2021, 1, 1, 0, 1)],
            ),
            (
                ["12/31/20, 10:05\u202fPM - Ann: Hi.", "1/1/21, 12:01\u202fAM - Bo B.: Hm."],
                [datetime(2020, 12, 31, 22, 5), datetime(2021, 1, 1, 0, 1)],
            ),
            (
                ["\u200e[31.12.20, 22:05:09] Ann: Hi.", "[01.01.21, 00:01:00] Bo B.: \u200eHm."],
                [datetime(2020, 12, 31, 22, 5, 9), datetime(2021, 1, 1, 0, 1)],
            ),
            (
                ["[2020-12-31 22:05] Ann: Hi.", "2021-01-01T00:01 Bo B.: Hm."],
                [datetime(2020, 12, 31, 22, 5), datetime(2021, 1, 1, 0, 1)],
            ),
        ],
    )
    def test_whatsapp(self, save, lines: list[str], times: list[datetime]) -> None:
        first, last = lines
        event = first.replace("Ann: Hi.", "Messages are encrypted.")
        talk = only(save("chat.txt", "\r\n".join([event, first, "Note: more.", last])))
        assert said(talk) == [("Ann", "Hi.\nNote: more."), ("Bo B.", "Hm.")]
        assert [turn.time for turn in talk.turns] == times
        assert talk.notes[-1] == "left out: lines that nobody said: 1"


class TestExports:
    def test_chatgpt_in_the_order_of_its_tree(self, save) -> None:
        """Clocks differ: the question is later than its answer."""
        nodes = [
            {**node("a", "root", create_time=20.0), "children": None},
            node("b", "a", "assistant", create_time=10.0),
            {**node("c", "b", create_time=30.0), "children": None},
        ]
        talk = only(save("c.json", json.dumps({**export(*nodes, leaf="c"), "id": "x"})))
        assert [turn.text for turn in talk.turns] == ["A", "B", "C"]
        assert (talk.notes, talk.given_id) == ((), "x")

    def test_claude(self, save) -> None:
        chat = {
            "uuid": "u1",
            "name": "Trip",
            "chat_messages": [
                {
                    "uuid": "m1",
                    "text": "Hi.",
                    "content": [{"type": "text", "text": "Hi."}],
                    "sender": "human",
                    "created_at": "2024-05-01T10:00:00.000000Z",
                    "attachments": [{"file_name": "a.txt"}],
                },
                {
                    "uuid": "m2",
                    "content": [
                        {"type": "thinking", "thinking": "Hm"},
                        {"type": "text", "text": "Yes."},
                    ],
                    "sender": "assistant",
                    "created_at": "2024-05-01T09:59:59Z",
                },
            ],
        }
        talk = only(save("conversations.json", json.dumps([chat])))
        assert said(talk) == [("user", "Hi.\n[file]"), ("assistant", "Yes.")]
        assert (talk.name, talk.given_id, talk.turns[0].id) == ("Trip", "u1", "m1")

    def test_telegram(self, save) -> None:
        chat = {
            "name": "Bo",
            "type": "personal_chat",
            "id": 7,
            "messages": [
                {"id": 1, "type": "service", "date": "2024-05-01T10:00:00", "action": "x"},
                {
                    "id": 2,
                    "type": "message",
                    "date": "2024-05-01T12:00:00",
                    "date_unixtime": "1714557600",
                    "from": "Bo",
                    "from_id": "user1",
                    "text": ["See ", {"type": "link", "text": "https://a.b"}, "!"],
                },
                {
                    "id": 3,
                    "type": "message",
                    "date": "2024-05-01T12:01:00",
                    "from": "Ann",
                    "photo": "p.jpg",
                    "text": "",
                },
            ],
        }
        for value in (chat, {"chats": {"list": [chat]}}):
            talk = only(save("result.json", json.dumps(value)))
            assert said(talk) == [("Bo", "See https://a.b!"), ("Ann", "[image]")]
            assert talk.turns[0].time == datetime(2024, 5, 1, 10, tzinfo=UTC)
            assert "left out: 1 messages of the app itself" in talk.notes

    def test_slack(self, save) -> None:
        day = [
            {"type": "message", "subtype": "channel_join", "user": "U1", "text": "!", "ts": "1"},
            {
                "type": "message",
                "user": "U1",
                "text": "Look &amp; see <https://a.b|this> of <@U2>",
                "ts": "1714557600.000100",
                "user_profile": {"real_name": "Ann B"},
            },
            {"type": "message", "user": "U2", "text": "Fine", "ts": "1714557601.0", "files": [{}]},
        ]
        talk = only(save("2024-05-01.json", json.dumps(day)))
        assert said(talk) == [("Ann B", "Look & see this of @U2"), ("U2", "Fine\n[file]")]


class TestChoosing:
    def test_equal_titles_are_chosen_by_number_id_or_day(self, save) -> None:
        found = read_conversations(save("c.json", json.dumps(self.exports())))
        assert choose_conversation(found, "Trip") == found[:2]
        for wanted, chosen in (("2", 1), ("id1", 0), ("1970-01-02", 1), ("Work", 2)):
            assert choose_conversation(found, wanted) == [found[chosen]]
        assert choose_conversation(found, "none") == []

    def test_all_together(self, save) -> None:
        found = read_conversations(save("c.json", json.dumps(self.exports())))
        joined = join_conversations("me", found)
        assert [(turn.session, turn.text) for turn in joined.turns] == [
            ("Trip (1)", "A"),
            ("Trip (2)", "B"),
            ("Work", "C"),
        ]

    def exports(self) -> list[dict[str, object]]:
        return [
            {
                **export(node(id, "root", create_time=day * 86400.0), leaf=id, title=title),
                "id": f"id{day + 1}",
            }
            for day, (id, title) in enumerate([("a", "Trip"), ("b", "Trip"), ("c", "Work")])
        ]


@pytest.mark.parametrize(
    ("data", "format_", "hint"),
    [
        (b"PK\x03\x04" + bytes(64), "zip", "unpack it"),
        (b"%PDF-1.7\n", "PDF", "mgl ask FILE QUESTION"),
        (b"<!doctype html><p>Ann: Hi.", "HTML", "mgl ask FILE QUESTION"),
    ],
    ids=["zip", "PDF", "HTML"],
)
def test_a_document_that_is_added_as_a_chat_is_named_as_one(
    tmp_path: Path, data: bytes, format_: str, hint: str
) -> None:
    path = tmp_path / "talk.txt"
    path.write_bytes(data)
    error = refused(path)
    assert f"talk.txt is not a chat log, but {format_}" in str(error)
    assert hint in (error.hint or "")
