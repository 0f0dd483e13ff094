"""Statements that stand alone, their arguments, and the walk over both."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

import networkx as nx
import pytest

from mgl.baselines import emem
from mgl.baselines.emem import EMem, EMemConfig, Statement, rank_statements, weigh_arguments
from mgl.memories.deletion import delete
from mgl.store import Store
from mgl.store.deletion import Redaction
from mgl.types import Conversation, Question, Turn
from tests.baselines.asking import answered, asking, prompts, said, silent

LINES = ["Hello", "Carl lost the ring", "It was old", "Rome made the ring", "Dora likes fog"]
TALK = Conversation.from_turns(
    "talk",
    [
        Turn(
            f"t{n}", "Bo" if n == 1 else "Ann", line, datetime(2023, 5, 8 + n // 3, 9), f"{n // 3}"
        )
        for n, line in enumerate(LINES)
    ],
)
QUESTION = Question("Who made what Carl lost?")
SPOKEN = re.compile(r"^(\d+)\. \(.*?\) (?:Ann|Bo): (.*)$", re.MULTILINE)
EMEM = EMemConfig(graph=False)


def keep_none(prompt: str) -> list[int]:
    del prompt
    return []


def remembering(kept: Callable[[str], list[int]] = keep_none) -> Callable[[str], str]:
    """One statement a line of several words; the two lines on the ring's loss are one."""

    def reply(prompt: str) -> str:
        if "as statements" in prompt:
            lines = [(int(n), text) for n, text in SPOKEN.findall(prompt) if " " in text]
            told = [{"turns": [n], "text": text} for n, text in lines if text != "It was old"]
            for each in told:
                if each["text"] == "Carl lost the ring":
                    each["turns"] = [n for n, text in lines if "Carl" in text or "old" in text]
            return said(statements=told)
        if "What kind of event" in prompt:
            names = [word for word in prompt.splitlines()[0].split() if word != "the"]
            return said(event="deed", arguments=[{"role": "r", "name": name} for name in names])
        if "this question speaks of" in prompt:
            return said(entities=["Carl"])
        return said(kept=kept(prompt)) if "Which of these could" in prompt else answered(prompt)

    return reply


async def test_statements_are_made_of_turns_and_what_is_left_out_is_said(store: Store) -> None:
    mine, engine = asking(store, remembering())
    memory = EMem(mine, TALK)
    await memory.build()
    rows = store.edits(memory.id)
    statements = [(row.payload["text"], row.turns) for row in rows if row.op == "statement"]
    assert statements == [(LINES[1], (1, 2)), (LINES[3], (3,)), (LINES[4], (4,))]
    assert rows[1].payload["arguments"] == ["carl", "lost", "ring"]
    assert [row.payload for row in rows if row.op == "session"] == [
        {"left_out": [0]},
        {"left_out": []},
    ]
    assert len(engine.requests) == 2 + 3
    await EMem(mine, TALK, (), EMEM).build()  # asks nothing that was not asked
    assert len(engine.requests) == 2 + 3


async def test_emem_reads_the_statements_that_are_kept_in_their_order(store: Store) -> None:
    mine, engine = asking(store, remembering(lambda _: [1]))
    answer = await EMem(mine, TALK, (), EMEM).answer(Question("Carl lost what"))
    last = prompts(engine)[-1]
    assert "[Monday, 08 May 2023; Ann and Bo] Carl lost the ring" in last
    assert "Dora" not in last
    assert answer.trace == ("kept 1 of 3 statements",)
    assert [citation.quote for citation in answer.citations] == [
        f"Bo: {LINES[1]}",
        f"Ann: {LINES[2]}",
    ]
    assert answer.retrieved == ("t1", "t2")


async def test_where_none_is_kept_all_are_and_ten_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emem, "READ", 2)
    mine, engine = asking(store, remembering())
    answer = await EMem(mine, TALK, (), EMEM).answer(Question("the ring of Rome"))
    assert answer.trace == ("kept 3 of 3 statements",)
    assert answer.retrieved[0] == "t3"
    assert "Dora" not in prompts(engine)[-1]


