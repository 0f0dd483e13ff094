"""``python -m mgl`` is the ``mgl`` command."""

from __future__ import annotations

from mgl.cli import main

main()
