"""What is said is kept, and what is deleted is gone: whatever clients send again, and whenever."""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.api.limits import Limits
from mgl.lab.workplace import DATABASE
from mgl.llm.base import Completion, TokenUsage
from mgl.llm.progress import find_listener
from mgl.memories.deletion import delete
from mgl.store import Store
from mgl.store.deletion import Redaction
from tests.api.conftest import MEMORY, Client, Serve, Served, open_server
from tests.leftovers import find_left
from tests.patience import PATIENCE_S

ZEBRA = "My zebra lives in Utrecht"
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}


# A message after a deletion


async def test_an_id_of_a_deleted_turn_is_no_other_turns(http: Client) -> None:
    """The same turn again is known, and stays deleted; another with its id is refused."""
    time = "2026-05-01T10:00:00+00:00"
    said = {"id": "a", "text": ZEBRA, "time": time, "session": "s"}
    await http.append(said)
    await http.forget("a")
    await http.append(said)
    assert await http.texts() == []
    await http.append({**said, "text": "I bought a boat."}, status=409)


Moves = st.lists(
    st.sampled_from(["append", "chat", "tools", "regenerate", "edit", "forget"]),
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
    shown: list[str] = []  # what the user and the assistant said by turns
    said: list[str] = []
    gone: list[str] = []
    async with open_server(home, limits=Limits(0)) as served, Client(served) as http:
        for number, move in enumerate(moves):
            text = f"word{number} of move {number}"
            if move == "append":
                await http.append(text)
                said.append(text)
            elif move == "forget":
                turns = await http.turns() if said or gone else []
                if turns:
                    ids = (await http.forget(random.choice(turns)["id"]))["turns"]
                    own = [turn for turn in turns if turn["speaker"] == "user"]
                    gone += [turn["text"] for turn in own if turn["id"] in ids]
            else:
                if move == "regenerate" and len(shown) > 2:
                    if shown[-2] in gone:
                        continue  # it would be said anew
                    shown.pop()
                elif move == "edit" and len(shown) > 3:
                    said.remove(shown[-2])  # the new message is in its place
                    shown[-2:] = [text]
                    said.append(text)
                else:
                    shown.append(text)
                    said.append(text)
                tools = {"tools": [TOOL], "tool_choice": "none"} if move == "tools" else {}
                shown.append((await http.chat(*shown, **tools))["content"])
        if not said:
            return
        turns = await http.turns()
        kept = [turn["text"] for turn in turns if turn["speaker"] == "user"]
        assert sorted(kept) == sorted(set(said) - set(gone))
        replies = [turn["id"].rstrip("+") for turn in turns if turn["speaker"] != "user"]
        assert len(replies) == len(set(replies)), "one reply a message"


# Regenerate, edit, stop


async def test_a_reply_is_made_again_in_place_of_the_one_that_is_stored(
    served: Served, http: Client
) -> None:
    count_replies(served)
    first = await http.chat("It rains.")
    again = await http.chat("It rains.")
    assert again["content"] != first["content"]
    assert await http.texts() == ["It rains.", again["content"]]
    history = ["It rains.", again["content"], "It snows."]
    for _ in range(3):
        last = await http.chat(*history)
    assert last["content"] == "reply 5"
    assert await http.texts() == [*history, "reply 5"]
    lost = {"X-Stainless-Retry-Count": "1"}
    assert await http.chat(*history, headers=lost) == {**last, "citations": []}
    assert (await http.texts())[-1] == "reply 5"


async def test_turns_that_were_replaced_or_deleted_are_not_counted(http: Client) -> None:
    """Neither in the list of memories nor among those that a deletion would take."""

    async def count() -> tuple[int, int]:
        (memory,) = await http.memories()
        plan = await http.delete("/api/conversations/diary", params={"dry_run": True})
        return memory["turns"], plan.json()["turns"]

    for _ in range(3):
        await http.chat("It rains.")
    (asked, _) = await http.turns()
    assert await count() == (2, 2)
    await http.forget(asked["id"])
    assert await count() == (0, 0)


async def test_an_edited_message_replaces_what_followed_it(serve: Serve) -> None:
    async with serve() as served, Client(served) as http:
        shown = ["It rains."]
        for text in (ZEBRA, "It snows.", "It hails."):
            shown += [(await http.chat(*shown))["content"], text]
        await http.chat(*shown)
        await http.append("I come from elsewhere.")
        said = await http.chat("I am of another chat.")
        others = ["I come from elsewhere.", "I am of another chat.", said["content"]]
    async with serve() as served, Client(served) as http:  # another process, the same home
        edited = [*shown[:2], "My yak lives in Delft"]
        reply = await http.chat(*edited)
        assert await http.texts() == [*shown[:2], *others, edited[-1], reply["content"]]
        more = [*edited, reply["content"], "It thaws."]
        await http.chat(*more)
        assert (await http.texts())[-4:-1] == more[-3:]
        back = await http.chat(*shown)  # the client goes back to what it had before
        assert await http.texts() == [*shown[:2], *others, *shown[2:], back["content"]]


async def test_the_first_message_of_a_named_chat_is_edited(served: Served, http: Client) -> None:
    chat = {"X-OpenWebUI-Chat-Id": "diary"}
    count_replies(served)
    first = await http.chat("It rains.", headers=chat)
    await http.chat("It rains.", first["content"], "It snows.", headers=chat)
    await http.append("I come from elsewhere.")
    again = await http.chat("It rains.", headers=chat)
    assert await http.texts() == ["It rains.", "I come from elsewhere.", again["content"]]
    reply = await http.chat("It hails.", headers=chat)
    assert await http.texts() == ["I come from elsewhere.", "It hails.", reply["content"]]


def count_replies(served: Served) -> None:
    """Have the engine number its replies."""
    numbers = itertools.count(1)

    async def generate(_: Any) -> Completion:
        return Completion(f"reply {next(numbers)}", "stop", TokenUsage(1, 1))

    served.engine.generate = generate  # type: ignore[method-assign]


async def write_on() -> None:
    """Stream words without an end."""
    hear = find_listener()
    assert hear is not None
    for words in itertools.count(1):
        hear(" ".join(["word"] * words))
        await asyncio.sleep(0.05)


@asynccontextmanager
async def streaming(http: Client) -> AsyncIterator[AsyncIterator[str]]:
    """A stream of a reply to "It rains.", whose first words have come."""
    sent = {"model": MEMORY, "user": "diary", "stream": True}
    said = [{"role": "user", "content": "It rains."}]
    async with http.stream(
        "POST", "/v1/chat/completions", json={**sent, "messages": said}
    ) as answer:
        lines = answer.aiter_lines()
        async for line in lines:
            if "word" in line:
                break
        yield lines


async def test_a_stream_that_is_stopped_ends_the_reply_and_keeps_what_was_seen(
    served: Served, http: Client
) -> None:
    ended = asyncio.Event()

    async def write(_: Any) -> Any:
        try:
            await write_on()
        finally:
            loop.call_soon_threadsafe(ended.set)

    loop = asyncio.get_running_loop()
    generate = served.engine.generate
    served.engine.generate = write  # type: ignore[method-assign]
    async with streaming(http):
        pass
    await asyncio.wait_for(ended.wait(), PATIENCE_S)
    served.engine.generate = generate  # type: ignore[method-assign]
    for _ in range(round(PATIENCE_S / 0.05)):
        if len(await http.texts()) == 2:
            break
        await asyncio.sleep(0.05)
    first, seen = await http.texts()
    assert (first, {*seen.split()}) == ("It rains.", {"word"})
    reply = await http.chat("It rains.", "word", "It snows.")
    assert await http.texts() == ["It rains.", "word", "It snows.", reply["content"]]


async def test_a_message_that_goes_on_from_a_part_of_a_reply_stops_it(
    served: Served, http: Client
) -> None:
    """Some clients stop reading, and leave their connection open."""

    async def write(request: Any) -> Any:
        if "It snows." in request.messages[-1].content:
            return Completion("So it does.", "stop", TokenUsage(1, 1))
        return await write_on()

    served.engine.generate = write  # type: ignore[method-assign]
    async with streaming(http) as lines:
        said = http.chat("It rains.", "word", "It snows.")
        reply = await asyncio.wait_for(said, PATIENCE_S)
        assert any("went on with another" in line for line in [line async for line in lines])
    texts = await http.texts()
    assert [texts[0], *texts[2:]] == ["It rains.", "It snows.", reply["content"]]
    assert set(texts[1].split()) == {"word"}


# Tools


CALL = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}


