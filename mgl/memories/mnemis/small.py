"""Mnemis for small models: code finds terms, likeness groups them, and System-2 chooses by names;
what a person told is answered from their own words (``mgl.memories.told``)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.memory import Mnemis
from mgl.memories.told import answer_from_told


class SmallMnemisConfig(MnemisConfig):
    """How a small model takes in, categorises and reads a source."""

    preset: Literal["paper", "small"] = "small"
    extraction: Literal["model", "terms"] = "terms"
    reflect: bool = Field(False, description="ask again for missed names and facts (§2.1)")
    grouping: Literal["model", "likeness"] = "likeness"
    selecting: Literal["printed", "names"] = "names"


class SmallMnemis(Mnemis):
    """Searches by similarity and selects down a hierarchy of terms."""

    Config = SmallMnemisConfig
    answer_first = staticmethod(answer_from_told)
