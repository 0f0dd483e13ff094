"""LangChain: a retriever over any memory, and a chat history that is a conversation (extra
``langchain``).

    retriever = MglRetriever(memory="diary")
    retriever.invoke("Where do I live?")

    history = MglChatHistory("diary")
    history.add_user_message("I moved to Lisbon.")

A chat history holds what user and assistant said; system messages, calls of tools and their results
are not kept. Chains with another model need it: ``mgl/gam`` keeps its conversations by itself, and
what it has kept already is not added again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever
from pydantic import SecretStr

from mgl.integrations.client import RestClient, describe_found

ASSISTANT: Final = "assistant"
SPEAKERS: Final = {"human": "user", "ai": ASSISTANT}


class MglRetriever(BaseRetriever):
    """Finds turns of a conversation, or nodes of a document, with their passages as metadata.

    ``memory`` is a conversation's or document's name, or a memory's id; ``base_url`` and
    ``api_key`` are as in ``RestClient``.
    """

    memory: str
    limit: int = 10
    base_url: str | None = None
    api_key: SecretStr | None = None

    @cached_property
    def _client(self) -> RestClient:
        key = None if self.api_key is None else self.api_key.get_secret_value()
        return RestClient(self.base_url, key)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        del run_manager
        found = self._client.search(self.memory, query, self.limit)
        return [Document(describe_found(each), id=each["node_id"], metadata=each) for each in found]


class MglChatHistory(BaseChatMessageHistory):
    """The messages of a conversation; ``clear`` deletes them all for good, with its name."""

    def __init__(
        self, conversation: str, *, base_url: str | None = None, api_key: str | None = None
    ) -> None:
        super().__init__()
        self._conversation = conversation
        self._client = RestClient(base_url, api_key)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        return [
            (AIMessage if turn["speaker"] == ASSISTANT else HumanMessage)(
                turn["text"], id=turn["id"]
            )
            for turn in self._client.turns(self._conversation)
        ]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        turns = [
            {"speaker": SPEAKERS[message.type], "text": text}
            for message in messages
            if message.type in SPEAKERS and (text := message.text.strip())
        ]
        turns = turns[self._count_kept(turns) :]
        if turns:
            self._client.add(self._conversation, turns)

    def _count_kept(self, turns: Sequence[Mapping[str, str]]) -> int:
        """Count the first turns that the conversation already ends with, if a reply is among them:
        a model of mgl's own kept them when it replied."""
        said = [(turn["speaker"], turn["text"]) for turn in turns]
        speakers = [speaker for speaker, _ in said]
        if ASSISTANT not in speakers:
            return 0
        first_reply = speakers.index(ASSISTANT)
        kept = [(turn["speaker"], turn["text"]) for turn in self._client.turns(self._conversation)]
        ends = range(len(said), first_reply, -1)
        return next((end for end in ends if kept[-end:] == said[:end]), 0)

    def clear(self) -> None:
        self._client.delete(self._conversation)