async def test_forgotten_words_do_not_come_back_with_tools(serve: Serve, mgl_home: Path) -> None:
    async with serve() as served, Client(served) as http:
        first = await http.chat(ZEBRA)
        gone = await http.forget(first["turn"])
        assert gone["replies"] == [f"{first['turn']}+"]
        function = {"name": "weather", "arguments": '{"town": "Utrecht"}'}
        results = [
            {"role": "assistant", "content": "", "tool_calls": [{**CALL, "function": function}]},
            {"role": "tool", "content": "Sun in Utrecht", "tool_call_id": "c"},
            {"role": "assistant", "content": first["content"]},
            {"role": "user", "content": "And tomorrow?"},
        ]
        before = len(served.engine.requests)
        await http.chat(ZEBRA, *results, tools=[TOOL], tool_choice="none")
        shown = [each for request in served.engine.requests[before:] for each in request.messages]
        assert ZEBRA not in [each.content for each in shown]
        assert "And tomorrow?" in [each.content for each in shown]
    assert find_left(mgl_home, ["Utrecht", "zebra"]) == {}


async def test_a_message_is_kept_once_though_others_speak_before_the_tools_answer(
    serve: Serve,
) -> None:
    results = [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "Sun", "tool_call_id": "c"},
    ]
    async with serve(native_tools=True) as served, Client(served) as http:
        await http.append("First.")
        await http.chat("Is it warm?", tools=[TOOL])
        await http.append("I come from elsewhere.")
        reply = await http.chat("Is it warm?", *results, tools=[TOOL])
        said = ["First.", "Is it warm?", "I come from elsewhere.", reply["content"]]
        assert await http.texts() == said