async def test_a_walk_finds_what_shares_an_argument(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emem, "READ", 2)
    monkeypatch.setattr(emem, "ALIKE", 1)

    def keep(prompt: str) -> list[int]:
        items = re.findall(r"^(\d+)\. (.*)$", prompt, re.MULTILINE)
        return [int(number) for number, text in items if "carl" in text.lower()]

    mine, _ = asking(store, remembering(keep))
    answer = await EMem(mine, TALK).answer(QUESTION)
    assert answer.trace[1].startswith("arguments: carl, ")
    assert answer.retrieved == ("t1", "t2", "t3")


STATEMENTS = [
    Statement("one", (0,), 0, ("a", "b", "b")),
    Statement("two", (1,), 1, ("a", "c")),
    Statement("three", (2,), 1, ("d",)),
]


def test_arguments_weigh_by_likeness_and_kept_statements_over_their_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    similar, kept = {"a": 0.8, "d": 0.3}, {0: 0.5, 1: 0.2, 2: -0.4}
    weights = weigh_arguments(STATEMENTS, similar, kept)
    # a is in two sessions: (0.8 + 0.5 + 0.2) / 2; the cosine below 0 counts as 0.
    assert weights == pytest.approx({"a": 0.75, "b": 0.5, "d": 0.3, "c": 0.2})
    assert list(weights) == ["a", "b", "d", "c"]
    monkeypatch.setattr(emem, "ARGUMENTS", 2)
    assert list(weigh_arguments(STATEMENTS, similar, kept)) == ["a", "b"]


def test_statements_rank_by_a_walk_over_arguments_and_sessions() -> None:
    weights, kept, synonyms = {"a": 0.75, "b": 0.5}, {0: 0.5, 1: -0.2}, {("b", "d"): 0.95}
    graph = nx.Graph()
    graph.add_weighted_edges_from(
        [(0, "a", 1), (0, "b", 2), (1, "a", 1), (1, "c", 1), (2, "d", 1), ("b", "d", 0.95)]
    )
    graph.add_weighted_edges_from([(0, "s0", 1), (1, "s1", 1), (2, "s1", 1)])
    start = {"a": 0.75, "b": 0.5, 0: 0.5}
    ranks = nx.pagerank(graph, 0.5, start, weight="weight", dangling=start, tol=1e-12)
    ours = rank_statements(STATEMENTS, weights, kept, synonyms)
    assert ours.tolist() == pytest.approx([ranks[place] for place in range(3)], abs=1e-6)
    assert not rank_statements(STATEMENTS, {}, {0: 0.0}, synonyms).any()


@pytest.mark.parametrize(
    ("words", "outcomes", "marks"),
    [
        ("as statements", {"rejected", "applied"}, ("sessions_unread",)),
        ("What kind of event", {"applied", "repaired"}, ()),
        ("this question speaks of", {"applied"}, ()),
        ("Which of these could", {"applied"}, ()),
    ],
)
async def test_calls_that_give_nothing(
    store: Store, words: str, outcomes: set[str], marks: tuple[str, ...]
) -> None:
    mine, _ = asking(store, silent(remembering(), words))
    memory = EMem(mine, TALK)
    answer = await memory.answer(QUESTION)
    assert answer.marks == marks
    rows = store.edits(memory.id)
    assert {row.outcome for row in rows} == outcomes
    told = {turn for row in rows if row.op == "statement" for turn in row.turns or ()}
    left = {turn for row in rows if row.op == "session" for turn in row.payload["left_out"]}
    assert told | left == set(range(len(LINES)))
    assert "t1" in answer.retrieved


async def test_a_long_session_is_written_in_parts_and_goes_with_its_turns(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emem, "MOST_TURNS", 2)
    mine, engine = asking(store, remembering())
    memory = EMem(mine, TALK, (), EMEM)
    await memory.build()
    assert len(engine.requests) == 3
    assert {row.payload["session"] for row in store.edits(memory.id) if row.op != "session"} == {
        0,
        1,
    }
    assert delete(store, TALK.id, Redaction(frozenset({4})))
    assert "Dora" not in str([row.payload for row in store.edits(memory.id)])
    await EMem(mine, TALK, (), EMEM).build()
    assert len(engine.requests) == 4
    kept = [row.payload["text"] for row in store.edits(memory.id) if row.op == "statement"]
    assert kept == [LINES[1], LINES[3]]
