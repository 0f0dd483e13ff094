"""ReadAgent: gists of all pages, and some pages read again for a question."""

from mgl.baselines.read_agent.memory import ReadAgent, ReadAgentConfig

__all__ = ["ReadAgent", "ReadAgentConfig"]
