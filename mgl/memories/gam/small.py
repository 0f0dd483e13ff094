"""GAM for small models: topics are sessions, summaries are extracted, and events are ranked by the
words around them; what a person told is answered from their own words (``mgl.memories.told``)."""

from __future__ import annotations

from typing import Literal

from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.memory import Gam
from mgl.memories.told import answer_from_told


class SmallGamConfig(GamConfig):
    """How a small model remembers and reads a conversation."""

    preset: Literal["paper", "small"] = "small"
    partition: Literal["semantic", "session", "window", "turns"] = "session"
    summaries: Literal["prompt", "extract"] = "extract"
    indicators: Literal["prompt", "rules"] = "rules"
    relations: Literal["prompt", "similarity"] = "similarity"
    anchoring: Literal["summary", "event"] = "event"
    meaning: Literal["rerank", "context"] = "context"


class SmallGam(Gam):
    """Groups the events of a conversation into topics without a call of a model."""

    Config = SmallGamConfig
    answer_first = staticmethod(answer_from_told)
