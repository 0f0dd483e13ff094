"""Cloze tests: which of the masked names a reply gives, word for word or in part.

    >>> filled("<mask-0>: Ann Lee\\n<mask-1>: Rome")
    {'<mask-0>': 'Ann Lee', '<mask-1>': 'Rome'}
    >>> gold = "<mask-0>: Ann Lee\\n<mask-1>: Rome"
    >>> matched("{'<mask-0>': 'Ann', '<mask-1>': 'Rome'}", gold, partial=False)
    Matches(right=1, masks=2)
    >>> matched("<mask-0>: Ann\\n<mask-1>: Rome", gold, partial=True)
    Matches(right=2, masks=2)

Source: Li et al., LooGLE (2023), ``Evaluation/automatic_metrics.py`` and ``automatic_eval.py``: a
mask is matched exactly where its name is the same string, and partially where the names share a
word (what white space parts, as written). The score of a run is the share of all its masks, so a
test with three of them counts three times as much as one with one.

There a reply that is no Python dictionary has no mask right. Here masks are looked for in lines
(``<mask-0>: name``, which is what is asked for) and in dictionaries alike; quotes, braces, commas
and emphasis around a name are none of it, and of several names for a mask the last counts.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["Matches", "filled", "matched"]

_MASK: Final = re.compile(r"(<mask-\d+>)")
_AROUND: Final = " \t\"'`*“”‘’"
_BETWEEN: Final = _AROUND + ",;{}"


class Matches(NamedTuple):
    """How many of the ``masks`` of a test are ``right``."""

    right: int
    masks: int


def filled(text: str) -> dict[str, str]:
    """The names that a text gives, by their masks; empty where it gives none."""
    names = {}
    for line in text.splitlines():
        _, *parts = _MASK.split(line)
        for mask, rest in zip(parts[::2], parts[1::2], strict=True):
            rest = rest.lstrip(_AROUND)
            name = rest[1:].strip(_BETWEEN)
            if rest.startswith((":", "=")) and name:
                names[mask] = name
    return names


def matched(prediction: str, gold: str, *, partial: bool) -> Matches:
    """How many of the gold answer's masks a reply has right."""
    said, wanted = filled(prediction), filled(gold)
    right = sum(
        bool({*name.split()} & {*said[mask].split()}) if partial else said[mask] == name
        for mask, name in wanted.items()
        if mask in said
    )
    return Matches(right, len(wanted))
