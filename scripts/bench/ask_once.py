#!/usr/bin/env python3
"""Run one ``mgl`` command without a model: the engine answers at once, the embedder counts words.

    MGL_HOME=HOME python scripts/bench/ask_once.py ask talk "What did Ann say?"

``scripts/bench/scale.py`` measures what such a process costs, so nothing is imported sooner than
the command itself imports it.
"""

from __future__ import annotations

from mgl.cli import app, guard

DIMS = 384


def replace_models() -> None:
    """Have labs opened with these models."""
    from instant import InstantEngine

    from mgl.lab import Lab, OwnModels
    from mgl.retrieval.fakes import WordEmbedder, WordReranker

    own = OwnModels(InstantEngine(), WordEmbedder(DIMS), WordReranker())
    open_lab = Lab.open
    Lab.open = lambda _=None, **rest: open_lab(own, **rest)  # type: ignore[method-assign]


def guard_command(words: list[str]) -> bool:
    """Guard the command as usual, and have its child use these models."""
    is_child = guard.guard_command(words)
    replace_models()
    return is_child


if __name__ == "__main__":
    setattr(app, "guard_command", guard_command)  # noqa: B010
    app.main()
