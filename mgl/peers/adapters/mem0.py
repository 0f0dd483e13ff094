"""Mem0 as of its paper (arXiv 2504.19413): facts, each added, updated or deleted by a call.

As in its authors' run of LoCoMo, each speaker has a store, in which that speaker's turns are the
user's and all others the assistant's. Mem0 keeps no sources: the turns of a memory are those of the
batches that added and updated it, which are kept here.
"""

import logging
import re
from typing import Any

from mem0 import Memory

FAULTS = {
    "facts_malformed": re.compile("new_retrieved_facts"),
    "updates_malformed": re.compile("Invalid JSON|Empty response|memory actions"),
    "updates_failed": re.compile("processing memory action|iterating new_memories"),
}


class Faults(logging.Handler):
    """Counts what Mem0 says that it could not use of a model's reply."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.counts = dict.fromkeys(FAULTS, 0)

    def emit(self, record: logging.LogRecord) -> None:
        for name, pattern in FAULTS.items():
            self.counts[name] += bool(pattern.search(record.getMessage()))


class Mem0Adapter:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._faults = Faults()
        logging.getLogger("mem0").addHandler(self._faults)
        server = {"openai_base_url": settings["base_url"], "api_key": settings["key"]}
        self._memory = Memory.from_config(
            {
                "llm": {
                    "provider": "openai",
                    "config": {
                        **server,
                        "model": settings["model"],
                        "temperature": 0,
                        "top_p": 1,
                        "max_tokens": settings["reply_tokens"],
                    },
                },
                "embedder": {
                    "provider": "openai",
                    "config": {
                        **server,
                        "model": settings["embedder"],
                        "embedding_dims": settings["dims"],
                    },
                },
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": f"{settings['folder']}/qdrant",
                        "collection_name": "memories",
                        "embedding_model_dims": settings["dims"],
                        "on_disk": True,
                    },
                },
                "history_db_path": f"{settings['folder']}/history.db",
            }
        )
        self._units: dict[str, set[int]] = {}
        self._events = dict.fromkeys(("ADD", "UPDATE", "DELETE"), 0)

    def read(self, units: list[dict[str, Any]]) -> None:
        """Take a batch of turns into each speaker's store."""
        places = {unit["place"] for unit in units}
        for speaker in self._settings["speakers"]:
            messages = [
                {
                    "role": "user" if unit["speaker"] == speaker else "assistant",
                    "content": f"{unit['speaker']}: {unit['text']}",
                }
                for unit in units
            ]
            made = self._memory.add(messages, user_id=speaker, metadata={"time": units[0]["time"]})
            for event in made["results"]:
                self._events[event["event"]] += 1
                if event["event"] == "DELETE":
                    self._units.pop(event["id"], None)
                else:
                    self._units.setdefault(event["id"], set()).update(places)

    def finish(self) -> dict[str, int]:
        counts = {f"{name.lower()}s": count for name, count in self._events.items()}
        return {"memories": len(self._units), **counts, **self._faults.counts}

    def retrieve(self, question: str) -> list[dict[str, Any]]:
        """The nearest memories of each speaker, the best first, with the day of each."""
        found = []
        for speaker in self._settings["speakers"]:
            said = self._memory.search(question, user_id=speaker, limit=self._settings["k"])
            found += [(row["score"], speaker, row) for row in said["results"]]
        found.sort(key=lambda each: -each[0])
        rows = []
        for _, speaker, row in found:
            time = (row.get("metadata") or {}).get("time", "")
            dated = f"({time}) " if time else ""
            rows.append(
                {
                    "text": f"{dated}{speaker}: {row['memory']}",
                    "kind": "memory",
                    "units": sorted(self._units.get(row["id"], ())),
                }
            )
        return rows
