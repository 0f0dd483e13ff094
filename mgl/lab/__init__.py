"""The composition root: store, model, retrieval and memories put together."""

from mgl.lab.lab import Lab
from mgl.lab.model import ModelChoice, OwnModels

__all__ = ["Lab", "ModelChoice", "OwnModels"]
