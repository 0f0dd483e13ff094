"""The scripts and styles that pages are made of, and their hashes for a content security policy."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

__all__ = ["asset", "digest"]


def asset(name: str) -> str:
    """A file of ``mgl/web/assets``; ``palette.css`` has the colours of all pages."""
    return (resources.files("mgl.web") / "assets" / name).read_text(encoding="utf-8")


def digest(content: str) -> str:
    """A script or style by its hash, as a policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
