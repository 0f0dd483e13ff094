"""Fragments, their clusters, and what is inferred from those that are alike."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from mgl.baselines import premem
from mgl.baselines.premem import PreMem, _silhouette, pair_clusters, split_clusters
from mgl.store import Store
from mgl.types import Conversation, Question, Turn
from tests.baselines.asking import answered, asking, nothing, prompts, said, silent

SESSIONS = [
    ["Ann keeps bees", "Ann breeds bees", "Bo drinks tea", "Bo brews tea"],
    ["Ann sold bees"],
    ["Ann misses bees"],
]
TALK = Conversation.from_turns(
    "talk",
    [
        Turn(f"D{day}:{n}", line.split()[0], line, datetime(2023, 5, 8 + day), f"{day}")
        for day, lines in enumerate(SESSIONS)
        for n, line in enumerate(lines)
    ],
)
QUESTION = Question("Has Ann sold bees?")


def remembering(prompt: str) -> str:
    """A fragment a message, by its last word; of two clusters, that something has changed."""
    if '"fragments"' in prompt:
        said_by = re.findall(r"^(\d+)\. .*?: (.*)$", prompt, re.MULTILINE)
        fragments = [
            {
                "kind": "factual",
                "message": int(place),
                "key": line.split()[-1],
                "value": line,
                "time": "2023-05-08",
            }
            for place, line in said_by
        ]
        return said(fragments=fragments)
    if '"inferences"' in prompt:
        words = {"key": "bees", "value": "Ann gave up bees", "time": "after 2023-05-08"}
        return said(inferences=[{"kind": "transformation", **words}])
    return answered(prompt)


async def test_alike_clusters_of_two_sessions_are_read_together_once(store: Store) -> None:
    mine, engine = asking(store, remembering)
    memory = PreMem(mine, TALK)
    await memory.build()
    made = [(row.chunk, row.op, row.turns) for row in store.edits(memory.id)]
    assert made == [
        *((0, "fragment", (at,)) for at in range(4)),
        (0, "cluster", (0, 1)),
        (0, "cluster", (2, 3)),
        (1, "fragment", (4,)),
        (1, "close", (0, 1, 4)),
        (1, "inference", (0, 1, 4)),
        (2, "fragment", (5,)),
        (2, "cluster", (5,)),  # those it is like are closed
    ]
    (inferring,) = [prompt for prompt in prompts(engine) if '"inferences"' in prompt]
    earlier, later = inferring.split("The later:")
    assert "bees: Ann keeps bees (2023-05-08)\nbees: Ann breeds bees (2023-05-08)" in earlier
    assert "bees: Ann sold bees (2023-05-08)" in later
    assert memory.state.pool == ((2, 3), (6,))
    assert len(engine.requests) == 4


async def test_fragments_and_inferences_are_read_and_cited(store: Store) -> None:
    mine, engine = asking(store, remembering)
    answer = await PreMem(mine, TALK).answer(QUESTION)
    lines = re.findall(r"^\[\d+\] (.*)$", prompts(engine)[-1], re.MULTILINE)
    assert len(lines) == 7
    assert lines[0] == "bees: Ann sold bees (2023-05-08)"
    assert "bees: Ann gave up bees (after 2023-05-08)" in lines
    assert [citation.quote for citation in answer.citations] == ["Ann: Ann sold bees"]
    assert answer.retrieved[0] == "D1:0"
    assert set(answer.retrieved) == {turn.id for turn in TALK.turns}


async def test_so_many_tokens_of_the_nearest_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert premem.READ_TOKENS == 2048, "the paper's"
    monkeypatch.setattr(premem, "READ_TOKENS", 100)
    lines = [f"Ann has {n} bees" for n in range(20)]  # 13 tokens each: bees: … (2023-05-08)
    turns = [Turn(f"t{n}", "Ann", line, None, f"{n // 5}") for n, line in enumerate(lines)]
    mine, _ = asking(store, remembering)
    answer = await PreMem(mine, Conversation.from_turns("long", turns)).answer(QUESTION)
    (read,) = [int(n) for n in re.findall(r"read (\d+) of", answer.trace[0])]
    assert read == 100 // 13


def test_clusters_are_split_by_the_best_silhouette() -> None:
    points = np.array([[0.0], [1.0], [10.0]], dtype=np.float32)
    labels = np.array([0, 0, 1])
    assert _silhouette(points, labels) == pytest.approx((9 / 10 + 8 / 9 + 0) / 3)
    assert _silhouette(points, np.zeros(3, dtype=int)) == -1
    assert split_clusters(points) == [[0, 1], [2]]
    assert split_clusters(points[:2]) == [[0, 1]]
    two = np.eye(2, dtype=np.float32)
    assert split_clusters(np.vstack([two, two, two])) == [[0, 2, 4], [1, 3, 5]]
    assert split_clusters(np.ones((4, 3), dtype=np.float32)) == [[0, 1, 2, 3]]
    many = np.repeat(np.eye(12, dtype=np.float32), 3, axis=0)
    assert len(split_clusters(many)) == 9


def test_each_cluster_is_in_one_pair_the_likest_first() -> None:
    vectors = [np.array(each, dtype=np.float32) for each in ((1, 0), (0.8, 0.59), (0, 1))]
    east, between, north = vectors
    assert pair_clusters([east, between], [east, north]) == [(0, 0)]  # 0.59 is too little
    assert pair_clusters([between, east], [east]) == [(1, 0)]
    assert pair_clusters([between], [north]) == []
    assert pair_clusters([], [east]) == []


async def test_a_pair_without_a_reply_stays_open(store: Store) -> None:
    mine, _ = asking(store, silent(remembering, '"inferences"'))
    memory = PreMem(mine, TALK)
    answer = await memory.answer(QUESTION)
    assert answer.marks == ("inferences_missing",)
    assert memory.state.pool == ((0, 1), (2, 3), (4,), (5,))


async def test_a_model_that_says_nothing_leaves_no_fragments(store: Store) -> None:
    mine, engine = asking(store, nothing)
    memory = PreMem(mine, replace(TALK, turns=TALK.turns[:4]))
    answer = await memory.answer(QUESTION)
    assert answer.marks == ("sessions_missing",)
    (row,) = store.edits(memory.id)
    assert (row.outcome, row.turns) == ("rejected", (0, 1, 2, 3))
    assert not any('"memories"' in prompt for prompt in prompts(engine))
