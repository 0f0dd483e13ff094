"""What a build would cost, from what earlier builds of the kind cost on this machine.

    cost = estimate_from_past(store, memory.id, "gam", model_id, len(text))  # None: unknown
    describe_large(cost, len(text))                     # None: not above the limits below

A kind that can tell from the text itself (``estimate``) is asked in place of this. The rates are
those of the newest ``PAST`` memories of the kind and model, by the characters that they read;
answers are left out.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from mgl.memories.graph import Estimate
from mgl.store import Store

PAST: Final = 5
MOST_CALLS: Final = 5_000
MOST_TOKENS: Final = 20_000_000
MOST_SECONDS: Final = 24 * 3600
MOST_CHARACTERS: Final = 10_000_000
"""What a build may take without being confirmed: several long novels; ours."""


def estimate_from_past(
    store: Store, memory_id: str, kind: str, model_id: str, text_characters: int
) -> Estimate | None:
    """Estimate the cost of reading a text of this length from past builds; None without any."""
    past = (
        record
        for record in store.memories()
        if (record.kind, record.model_id) == (kind, model_id) and record.id != memory_id
    )
    characters = calls = read = written = 0
    seconds = 0.0
    for record in islice(past, PAST):
        characters += len(store.document(record.document_id).text)
        seconds += store.building_seconds(record.id)
        for call in store.calls(record.id):
            if call.completion is not None and call.stage != "answer":
                calls += 1
                read += call.completion.usage.input_tokens
                written += call.completion.usage.output_tokens
    if not characters or not calls:
        return None
    rate = text_characters / characters
    return Estimate(
        chunks=0,
        done=0,
        calls=round(calls * rate),
        input_tokens=round(read * rate),
        output_tokens=round(written * rate),
        seconds=seconds * rate,
        measured=calls,
    )


def describe_estimate(cost: Estimate) -> str:
    """Say in a line what is still to be done, how long it takes, and how that is known."""
    if not cost.calls:
        return "to do: no model call"
    chunks = f"{cost.chunks - cost.done:,} of {cost.chunks:,} chunks: " if cost.chunks else ""
    most = "at most " if cost.is_bound else ""
    said = f"to do: {chunks}{most}{cost.calls:,} model calls, {cost.input_tokens:,} input tokens"
    if cost.seconds is None:
        return f"{said}; time unknown: this model has built none on this machine yet"
    time = _describe_time(cost.seconds)
    return f"{said}, about {time} (from {cost.measured:,} calls of this model on this machine)"


def describe_large(cost: Estimate | None, text_characters: int) -> str | None:
    """Say what is to be done, if it is above the limits; None if it is not.

    Without an estimate, the text's length decides.
    """
    is_large = cost is not None and (
        cost.calls > MOST_CALLS
        or cost.input_tokens > MOST_TOKENS
        or (cost.seconds or 0) > MOST_SECONDS
    )
    if not is_large and text_characters <= MOST_CHARACTERS:
        return None
    known = "" if cost is None else f"; {describe_estimate(cost)}"
    return f"a text of {text_characters:,} characters{known}"


def _describe_time(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} seconds"
