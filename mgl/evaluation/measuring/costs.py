"""What model calls cost, as cells of a table.

Seconds are the engine's own latency of each call: calls in flight together overlap.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mgl.llm.calls import CallRecord

__all__ = ["COST_HEAD", "cost"]

COST_HEAD: Final = "calls | not used | tokens in | tokens out | seconds of calls"


def cost(calls: Iterable[CallRecord]) -> str:
    """Calls as they were issued; ``not used`` are those whose reply could not be used."""
    made = list(calls)
    used = [call.completion.usage for call in made if call.completion is not None]
    cells = (
        f"{len(made)}",
        f"{sum(call.outcome != 'ok' for call in made)}",
        f"{sum(tokens.input_tokens for tokens in used):,}",
        f"{sum(tokens.output_tokens for tokens in used):,}",
        f"{sum(call.seconds for call in made):.0f}",
    )
    return " | ".join(cells)
