"""What a build would cost, from what earlier builds of the kind cost on this machine.

    cost = estimate_from_past(store, memory.id, "gam", model_id, source)    # None: nothing is known

A kind that can tell from the text itself (``estimate``) is asked in place of this. The rates are
those of the newest ``PAST`` memories of the kind and model, by the characters that they read;
answers are left out.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from mgl.memories.graph import Estimate
from mgl.store import Store
from mgl.types import Conversation, Source

PAST: Final = 5


def estimate_from_past(
    store: Store, memory_id: str, kind: str, model_id: str, source: Source
) -> Estimate | None:
    """Estimate the whole build of a memory from others; None where there are none."""
    past = (
        record
        for record in store.memories()
        if (record.kind, record.model_id) == (kind, model_id) and record.id != memory_id
    )
    characters = calls = read = written = 0
    seconds = 0.0
    for record in islice(past, PAST):
        characters += len(store.document(record.document_id).text)
        for call in store.calls(record.id):
            if call.completion is not None and call.stage != "answer":
                calls += 1
                read += call.completion.usage.input_tokens
                written += call.completion.usage.output_tokens
                seconds += call.seconds
    if not characters or not calls:
        return None
    text = source.transcript.text if isinstance(source, Conversation) else source.text
    rate = len(text) / characters
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
    said = f"to do: {chunks}{cost.calls:,} model calls, {cost.input_tokens:,} input tokens"
    if cost.seconds is None:
        return f"{said}; time unknown: this model has built none on this machine yet"
    minutes = cost.seconds / 60
    time = f"{minutes:.0f} minutes" if minutes >= 2 else f"{cost.seconds:.0f} seconds"
    return f"{said}, about {time} (from {cost.measured:,} calls of this model on this machine)"
