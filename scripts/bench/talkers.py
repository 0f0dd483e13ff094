"""Clients that talk to `mgl up` as programs do, and remember what it acknowledged.

Each has a conversation of its own and a part in one that it shares. What is not answered, it sends
again, once the server is back. What a client may not see, and what is refused, is a problem.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
from ledger import Book, Said
from served import WORD

PLAIN: Final = {"append": 6, "search": 2, "ask": 1, "chat": 1}
WHOLE: Final = {
    **{"append": 10, "resend": 1, "search": 6, "ask": 3, "export": 1, "forget": 1},
    **{
        "chat": 4,
        "stream": 4,
        "image": 2,
        "tools": 3,
        "again": 2,
        "drop": 2,
        "edit": 1,
        "retract": 1,
    },
}
MIXES: Final[Mapping[str, Mapping[str, int]]] = {"plain": PLAIN, "whole": WHOLE}
CHAT: Final = "/v1/chat/completions"
SHARED: Final = 0.15
"""The share of requests about the conversation that several clients have."""
MOST_SENT: Final = 40
"""Messages of a history, at most."""

_NOUNS: Final = "amber anchor basin candle cedar copper delta ember fern garden harbour".split()
_TOOL: Final = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}
_IMAGE: Final = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}

Shown = list[tuple[dict[str, Any], Said]]


class Refusal(Exception):
    """An answer of 400 or more."""

    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(f"{answer.status_code} {answer.text[:300]}")
        self.status = answer.status_code


@dataclass
class Record:
    """What all clients see. From a kill on ``starts`` is one more, and ``up`` clear for a while."""

    up: asyncio.Event = field(default_factory=asyncio.Event)
    starts: int = 0
    answered: int = 0
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    server_seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    unanswered: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    problems: dict[tuple[str, str], None] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget what was measured so far, but for problems."""
        self.answered = 0
        self.seconds.clear()
        self.server_seconds.clear()

    def blame(self, kind: str, about: str) -> None:
        self.problems[kind, about] = None


