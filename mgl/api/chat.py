"""``/v1/chat/completions`` with a memory: what any client of the OpenAI API says is remembered.

    chat = Chat(memories, profile)
    reply, besides = await chat.reply(request, headers)

``model: "mgl/gam"`` and the name of a conversation make it remember; the name is the header
X-MGL-Conversation, else ``metadata.conversation``, else what names a chat (``CHAT_HEADERS``,
``CHAT_KEYS``), else ``user``, which is one for all chats in some clients. ``metadata.memory`` names
a memory by its id. Without a name, with ``metadata.temporary``, or with the model's own name it is
the plain model, and nothing is kept, not even in the log of calls. So are requests for titles, tags
and the like (``mgl.api.tasks``).

The memory replies as `mgl chat` does, by its own prompt and sampling; of an image it knows that
there was one, "[image]", which is what is remembered. A request with tools or a
response format is passed through to the model as it came, with what was said before put before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final
from urllib.parse import unquote

from mgl import registry
from mgl.api.history import BEGINS, Role, Said, find_news, list_spoken
from mgl.api.memories import Memories, grows
from mgl.api.tasks import TASK, is_task
from mgl.errors import Conflict
from mgl.lab.talk import Talk
from mgl.llm.base import LLM, Message, Reply, TokenUsage
from mgl.llm.calls import showing_deleted
from mgl.llm.concurrency import StopSignal
from mgl.llm.progress import Listener
from mgl.memories.base import is_memory_id
from mgl.memories.results import citation_json
from mgl.memories.turns import Voice, Wish
from mgl.openai.completing import Completer
from mgl.openai.completing import Said as Replied
from mgl.openai.errors import NotServed, Refused
from mgl.openai.requests import read_request
from mgl.openai.shapes import ChatRequest
from mgl.types import Answer, StageUsage, Turn

PREFIX: Final = "mgl/"
CONVERSATION: Final = "X-MGL-Conversation"
CHAT_HEADERS: Final = (
    "X-OpenWebUI-Chat-Id",
    "X-LibreChat-Conversation-Id",
    "X-Conversation-Id",
    "X-Chat-Id",
)
CHAT_KEYS: Final = ("chat_id", "conversation_id", "conversationId", "thread_id")
"""Members of ``metadata`` that name a chat."""
USER: Final = "user"
ASSISTANT: Final = "assistant"
RETRIED: Final = "X-Stainless-Retry-Count"
"""The header in which OpenAI's clients count the times that they sent a request before."""

MOST_TOKENS: Final = 1 << 30

MOVED_ON: Final = "the chat went on with another message before this reply was written"

Begin = Callable[[str, str], None]
"""Is told the ids of a memory and of its turn that is replied to."""


class Chat:
    """Replies to chat requests of one tenant.

    ``models`` are the names that requests use: a kind of memory each, and the plain model.
    """

    def __init__(self, memories: Memories, profile: str) -> None:
        self._memories = memories
        self._profile = profile
        self.models = [*(f"{PREFIX}{kind}" for kind in _list_kinds()), profile]
        self._writing: list[_Writing] = []

    async def reply(
        self,
        chat: ChatRequest,
        headers: Mapping[str, str],
        hear: Listener | None = None,
        begin: Begin | None = None,
    ) -> Replied:
        """Reply to a request.

        ``hear`` is given the text so far; ``begin`` is told before it which turn is replied to, if
        that is remembered.
        """
        if chat.model not in self.models:
            raise NotServed(
                f"there is no model {chat.model!r} here", hint=f"use {self.models[0]!r}"
            )
        name, is_whole = _find_name(chat, headers)
        notes = {"notes": [f"{each} has no effect here" for each in chat.ignored]}
        besides: dict[str, Any] = notes if chat.ignored else {}
        if name is None or chat.model == self._profile:
            return await self._forward(chat, hear), besides
        if is_whole:
            name = await self._memories.find_chat(name)
        chat, kind = chat.with_named_attachments(), chat.model.removeprefix(PREFIX)
        messages = read_request(chat, max_tokens=1, context_tokens=MOST_TOKENS).messages
        if is_task(messages, chat.metadata, headers.get(TASK)):
            return await self._forward(chat, hear), besides
        sending = _Sending(headers.get(RETRIED, "0") != "0", is_whole)
        seen = _Seen(hear, begin)
        passed = _Passed(chat, seen.listener) if _is_passed(chat) else None

        budget = chat.max_completion_tokens or chat.max_tokens
        wish = Wish(budget, chat.temperature, chat.top_p, chat.seed)
        spoken = _find_spoken(messages)
        writing = _Writing(name, messages, spoken, sending, seen, passed, wish)
        for each in self._writing:
            if each.is_left_by(writing):
                each.stop.ask()
        is_new = not _find_id(chat)
        self._writing.append(writing)
        try:
            answer, used, ids = await self._memories.work(
                name, kind, writing.reply, is_new=is_new, stop=writing.stop
            )
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise Conflict(MOVED_ON, hint="ask again for a reply to it") from error
        finally:
            self._writing.remove(writing)
        cited = [citation_json(each) for each in answer.citations]
        besides |= {"citations": cited, **ids}
        if is_new:
            besides["conversation"] = name  # as the client writes it
        if passed is not None and passed.reply is not None:
            return passed.reply, besides
        usage = TokenUsage(used.input_tokens, used.output_tokens, used.cached_tokens)
        key = f"{kind}-{ids['turn']}"
        return Reply(answer.text, None, (), usage, wish.finish_reason, call_key=key), besides

    async def _forward(self, chat: ChatRequest, hear: Listener | None) -> Reply[None]:
        async def work(llm: LLM) -> Reply[None]:
            return await Completer(llm).complete(chat, stage="chat", hear=hear)

        return await self._memories.lab.forward(work)