# Replies that were made of what is deleted


async def test_replies_go_with_what_they_were_made_of(serve: Serve, mgl_home: Path) -> None:
    async with serve() as served, Client(served) as http:
        told = await http.chat(ZEBRA)
        rain = [f"It rains on day {number}." for number in range(8)]
        for text in rain:
            await http.chat(text)
        asked = await http.chat("Where does my zebra live?")
        assert "Utrecht" in asked["content"]
        preview = await http.forget(told["turn"], dry_run=True)
        assert {f"{told['turn']}+", f"{asked['turn']}+"} <= set(preview["replies"])
        assert preview["echoes"] == [asked["turn"]], "the question repeats it, and is said so"
        assert preview["answers"] == [], "it only chatted"
        assert len(await http.texts()) == 20
        gone = await http.forget(told["turn"])
        assert (gone["turns"], gone["replies"]) == (preview["turns"], preview["replies"])
        kept = await http.texts()
        assert not any("Utrecht" in text for text in kept)
        assert [text for text in kept if text.startswith("It rains")] == rain
        await http.forget(asked["turn"])
        again = await http.chat("Which animal do I have?")
        assert "Utrecht" not in json.dumps(again)
    assert find_left(mgl_home, ["Utrecht"]) == {}


async def test_a_reply_is_not_kept_if_its_turns_go_while_it_is_written(
    serve: Serve, mgl_home: Path
) -> None:
    async with serve() as served, Client(served) as http:
        await http.chat(ZEBRA)
        talk = (await served.open_tenant("")).memories.lab.transcript("diary")
        generate = served.engine.generate

        async def delete_and_generate(request: Any) -> Any:
            with Store.open(mgl_home / DATABASE) as other:
                delete(other, talk.id, Redaction(frozenset({0, 1})))
            return await generate(request)

        served.engine.generate = delete_and_generate  # type: ignore[method-assign]
        await http.chat("Where does my zebra live?")
        served.engine.generate = generate  # type: ignore[method-assign]
        assert await http.texts() == ["Where does my zebra live?"]
    assert find_left(mgl_home, ["Utrecht"]) == {}


