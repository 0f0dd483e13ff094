"""Engines: what runs a model. Each module is one backend; ``open_engine`` picks and starts it."""

from mgl.llm.engines.opening import open_engine

__all__ = ["open_engine"]
