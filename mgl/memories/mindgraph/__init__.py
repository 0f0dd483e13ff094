"""MindGraph: a question-aware concept graph with character-exact provenance.

Source: "MindGraph: Faithful Concept-Graph Memory for Long-Context Reasoning". ``prompts`` holds
its text, ``edits`` its vocabulary, ``state`` the graph, ``build`` and ``answer`` its two stages.
"""

from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.memory import MindGraph

__all__ = ["MindGraph", "MindGraphConfig"]
