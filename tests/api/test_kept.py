"""What is said is kept, and what is deleted is gone: whatever clients send again, and whenever."""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.api.limits import Limits
from mgl.lab.workplace import DATABASE
from mgl.llm.base import Completion, TokenUsage
from mgl.llm.progress import find_listener
from tests.api.conftest import MEMORY, Serve, Served, open_server
from tests.patience import PATIENCE_S

ZEBRA = "My zebra lives in Utrecht"
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}


class Client:
    """A client of the API, for one conversation."""

    def __init__(self, http: httpx.AsyncClient, name: str = "diary") -> None:
        self._http = http
        self._name = name

    async def append(self, *turns: dict[str, Any], status: int = 201) -> list[str]:
        path = f"/api/conversations/{self._name}/turns"
        answer = await self._http.post(path, content=json.dumps({"turns": turns}))
        assert answer.status_code == status, answer.text
        ids: list[str] = answer.json().get("turns", [])
        return ids

    async def chat(
        self, *messages: dict[str, Any], headers: dict[str, str] | None = None, **more: Any
    ) -> dict[str, Any]:
        """The message that is replied."""
        sent = {"model": MEMORY, "user": self._name, "messages": messages, **more}
        answer = await self._http.post(
            "/v1/chat/completions", content=json.dumps(sent), headers=headers
        )
        assert answer.status_code == 200, answer.text
        message: dict[str, Any] = answer.json()["choices"][0]["message"]
        return message

    async def forget(self, *turns: str, dry_run: bool = False) -> dict[str, Any]:
        sent = {"turns": turns, "dry_run": dry_run}
        answer = await self._http.post(f"/api/conversations/{self._name}/forget", json=sent)
        assert answer.status_code == 200, answer.text
        gone: dict[str, Any] = answer.json()
        return gone

    async def turns(self) -> list[dict[str, Any]]:
        answer = await self._http.get(f"/api/conversations/{self._name}/export")
        assert answer.status_code == 200, answer.text
        turns: list[dict[str, Any]] = answer.json()["turns"]
        return turns

    async def count_turns(self) -> tuple[int, int]:
        """The turns that the list of memories counts, and those that a deletion would take."""
        (memory,) = (await self._http.get("/api/memories")).json()["memories"]
        path = f"/api/conversations/{self._name}"
        plan = await self._http.delete(path, params={"dry_run": True})
        return memory["turns"], plan.json()["turns"]

    async def texts(self) -> list[str]:
        return [turn["text"] for turn in await self.turns()]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


@asynccontextmanager
async def connect(served: Served, name: str = "diary") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {served.key}", "Content-Type": "application/json"}
    async with httpx.AsyncClient(base_url=served.root, headers=headers, timeout=PATIENCE_S) as http:
        yield Client(http, name)


def read_files(home: Path) -> Iterator[bytes]:
    for path in home.rglob("*"):
        if path.is_file():
            yield path.read_bytes()


# A message after a deletion


async def test_an_id_of_a_deleted_turn_is_no_other_turns(serve: Serve) -> None:
    """The same turn again is known, and stays deleted; another with its id is refused."""
    async with serve() as served, connect(served) as client:
        time = "2026-05-01T10:00:00+00:00"
        said = {"id": "a", "text": ZEBRA, "time": time, "session": "s"}
        await client.append(said)
        await client.forget("a")
        await client.append(said)
        assert await client.texts() == []
        await client.append({**said, "text": "I bought a boat."}, status=409)


Moves = st.lists(
    st.sampled_from(["append", "chat", "tools", "again", "regenerate", "edit", "forget"]),
    min_size=3,
    max_size=10,
)


@pytest.mark.heavy
@given(Moves, st.randoms(use_true_random=False))
def test_whatever_happens_nothing_is_lost_or_doubled(moves: list[str], random: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder), moves, random))