class Client:
    """Talks in ``own`` and in ``shared``, by draws of its own.

    Every other one says, as OpenAI's clients do, when it sends a request again.
    """

    def __init__(
        self, number: int, seed: int, http: httpx.AsyncClient, record: Record, *books: Book
    ) -> None:
        self.name = f"client-{number}"
        self._prefix = f"zq{number:03x}"
        self._draw = random.Random(f"{seed} {number}")
        self._http = http
        self._record = record
        self.own, self.shared = books
        self._shown: dict[str, Shown] = defaultdict(list)
        self._last: dict[str, tuple[dict[str, Any], Said] | None] = defaultdict(lambda: None)
        self._says_so = self._draw.random() < 0.5
        self._count = 0
        self._starts = 0

    async def do(self, kind: str) -> None:
        """Do one thing; some take several requests."""
        book = self.shared if self._draw.random() < SHARED else self.own
        try:
            await getattr(self, f"_do_{kind}")(book)
        except Refusal as refusal:
            what = "failed" if refusal.status >= 500 else "refused"
            self._record.blame(what, f"{kind} of {book.name} by {self.name}: {refusal}")

    # What it does

    async def _do_append(self, book: Book) -> None:
        await self.append(book, self._draw.choice((1, 1, 1, 3)))

    async def _do_resend(self, book: Book) -> None:
        """Send turns with ids twice, as a client does whose answer was lost on the way."""
        await self.append(book, 2, times=2)

    async def _do_search(self, book: Book) -> None:
        path = f"/api/memories/{book.name}/search"
        await self._read(book, "search", path, params={"q": self._write()})

    async def _do_ask(self, book: Book) -> None:
        path, noun = f"/api/memories/{book.name}/ask", self._draw.choice(_NOUNS)
        await self._read(book, "ask", path, {"question": f"What is my {noun}?", "asker": "user"})

    async def _do_export(self, book: Book) -> None:
        exported = await self._export(book)
        if book is self.own:
            for problem in book.check(exported):
                self._record.blame(*problem)

    async def _do_forget(self, book: Book) -> None:
        known = [said for said in book.said[self.name] if said.id and not said.is_forgotten]
        if known:
            await self._forget(book, self._draw.choice(known[-20:]))

    async def _do_retract(self, book: Book) -> None:
        """Say something, take it back, and say something else."""
        await self.append(book, 1)
        await self._forget(book, book.said[self.name][-1])
        await self._chat(book, "retract")

    async def _forget(self, book: Book, said: Said) -> None:
        turns = (await self._export(book))["turns"]
        ids = [turn["id"] for turn in turns if said.word in turn["text"] and turn["id"][-1] != "+"]
        path, what = f"/api/memories/{book.name}/forget", {"turns": ids}
        if self._draw.random() < 0.3:
            await self._ask_for("forget", path, {**what, "dry_run": True})
        before = self._record.unanswered["forget"]
        try:
            gone = (await self._ask_for("forget", path, what)).json()["turns"]
        except Refusal as refusal:
            is_done = "forgotten already" in str(refusal)
            if not (is_done and self._record.unanswered["forget"] > before):
                raise
            gone = []
        book.forget({*ids, *gone})
        if self._draw.random() < 0.5:  # else the client goes on sending it
            shown = self._shown[book.name]
            shown[:] = [each for each in shown if each[1] is not said]
        self._last[book.name] = None

    async def _do_chat(self, book: Book) -> None:
        await self._chat(book, "chat")

    async def _do_stream(self, book: Book) -> None:
        await self._chat(book, "stream", stream=True)

    async def _do_image(self, book: Book) -> None:
        await self._chat(book, "image", with_image=True)

    async def _do_tools(self, book: Book) -> None:
        stream = self._draw.random() < 0.5
        await self._chat(book, "tools", stream=stream, tools=[_TOOL])

    async def _do_drop(self, book: Book) -> None:
        """Leave in the middle of a stream, and send the request again."""
        await self._chat(book, "drop", stream=True, leaves=True)

    async def _do_edit(self, book: Book) -> None:
        """Go back to an earlier message, and say something else."""
        shown = self._shown[book.name]
        starts = [place for place, (each, _) in enumerate(shown) if each["role"] == "user"]
        if starts:
            start = self._draw.choice(starts[-4:])
            for _, said in shown[start:]:
                said.is_replaced = True
            del shown[start:]
        await self._chat(book, "edit")

    async def _do_again(self, book: Book) -> None:
        """Send the last request again, though its reply came."""
        if (last := self._last[book.name]) is not None:
            await self._finish_chat(book, "again", *last)

    # How it does it

    async def append(self, book: Book, count: int, times: int = 1) -> None:
        """Append so many turns at once: with ids, which may be sent again, or without."""
        with_ids = times > 1 or self._draw.random() < 0.5
        how = f"append {count} with{'' if with_ids else 'out'} ids"
        sent = [book.say(self.name, self._write(), how) for _ in range(count)]
        turns = [{"text": s.text, **({"id": s.word.strip("zq")} if with_ids else {})} for s in sent]
        path, first = f"/api/conversations/{book.name}/turns", True
        while turns:
            try:
                for _ in range(times):
                    answer = await self._send("append", "POST", path, json={"turns": turns})
                for said, identity in zip(sent, answer.json()["turns"], strict=True):
                    said.id = identity
                break
            except httpx.TransportError:
                await self._wait("append")
            if with_ids:
                continue
            held = {turn["text"]: turn["id"] for turn in (await self._export(book))["turns"]}
            for said in sent:
                said.id = held.get(said.text, "")
            left = [said for said in sent if not said.id]
            self._record.notes["half a batch was stored"] += first and 0 < len(left) < len(sent)
            sent, turns, first = left, [{"text": said.text} for said in left], False
        self._last[book.name] = None

    async def _chat(
        self,
        book: Book,
        kind: str,
        *,
        with_image: bool = False,
        stream: bool = False,
        leaves: bool = False,
        tools: list[Any] | None = None,
    ) -> None:
        text = self._write()
        history = self._recall(book)
        how = f"{kind} after {len(history)}"
        said = book.say(self.name, f"[image]\n{text}" if with_image else text, how)
        content = [_IMAGE, {"type": "text", "text": text}] if with_image else text
        body: dict[str, Any] = {"model": "mgl/gam", "messages": history}
        body["messages"].append({"role": "user", "content": content})
        if self._draw.random() < 0.3:
            body["messages"].insert(0, {"role": "system", "content": "Be kind."})
        body |= {"stream": True} if stream else {}
        body |= {"tools": tools} if tools else {}
        body |= self._draw.choice(({"user": book.name}, {"metadata": {"conversation": book.name}}))
        if leaves:
            await self._leave(kind, body, said)
        await self._finish_chat(book, kind, body, said)

    async def _leave(self, kind: str, body: dict[str, Any], said: Said) -> None:
        """Send a request, and leave before its answer is whole."""
        left = self._draw.randint(1, 3)
        try:
            async with aclosing(self._stream(kind, body)) as events:
                async for _ in events:
                    left -= 1
                    if not left:
                        break
        except httpx.TransportError:
            await self._wait(kind)
        if _is_alone(body):
            said.most += 1
        await asyncio.sleep(self._draw.uniform(0, 0.05))

    async def _finish_chat(self, book: Book, kind: str, body: dict[str, Any], said: Said) -> None:
        """Send a request until it is answered, with the results of the tools that it calls."""
        forgotten, tries = book.forgotten, 0
        while True:
            try:
                message = await self._complete(kind, body, tries)
            except httpx.TransportError:
                tries += 1
                if _is_alone(body) and not self._says_so:
                    said.most += 1
                await self._wait(kind)
                continue
            said.id = message["turn"]
            if not (calls := message.get("tool_calls")):
                break
            if self._draw.random() < 0.2:
                self._show(book, body, said, None)
                return
            asked = {"role": "assistant", "content": None, "tool_calls": calls}
            result = {"role": "tool", "tool_call_id": calls[0]["id"], "content": said.text}
            body, tries = {**body, "messages": [*body["messages"], asked, result]}, 0
        said.reply = message["content"]
        self._look(book, kind, message["content"], forgotten)
        self._show(book, body, said, said.reply)
        self._last[book.name] = None if _is_alone(body) else (body, said)

    def _show(self, book: Book, body: dict[str, Any], said: Said, reply: str | None) -> None:
        """Put a message and its reply into the history that the client keeps."""
        shown = self._shown[book.name]
        shown[:] = [each for each in shown if each[1] is not said]
        message = next(each for each in reversed(body["messages"]) if each["role"] == "user")
        shown.append((message, said))
        if reply is not None:
            shown.append(({"role": "assistant", "content": reply}, said))

    def _recall(self, book: Book) -> list[dict[str, Any]]:
        """The history to send: all of it, its end, or none."""
        shown = [message for message, _ in self._shown[book.name]]
        most = self._draw.choice((MOST_SENT, MOST_SENT, 6, 3, 0, 0))
        return shown[max(0, len(shown) - most) :]

    async def _complete(self, kind: str, body: dict[str, Any], tries: int) -> dict[str, Any]:
        """The message of the answer."""
        headers = {"X-Stainless-Retry-Count": f"{tries}"} if self._says_so else {}
        if not body.get("stream"):
            answer = await self._send(kind, "POST", CHAT, json=body, headers=headers)
            whole: dict[str, Any] = answer.json()["choices"][0]["message"]
            return whole
        message: dict[str, Any] = {"content": ""}
        async with aclosing(self._stream(kind, body, headers)) as events:
            async for event in events:
                if "error" in event:
                    raise Refusal(httpx.Response(500, json=event))
                for choice in event["choices"]:
                    delta = choice["delta"]
                    message["content"] += delta.pop("content", None) or ""
                    message |= delta
        return message

    async def _stream(
        self, kind: str, body: dict[str, Any], headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[dict[str, Any]]:
        """The events of an answer; TransportError for one that is not whole."""
        start, self._starts = time.perf_counter(), self._record.starts
        sent = self._http.stream("POST", CHAT, json=body, headers=headers)
        async with sent as answer:
            if answer.status_code >= 400:
                await answer.aread()
                raise Refusal(answer)
            async for line in answer.aiter_lines():
                if line == "data: [DONE]":
                    self._note(kind, start, answer)
                    return
                if line:
                    yield json.loads(line.removeprefix("data: "))
        raise httpx.ReadError("the stream ended early")

    async def _export(self, book: Book) -> dict[str, Any]:
        path = f"/api/memories/{book.name}/export"
        exported: dict[str, Any] = (await self._ask_for("export", path)).json()
        return exported

    async def _read(
        self, book: Book, kind: str, path: str, body: Any = None, **options: Any
    ) -> None:
        forgotten = book.forgotten
        answer = await self._ask_for(kind, path, body, **options)
        self._look(book, kind, answer.text, forgotten)

    def _look(self, book: Book, kind: str, text: str, forgotten: set[str]) -> None:
        """Look whether an answer has words of other conversations, or that were deleted before."""
        words = set(WORD.findall(text))
        for word in words - book.words:
            self._record.blame("foreign", f"{kind} of {book.name} by {self.name}: {word}")
        for word in words & forgotten:
            self._record.blame("recalled", f"{kind} of {book.name} by {self.name}: {word}")

    async def _ask_for(
        self, kind: str, path: str, body: Any = None, **options: Any
    ) -> httpx.Response:
        """Send what may be sent twice until it is answered."""
        method = "GET" if body is None else "POST"
        while True:
            try:
                return await self._send(kind, method, path, json=body, **options)
            except httpx.TransportError:
                await self._wait(kind)

    async def _send(self, kind: str, method: str, path: str, **options: Any) -> httpx.Response:
        start, self._starts = time.perf_counter(), self._record.starts
        answer = await self._http.request(method, path, **options)
        self._note(kind, start, answer)
        if answer.status_code >= 400:
            raise Refusal(answer)
        return answer

    def _note(self, kind: str, start: float, answer: httpx.Response) -> None:
        self._record.answered += 1
        self._record.seconds[kind].append(time.perf_counter() - start)
        if took := answer.headers.get("server-timing"):  # which errors lack
            seconds = float(took.removeprefix("all;dur=")) / 1000
            self._record.server_seconds[kind].append(seconds)

    async def _wait(self, kind: str) -> None:
        """Wait for the server to be back."""
        self._record.unanswered[kind] += 1
        if self._record.up.is_set() and self._record.starts == self._starts:
            self._record.blame("failed", f"{self.name}, {kind}: no answer, and nobody was killed")
        await asyncio.sleep(0.05)
        await self._record.up.wait()

    def _write(self) -> str:
        self._count += 1
        word = f"{self._prefix}{self._count:04x}{self._draw.getrandbits(12):03x}q"
        draw = self._draw
        noun, other = draw.sample(_NOUNS, 2)
        return draw.choice(
            (
                f"My {noun} is {other}, {word}.",
                f"{word}: {' '.join(draw.choices(_NOUNS, k=8))}",
                f"What is my {noun}? ({word})",
            )
        )


def _is_alone(body: Mapping[str, Any]) -> bool:
    """Whether a request has no message before the one to reply to."""
    spoken = [each for each in body["messages"] if each["role"] in ("user", "assistant")]
    return len([each for each in spoken if not each.get("tool_calls")]) == 1
