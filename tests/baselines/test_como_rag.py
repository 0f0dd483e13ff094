"""Three layers, tries and probes."""

from __future__ import annotations

import numpy as np
import pytest

from mgl.baselines.como_rag import ComoRag, ComoRagConfig, LayerHit, find_groups, window_size
from mgl.store import Store
from mgl.types import Question
from tests.baselines.asking import (
    QUESTION,
    RING,
    RING_TALK,
    answered,
    asking,
    nothing,
    prompts,
    said,
)

CONFIG = ComoRagConfig(chunk_tokens=16, overlap_tokens=0, most_tokens=16, rounds=2)


class Model:
    """Tries succeed as told; probes are those given; notes repeat the end of what they are of."""

    def __init__(self, tries: list[str], probes: list[list[str]]) -> None:
        self.tries, self.probes = list(tries), list(probes)

    def __call__(self, prompt: str) -> str:
        if '"entities"' in prompt:
            return said(entities=[])
        if '"facts"' in prompt:
            return said(facts=[])
        if '"thought"' in prompt:
            return said(thought="so", answer=self.tries.pop(0))
        if '"probes"' in prompt:
            return said(probes=self.probes.pop(0))
        if "at most five findings" in prompt:
            return said(notes=f"cue of {prompt.split()[1]} {prompt.split()[2]}")
        if "Findings about" in prompt:
            return said(notes="all in one")
        if '"notes"' in prompt:
            return said(notes=" ".join(line for line in RING if line in prompt))
        return answered(prompt)


def only(engine: object, mark: str) -> list[str]:
    return [prompt for prompt in prompts(engine) if mark in prompt]  # type: ignore[arg-type]


async def test_it_keeps_chunks_windows_and_clusters(store: Store) -> None:
    mine, _ = asking(store, Model(["Carl"], []))
    rag = ComoRag(mine, RING_TALK, (), CONFIG)
    answer = await rag.answer(QUESTION)
    rows = {
        op: [row for row in store.edits(rag.id) if row.op == op] for op in ("episode", "summary")
    }
    # four chunks: windows of two; fewer than twelve are one cluster, which ends the levels
    assert [(row.payload["chunks"], row.turns) for row in rows["episode"]] == [
        ([0, 1], (0, 1)),
        ([2, 3], (2, 3)),
    ]
    assert [row.payload["chunks"] for row in rows["summary"]] == [[0, 1, 2, 3]]
    assert answer.trace == ("answered at try 1",)
    assert answer.retrieved == ("t0",)  # one chunk has 16 tokens


async def test_what_cannot_be_answered_is_probed_and_tried_again(store: Store) -> None:
    model = Model(["*", "Carl"], [["Where was it forged?", "Who saw fog on the sea?"]])
    mine, engine = asking(store, model)
    answer = await ComoRag(mine, RING_TALK, (), CONFIG).answer(QUESTION)
    assert answer.trace == (
        "probe: Where was it forged?",
        "probe: Who saw fog on the sea?",
        "answered at try 2",
    )
    first, second = only(engine, '"thought"')
    assert "Carl lost the ring" in first
    assert "Known from earlier rounds:\n(nothing yet)" in first
    # the second try reads cues of what was new, and the fused note, in place of the texts
    assert "Carl lost" not in second
    assert "cue of The ring\ncue of Fog lay" in second
    assert "Known from earlier rounds:\nall in one" in second
    # of the pool's three nodes (one a layer) the better half is fused: one
    (fused,) = only(engine, "Findings about")
    assert fused.count("cue of") == 1
    # each probe is noted with the question; both kinds of summaries were found at once, for it
    cues = only(engine, "at most five findings")
    assert len(cues) == 5
    assert "help to answer: Who lost the ring? Where was it forged?" in cues[3]
    assert answer.retrieved == ("t0", "t2", "t3")  # in the order in which they were found
    assert "cue of Fog lay" in prompts(engine)[-1]


async def test_a_step_finds_so_many_chunks_for_all_its_probes(store: Store) -> None:
    probes = [["Where was it forged?", "Who saw fog on the sea?", "Who found a coin?"]]
    for limit, found in ((None, 4), (2, 3), (1, 2)):
        mine, _ = asking(store, Model(["*", "Carl"], [list(each) for each in probes]))
        config = CONFIG.model_copy(update={"step_chunks": limit})
        answer = await ComoRag(mine, RING_TALK, (), config).answer(QUESTION)
        assert len(answer.retrieved) == found, limit