async def play(home: Path, moves: list[str], random: Any) -> None:
    """A client that shows a chat, beside a program that appends to it and deletes from it."""
    shown: list[dict[str, Any]] = []
    said: list[str] = []
    gone: list[str] = []
    async with open_server(home, limits=Limits(0)) as served, connect(served) as client:
        for number, move in enumerate(moves):
            text = f"word{number} of move {number}"
            if move == "append":
                await client.append({"text": text})
                said.append(text)
            elif move == "forget":
                turns = await client.turns() if said or gone else []
                if turns:
                    ids = (await client.forget(random.choice(turns)["id"]))["turns"]
                    gone += [
                        turn["text"]
                        for turn in turns
                        if turn["id"] in ids and turn["speaker"] == "user"
                    ]
            else:
                if move == "regenerate" and len(shown) > 2:
                    if shown[-2]["content"] in gone:
                        continue  # it would be said anew
                    shown.pop()
                elif move == "edit" and len(shown) > 3:
                    said.remove(shown[-2]["content"])  # the new message is in its place
                    del shown[-2:]
                    shown.append(user(text))
                    said.append(text)
                elif move != "again" or not shown:
                    shown.append(user(text))
                    said.append(text)
                else:
                    del shown[-1:]
                    if len(shown) < 2 or shown[-1]["content"] in gone:
                        shown.append(user(text))
                        said.append(text)
                tools: dict[str, Any] = {"tools": [TOOL], "tool_choice": "none"}
                tools = tools if move == "tools" else {}
                reply = await client.chat(*shown, **tools)
                shown.append(assistant(reply["content"]))
        if not said:
            return
        turns = await client.turns()
        kept = [turn["text"] for turn in turns if turn["speaker"] == "user"]
        assert sorted(kept) == sorted(set(said) - set(gone))
        replies = [turn["id"].rstrip("+") for turn in turns if turn["speaker"] != "user"]
        assert len(replies) == len(set(replies)), "one reply a message"


# Regenerate, edit, stop


async def test_a_reply_is_made_again_in_place_of_the_one_that_is_stored(serve: Serve) -> None:
    async with serve() as served, connect(served) as client:
        await count_replies(served)
        first = await client.chat(user("It rains."))
        again = await client.chat(user("It rains."))
        assert again["content"] != first["content"]
        assert await client.texts() == ["It rains.", again["content"]]
        history = [user("It rains."), assistant(again["content"]), user("It snows.")]
        for _ in range(3):
            last = await client.chat(*history)
        assert last["content"] == "reply 5"
        assert await client.texts() == [each["content"] for each in history] + ["reply 5"]
        lost = {"X-Stainless-Retry-Count": "1"}
        assert await client.chat(*history, headers=lost) == {**last, "citations": []}
        assert (await client.texts())[-1] == "reply 5"


async def test_turns_that_were_replaced_or_deleted_are_not_counted(serve: Serve) -> None:
    async with serve() as served, connect(served) as client:
        for _ in range(3):
            await client.chat(user("It rains."))
        (asked, _) = await client.turns()
        assert await client.count_turns() == (2, 2)
        await client.forget(asked["id"])
        assert await client.count_turns() == (0, 0)


async def test_an_edited_message_replaces_what_followed_it(serve: Serve) -> None:
    async with serve() as served, connect(served) as client:
        shown = [user("It rains.")]
        for text in (ZEBRA, "It snows.", "It hails."):
            shown += [assistant((await client.chat(*shown))["content"]), user(text)]
        await client.chat(*shown)
        await client.append({"text": "I come from elsewhere."})
        said = await client.chat(user("I am of another chat."))
        others = ["I come from elsewhere.", "I am of another chat.", said["content"]]
    async with serve() as served, connect(served) as client:  # another process, the same home
        edited = [*shown[:2], user("My yak lives in Delft")]
        reply = await client.chat(*edited)
        kept = [*(each["content"] for each in shown[:2]), *others]
        assert await client.texts() == [*kept, "My yak lives in Delft", reply["content"]]
        more = [*edited, assistant(reply["content"]), user("It thaws.")]
        await client.chat(*more)
        assert (await client.texts())[-4:-1] == [each["content"] for each in more[-3:]]
        back = await client.chat(*shown)  # the client goes back to what it had before
        kept += [*(each["content"] for each in shown[2:]), back["content"]]
        assert await client.texts() == kept


