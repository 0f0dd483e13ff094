"""Texts drawn from a grammar, for fakes and tests.

>>> import random
>>> from mgl.llm.patterns import parse_pattern
>>> len(sample(parse_pattern("^[a-z]{4}$"), random.Random(1)))
4
"""

from __future__ import annotations

import json
import random
import re

from mgl.llm.grammar import Choice, Class, Literal, Node, Part, Repeat, Seq, Text

__all__ = ["sample"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789éß—日"
_MORE = 6  # repeats drawn beyond the least


def sample(node: Node, draw: random.Random) -> str:
    """One text of the grammar's language."""
    match node:
        case Literal(text):
            return text
        case Class():
            return _character(node, draw)
        case Seq(parts):
            return "".join(sample(part, draw) for part in parts)
        case Choice(options):
            return sample(draw.choice(options), draw)
        case Repeat(part, least, most):
            times = draw.randint(least, _highest(least, most))
            return "".join(sample(part, draw) for _ in range(times))
        case Text(least, most):
            times = draw.randint(least, _highest(least, most))
            return "".join(draw.choice(_LETTERS) for _ in range(times))
        case Part(text, _):
            words = re.findall(r"\S+\s*|\s+", text)
            start = draw.randrange(len(words))
            end = draw.randint(start + 1, min(len(words), start + _MORE))
            return json.dumps("".join(words[start:end]), ensure_ascii=False)[1:-1]


def _highest(least: int, most: int | None) -> int:
    return least + _MORE if most is None else min(most, least + _MORE)


def _character(node: Class, draw: random.Random) -> str:
    if not node.negated:
        low, high = draw.choice(node.ranges)
        return chr(draw.randint(low, high))
    allowed = [c for c in _LETTERS if not any(low <= ord(c) <= high for low, high in node.ranges)]
    return draw.choice(allowed or ["\u00b7"])
