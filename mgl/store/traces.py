"""Whether a text holds, whole or in part, one of some texts that are to go.

    >>> traces = Traces(["Ann: I painted a horse by the lake, and then another one."])
    >>> traces.found_in(["[3] Ann: I painted a horse by the lake, and then ano […]"])
    True

White space counts as one space. A text is found where its first ``WINDOW`` characters are (all of
it, if it has fewer), or any excerpt of ``2 × WINDOW``, wherever it was cut. It finds more rather
than less: texts that share an excerpt are taken for each other. Single words are looked for as
words: "art" is not in "start".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mgl.prompt import one_line

__all__ = ["AROUND", "TELLING", "WINDOW", "Traces", "strings", "words_of"]

WINDOW = 32
TELLING: Final = 12
"""A text of fewer characters is in many that have nothing of it."""
AROUND: Final = 10
"""Of what stands around a short text, so many characters on either side are looked for with it: no
more, so that the text itself is in the first ``WINDOW``."""
_WORD: Final = re.compile(r"\w+")


class Traces:
    """The texts that are looked for, and ``words`` as ``words_of`` has them; empty ones are found
    nowhere."""

    def __init__(self, texts: Iterable[str], words: Iterable[str] = ()) -> None:
        self._words = frozenset(words)
        wanted = {one_line(text) for text in texts} - {""}
        self._beginnings = {text[:WINDOW] for text in wanted}
        self._windows = frozenset(
            text[start : start + WINDOW]
            for text in wanted
            for start in range(len(text) - WINDOW + 1)
        )

    def found_in(self, texts: Iterable[str]) -> bool:
        """Whether one of ``texts`` holds one of those that are looked for."""
        return any(self._in(one_line(text)) for text in texts)

    def _in(self, text: str) -> bool:
        if any(beginning in text for beginning in self._beginnings):
            return True
        if self._words and not self._words.isdisjoint(words_of(text)):
            return True
        starts = range(0, len(text) - WINDOW + 1, WINDOW) if self._windows else ()
        return any(text[start : start + WINDOW] in self._windows for start in starts)


def words_of(text: str) -> set[str]:
    """The words of a text, levelled by ``casefold``."""
    return set(_WORD.findall(text.casefold()))


def strings(value: Any) -> Iterator[str]:
    """Every text within a JSON value; keys too, and what a text holds that is JSON itself."""
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):
            try:
                inner = json.loads(value)
            except ValueError:
                return
            yield from strings(inner)
    elif isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
