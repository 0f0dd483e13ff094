"""Days, their summaries and portraits, and what is read of them."""

from __future__ import annotations

import re
from dataclasses import replace
from math import exp

from mgl.baselines import memory_bank
from mgl.baselines.memory_bank import MemoryBank, MemoryBankConfig, MemoryPiece
from mgl.store import Store
from mgl.types import Question, Span
from tests.baselines.asking import answered, asking, make_talk, prompts, said, silent

LINES = [
    ["I keep bees on the roof", "Since when", "Since spring"],
    ["The bees swarmed", "Into the chimney"],
]
TALK = make_talk(LINES)


def noting(prompt: str) -> str:
    """Notes that say what they are notes of."""
    if "one a day" in prompt:
        kind = "history" if "one summary of them all" in prompt else "portrait"
        parts = re.findall(r"(?:events|traits) [12]", prompt)
        return said(notes=f"{kind} of {' and '.join(parts)}")
    if '"notes"' in prompt:
        kind = "events" if "Summarize" in prompt else "traits"
        return said(notes=f"{kind} {1 if 'spring' in prompt else 2}")
    return answered(prompt)


async def test_each_day_has_two_notes_and_all_days_two_more(store: Store) -> None:
    mine, engine = asking(store, noting)
    memory = MemoryBank(mine, TALK)
    await memory.build()
    rows = sorted(store.edits(memory.id), key=lambda row: row.chunk)
    assert [(row.chunk, row.op, row.payload["text"]) for row in rows] == [
        (0, "events", "events 1"),
        (0, "traits", "traits 1"),
        (1, "events", "events 2"),
        (1, "traits", "traits 2"),
        (2, "history", "history of events 1 and events 2"),
        (2, "portrait", "portrait of traits 1 and traits 2"),
    ]
    assert len(engine.requests) == 6


async def test_every_turn_is_in_a_pair_and_is_read_below_history_and_portrait(store: Store) -> None:
    mine, engine = asking(store, noting)
    memory = MemoryBank(mine, TALK)
    answer = await memory.answer(Question("spring roof swarmed chimney"))
    pairs = [piece for piece in memory._pieces() if piece.span is not None]
    words = " ".join(piece.text for piece in pairs)
    assert all(line in words for day in LINES for line in day)
    assert [piece.day for piece in pairs] == [0, 0, 1]
    shown = re.findall(r"^\[\d\] (.*)$", prompts(engine)[-1], re.MULTILINE)
    assert shown[:2] == ["history of events 1 and events 2", "portrait of traits 1 and traits 2"]
    assert "I keep bees" in shown[2]
    assert "The bees swarmed" in shown[-1]
    assert answer.citations == ()  # the history was named, which is nobody's words


def test_a_piece_is_read_with_pairs_of_its_day_up_to_200_characters() -> None:
    pieces = [MemoryPiece(day, "x" * 90, Span("d", n, n + 1)) for n, day in enumerate([0, 0, 0, 1])]
    assert memory_bank._widen(pieces, 1) == [1, 2]
    assert memory_bank._widen(pieces, 3) == [3]
    assert memory_bank._widen([*pieces, MemoryPiece(1, "summary", None)], 4) == [4]
    short = [replace(piece, text="x" * 60) for piece in pieces]
    assert sorted(memory_bank._widen(short, 1)) == [0, 1, 2]


async def test_a_piece_of_t_days_ago_is_remembered_with_exp_of_minus_t(store: Store) -> None:
    mine, _ = asking(store, noting)
    kept = []
    for seed in range(400):
        memory = MemoryBank(mine, TALK, (), MemoryBankConfig(forgetting=True, seed=seed))
        pieces = [MemoryPiece(0, "a", None), MemoryPiece(1, "b", None)]
        kept.append([memory._remembers(pieces, place) for place in range(2)])
    assert all(last for _, last in kept)
    assert abs(sum(first for first, _ in kept) / 400 - exp(-1)) < 0.08


async def test_a_day_without_a_summary_is_marked(store: Store) -> None:
    mine, _ = asking(store, silent(noting, "Summarize"))
    answer = await MemoryBank(mine, TALK).answer(Question("Who swarmed?"))
    assert answer.marks == ("days_missing",)
