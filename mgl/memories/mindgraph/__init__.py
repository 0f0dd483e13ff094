"""MindGraph: a question-aware concept graph with character-exact provenance.

Source: "MindGraph: Faithful Concept-Graph Memory for Long-Context Reasoning". ``prompts`` has
the prompts, ``state`` the graph, ``edits`` what may be proposed, ``build`` and ``read`` the stages.
"""

from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.memory import MindGraph
from mgl.memories.mindgraph.small import SmallMindGraph, SmallMindGraphConfig

__all__ = ["MindGraph", "MindGraphConfig", "SmallMindGraph", "SmallMindGraphConfig"]
