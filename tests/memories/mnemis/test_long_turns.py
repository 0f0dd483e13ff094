"""A long turn is taken in, in time that does not grow with its square."""

from __future__ import annotations

from random import Random

import pytest

from mgl.types import Turn
from tests.effort import within_cpu_seconds
from tests.memories.mnemis.engine import Model, Open, named, stated, talk

SECONDS = 8
NAMES = 1500
SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "ri", "so", "tu")


def tell(size: int) -> str:
    """Sentences of which every third names two of many people, and all begin with one word."""
    draw = Random(1)

    def word() -> str:
        return "".join(draw.choices(SYLLABLES, k=3))

    people = [word().capitalize() + word() for _ in range(NAMES)]
    told: list[str] = []
    while size > 0:
        ends = f" {draw.choice(people)} and {draw.choice(people)}" if len(told) % 3 == 0 else ""
        told.append(f"The {' '.join(word() for _ in range(9))}{ends}.")
        size -= len(told[-1]) + 1
    return " ".join(told)


@pytest.mark.parametrize(
    ("extraction", "size"),
    [pytest.param("terms", 500_000, marks=pytest.mark.slow), ("model", 250_000)],
)
async def test_a_long_turn_is_taken_in(memory_of: Open, extraction: str, size: int) -> None:
    model = Model(
        entities=[lambda prompt: {"entities": named(prompt)["entities"][-8:]}],
        edges=[lambda prompt: {"facts": stated(prompt)["facts"][:8]}],
    )
    source = talk(Turn("1", "Ann", tell(size)))
    memory = memory_of(source, model, extraction=extraction, routes="system1")
    with within_cpu_seconds(SECONDS):
        await memory.build()
    assert len(memory.state.facts) > 500
