"""The composition root: store, model, retrieval and memories put together."""

from mgl.lab.lab import Lab

__all__ = ["Lab"]
