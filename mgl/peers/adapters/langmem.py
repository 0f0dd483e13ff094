"""LangMem: an agent a speaker that is told each of its turns, and writes memories by tool calls.

As in Mem0's run of LoCoMo (its repository at v1.0.11), each speaker has an agent and a store, the
agent has the tools that manage and search memories, and its prompt shows the memories most like the
turn. There its prompt has all earlier turns as well; here it has none, so that what is kept is the
memories alone, and the conversation may be longer than the context. What it calls wrongly comes
back to it. LangMem keeps no sources: a memory's turns are those that wrote it or changed it.
"""

from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.errors import GraphRecursionError
from langgraph.prebuilt import ToolNode, create_react_agent
from langgraph.store.memory import InMemoryStore
from langmem import create_manage_memory_tool, create_search_memory_tool
from openai import APIStatusError, OpenAI

Space = tuple[str, ...]
ALL = 10**6


class LangMemAdapter:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        server = {"base_url": settings["base_url"], "api_key": settings["key"]}
        self._api = OpenAI(**server, max_retries=0, timeout=None)
        self._model = ChatOpenAI(
            **server,
            model=settings["model"],
            temperature=0,
            max_tokens=settings["reply_tokens"],
            max_retries=0,
            timeout=None,
        )
        self._store = InMemoryStore(index={"dims": settings["dims"], "embed": self._embed})
        speakers = settings["speakers"]
        self._spaces: dict[str, Space] = {
            speaker: ("memories", str(number)) for number, speaker in enumerate(speakers)
        }
        self._agents = {speaker: self._make(space) for speaker, space in self._spaces.items()}
        self._units: dict[str, set[int]] = {}
        self._counts = dict.fromkeys(
            ("turns_without_memory", "turns_unfinished", "turns_refused", "calls_failed"), 0
        )

    def read(self, units: list[dict[str, Any]]) -> None:
        for unit in units:
            space = self._spaces[unit["speaker"]]
            before = self._contents(space)
            self._tell(unit)
            after = self._contents(space)
            written = {key for key, text in after.items() if before.get(key) != text}
            for key in written:
                self._units.setdefault(key, set()).add(unit["place"])
            for key in before.keys() - after.keys():
                self._units.pop(key, None)
            self._counts["turns_without_memory"] += not written

    def finish(self) -> dict[str, int]:
        empty = sum(
            not text.strip() for space in self._spaces.values() for text in self._texts(space)
        )
        return {"memories": len(self._units), "memories_empty": empty, **self._counts}

    def retrieve(self, question: str) -> list[dict[str, Any]]:
        """The nearest memories of each speaker, the best first."""
        found = [
            (item.score or 0.0, speaker, item)
            for speaker, space in self._spaces.items()
            for item in self._store.search(space, query=question, limit=self._settings["k"])
        ]
        found.sort(key=lambda each: -each[0])
        return [
            {
                "text": f"{speaker}: {item.value['content']}",
                "kind": "memory",
                "units": sorted(self._units.get(item.key, ())),
            }
            for _, speaker, item in found
        ]

    def _make(self, space: Space) -> Any:
        def prompt(state: Any) -> list[Any]:
            said = state["messages"]
            near = self._store.search(space, query=said[0].content)
            lines = "\n".join(f"{item.key}: {item.value['content']}" for item in near)
            system = f"You keep memories of what you are told.\n\nMemories:\n{lines or '(none)'}"
            return [{"role": "system", "content": system}, *said]

        tools = [
            create_manage_memory_tool(namespace=space, store=self._store),
            create_search_memory_tool(namespace=space, store=self._store),
        ]
        return create_react_agent(
            self._model, tools=ToolNode(tools, handle_tool_errors=True), prompt=prompt
        )

    def _tell(self, unit: dict[str, Any]) -> None:
        text = f"{unit['time']} | {unit['speaker']}: {unit['text']}"
        limits = {"recursion_limit": 2 * self._settings["calls"] - 1, "max_concurrency": 1}
        told = {"messages": [{"role": "user", "content": text}]}
        state: dict[str, Any] = {"messages": []}
        try:
            agent = self._agents[unit["speaker"]]
            for state in agent.stream(told, limits, stream_mode="values"):  # noqa: B007
                pass
        except GraphRecursionError:
            self._counts["turns_unfinished"] += 1
        except APIStatusError:  # such as a prompt that outgrew the context
            self._counts["turns_refused"] += 1
        self._counts["calls_failed"] += sum(
            getattr(message, "status", "") == "error" for message in state["messages"]
        )

    def _contents(self, space: Space) -> dict[str, Any]:
        return {item.key: item.value["content"] for item in self._store.search(space, limit=ALL)}

    def _texts(self, space: Space) -> list[str]:
        return [str(content or "") for content in self._contents(space).values()]

    def _embed(self, texts: list[str]) -> list[list[float]]:
        said = self._api.embeddings.create(
            model=self._settings["embedder"], input=texts, encoding_format="float"
        )
        return [each.embedding for each in said.data]
