"""HGMem: a hypergraph that evolves while it retrieves.

Source: Improving Multi-step RAG with Hypergraph-based Memory (docs/prompts.md has its prompts).
"""

from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.memory import HgMem
from mgl.memories.hgmem.small import SmallHgMem, SmallHgMemConfig

__all__ = ["HgMem", "HgMemConfig", "SmallHgMem", "SmallHgMemConfig"]
