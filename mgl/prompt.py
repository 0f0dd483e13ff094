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
from itertools import pairwise
from typing import Final
from unicodedata import normalize

_WORD: Final = re.compile(r"\w+")
_SPACELESS: Final = re.compile(
    r"[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    r"\U00020000-\U0003fffd]+"
)
_GONE: Final = "\u00ad\u200b\u2060\ufeff"
_TYPESET: Final = re.compile(
    rf"\u00ad[^\S\n]*\n?|[{_GONE}]|[\ufb00-\ufb06]|[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]"
    r"|(?<=[^\W\d_])[-\u2010]\n(?=[^\W\d_])"
)


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


def plain_text(text: str) -> str:
    """Undo what typesetting does to words: soft hyphens, hyphens at the ends of lines, ligatures,
    full-width letters, decomposed accents.

    A text is searched and shown to a model in this form. ``locate`` finds a quote of it in the text
    as it is.

        >>> plain_text("a fi\u00adnal of\ufb01ce in Lis-\\nbon")
        'a final office in Lisbon'
    """
    if text.isascii() and "-\n" not in text:
        return text
    return normalize("NFC", _TYPESET.sub(_undo, text))


def pair_characters(text: str) -> str:
    """Write each run of Chinese or Japanese, which has no spaces, as its pairs of neighbours, so
    that words can be looked for in it.

    >>> pair_characters("Ann in 槐花巷.")
    'Ann in  槐花 花巷 .'
    """
    return text if text.isascii() else _SPACELESS.sub(_pair, text)


def _pair(run: re.Match[str]) -> str:
    pairs = map("".join, pairwise(run[0]))
    return f" {' '.join(pairs) or run[0]} "


def _undo(found: re.Match[str]) -> str:
    character = found[0][0]
    if character in "-\u2010":
        following = found.string[found.end()]
        return "" if following.islower() else found[0]
    return "" if character in _GONE else normalize("NFKC", character)


def words_of(text: str) -> set[str]:
    """The words of a text, casefolded: "art" is none of "start"; the pairs of neighbouring
    characters of Chinese and Japanese."""
    return set(_WORD.findall(pair_characters(plain_text(text)).casefold()))
