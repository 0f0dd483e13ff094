"""What a build would cost, from what earlier builds of the kind cost on this machine.

    cost = estimate_from_past(store, memory.id, "gam", model_id, len(text))  # None: unknown
    describe_large(cost, len(text))                     # None: not above the limits below

A kind that can tell from the text itself (``estimate``) is asked in place of this. The rates are
those of the newest ``PAST`` memories of the kind and model, by the characters that they read;
answers are left out. Seconds are by the pace of each stage.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Final

from mgl.memories.estimates import Estimate
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
    characters = read = written = 0
    stages: Counter[str] = Counter()
    for record in islice(past, PAST):
        characters += len(store.document(record.document_id).text)
        for call in store.calls(record.id):
            if call.completion is not None and call.stage != "answer":
                stages[call.stage] += 1
                read += call.completion.usage.input_tokens
                written += call.completion.usage.output_tokens
    if not characters or not stages:
        return None
    rate = text_characters / characters
    cost = Estimate(round(stages.total() * rate), round(read * rate), round(written * rate))
    paces = ((store.pace(model_id, stage), calls * rate) for stage, calls in stages.items())
    return cost.at(paces)


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
    known = "" if cost is None else f"; to do: {cost.describe()}"
    return f"a text of {text_characters:,} characters{known}"