async def test_the_first_message_of_a_named_chat_is_edited(serve: Serve) -> None:
    chat = {"X-OpenWebUI-Chat-Id": "diary"}
    async with serve() as served, connect(served) as client:
        await count_replies(served)
        first = await client.chat(user("It rains."), headers=chat)
        shown = [user("It rains."), assistant(first["content"]), user("It snows.")]
        await client.chat(*shown, headers=chat)
        await client.append({"text": "I come from elsewhere."})
        again = await client.chat(user("It rains."), headers=chat)
        kept = ["It rains.", "I come from elsewhere.", again["content"]]
        assert await client.texts() == kept
        reply = await client.chat(user("It hails."), headers=chat)
        assert await client.texts() == [kept[1], "It hails.", reply["content"]]


async def count_replies(served: Served) -> None:
    """Have the engine number its replies."""
    numbers = itertools.count(1)

    async def generate(request: Any) -> Completion:
        del request
        return Completion(f"reply {next(numbers)}", "stop", TokenUsage(1, 1))

    served.engine.generate = generate  # type: ignore[method-assign]


async def test_a_stream_that_is_stopped_ends_the_reply_and_keeps_what_was_seen(
    serve: Serve,
) -> None:
    ended = asyncio.Event()

    async def write(request: Any) -> Completion:
        del request
        hear = find_listener()
        assert hear is not None
        try:
            for words in range(1, 1000):
                hear(" ".join(["word"] * words))
                await asyncio.sleep(0.05)
        finally:
            loop.call_soon_threadsafe(ended.set)
        raise AssertionError("it was not stopped")

    loop = asyncio.get_running_loop()
    async with serve() as served, connect(served) as client:
        generate = served.engine.generate
        served.engine.generate = write  # type: ignore[method-assign]
        sent = {"model": MEMORY, "user": "diary", "stream": True, "messages": [user("It rains.")]}
        async with client._http.stream("POST", "/v1/chat/completions", json=sent) as answer:
            async for line in answer.aiter_lines():
                if "word" in line:
                    break
        await asyncio.wait_for(ended.wait(), PATIENCE_S)
        served.engine.generate = generate  # type: ignore[method-assign]
        for _ in range(round(PATIENCE_S / 0.05)):
            if len(await client.texts()) == 2:
                break
            await asyncio.sleep(0.05)
        first, seen = await client.texts()
        assert first == "It rains."
        assert seen.startswith("word")
        assert set(seen.split()) == {"word"}
        reply = await client.chat(user("It rains."), assistant("word"), user("It snows."))
        assert await client.texts() == ["It rains.", "word", "It snows.", reply["content"]]


async def test_a_message_that_goes_on_from_a_part_of_a_reply_stops_it(serve: Serve) -> None:
    """Some clients stop reading, and leave their connection open."""

    async def write(request: Any) -> Completion:
        if "It snows." in request.messages[-1].content:
            return Completion("So it does.", "stop", TokenUsage(1, 1))
        hear = find_listener()
        assert hear is not None
        for words in itertools.count(1):
            hear(" ".join(["word"] * words))
            await asyncio.sleep(0.05)
        raise AssertionError

    async with serve() as served, connect(served) as client:
        served.engine.generate = write  # type: ignore[method-assign]
        sent = {"model": MEMORY, "user": "diary", "stream": True, "messages": [user("It rains.")]}
        async with client._http.stream("POST", "/v1/chat/completions", json=sent) as answer:
            lines = answer.aiter_lines()
            async for line in lines:
                if "word" in line:
                    break
            said = [user("It rains."), assistant("word"), user("It snows.")]
            reply = await asyncio.wait_for(client.chat(*said), PATIENCE_S)
            rest = [line async for line in lines]
            assert any("went on with another" in line for line in rest)
        texts = await client.texts()
        assert [texts[0], *texts[2:]] == ["It rains.", "It snows.", reply["content"]]
        assert set(texts[1].split()) == {"word"}


