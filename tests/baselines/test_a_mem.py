"""Notes, links, and neighbours that are rewritten."""

from __future__ import annotations

import re

from mgl.baselines import a_mem
from mgl.baselines.a_mem import AMem, AMemConfig
from mgl.store import Store
from mgl.types import Conversation, Question, Turn
from tests.baselines.asking import Model, answered, asking, nothing, prompts, said

LINES = ["I keep bees on the roof", "The roof leaks again", "My bees swarmed on the roof today"]
TALK = Conversation.from_turns("talk", [Turn(f"t{n}", "Ann", line) for n, line in enumerate(LINES)])
CONFIG = AMemConfig(k=1)
QUESTION = Question("What did the swarm do?")


def replying(evolution: dict[int, str], keywords: str = "swarmed") -> Model:
    """Notes hold their turn's first word as keyword; the n-th evolution replies as given."""
    count = 0

    def reply(prompt: str) -> str:
        nonlocal count
        if "Write a note" in prompt:
            word = prompt.split("Ann: ")[1].split()[0]
            return said(keywords=[word], context=f"about {word}", tags=["home"])
        if "come into a memory" in prompt:
            count += 1
            return evolution.get(count, said(links=[], tags=[], neighbours=[]))
        if "Name the keywords" in prompt:
            return said(keywords=[keywords])
        return answered(prompt)

    return reply


async def test_a_note_is_linked_and_its_neighbours_are_rewritten(store: Store) -> None:
    second = said(
        links=[1],
        tags=["bees", "summer"],
        neighbours=[{"context": "Ann's bees swarmed", "tags": ["bees"]}],
    )
    mine, engine = asking(store, replying({2: second}))
    answer = await AMem(mine, TALK, (), CONFIG).answer(QUESTION)
    evolving = [prompt for prompt in prompts(engine) if "come into a memory" in prompt]
    assert len(evolving) == 2  # the first turn has no neighbour
    assert "1. Ann: I keep bees on the roof (context: about I)" in evolving[1]
    lines = re.findall(r"^\[\d\] (.*)$", prompts(engine)[-1], re.MULTILINE)
    assert lines == [
        f"Ann: {LINES[0]} (context: Ann's bees swarmed) (keywords: I) (tags: bees)",
        f"Ann: {LINES[2]} (context: about My) (keywords: My) (tags: bees, summer)",
    ]
    assert answer.trace == ("keywords: swarmed",)
    assert answer.citations[0].quote == LINES[0]
    assert set(answer.retrieved) == {"t0", "t2"}


async def test_a_rewritten_note_is_found_by_its_old_words_until_all_are_embedded_again(
    store: Store,
) -> None:
    told = said(links=[], tags=[], neighbours=[{"context": "zebra", "tags": ["zebra"]}])
    mine, _ = asking(store, replying({2: told}, keywords="zebra"))
    memory = AMem(mine, TALK, (), CONFIG)
    await memory.build()
    rows = store.edits(memory.id)
    assert memory.state.notes[0].context == "zebra"
    assert "zebra" not in memory._documents(memory.state)[0]
    evolved = [row for row in rows if row.op == "evolve"] * a_mem.REBUILT
    again = memory.vocabulary.replay([*rows[:-1], *evolved[: a_mem.REBUILT]])
    assert memory._documents(again)[0] == f"Ann: {LINES[0]} , zebra I zebra"


async def test_a_turn_without_a_note_is_found_by_its_own_words(store: Store) -> None:
    def silent(prompt: str) -> object:
        return nothing(prompt) if "{" in prompt and "memories" not in prompt else answered(prompt)

    mine, _ = asking(store, silent)  # type: ignore[arg-type]
    memory = AMem(mine, TALK, (), CONFIG)
    answer = await memory.answer(Question("swarmed today"))
    assert answer.retrieved == ("t2",)
    assert {row.outcome for row in store.edits(memory.id)} == {"repaired"}
