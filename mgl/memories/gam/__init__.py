"""GAM: a conversation buffered as events and consolidated into topics at semantic boundaries.

Source: "GAM: Hierarchical Graph-based Agentic Memory for LLM Agents". ``prompts`` holds its text,
``state`` the two layers and their edits, ``boundaries`` and ``consolidate`` how they are written,
``search``, ``cues`` and ``reading`` how they are read.
"""

from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.memory import Gam
from mgl.memories.gam.small import SmallGam, SmallGamConfig

__all__ = ["Gam", "GamConfig", "SmallGam", "SmallGamConfig"]
