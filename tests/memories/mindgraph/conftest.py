"""A MindGraph over a scripted model: the plumbing is real (client, store), the model is not."""

from __future__ import annotations
