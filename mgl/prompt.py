"""A prompt: fixed text with named placeholders, its source, and the hash that pins it.

Only ``{name}`` of declared variables are placeholders, so JSON braces in a prompt stay as printed.

    >>> prompt = Prompt("greeting", source="ours", text='{"to": "{who}"}', variables=("who",))
    >>> prompt.render(who="Ann")
    '{"to": "Ann"}'
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from mgl.text.quotes import plain_text

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Prompt:
    """``source`` names paper and appendix, or ``ours`` where no paper prints one."""

    name: str
    source: str
    text: str
    variables: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """sha256 of the text, hexadecimal: what a record of a run calls this prompt."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def render(self, **values: str) -> str:
        """The text with every variable filled in; TypeError for a missing or unknown one.

        Values are inserted in one pass, so braces inside a value are never taken for placeholders.
        """
        missing, unknown = set(self.variables) - set(values), set(values) - set(self.variables)
        if missing or unknown:
            raise TypeError(
                f"prompt {self.name}: missing {sorted(missing)}, unknown {sorted(unknown)}"
            )
        if not self.variables:
            return self.text
        pattern = "|".join(map(re.escape, self.variables))
        return re.sub(rf"\{{({pattern})\}}", lambda match: values[match[1]], self.text)


def hashes(prompts: Iterable[Prompt]) -> dict[str, str]:
    """The hash of each prompt by its name, in the order of the names."""
    return dict(sorted((prompt.name, prompt.hash) for prompt in prompts))


def one_line(text: str, most: int | None = None) -> str:
    """The text on one line, cut to ``most`` characters with an ellipsis: line breaks of a printed
    page tell a model nothing."""
    line = " ".join(plain_text(text).split())
    return line if most is None or len(line) <= most else f"{line[: most - 1].rstrip()}…"


def words_of(text: str) -> set[str]:
    """The words of a text, casefolded: "art" is none of "start"."""
    return set(_WORD.findall(text.casefold()))