async def test_rounds_end_and_so_do_probes(store: Store) -> None:
    probes = [["Where was it forged?"], ["Where was it forged?", "Who saw fog on the sea?"]]
    mine, engine = asking(store, Model(["*"] * 3, probes))
    answer = await ComoRag(mine, RING_TALK, (), CONFIG).answer(QUESTION)
    assert answer.text.startswith("Carl")
    assert answer.trace[-1] == "no answer after 3 tries"
    assert len(only(engine, '"thought"')) == 3
    assert answer.trace.count("probe: Where was it forged?") == 1  # one that was asked is not again
    # after the second round four nodes are in the pool; two are fused, and both notes are shown
    assert [each.count("cue of") for each in only(engine, "Findings about")] == [1, 2]
    assert "all in one\nall in one" in only(engine, '"thought"')[-1]
    mine, _ = asking(store, Model(["*"], [[]]))
    none = await ComoRag(mine, RING_TALK, (), CONFIG).answer(Question("Who found a coin?"))
    assert none.trace == ("no probe was written",)


async def test_the_better_half_of_the_pool_is_what_is_like_the_question(store: Store) -> None:
    mine, engine = asking(store, Model([], []))
    rag = ComoRag(mine, RING_TALK, (), CONFIG)
    pool = [
        LayerHit("chunk", "the sea", "fog and more fog"),
        LayerHit("chunk", "the ring", "who lost the ring"),
        LayerHit("summary", "the coin", "Dora found it"),
        LayerHit("episode", "who lost it", "the ring was lost"),
        LayerHit("episode", "the boat", "sold"),
    ]
    assert await rag._fuse(QUESTION, pool) == ["all in one"]
    (asked,) = prompts(engine)
    shown = asked.split("\n\n")[1].splitlines()
    assert sorted(shown) == ["the ring who lost the ring", "who lost it the ring was lost"]


async def test_options_and_a_silent_model(store: Store) -> None:
    mine, engine = asking(store, Model(["*"], [[]]))
    choice = Question("Who?", options=("Carl", "Dora"))
    assert (await ComoRag(mine, RING_TALK, (), CONFIG).answer(choice)).text == "Carl"
    (tried,) = [r for r in engine.requests if '"thought"' in r.messages[-1].content]
    assert "['Carl', 'Dora', '*']" in str(tried.json_schema)

    def silent(prompt: str) -> object:
        return answered(prompt) if '"memories"' in prompt else nothing(prompt)

    with Store.open(store.path.with_name("other.sqlite")) as other:
        mine, _ = asking(other, silent)  # type: ignore[arg-type]
        answer = await ComoRag(mine, RING_TALK, (), CONFIG).answer(QUESTION)
        assert "summaries_missing" in answer.marks
        assert answer.retrieved == ("t0",)


@pytest.mark.parametrize(
    ("chunks", "size"),
    [(1, 2), (5, 2), (6, 3), (20, 3), (50, 5), (100, 8), (200, 10), (201, 15), (4096, 20)],
)
def test_windows_grow_with_the_source(chunks: int, size: int) -> None:
    assert window_size(chunks) == size


def test_few_vectors_are_one_group() -> None:
    assert find_groups(np.eye(11, dtype=np.float32)) == [list(range(11))]
    assert find_groups(np.zeros((0, 4), dtype=np.float32)) == []


@pytest.mark.parametrize("each", [6, 8, 30])
def test_texts_that_lie_apart_are_in_different_groups(each: int) -> None:
    rng = np.random.default_rng(2)
    heaps = np.repeat(np.eye(2, 16), each, axis=0) + rng.normal(0, 0.02, (2 * each, 16))
    groups = find_groups(unit(heaps))
    assert all(len({at // each for at in group}) == 1 for group in groups)


@pytest.mark.parametrize("size", [12, 40, 160, 640])
def test_every_text_is_in_one_group_and_more_texts_are_more_groups(size: int) -> None:
    rng = np.random.default_rng(size)
    groups = find_groups(unit(rng.normal(0, 1, (size, 32)) + rng.normal(0, 1, 32)))
    assert sorted(at for group in groups for at in group) == list(range(size))
    # so many that each is a summary of a part, and so few that each is one of several texts
    assert size / 10 <= len(groups) <= size / 2.5
    assert max(map(len, groups)) <= max(12, size // 5)


def unit(vectors: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled.astype(np.float32)
