"""When two names are one: the key under which an entity is merged.

    >>> entity_key("“The Gods”\\nof Mars")
    'gods of mars'
    >>> entity_key("gods of Mars.") == entity_key("The  Gods (of Mars)")
    True

Spelling alone decides: it knows neither surnames nor synonyms.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

NAME_CHARS: Final = 80
"""A name that is longer is no name."""

PRONOUNS: Final = frozenset(
    "i me my mine myself you your yours yourself he him his himself she her hers herself it its "
    "itself we us our ours ourselves they them their theirs themselves this that these those here "
    "there who whom what which one ones someone somebody something everyone everybody everything "
    "anyone anything nobody nothing none".split()
)
"""English words that stand for whoever is meant: as the name of an entity they would merge all."""

_ARTICLES: Final = frozenset({"a", "an", "the"})
_APOSTROPHES: Final = "‘’‚‛`´ʼ＇"
_QUOTES: Final = '"“”„‟«»‹›「」『』〝〞＂'
_BRACKETS: Final = "()[]{}<>（）［］｛｝〈〉《》【】"
_EDGES: Final = "'.,;:!?…*_~#|/\\&-–—=+ "
_KEY_TABLE: Final = str.maketrans(
    {**dict.fromkeys(_APOSTROPHES, "'"), **dict.fromkeys(f"{_QUOTES}{_BRACKETS}|", " ")}
)
_WORD: Final = re.compile(r"[^\W_]")
# Control characters, and marks that have no width of their own.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_DELIMITERS: Final = re.compile(r"<\|[^<>]{0,40}\|>|<[|&]>|##+")


def entity_key(name: str) -> str:
    """The key that all spellings of a name share; "" for a name without a word character.

    Case, compatibility forms (NFKC), quotes, brackets, white space, outer punctuation and leading
    articles make no difference. The key of a key is the key itself.
    """
    key = level(name).strip(_EDGES)
    while (parts := key.split(" ", 1))[0] in _ARTICLES and len(parts) > 1:
        key = parts[1].strip(_EDGES)
    if not _WORD.search(key):
        return ""
    return key if key == name else entity_key(key)


def clean_name(name: str) -> str:
    """A name as it is shown: one line, without delimiters, or quotes and brackets around it.

    "" where nothing is left that has a word character.
    """
    line = " ".join(_visible(_DELIMITERS.sub(" ", name)).replace("|", " ").split())
    while line and (inner := _unwrap(line)) != line:
        line = inner
    return line if _WORD.search(line) else ""


def mentions(name: str, text: str) -> bool:
    """Whether a text has a name as whole words; both are normalised as keys are."""
    return has_key(level(text), entity_key(name))


def has_key(levelled: str, key: str) -> bool:
    """Whether a text has a key as whole words; for many keys it is levelled once."""
    if not key or key not in levelled:  # most are not there, and a pattern is dear to compile
        return False
    return not key.isascii() or re.search(rf"(?<!\w){re.escape(key)}(?!\w)", levelled) is not None


def level(text: str) -> str:
    """A text without what makes no difference in a key, its words one space apart."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    plain = unicodedata.normalize("NFKC", _visible(folded).translate(_KEY_TABLE))
    return " ".join(plain.split())


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        char if unicodedata.category(char) not in _HIDDEN else " " if char.isspace() else ""
        for char in text
    )


def _unwrap(line: str) -> str:
    line = line.strip(f"{_QUOTES}{_APOSTROPHES}'*_#,;: ")
    if len(line) > 1 and (line[0], line[-1]) in {("(", ")"), ("[", "]"), ("{", "}"), ("<", ">")}:
        return line[1:-1].strip()
    return line
