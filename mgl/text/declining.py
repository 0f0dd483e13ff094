"""Whether an answer only says that nothing was found: it stands on nothing, and so cites nothing.

    >>> is_declined("The text does not say where she lives."), is_declined("She did not say.")
    (True, False)

What a question's own prompt gives as its answer for that (``unknown``) is known in any language.
The rest is made of English words, with the source or the speaker as their subject, and knows no
other language. It is stricter than what scores answers about things that were never said, since
what it takes for declined loses its sources.
"""

from __future__ import annotations

import re
from typing import Final

_SOURCE: Final = (
    r"(?:the|this|your|our) (?:given |provided )?"
    r"(?:text|document|passages?|excerpts?|context|story|book|conversations?|memories)"
)
_SAY: Final = (
    r"(?:say|tell|mention|state|specify|indicate|contain|provide|give|include|name|reveal)\b"
)
_TOLD: Final = r"(?:mentioned|stated|specified|told|said|given|provided|known|found)"
_DECLINED: Final = re.compile(
    rf"{_SOURCE} (?:(?:do|does|did)(?: not|n['’]t) {_SAY}|(?:says?|tells?) nothing\b)"
    rf"|(?:(?:it|this|that) (?:is|was) )?not {_TOLD}(?: in {_SOURCE})?\W*$"
    r"|(?:sorry, )?you (?:have not|haven['’]t|did not|didn['’]t|never) "
    r"(?:(?:told|tell) (?:me|us)|mention(?:ed)?)\b"
    r"|(?:sorry, )?i (?:do not|don['’]t) (?:know|remember|recall|have (?:any )?information)\b"
    rf"|there is no (?:information|mention)\b",
    re.IGNORECASE,
)
_GOES_ON: Final = re.compile(r"\b(?:but|however|though|although|except|only)\b", re.IGNORECASE)
_WORD: Final = re.compile(r"\w+")
_LEAST: Final = 2


def is_declined(text: str, unknown: str = "") -> bool:
    """Whether an answer declines; ``unknown`` is what it was asked to say then, of which it may
    say only the beginning, two words at least.

    >>> is_declined("Not mentioned", "Not mentioned in the conversation.")
    True
    >>> is_declined("Nein.", "Keine Angabe."), is_declined("keine Angabe", "Keine Angabe.")
    (False, True)
    >>> is_declined("The text does not say it, but it may be Rome.")
    False
    """
    said, asked = (_WORD.findall(each.casefold()) for each in (text, unknown))
    if said and said == asked[: max(len(said), min(_LEAST, len(asked)))]:
        return True
    return bool(_DECLINED.match(text.strip())) and not _GOES_ON.search(text)
