"""Mnemis: two routes through a memory, by likeness and by hierarchy.

Source: "Mnemis: Dual-Route Retrieval on Hierarchical Graphs for Long-Term LLM Memory".
"""

from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.memory import Mnemis
from mgl.memories.mnemis.small import SmallMnemis, SmallMnemisConfig

__all__ = ["Mnemis", "MnemisConfig", "SmallMnemis", "SmallMnemisConfig"]
