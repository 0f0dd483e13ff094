"""Exchanges, their index and notes, the scratchpad, and what is read of them."""

from __future__ import annotations

import re

import pytest

from mgl.baselines.light import Light, LightConfig
from mgl.llm.base import Completion
from mgl.store import Store
from mgl.types import Question
from tests.baselines.asking import answered, asking, make_talk, prompts, said, silent

LINES = [
    ["I keep bees", "Since when?", "Since spring"],
    ["They swarmed", "Where to?", "Into the chimney", "Oh no."],
]
TALK = make_talk(LINES, ("user", "bot"))
EXCHANGES = [["I keep bees", "Since when?"], ["Since spring"], LINES[1][:2], LINES[1][2:]]


def writing(prompt: str) -> str | Completion:
    """The index and the notes of an exchange are its lines; parts about a chimney are needed."""
    told = prompt.partition("An exchange of a conversation:")[2].partition('{"notes"')[0]
    lines = [line for exchange in EXCHANGES for line in exchange if line in told]
    if "key and its value" in prompt:
        return said(notes="index of " + ", ".join(lines))
    if "has to be remembered" in prompt:
        return said(notes="note of " + ", ".join(lines))
    if "Write them again" in prompt:
        return said(notes="short: " + ", ".join(re.findall(r"note of \S+|short", prompt)))
    if "Are these notes needed" in prompt:
        return said(needed="chimney" in prompt)
    return answered(prompt)


async def test_every_exchange_is_indexed_and_noted_below_the_one_before(store: Store) -> None:
    mine, engine = asking(store, writing)
    memory = Light(mine, TALK)
    await memory.build()
    rows = [(row.chunk, row.op, row.payload["text"]) for row in store.edits(memory.id)]
    told = [", ".join(lines) for lines in EXCHANGES]
    assert {row for row in rows if row[1] != "scratchpad"} == {
        (n, op, f"{op.removesuffix('s')} of {told[n]}")
        for n in range(4)
        for op in ("index", "notes")
    }
    pad = "\n".join(f"note of {lines}" for lines in told)
    assert (4, "scratchpad", pad) in rows
    before = [text.partition("An exchange")[0] for text in prompts(engine) if "key and" in text]
    assert ["(nothing)" in text for text in before].count(True) == 1
    assert any("Since spring" in text for text in before)
    assert len(engine.requests) == 8


async def test_the_found_the_latest_and_the_needed_notes_are_read(store: Store) -> None:
    mine, engine = asking(store, writing)
    memory = Light(mine, TALK, (), LightConfig(k=1, recent=1, part_tokens=16))
    answer = await memory.answer(Question("bees keep when?"))
    shown = re.findall(r"^\[\d\] (.*)$", prompts(engine)[-1], re.MULTILINE)
    assert len(shown) == 3
    assert "I keep bees" in shown[0]
    assert "Into the chimney" in shown[1]
    assert "note of Into the chimney" in shown[2]
    assert answer.retrieved == ("D0:0", "D0:1", "D1:2", "D1:3")
    assert answer.trace == ("2 exchanges, 1 parts of the scratchpad",)


async def test_the_scratchpad_is_compressed_when_it_has_twice_its_tokens(store: Store) -> None:
    pad = " ".join(["bees"] * 80)
    model = silent(writing)

    def long(prompt: str) -> str | Completion:
        return said(notes=pad) if "has to be remembered" in prompt else model(prompt)

    mine, engine = asking(store, long)
    memory = Light(mine, TALK, (), LightConfig(scratchpad_tokens=64))
    await memory.build()
    compressed = [text for text in prompts(engine) if "Write them again" in text]
    assert len(compressed) == 2  # after two notes, and after two more
    [row] = [row for row in store.edits(memory.id) if row.op == "scratchpad"]
    assert row.payload["text"].startswith("short")
    assert row.outcome == "applied"


async def test_a_scratchpad_takes_no_more_than_a_small_context_has(store: Store) -> None:
    model = silent(writing)

    def long(prompt: str) -> str | Completion:
        notes = said(notes=" ".join(["bees"] * 250))
        return notes if "has to be remembered" in prompt else model(prompt)

    mine, engine = asking(store, long, 1024)
    memory = Light(mine, TALK)
    await memory.build()
    compressing = [
        request for request in engine.requests if "Write them again" in request.messages[-1].content
    ]
    assert len(compressing) == 2  # after two notes of 250 tokens, and after two more
    assert all(request.sampling.max_tokens < 1024 // 2 for request in compressing)
    [row] = [row for row in store.edits(memory.id) if row.op == "scratchpad"]
    assert row.outcome == "applied"


@pytest.mark.parametrize("words", ["key and its value", "has to be remembered"])
async def test_an_exchange_without_index_or_notes_is_marked(store: Store, words: str) -> None:
    mine, _ = asking(store, silent(writing, words))
    answer = await Light(mine, TALK).answer(Question("Where?"))
    assert answer.marks == ("exchanges_missing",)


async def test_a_part_that_the_model_says_nothing_of_is_marked_and_left_out(store: Store) -> None:
    mine, _ = asking(store, silent(writing, "Are these notes needed"))
    answer = await Light(mine, TALK).answer(Question("Where?"))
    assert answer.marks == ("parts_unread",)
    assert answer.trace == ("4 exchanges, 0 parts of the scratchpad",)
