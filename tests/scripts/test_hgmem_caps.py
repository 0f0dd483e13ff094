"""``scripts/bench/hgmem_caps.py``: what a question costs that takes every step."""

from __future__ import annotations

import asyncio

import hgmem_caps
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from mgl.types import Document

PEOPLE = ("Xodar", "Carter", "Issus", "Phaidor", "Thurid", "Matai")
TOLD = " ".join(
    f"{one} met {other} at the temple." for one in PEOPLE for other in PEOPLE if one != other
)


def count_words() -> Tokenizer:
    """A tokenizer whose tokens are words and marks."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


@pytest.mark.parametrize(
    ("settings", "calls"), [({}, 21), ({"steps": 0}, 3), ({"concerns": 1}, 15)]
)
def test_every_step_is_taken_to_its_caps(settings: dict[str, int], calls: int) -> None:
    """Step 0 evolves and merges; each further step also judges and asks for each concern."""
    document = Document.from_text("Barsoom", TOLD)
    made, tokens = asyncio.run(
        hgmem_caps.measure(document, "Who met Xodar?", count_words(), settings)
    )
    assert made == calls
    assert tokens > calls * 100
