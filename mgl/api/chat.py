"""``/v1/chat/completions`` with a memory: what any client of the OpenAI API says is remembered.

    chat = Chat(memories, profile)
    reply, besides = await chat.reply(request, headers)

``model: "mgl/gam"`` and the name of a conversation make it remember; the name is the header
X-MGL-Conversation, else ``metadata.conversation``, else ``user``. Without a name, with
``metadata.temporary``, or with the model's own name it is the plain model, and nothing is kept, not
even in the log of calls.

The memory replies as `mgl chat` does, by its own prompt and sampling. A request with tools or a
response format is passed through to the model as it came, with what was said before put before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mgl import registry
from mgl.api.history import Spoken, find_news, list_spoken
from mgl.api.memories import Memories, grows
from mgl.lab.talk import Talk
from mgl.llm.base import LLM, Message, Reply, TokenUsage
from mgl.llm.progress import Listener
from mgl.memories.results import citation_json
from mgl.peers.completing import Completer, Said
from mgl.peers.wire import ChatRequest, NotServed, Refused, read_request
from mgl.types import Answer, StageUsage, Turn

PREFIX: Final = "mgl/"
USER: Final = "user"
ASSISTANT: Final = "assistant"
MOST_TOKENS: Final = 1 << 30


class Chat:
    """Replies to chat requests of one tenant.

    ``models`` are the names that requests use: a kind of memory each, and the plain model.
    """

    def __init__(self, memories: Memories, profile: str) -> None:
        self._memories = memories
        self._profile = profile
        self.models = [*(f"{PREFIX}{kind}" for kind in _list_kinds()), profile]

    async def reply(
        self, chat: ChatRequest, header: str | None, hear: Listener | None = None
    ) -> Said:
        """Reply to a request; ``hear`` is given the text so far."""
        if chat.model not in self.models:
            raise NotServed(
                f"there is no model {chat.model!r} here", hint=f"use {self.models[0]!r}"
            )
        name = _find_name(chat, header)
        if name is None or chat.model == self._profile:
            return await self._forward(chat, hear), {}
        kind = chat.model.removeprefix(PREFIX)
        passed = _Passed(chat, hear) if _is_passed(chat) else None

        def do(talk: Talk) -> tuple[Answer, StageUsage, str]:
            return _reply(talk, chat, hear, passed)

        answer, used, turn = await self._memories.work(name, kind, do, is_new=True)
        cited = [citation_json(each) for each in answer.citations]
        besides = {"citations": cited, "conversation": name, "turn": turn}
        if passed is not None and passed.reply is not None:
            return passed.reply, besides
        usage = TokenUsage(used.input_tokens, used.output_tokens, used.cached_tokens)
        return Reply(answer.text, None, (), usage, "stop", call_key=f"{kind}-{turn}"), besides

    async def _forward(self, chat: ChatRequest, hear: Listener | None) -> Reply[None]:
        async def work(llm: LLM) -> Reply[None]:
            return await Completer(llm).complete(chat, stage="chat", hear=hear)

        return await self._memories.lab.forward(work)


class _Passed:
    """A request that is passed to the model as it came, with what is remembered before it."""

    def __init__(self, chat: ChatRequest, hear: Listener | None) -> None:
        self._chat = chat
        self._hear = hear
        self.reply: Reply[None] | None = None

    async def say(self, llm: LLM, remembered: str) -> str:
        chat = self._chat.with_system(remembered) if remembered else self._chat
        self.reply = await Completer(llm).complete(chat, stage="chat", hear=self._hear)
        return "" if self.reply.tool_calls else self.reply.text


def _reply(
    talk: Talk, chat: ChatRequest, hear: Listener | None, passed: _Passed | None
) -> tuple[Answer, StageUsage, str]:
    """Take in what is new of a request, reply to its last message, and take that in.

    Returns the reply, what it cost, and the id of the turn that it replies to.
    """
    messages = read_request(chat, max_tokens=1, context_tokens=MOST_TOKENS).messages
    persona = "\n".join(each.content for each in messages if each.role == "system").strip()
    turn = _take_in(talk, _find_spoken(messages))
    say = None if passed is None else passed.say
    answer, usage = talk.respond(turn, ASSISTANT, persona=persona, hear=hear, say=say)
    talk.settle_later()
    return answer, usage.total, turn.id


def _take_in(talk: Talk, sent: list[Spoken]) -> Turn:
    """Take in what of the client's history is new, and return the turn to reply to."""
    news = find_news(_list_stored(talk), sent)
    if news.asked is not None:
        return talk.memory.conversation.turns[news.asked]
    return talk.add([Turn("", said.role, said.text or "") for said in news.fresh])[-1]


def _list_stored(talk: Talk) -> list[Spoken]:
    """The turns of a conversation as messages; a deleted one says nothing."""
    turns, redacted = talk.memory.conversation.turns, talk.memory.redacted
    assistants = talk.roll.follow(turns).assistants
    return [
        Spoken(
            ASSISTANT if turn.speaker in assistants else USER,
            None if number in redacted else turn.text.strip(),
        )
        for number, turn in enumerate(turns)
    ]


def _find_spoken(messages: tuple[Message, ...]) -> list[Spoken]:
    """What was said, up to the message to reply to: the user's, which calls of tools may follow."""
    spoken = list_spoken(messages)
    if not spoken or spoken[-1].role != USER:
        raise Refused(
            "there is no message of the user to reply to",
            hint="end with one, or with the results of the tools that it made necessary",
            param="messages",
        )
    return spoken


def _find_name(chat: ChatRequest, header: str | None) -> str | None:
    """The conversation's name; None for a chat that is not to be remembered."""
    metadata: Mapping[str, Any] = chat.metadata or {}
    if metadata.get("temporary") in (True, "true", "1"):
        return None
    name = header or metadata.get("conversation") or chat.user
    return str(name) if name and str(name).strip() else None


def _is_passed(chat: ChatRequest) -> bool:
    wants_json = chat.response_format is not None and chat.response_format.type != "text"
    return bool(chat.tools) or wants_json or bool(chat.stops)


def _list_kinds() -> list[str]:
    """The kinds that a conversation is told turn by turn, GAM first."""
    return sorted(filter(grows, registry.names("memory")), key=lambda name: (name != "gam", name))
