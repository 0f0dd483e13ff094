"""Groups of messages, episodes that become one, and statements of what was not foreseen."""

from __future__ import annotations

import re

from mgl.baselines.nemori import Nemori, NemoriConfig
from mgl.store import Store
from mgl.types import Question
from tests.baselines.asking import answered, asking, make_talk, only_answering, prompts, said

HILLS = [f"We walk up hill {n}" for n in range(17)]
TALK = make_talk(
    [
        ["The bees swarmed", "Lunch is ready", "Those bees are in the chimney", *HILLS],
        ["The bees came home"],
    ]
)
QUESTION = Question("Where are the bees")


def remembering(prompt: str) -> str:
    """Bees, lunch and the first bees again are groups; the latter are the same event."""
    bees = len(re.findall(r"Ann: [A-Za-z ]*bees", prompt))
    if '"episodes"' in prompt:
        groups = [[1], [2], [3]] if "hill" in prompt else []
        return said(episodes=[{"messages": each} for each in groups])
    if "Two episodes" in prompt:
        return said(title="Bees", content="They swarmed into the chimney.")
    if '"title"' in prompt:
        about = "Bees" if bees else "Lunch" if "Lunch" in prompt else "Hills"
        return said(title=about, content=re.findall(r"(?:Ann|Bo): (.*)", prompt)[-1])
    if '"same"' in prompt:
        new = prompt.split("Earlier episodes:")[0]
        earlier = re.findall(r"^(\d)\. Bees", prompt, re.MULTILINE)
        return said(same=int(earlier[0]) if "chimney" in new and earlier else 0)
    if "predict what" in prompt:
        return said(notes="Bees are insects.")
    if '"statements"' in prompt:
        lines = re.findall(r"(?:Ann|Bo): (.*)", prompt)
        return said(statements=[f"It is true that {lines[0]}"])
    return answered(prompt)


async def build(store: Store) -> tuple[Nemori, list[str]]:
    mine, engine = asking(store, remembering)
    memory = Nemori(mine, TALK)
    await memory.build()
    return memory, prompts(engine)


async def test_messages_are_grouped_from_20_on_and_80_at_most(store: Store) -> None:
    mine, _ = asking(store, remembering)
    sizes = (12, 12, 90, 3)
    memory = Nemori(mine, make_talk([[f"line {n}" for n in range(size)] for size in sizes]))
    batches = memory._batches()
    assert [len(batch) for batch in batches] == [24, 80, 10, 3]
    assert [at for batch in batches for at in batch] == list(range(117))


async def test_each_turn_is_in_one_group(store: Store) -> None:
    mine, _ = asking(store, remembering)
    memory = Nemori(mine, make_talk(["abcde", "fg"]))
    settled = memory._settle([[0, 2], [2, 3], [0]], range(7))
    assert settled == [[0, 2], [1], [3], [4], [5, 6]]


async def test_episodes_of_one_event_within_an_hour_become_one(store: Store) -> None:
    memory, asked = await build(store)
    rows = [row for row in store.edits(memory.id) if row.op in {"episode", "merge"}]
    assert [(row.chunk, row.op, row.turns) for row in rows] == [
        (0, "episode", (0,)),
        (0, "episode", (1,)),
        (0, "merge", (0, 2)),
        (0, "episode", tuple(range(3, 20))),
        (1, "episode", (20,)),  # a day later: nobody is asked whether it is the same event
    ]
    state = memory.state
    assert [each.title for each in state.episodes] == ["Bees", "Lunch", "Hills", "Bees"]
    assert state.episodes[0].content == "They swarmed into the chimney."
    assert sorted(at for each in state.episodes for at in each.turns) == list(range(21))
    assert sum('"same"' in prompt for prompt in asked) == 3


async def test_statements_are_learnt_from_what_a_prediction_lacks(store: Store) -> None:
    memory, asked = await build(store)
    learning = [prompt for prompt in asked if '"statements"' in prompt]
    assert "A prediction" not in learning[0]
    assert all("Bees are insects." in prompt for prompt in learning[1:])
    predicting = [prompt for prompt in asked if "predict what" in prompt]
    assert 'title "Lunch"' in predicting[0]
    assert "- It is true that The bees swarmed" in predicting[0]
    assert [place for _, place in memory.state.statements] == [0, 1, 0, 2, 3]


async def test_a_question_reads_episodes_statements_and_messages_of_the_best_two(
    store: Store,
) -> None:
    mine, engine = asking(store, remembering)
    config = NemoriConfig(k=2)
    answer = await Nemori(mine, TALK, (), config).answer(QUESTION)
    lines = re.findall(r"^\[\d+\] (.*)$", prompts(engine)[-1], re.MULTILINE)
    assert sum(line.startswith("It is true") for line in lines) == 4
    assert "(Monday, 08 May 2023) Bees: They swarmed into the chimney." in lines
    assert "(Monday, 08 May 2023) Ann: Those bees are in the chimney" in lines
    assert not any("Bo: We walk up" in line for line in lines)
    assert {citation.node_id for citation in answer.citations} <= {"episode-0", "episode-3"}
    assert answer.citations
    assert set(answer.retrieved[:3]) == {"D0:0", "D0:2", "D1:0"}
    assert answer.marks == ()


async def test_a_silent_model_leaves_a_session_as_an_episode(store: Store) -> None:
    mine, _ = asking(store, only_answering)
    memory = Nemori(mine, TALK)
    answer = await memory.answer(QUESTION)
    assert [len(each.turns) for each in memory.state.episodes] == [20, 1]
    assert answer.marks == ("batches_ungrouped", "episodes_unlearnt")
    assert "D0:0" in answer.retrieved
    outcomes = {row.op: row.outcome for row in store.edits(memory.id)}
    assert outcomes == {"group": "rejected", "episode": "repaired", "learn": "rejected"}
