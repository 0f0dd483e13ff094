"""A server's memories in the shapes of LangChain, LlamaIndex and mem0, used as those are."""

from __future__ import annotations

import asyncio
import inspect
import socket
import warnings
from typing import Any

import pytest

from mgl.errors import EngineUnavailable, UsageError
from mgl.integrations.client import RestClient
from mgl.integrations.mem0 import Memory
from mgl.openai.errors import NotServed
from tests.api.conftest import HORSE, Client, Served, Site
from tests.cli.server import story

TALK = [HORSE, *(f"It rains on day {day}" for day in range(4))]


def connect(served: Served) -> dict[str, Any]:
    return {"base_url": served.base_url, "api_key": served.key}


async def fill(http: Client) -> None:
    """A conversation, and a document that was read."""
    await http.append(*({"speaker": "Ann", "text": text} for text in TALK))
    await http.read(story(6), "book.txt")


async def test_langchain_retrieves_turns_and_nodes(paper: Client) -> None:
    pytest.importorskip("langchain_core", reason="needs the extra langchain")
    from langchain_core.documents import Document as Found
    from langchain_core.runnables import RunnableLambda

    from mgl.integrations.langchain import MglRetriever

    await fill(paper)
    diary = MglRetriever(memory="diary", limit=2, **connect(paper.served))
    found = await diary.ainvoke("What is the horse called?")
    assert len(found) == 2
    assert found[0].page_content.startswith("Ann, 2")
    assert found[0].page_content.endswith(f": {HORSE}")
    assert (found[0].id, found[0].metadata["quote"]) == ("1", HORSE)

    def read(found: list[Found]) -> str:
        return found[0].metadata["quote"]  # type: ignore[no-any-return]

    chain = MglRetriever(memory="book.txt", **connect(paper.served)) | RunnableLambda(read)
    assert await chain.ainvoke("P3 met") == "P3 met P4."


def test_langchain_keeps_a_chat_history(site: Site) -> None:
    pytest.importorskip("langchain_core", reason="needs the extra langchain")
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    from mgl.integrations.langchain import MglChatHistory

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its base class goes with 2.0
        history = MglChatHistory("diary", **connect(site.served))
        other = MglChatHistory("diary", **connect(site.served))
    assert history.messages == []
    history.clear()
    call = {"name": "look", "args": {}, "id": "1"}
    history.add_messages(
        [
            SystemMessage("Be kind."),
            HumanMessage(HORSE),
            AIMessage("", tool_calls=[call]),
            ToolMessage("found", tool_call_id="1"),
            AIMessage([{"type": "text", "text": "What a name!"}]),
        ]
    )
    history.add_messages([HumanMessage(HORSE), AIMessage("What a name!")])  # kept already
    history.add_user_message("It is.")
    said = [(message.type, message.content) for message in other.messages]
    assert said == [("human", HORSE), ("ai", "What a name!"), ("human", "It is.")]
    other.clear()
    assert history.messages == []
    for _ in range(2):  # somebody may say the same again
        history.add_user_message("Again.")
    assert [message.content for message in other.messages] == ["Again.", "Again."]


async def test_llamaindex_retrieves_turns_and_nodes(paper: Client) -> None:
    pytest.importorskip("llama_index.core", reason="needs the extra llamaindex")
    from llama_index.core.schema import MetadataMode

    from mgl.integrations.llamaindex import MglNodeRetriever

    await fill(paper)
    diary = MglNodeRetriever("diary", limit=2, **connect(paper.served))
    found = await diary.aretrieve("What is the horse called?")
    assert len(found) == 2
    shown = found[0].node.get_content(MetadataMode.LLM)
    assert shown.startswith("Ann, 2")
    assert shown.endswith(f": {HORSE}")
    assert found[0].node.metadata["quote"] == HORSE
    book = MglNodeRetriever("book.txt", **connect(paper.served))
    (first, *_) = await asyncio.to_thread(book.retrieve, "P3 met")
    assert (first.node.node_id, first.node.metadata["quote"]) == ("p3", "P3 met P4.")