# Times


BAD_TIMES = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0999-01-01", "yesterday"]


async def test_a_batch_is_taken_in_whole_or_not_at_all(http: Client) -> None:
    await http.append({"text": "One.", "id": "a"})
    for bad, status in (
        *(({"text": "x", "time": time}, 400) for time in BAD_TIMES),
        ({"text": "  "}, 400),
        ({"text": "Another.", "id": "a"}, 409),
    ):
        await http.append("Two.", bad, "Three.", status=status)
    twice = [{"text": "Two.", "id": "b"}, {"text": "Another.", "id": "b"}]
    await http.append(*twice, status=409)
    assert await http.texts() == ["One."]
    assert await http.append("Two.", "Three.") == ["2", "3"]


async def test_a_time_without_an_offset_is_local(http: Client) -> None:
    time = "2026-05-01T10:00:00"
    await http.append({"text": "One.", "time": time}, {"text": "Two.", "time": time})
    await http.append({"text": "Three.", "time": "2026-05-01T10:01:00+00:00"})
    kept = await http.turns()
    local = datetime.fromisoformat(time).astimezone()
    assert [datetime.fromisoformat(turn["time"]) for turn in kept[:2]] == [local, local]
    assert kept[0]["session"] == kept[1]["session"]


async def test_a_turn_of_next_year_swallows_no_later_ones(http: Client) -> None:
    now = datetime.now().astimezone()
    await http.append({"text": "Soon.", "time": (now + timedelta(days=365)).isoformat()})
    await http.append("Now.")
    await http.chat("Then.")
    soon, *others = [turn["session"] for turn in await http.turns()]
    assert soon not in others
    assert len({*others}) == 1


# Lone surrogates


async def test_half_a_character_becomes_a_replacement_character(http: Client) -> None:
    half, whole = "\ud83d", "\ufffd"
    turn = {"id": f"i{half}", "text": f"m{half} lives", "speaker": f"A{half}"}
    assert await http.append({**turn, "session": f"s{half}"}) == [f"i{whole}"]
    await http.chat(f"Who lives{half}?", tools=[TOOL], tool_choice="none")
    await http.chat(f"Who lives{half}?")
    (first, *_) = await http.turns()
    assert (first["id"], first["text"], first["speaker"], first["session"]) == (
        f"i{whole}",
        f"m{whole} lives",
        f"A{whole}",
        f"s{whole}",
    )
    found = await http.get("/api/memories/diary/search", params={"q": "lives"})
    assert found.json()["results"][0]["node_id"] == f"i{whole}"
    asked = json.dumps({"question": f"Who{half}?", "asker": f"A{half}"})
    assert (await http.post("/api/memories/diary/ask", content=asked)).is_success
    await http.chat("Hi.", user=f"n{half}")
    assert (await http.texts(f"n{whole}"))[0] == "Hi."
    log = json.dumps({"speaker": "Ann", "text": "Hello.", "id": f"m{half}"})
    assert (await http.post("/api/conversations/logged/file", content=log)).is_success
    assert (await http.turns("logged"))[0]["id"] == f"m{whole}"
