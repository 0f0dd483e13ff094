"""What work took: by what it is worth, which is the same each time, and by what really happened."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from mgl.evaluation.runs.records import Spent
from mgl.llm.client import Client
from mgl.types import StageUsage, Usage

__all__ = ["spent", "took"]


def spent(usage: Mapping[str, StageUsage]) -> dict[str, Spent]:
    """What completions took by stage, whether they were issued or replayed."""
    return {
        stage: Spent(used.completions, used.input_tokens, used.output_tokens)
        for stage, used in sorted(usage.items())
        if used.completions
    }


def took(llm: Client, began: float) -> dict[str, Any]:
    """Wall seconds since ``began`` (``time.monotonic``), seconds of the engine, and calls by what
    became of them."""
    total = Usage(llm.usage()).total
    return {
        "wall_s": round(time.monotonic() - began, 3),
        "engine_s": round(total.seconds, 3),
        "calls": total.calls,
        "replayed": total.replayed,
        "failed": total.failed,
        "input_tokens": total.input_tokens,
        "output_tokens": total.output_tokens,
        "cached_tokens": total.cached_tokens,
    }