def test_what_mem0_would_keep_is_kept_as_it_was_said(site: Site) -> None:
    memory, ann = Memory(**connect(site.served)), {"user_id": "ann"}
    assert memory.search("horse", filters=ann) == {"results": []}
    assert memory.get_all(filters=ann) == {"results": []}
    memory.add("It rains.", user_id="ann")
    replied = {"role": "assistant", "content": "What a name!"}
    added = memory.add([{"role": "user", "content": HORSE}, replied], user_id="ann")
    assert [each["event"] for each in added["results"]] == ["ADD", "ADD"]
    (found, *_) = memory.search("What is the horse called?", filters=ann)["results"]
    assert found["id"] == added["results"][0]["id"]
    assert (found["memory"], found["role"], found["user_id"]) == (HORSE, "user", "ann")
    every = memory.get_all(filters=ann)["results"]
    assert [each["memory"] for each in every] == ["It rains.", HORSE, "What a name!"]
    assert memory.get_all(filters=ann, top_k=1)["results"] == every[:1]
    memory.delete(found["id"])
    assert HORSE not in f"{memory.get_all(filters=ann)} {memory.search('horse', filters=ann)}"
    with pytest.raises(UsageError, match="user_id alone"):
        memory.search("horse", filters={"agent_id": "ann"})
    assert memory.search("horse", filters={"user_id": "bob"}) == {"results": []}


def test_a_memory_of_mem0_is_got_updated_and_filtered(site: Site) -> None:
    memory, ann = Memory(**connect(site.served)), {"user_id": "ann"}
    (added,) = memory.add(
        HORSE, user_id="ann", metadata={"about": "animals", "sure": True}, infer=False
    )["results"]
    memory.add("It rains.", user_id="ann")
    found = memory.get(added["id"])
    assert found is not None
    assert (found["memory"], found["metadata"]) == (HORSE, {"about": "animals", "sure": True})
    for text in ("My horse is called Moon", "My horse is called Sun"):
        memory.update(added["id"], text)
        (sole,) = memory.get_all(filters={**ann, "about": "animals"})["results"]
        assert (sole["id"], sole["memory"]) == (added["id"], text)
        assert memory.search("horse", filters={**ann, "about": "animals"})["results"] == [sole]
    assert "Star" not in f"{memory.get_all(filters=ann)}"
    events = [each["event"] for each in memory.history(added["id"])]
    assert events == ["ADD", "UPDATE", "UPDATE"]
    memory.delete(added["id"])
    assert memory.get(added["id"]) is None
    assert memory.history(added["id"]) == []
    with pytest.raises(NotServed):
        memory.update(added["id"], "x")
    memory.delete_all(user_id="ann")
    assert memory.get_all(filters=ann) == {"results": []}


@pytest.mark.parametrize(
    "method", ["add", "get", "update", "history", "search", "get_all", "delete", "delete_all"]
)
def test_its_methods_are_called_as_mem0s(method: str) -> None:
    """What ours takes, mem0's takes by the same name."""
    mem0 = pytest.importorskip("mem0", reason="needs mem0ai, which is no dependency")
    ours = inspect.signature(getattr(Memory, method)).parameters
    theirs = inspect.signature(getattr(mem0.Memory, method)).parameters
    assert {name: each.kind for name, each in ours.items()} == {
        name: theirs[name].kind for name in ours
    }


def test_what_goes_wrong_is_said(site: Site) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = RestClient(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(EngineUnavailable, match="mgl up"):
            nobody.turns("diary")
    client = RestClient(**connect(site.served))
    with pytest.raises(NotServed, match="there is no memory 'diary'"):
        client.search("diary", "horse", 3)
    client.add("diary", [])
    with pytest.raises(UsageError, match="gave 400"):
        client.search("diary", "horse", 0)
    with pytest.raises(UsageError, match="key is not right"):
        RestClient(site.served.base_url, "wrong").turns("diary")
    # Without a key it is the home's, which the server has, too.
    assert RestClient(site.served.base_url).turns("diary") == []
