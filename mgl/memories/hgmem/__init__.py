"""HGMem: a hypergraph that evolves while it retrieves.

Source: Improving Multi-step RAG with Hypergraph-based Memory (docs/prompts.md has its prompts).
"""

from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.memory import KIND, HgMem

__all__ = ["KIND", "HgMem", "HgMemConfig"]
