"""Where the files of a benchmark lie."""

from __future__ import annotations

import os
from pathlib import Path

from mgl.benchmarks.base import About

__all__ = ["located"]


def located(about: About, folder: Path | None = None) -> Path | None:
    """Where a benchmark's files lie in ``folder``, or in MGL_DATA; None where they do not."""
    root = folder or (Path(named) if (named := os.environ.get("MGL_DATA")) else None)
    place = None if root is None else root.expanduser() / about.folder
    return place if place is not None and place.exists() else None
