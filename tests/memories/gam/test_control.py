"""What a user may change, and what is chosen to be forgotten."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from mgl.errors import InputError
from mgl.memories.deletion import Forgotten
from mgl.memories.gam import Gam
from mgl.memories.gam.control import find_branch
from mgl.memories.gam.state import Append, Consolidate, GamState, Link, Topic
from mgl.memories.talk import Change
from mgl.store import Store
from mgl.types import Question, Turn
from tests.memories.gam.conftest import replay
from tests.memories.gam.test_memory import DAY, always, engine, talk

Open = Callable[..., Gam]
THREE = talk(["a b c", "d e f"], ["g h i", "j k l"], ["m n o", "p q r"])


async def built(memory_of: Open) -> Gam:
    """Three topics of two turns each; t2 and t3 lead to all before them."""
    memory = memory_of(THREE, engine(always([])), indicators="rules", partition="session")
    await memory.build()
    await memory.flush()
    assert [topic.turns for topic in memory.state.topics.values()] == [(0, 1), (2, 3), (4, 5)]
    assert len(memory.state.links) == 3
    return memory


async def test_a_topic_is_corrected(memory_of: Open, store: Store) -> None:
    memory = await built(memory_of)
    await memory.edit("t1", Change(" Ann paints. ", ["art ", ""]))
    topic = memory.state.topics["t1"]
    assert (topic.summary, topic.keywords) == ("Ann paints.", ("art",))
    assert store.edits(memory.id)[-1].op == "rewrite"
    with pytest.raises(InputError, match="empty"):
        await memory.edit("t1", Change(" ", ["art"]))
    with pytest.raises(InputError, match="no topic 't9'"):
        await memory.edit("t9", Change("What?"))


async def test_a_frozen_topic_is_left_alone_until_it_is_let_go(memory_of: Open) -> None:
    memory = await built(memory_of)
    await memory.edit("t1", Change(frozen=True))
    for attempt in (
        memory.edit("t1", Change("Other.")),
        memory.forget(topics=["t1"]),
        memory.forget(["D1:1"]),
        memory.forget(branch_of="t1"),
    ):
        with pytest.raises(InputError, match="frozen") as error:
            await attempt
        assert error.value.hint
    await memory.append(Turn("new", "Ann", "a b c", DAY + timedelta(9), "9"))
    await memory.flush()
    ends = {link.target for link in memory.state.links if link.source == "t4"}
    assert ends == {"t2", "t3"}
    await memory.edit("t1", Change(frozen=False))
    await memory.edit("t1", Change("Other."))
    assert memory.state.topics["t1"].summary == "Other."


async def test_two_topics_are_parted(memory_of: Open) -> None:
    memory = await built(memory_of)
    await memory.edit("t1", Change(unlink=["t3"]))
    assert {(link.source, link.target) for link in memory.state.links} == {
        ("t2", "t1"),
        ("t3", "t2"),
    }
    with pytest.raises(InputError, match="no link joins t1 and t3"):
        await memory.edit("t1", Change(unlink=["t3"]))
    with pytest.raises(InputError, match="no topic 't7'"):
        await memory.edit("t1", Change(unlink=["t7"]))


async def test_a_topic_is_called_by_what_it_says(memory_of: Open) -> None:
    """By its first sentence, without who said it; else by its keywords, else by its id."""
    memory = await built(memory_of)
    speaker = memory.conversation.turns[0].speaker
    words = f"{speaker}: They talk of the horse. It is called Star."
    await memory.edit("t1", Change(summary=words, keywords=["horse", "Star"]))
    label = {node.id: node.label for node in memory.view().nodes}["t1"]
    assert label == "They talk of the horse."
    await memory.edit("t1", Change(summary=f"{speaker}: a horse. {speaker}: it rains."))
    label = {node.id: node.label for node in memory.view().nodes}["t1"]
    assert label == "a horse."
    await memory.edit("t1", Change(summary="word " * 30))
    label = {node.id: node.label for node in memory.view().nodes}["t1"]
    assert label.endswith("word…")
    assert len(label) <= 60


async def test_a_topic_takes_in_another(memory_of: Open, store: Store) -> None:
    memory = await built(memory_of)
    first, two, three = memory.state.topics.values()
    await memory.edit("t3", Change(merge="t1"))
    made = memory.state.topics["t3"]
    assert (made.turns, made.summary) == ((0, 1, 4, 5), f"{first.summary} {three.summary}")
    assert made.keywords == tuple(dict.fromkeys((*first.keywords, *three.keywords)))
    assert set(memory.state.topics) == {"t2", "t3"}
    (link,) = memory.state.links
    assert {link.source, link.target} == {"t2", "t3"}
    assert [row.op for row in store.edits(memory.id)[-2:]] == ["link", "merge"]
    (span,) = (node.span for node in memory.view().nodes if node.id == "t3")
    assert (span.start, span.end) == (THREE.span(0).start, THREE.span(5).end)
    found = (await memory.recall(Question("a b c"))).shown
    assert {number for numbers, _ in found for number in numbers} == set(range(6))

    await memory.edit("t2", Change(frozen=True))
    for one, other, said in (
        ("t2", "t3", "t2 is frozen"),
        ("t3", "t2", "t2 is frozen"),
        ("t3", "t3", "t3 cannot take in itself"),
        ("t3", "t1", "no topic 't1'"),
    ):
        with pytest.raises(InputError, match=said) as error:
            await memory.edit(one, Change(merge=other))
        assert error.value.hint
    await memory.edit("t2", Change(frozen=False))
    with pytest.raises(InputError, match="empty"):
        await memory.edit("t3", Change(" ", merge="t2"))
    await memory.edit("t2", Change("All letters.", [" a"], merge="t3"))
    (whole,) = memory.state.topics.values()
    assert replace(whole, marks={}) == Topic("t2", "All letters.", ("a",), (*range(6),))
    assert whole.marks.keys() == {*range(6)}
    assert not memory.state.links
    assert two.turns == (2, 3)


def test_a_branch_is_every_later_topic_that_leads_to_it() -> None:
    links = [("t2", "t1"), ("t3", "t2"), ("t4", "t1"), ("t5", "t4"), ("t6", "t5")]
    edits = [
        edit
        for number in range(6)
        for edit in (
            Append(number),
            Consolidate(Topic(f"t{number + 1}", "s", (), (number,))),
            *(Link(*ends, "semantic", 1.0) for ends in links if ends[0] == f"t{number + 1}"),
        )
    ]
    state: GamState = replay(edits)
    assert find_branch(state, "t1") == {"t1", "t2", "t3", "t4", "t5", "t6"}
    assert find_branch(state, "t4") == {"t4", "t5", "t6"}
    assert find_branch(state, "t3") == {"t3"}


@pytest.mark.parametrize(
    ("named", "gone"),
    [
        ({"turns": ["D2:2", "D1:1"]}, Forgotten(("D1:1", "D2:2"), (), ("t1", "t2"), calls=2)),
        ({"turns": ["D1:1", "D1:2"]}, Forgotten(("D1:1", "D1:2"), ("t1",))),
        ({"topics": ["t2"]}, Forgotten(("D2:1", "D2:2"), ("t2",))),
        (
            {"branch_of": "t2"},
            Forgotten(("D2:1", "D2:2", "D3:1", "D3:2"), ("t2", "t3")),
        ),
        ({"before": DAY + timedelta(2)}, Forgotten(("D1:1", "D1:2"), ("t1",))),
        ({"before": DAY}, Forgotten()),
        (
            {"turns": ["D3:1"], "topics": ["t1"]},
            Forgotten(("D1:1", "D1:2", "D3:1"), ("t1",), ("t3",), calls=1),
        ),
    ],
)
async def test_what_would_go_is_what_goes(
    memory_of: Open, named: dict[str, object], gone: Forgotten
) -> None:
    memory = await built(memory_of)
    before = memory.state
    assert await memory.forget(**named, dry_run=True) == gone  # type: ignore[arg-type]
    assert memory.state == before
    assert await memory.forget(**named) == gone  # type: ignore[arg-type]
    assert {memory.conversation.turns[n].id for n in memory.state.forgotten} == set(gone.turns)
    assert set(memory.state.topics) == {"t1", "t2", "t3"} - set(gone.removed)
    assert memory.state.stale == set(gone.stale)


async def test_a_date_spares_frozen_topics_and_says_so(memory_of: Open) -> None:
    memory = await built(memory_of)
    await memory.edit("t1", Change(frozen=True))
    gone = await memory.forget(before=DAY + timedelta(3))
    assert gone == Forgotten(("D2:1", "D2:2"), ("t2",), (), ("t1",))
    await memory.edit("t3", Change(frozen=True))
    await memory.edit("t1", Change(frozen=False))
    assert (await memory.forget(before=datetime(2050, 1, 1))).spared == ("t3",)
    assert set(memory.state.topics) == {"t3"}


async def test_what_is_not_there_cannot_be_forgotten(memory_of: Open, store: Store) -> None:
    memory = await built(memory_of)
    await memory.forget(["D1:1"])
    rows = store.edits(memory.id)
    for named, said in [
        ({"turns": ["D1:2", "D7:1"]}, "no turn 'D7:1'"),
        ({"turns": ["D1:1"]}, "'D1:1' is forgotten already"),
        ({"topics": ["t9"]}, "no topic 't9'"),
        ({"branch_of": "t9"}, "no topic 't9'"),
        ({}, "nothing to forget is named"),
    ]:
        with pytest.raises(InputError, match=said):
            await memory.forget(**named)  # type: ignore[arg-type]
    assert store.edits(memory.id) == rows


async def test_an_export_holds_all_of_it_as_json(memory_of: Open) -> None:
    memory = await built(memory_of)
    await memory.append(Turn("late", "Bo", "in the buffer"))
    await memory.edit("t2", Change(frozen=True))
    await memory.forget(["D1:1"])
    held = json.loads(json.dumps(memory.export()))
    assert held["conversation"]["name"] == "talk"
    topics = {
        name: (topic["summary"] != "", topic["turns"], topic["frozen"])
        for name, topic in held["topics"].items()
    }
    assert topics == {
        "t1": (False, [1], False),
        "t2": (True, [2, 3], True),
        "t3": (True, [4, 5], False),
    }
    assert [turn["id"] for turn in held["turns"]] == [*(t.id for t in THREE.turns[1:]), "late"]
    assert (held["buffer"], held["forgotten"], len(held["deletions"])) == ([6], ["D1:1"], 1)
    assert sorted(link["target"] for link in held["links"]) == ["t1", "t1", "t2"]
    assert "a b c" not in json.dumps(held)