@dataclass(frozen=True, slots=True)
class _Sending:
    """How a client sends a request: as a retry, or with its whole chat."""

    is_retry: bool
    is_whole: bool


class _Seen:
    """What a client has been sent of a reply so far."""

    def __init__(self, hear: Listener | None, begin: Begin | None) -> None:
        self._hear = hear
        self._begin = begin
        self.text = ""

    def begin(self, memory: str, turn: str) -> None:
        """Tell the memory, and its turn that gets the reply."""
        if self._begin is not None:
            self._begin(memory, turn)

    @property
    def listener(self) -> Listener | None:
        """What hears the text so far; None where nobody does."""
        return None if self._hear is None else self._listen

    def _listen(self, text: str) -> None:
        assert self._hear is not None
        self.text = text
        self._hear(text)

    async def repeat(self, llm: LLM, remembered: str) -> str:
        """Say it again (``mgl.memories.turns.Say``)."""
        del llm, remembered
        return self.text.strip().rstrip("\N{REPLACEMENT CHARACTER}")


@dataclass(frozen=True, eq=False, slots=True)
class _Writing:
    """A reply that is being written, and what its request says was ``spoken``."""

    name: str
    messages: Sequence[Message]
    spoken: list[tuple[int, Role, str]]
    sending: _Sending
    seen: _Seen
    passed: _Passed | None
    wish: Wish
    stop: StopSignal = field(default_factory=StopSignal)

    def reply(self, talk: Talk) -> tuple[Answer, StageUsage, dict[str, Any]]:
        """Take in what is new of the request, reply to its last message, and take that in.

        Returns the reply, what it cost, and the name of the ``conversation`` with the ids of the
        memory, of the turn that it replies to, and of the ``reply``, None where that was not taken
        in. Of a reply that is stopped, what was seen is taken in.
        """
        said = [each.content for each in self.messages if each.role == "system"]
        voice = Voice(ASSISTANT, "\n".join(said).strip())
        was_sent = self.messages[-1].role == "tool"  # the model saw it, and called for more
        turn, deleted = _take_in(talk, self.spoken, self.sending, was_sent=was_sent)
        seen, passed, say = self.seen, self.passed, None
        seen.begin(talk.id, turn.id)
        if passed is not None:
            passed.leave_out(deleted)
            say = passed.say
        try:
            answer, usage = talk.respond(
                turn, voice, hear=seen.listener, say=say, wish=self.wish, stop=self.stop
            )
        except CancelledError:
            talk.respond(turn, Voice(ASSISTANT), say=seen.repeat)
            raise
        talk.settle_later()
        ids = {"memory_id": talk.id, "turn": turn.id, "reply": talk.history.find_reply(turn.id)}
        return answer, usage.total, {"conversation": talk.name, **ids}

    def is_left_by(self, later: _Writing) -> bool:
        """Whether a later request of the same chat goes on from a part of this reply: a client may
        stop reading without a word to the server."""
        asked, written = [*self.spoken[-1][1:]], self.seen.text.lstrip()
        return self.name == later.name and any(
            one == asked and role == ASSISTANT and written.startswith(part)
            for (_, *one), (_, role, part) in pairwise(later.spoken[:-1])
        )


class _Passed:
    """A request that is passed to the model as it came, with what is remembered before it.

    Messages that were deleted from the conversation are left out, and the call is then recorded
    without its words: calls of tools may repeat them.
    """

    def __init__(self, chat: ChatRequest, hear: Listener | None) -> None:
        self._chat = chat
        self._hear = hear
        self._has_deleted = False
        self.reply: Reply[None] | None = None

    def leave_out(self, places: Collection[int]) -> None:
        """Leave out the messages at these places."""
        kept = [each for place, each in enumerate(self._chat.messages) if place not in places]
        self._chat = self._chat.model_copy(update={"messages": kept})
        self._has_deleted = bool(places)

    async def say(self, llm: LLM, remembered: str) -> str:
        chat = self._chat.with_system(remembered) if remembered else self._chat
        with showing_deleted() if self._has_deleted else nullcontext():
            self.reply = await Completer(llm).complete(chat, stage="chat", hear=self._hear)
        return "" if self.reply.tool_calls else self.reply.text


