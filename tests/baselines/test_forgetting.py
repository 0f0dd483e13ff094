"""What baselines made of turns goes when these are deleted by another memory."""

from __future__ import annotations

from datetime import datetime

from mgl.baselines.read_agent import ReadAgent, ReadAgentConfig
from mgl.memories.deletion import delete
from mgl.store import Store
from mgl.store.deletion import Redaction
from mgl.types import Conversation, Turn
from tests.baselines.asking import QUESTION, answered, asking, said
from tests.leftovers import left

LOST = "Carl lost the ring"
TOWN = "They went to town together."
GONE = 5
TALK = Conversation.from_turns(
    "talk",
    [
        Turn(
            f"t{n}",
            "Ann" if n % 2 else "Bo",
            LOST if n == GONE else f"I went to town {n} with the walker",
            datetime(2023, 5, 8, 9),
        )
        for n in range(16)
    ],
)

PAGES = ReadAgentConfig(page_tokens=256, least_tokens=1, look_ups=0)


def noting(prompt: str) -> str:
    """A note that tells of the ring wherever the prompt does, in other words."""
    if '"pause"' in prompt:
        return said(pause=1)
    if '"notes"' in prompt:
        return said(notes="Somebody misses jewellery." if tells(prompt) else TOWN)
    return answered(prompt)


def tells(prompt: str) -> bool:
    return LOST in prompt or "jewellery" in prompt


async def test_a_gist_goes_and_those_of_other_pages_stay(store: Store) -> None:
    mine, _ = asking(store, noting)
    method = ReadAgent(mine, TALK, (), PAGES)
    await method.build()
    before = [row.payload["text"] for row in store.edits(method.id) if row.op == "gist"]
    assert before.count("Somebody misses jewellery.") == 1 < len(before)
    assert delete(store, TALK.id, Redaction(frozenset({GONE})))
    assert left(store.path, [LOST, "jewellery"]) == []
    after = [row.payload["text"] for row in store.edits(method.id) if row.op == "gist"]
    assert after == before[: before.index("Somebody misses jewellery.")]
    await ReadAgent(mine, TALK, (), PAGES).answer(QUESTION)
    made = [row.payload["text"] for row in store.edits(method.id) if row.op == "gist"]
    assert made == [TOWN] * len(before)
    assert left(store.path, [LOST, "jewellery"]) == []
