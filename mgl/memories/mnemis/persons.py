"""Names that mean another person for each speaker, in any language; ours.

    >>> is_common("my sister"), is_common("Rome"), is_common("我的姐姐")
    (True, False, True)
    >>> is_first_person("ich"), is_first_person("Io")
    (True, False)

A proper name is told by its capitals. Where a script has none, or a language gives them to every
noun, as German does, no name is known to be proper. A word list finds first persons: a language
that it lacks leaves an entity that is a pronoun.
"""

from __future__ import annotations

from typing import Final

from mgl.memories.mnemis.state import key_of

_POSSESSIVES: Final = frozenset("my our your his her its their a an the".split())
_FIRST_PERSON: Final = frozenset(
    "i me my mine myself i'm user speaker narrator "
    "ich mich je moi jag jeg ég én minä mä εγώ я меня мене мені мне tôi saya "
    "我 本人 俺 私 僕 わたし ぼく おれ 나 저 내가 제가 أنا אני मैं मुझे من ฉัน ผม ดิฉัน আমি நான் میں".split()
)
_LOWER_FIRST_PERSON: Final = frozenset(
    "mir yo mí mi io eu mim ik mij mig meg ja mnie mě mi ben beni aku mimi engem minut eo jo аз ја "
    "mina".split()
)
"""First persons that are names or other words as well where they have a capital: Ben, Io, Mimi."""


def is_common(name: str, *, by_capitals: bool = True) -> bool:
    """Whether a name may mean for each speaker another: "my sister".

    ``by_capitals``: a capital tells a proper name.
    """
    words = [word for word in name.split() if word.casefold() not in _POSSESSIVES]
    first = words[0][:1] if words else ""
    has_capitals = name.lower() != name.upper() and not first.islower()
    return not (by_capitals and has_capitals) or " ".join(words).islower()


def is_first_person(name: str) -> bool:
    """Whether a name is how speakers call themselves."""
    key = key_of(name)
    return key in _FIRST_PERSON or (name[:1].islower() and key in _LOWER_FIRST_PERSON)