def _take_in(
    talk: Talk,
    sent: list[tuple[int, Role, str]],
    sending: _Sending,
    *,
    was_sent: bool,
) -> tuple[Turn, frozenset[int]]:
    """Take in what of the client's history is new.

    Returns the turn to reply to, and the places of the messages that were deleted before.
    """
    digests = talk.history.find_digests()
    known = {talk.history.digest(text): text for _, _, text in sent} if digests else {}
    deleted = {n: known.get(each, each) for n, each in digests.items()}
    numbers, stored = _list_stored(talk, deleted)
    said = [Said(role, text) for _, role, text in sent]
    is_retry, is_whole = was_sent or sending.is_retry, sending.is_whole
    news = find_news(stored, said, is_retry=is_retry, is_whole=is_whole)
    if news.replaced and not sending.is_retry:
        talk.take_back({numbers[place] for place in news.replaced})
    fresh = [Turn("", role, text) for _, role, text in (sent[each] for each in news.fresh)]
    added = talk.add(fresh)
    before = BEGINS if news.after == BEGINS else None
    if news.after is not None and news.after != BEGINS:
        before = numbers[news.after]
    talk.history.set_follows([turn.id for turn in added], news.fresh, before)
    turn = added[-1] if news.asked is None else talk.memory.conversation.turns[numbers[news.asked]]
    gone = {each.key for each in stored if each.is_deleted}
    gone -= {each.key for each in stored if not each.is_deleted}
    places = {place for place, role, text in sent[:-1] if (role, text) in gone}
    return turn, frozenset(places)


def _list_stored(talk: Talk, deleted: Mapping[int, str | bytes]) -> tuple[list[int], list[Said]]:
    """The turns of a conversation as messages, with their numbers: the deleted ones with what is
    known of them, and without those that were replaced."""
    turns, forgotten = talk.memory.conversation.turns, talk.memory.forgotten
    assistants = talk.roll.follow(turns).assistants
    follows = talk.history.find_follows()
    numbers = [n for n in range(len(turns)) if n not in forgotten or n in deleted]
    places = {number: place for place, number in enumerate(numbers)}
    stored = [
        Said(
            "assistant" if turns[number].speaker in assistants else "user",
            deleted.get(number) or turns[number].text.strip(),
            number in forgotten,
            BEGINS if follows.get(number) == BEGINS else places.get(follows.get(number, BEGINS)),
        )
        for number in numbers
    ]
    return numbers, stored


def _find_spoken(messages: Sequence[Message]) -> list[tuple[int, Role, str]]:
    """What was said, up to the message to reply to: the user's, which calls of tools may follow."""
    spoken = list_spoken(messages)
    if not spoken or spoken[-1][1] != USER:
        raise Refused(
            "there is no message of the user to reply to",
            hint="end with one, or with the results of the tools that it made necessary",
            param="messages",
        )
    return spoken


def _find_name(chat: ChatRequest, headers: Mapping[str, str]) -> tuple[str | None, bool]:
    """The conversation's name, None for a chat that is not to be remembered; and whether it is of
    a client that names each of its chats, and sends the whole of it."""
    metadata: Mapping[str, Any] = chat.metadata or {}
    if metadata.get("temporary") in (True, "true", "1"):
        return None, False
    header, *others = (_decode(headers.get(each)) for each in (CONVERSATION, *CHAT_HEADERS))
    given = [_find_id(chat), header, metadata.get("conversation")]
    chats = [*others, *map(metadata.get, CHAT_KEYS)]
    if any(f"{each}".startswith("local:") for each in chats):
        return None, False  # a temporary chat of Open WebUI
    for names, is_whole in ((given, False), (chats, True), ([chat.user], False)):
        for name in names:
            if name is not None and f"{name}".strip():
                return f"{name}", is_whole
    return None, False


def _decode(header: str | None) -> str | None:
    """A header as text: UTF-8, which is read as Latin-1 else, or percent-encoded after ``UTF-8''``
    (RFC 8187)."""
    if header is None:
        return None
    if header[:7].upper() == "UTF-8''":
        return unquote(header[7:])
    try:
        return header.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return header


def _find_id(chat: ChatRequest) -> str | None:
    """The id of the memory that a request names; Refused for what is none."""
    identity = (chat.metadata or {}).get("memory")
    if identity is not None and not is_memory_id(f"{identity}"):
        raise Refused(
            f"{identity!r} is no memory's id",
            hint="name a conversation in metadata.conversation",
            param="metadata",
        )
    return identity


def _is_passed(chat: ChatRequest) -> bool:
    wants_json = chat.response_format is not None and chat.response_format.type != "text"
    return bool(chat.tools) or wants_json or bool(chat.stops)


def _list_kinds() -> list[str]:
    """The kinds that a conversation is told turn by turn, GAM first."""
    return sorted(filter(grows, registry.names("memory")), key=lambda name: (name != "gam", name))