async def test_forgotten_words_do_not_come_back_with_tools(serve: Serve, mgl_home: Path) -> None:
    async with serve() as served, connect(served) as client:
        first = await client.chat(user(ZEBRA))
        gone = await client.forget(first["turn"])
        assert gone["replies"] == [f"{first['turn']}+"]
        call = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        call["function"] = {"name": "weather", "arguments": '{"town": "Utrecht"}'}
        history = [
            user(ZEBRA),
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "Sun in Utrecht", "tool_call_id": "c"},
            assistant(first["content"]),
            user("And tomorrow?"),
        ]
        before = len(served.engine.requests)
        await client.chat(*history, tools=[TOOL], tool_choice="none")
        shown = [each for request in served.engine.requests[before:] for each in request.messages]
        assert ZEBRA not in [each.content for each in shown]
        assert "And tomorrow?" in [each.content for each in shown]
    assert not any(b"Utrecht" in data or b"zebra" in data for data in read_files(mgl_home))


async def test_a_message_is_kept_once_though_others_speak_before_the_tools_answer(
    serve: Serve,
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    results = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "Sun", "tool_call_id": "c"},
    ]
    async with serve(native_tools=True) as served, connect(served) as client:
        await client.append({"text": "First."})
        await client.chat(user("Is it warm?"), tools=[TOOL])
        await client.append({"text": "I come from elsewhere."})
        reply = await client.chat(user("Is it warm?"), *results, tools=[TOOL])
        said = ["First.", "Is it warm?", "I come from elsewhere.", reply["content"]]
        assert await client.texts() == said


# Replies that were made of what is deleted


async def test_replies_go_with_what_they_were_made_of(serve: Serve, mgl_home: Path) -> None:
    async with serve() as served, connect(served) as client:
        told = await client.chat(user(ZEBRA))
        for number in range(8):
            await client.chat(user(f"It rains on day {number}."))
        asked = await client.chat(user("Where does my zebra live?"))
        assert "Utrecht" in asked["content"]
        preview = await client.forget(told["turn"], dry_run=True)
        assert {f"{told['turn']}+", f"{asked['turn']}+"} <= set(preview["replies"])
        assert preview["echoes"] == [asked["turn"]], "the question repeats it, and is said so"
        assert preview["answers"] == [], "it only chatted"
        assert len(await client.texts()) == 20
        gone = await client.forget(told["turn"])
        assert (gone["turns"], gone["replies"]) == (preview["turns"], preview["replies"])
        kept = await client.texts()
        assert not any("Utrecht" in text for text in kept)
        assert [text for text in kept if text.startswith("It rains")] == [
            f"It rains on day {number}." for number in range(8)
        ]
        await client.forget(asked["turn"])
        again = await client.chat(user("Which animal do I have?"))
        assert "Utrecht" not in json.dumps(again)
    assert not any(b"Utrecht" in data for data in read_files(mgl_home))


async def test_a_reply_is_not_kept_if_its_turns_go_while_it_is_written(
    serve: Serve, mgl_home: Path
) -> None:
    from mgl.memories.deletion import delete
    from mgl.store import Store
    from mgl.store.deletion import Redaction

    async with serve() as served, connect(served) as client:
        await client.chat(user(ZEBRA))
        talk = (await served.open_tenant("")).memories.lab.transcript("diary")
        generate = served.engine.generate

        async def delete_and_generate(request: Any) -> Any:
            with Store.open(mgl_home / DATABASE) as other:
                delete(other, talk.id, Redaction(frozenset({0, 1})))
            return await generate(request)

        served.engine.generate = delete_and_generate  # type: ignore[method-assign]
        await client.chat(user("Where does my zebra live?"))
        served.engine.generate = generate  # type: ignore[method-assign]
        assert await client.texts() == ["Where does my zebra live?"]
    assert not any(b"Utrecht" in data for data in read_files(mgl_home))


# Times


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0999-01-01"])
async def test_a_time_that_cannot_be_taken_is_refused(serve: Serve, time: str) -> None:
    async with serve() as served, connect(served) as client:
        await client.append({"text": "First."})
        await client.append({"text": "Second.", "time": time}, status=400)
        await client.append({"text": "Third."})
        await client.chat(user("Fourth."))
        assert (await client.texts())[:3] == ["First.", "Third.", "Fourth."]


