"""Whether an answer only says that nothing was found: it stands on nothing and cites nothing."""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"\w+")
_LEAST: Final = 2


def is_declined(text: str, unknown: str) -> bool:
    """Whether an answer is ``unknown``, which its prompt asks for where nothing tells it, or the
    beginning of that: two words at least. Any other way to decline is taken for an answer.

    >>> is_declined("Not mentioned", "Not mentioned in the conversation.")
    True
    >>> is_declined("Nein.", "Keine Angabe."), is_declined("keine Angabe", "Keine Angabe.")
    (False, True)
    """
    said, asked = (_WORD.findall(each.casefold()) for each in (text, unknown))
    return bool(said) and said == asked[: max(len(said), min(_LEAST, len(asked)))]