async def test_a_time_without_an_offset_is_local(serve: Serve) -> None:
    async with serve() as served, connect(served) as client:
        time = "2026-05-01T10:00:00"
        await client.append({"text": "One.", "time": time}, {"text": "Two.", "time": time})
        await client.append({"text": "Three.", "time": "2026-05-01T10:01:00+00:00"})
        kept = await client.turns()
        local = datetime.fromisoformat(time).astimezone()
        assert [datetime.fromisoformat(turn["time"]) for turn in kept[:2]] == [local, local]
        assert kept[0]["session"] == kept[1]["session"]


async def test_a_batch_is_taken_in_whole_or_not_at_all(serve: Serve) -> None:
    async with serve() as served, connect(served) as client:
        await client.append({"text": "One.", "id": "a"})
        for bad, status in (
            ({"text": "  "}, 400),
            ({"text": "x", "time": "0001-01-01T00:00:00Z"}, 400),
            ({"text": "Another.", "id": "a"}, 409),
            ({"text": "x", "time": "yesterday"}, 400),
        ):
            await client.append({"text": "Two."}, bad, {"text": "Three."}, status=status)
        twice = [{"text": "Two.", "id": "b"}, {"text": "Another.", "id": "b"}]
        await client.append(*twice, status=409)
        assert await client.texts() == ["One."]
        assert await client.append({"text": "Two."}, {"text": "Three."}) == ["2", "3"]


async def test_a_turn_of_next_year_swallows_no_later_ones(serve: Serve) -> None:
    async with serve() as served, connect(served) as client:
        now = datetime.now().astimezone()
        await client.append({"text": "Soon.", "time": (now + timedelta(days=365)).isoformat()})
        await client.append({"text": "Now."})
        await client.chat(user("Then."))
        soon, *others = [turn["session"] for turn in await client.turns()]
        assert soon not in others
        assert len({*others}) == 1


async def test_a_question_of_no_calendar_is_refused(serve: Serve) -> None:
    async with serve() as served, connect(served) as client:
        await client.append({"text": ZEBRA})
        sent = {"question": "Where last week?", "asked_at": "0001-01-01T00:00:00Z"}
        answer = await client._http.post("/api/memories/diary/ask", json=sent)
        assert answer.status_code == 400


# Lone surrogates


async def test_half_a_character_becomes_a_replacement_character(
    serve: Serve, tmp_path: Path
) -> None:
    half, whole = "\ud83d", "\ufffd"
    async with serve() as served, connect(served) as client:
        turn = {"id": f"i{half}", "text": f"m{half} lives", "speaker": f"A{half}"}
        assert await client.append({**turn, "session": f"s{half}"}) == [f"i{whole}"]
        await client.chat(user(f"Who lives{half}?"), tools=[TOOL], tool_choice="none")
        await client.chat(user(f"Who lives{half}?"))
        (first, *_) = await client.turns()
        assert (first["id"], first["text"], first["speaker"], first["session"]) == (
            f"i{whole}",
            f"m{whole} lives",
            f"A{whole}",
            f"s{whole}",
        )
        found = await client._http.get("/api/memories/diary/search", params={"q": "lives"})
        assert found.json()["results"][0]["node_id"] == f"i{whole}"
        asked = json.dumps({"question": f"Who{half}?", "asker": f"A{half}"})
        answer = await client._http.post("/api/memories/diary/ask", content=asked)
        assert answer.status_code == 200
        named = json.dumps({"model": MEMORY, "user": f"n{half}", "messages": [user("Hi.")]})
        answer = await client._http.post("/v1/chat/completions", content=named)
        assert answer.status_code == 200
        export = await client._http.get(f"/api/conversations/n{whole}/export")
        assert export.json()["turns"][0]["text"] == "Hi."
        log = tmp_path / "log.jsonl"
        log.write_text(json.dumps({"speaker": "Ann", "text": "Hello.", "id": f"m{half}"}))
        answer = await client._http.post("/api/conversations/logged/file", content=log.read_bytes())
        assert answer.status_code == 201
        export = await client._http.get("/api/conversations/logged/export")
        assert export.json()["turns"][0]["id"] == f"m{whole}"
