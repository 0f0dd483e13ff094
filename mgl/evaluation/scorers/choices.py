"""Read what a reply decides: a letter, a label, TRUE or FALSE, or that it cannot be told.

    >>> find_letter("<answer>(B)</answer>", ("the blue one", "the red one"))
    'B'
    >>> find_verdict("FALSE. Daisy was driving."), find_verdict("It is TRUE that she drove.")
    (False, None)

Ours read one field and nothing else: the last ``<answer>`` tag or ``\\boxed{}``, the value
``"answer"`` of a JSON object, what follows "Answer:" or "The claim is" where a line begins so, or
else the reply from its beginning. It has to begin with the answer, after which only a mark, a
reason or the choice's own text may follow. Any other reply is unreadable (None). The words around
an answer are English.

``letter_longbench`` is LongBench v2's own ``extract_answer`` (one of two sentences, A to D), by
which an unreadable reply is a wrong one. NoCha's form, ``<explanation>…</explanation>
<answer>FALSE</answer>``, is the tag above.

``declines`` is ours, for questions about what was never said: each clause of the reply has to say
that it was not told, is not known or did not come up, and must not guess all the same. Its words
are English.

    >>> declines("You have not told me."), declines("You have not told me, but it may be Anna.")
    (True, False)
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from string import ascii_uppercase

from mgl.benchmarks.base import Item
from mgl.evaluation.scorers.words import squad_words

_TAGS = (
    re.compile(r"<answer>(.*?)</answer>", re.IGNORECASE | re.DOTALL),
    re.compile(r"\\boxed\{(?:\\text\{)?([^{}]*)\}"),
)
_LINE = re.compile(
    r"^\W*(?:(?:based on|according to|given)\b[^.\n]*,\s+)?(?:(?:my|the)\s+)?"
    r"(?:(?:correct|final|right|above|given)\s+)?(?:answer|option|choice|verdict|claim|statement)\W*"
    r"(?:(?:is|would be)\b)?[\s:]+(.*)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_AFTER = re.compile(
    r"[\s*_\"'”’)\]}]*(?:\Z|\n|[.:](?:[\s*_\"'”’)\]]|\Z)|…|\s\["
    r"|[,;]\s+(?!(?:[A-Za-z]|or|and)\b)|\s[-–—]+\s|\s+(?:as|because|due|for|given|since)\b)"
)
_OPENING = " \t\n*_\"'“‘([{$"


def _read_field(reply: str) -> str:
    for pattern in _TAGS:
        if found := pattern.findall(reply):
            return str(found[-1])
    try:
        value = json.loads(reply)
    except ValueError:
        line = _LINE.search(reply)
        return line[1] if line else reply
    answer = value.get("answer") if isinstance(value, dict) else None
    return (
        answer if isinstance(answer, str) else json.dumps(answer) if answer is not None else reply
    )


def _begins_with(words: str, field: str, more: str = "") -> bool:
    """Whether the field says the words, in any case, and nothing against them; it may say ``more``
    after them."""
    field, rest = field.lstrip(_OPENING), rf"(?:[)\]}}.:]*\s+{re.escape(more)})?" if more else ""
    said = re.match(re.escape(words) + rest, field, re.IGNORECASE)
    return said is not None and _AFTER.match(field, said.end()) is not None


def find_letter(reply: str, choices: Sequence[str]) -> str | None:
    """Find the letter that a reply chooses, or whose choice it repeats; None if unreadable."""
    field = _read_field(reply)
    letters = ascii_uppercase[: len(choices)]
    words = squad_words(field)
    same = [
        letter
        for letter, choice in zip(letters, choices, strict=True)
        if (own := squad_words(choice)) and words in (own, [letter.lower(), *own])
    ]
    if len(same) == 1:
        return same[0]
    said = zip(letters, choices, strict=True)
    return next((letter for letter, own in said if _begins_with(letter, field, own)), None)


def find_label(reply: str, labels: Sequence[str]) -> str | None:
    """Find the label that a reply begins with (``contradicts`` too); None if unreadable."""
    field = _read_field(reply)
    forms = ((label, label + end) for label in labels for end in ("", "s", "ory"))
    return next((label for label, form in forms if _begins_with(form, field)), None)


def find_verdict(reply: str) -> bool | None:
    """Decide whether a reply says TRUE or FALSE; None if unreadable."""
    found = find_label(reply, ("true", "false"))
    return None if found is None else found == "true"


def gold_letter(item: Item) -> str | None:
    """Return the letter of the right choice: the gold answer, or the place of its text."""
    letters = ascii_uppercase[: len(item.choices)]
    for gold in item.golds[:1]:
        letter = gold.strip("() ").upper()
        if len(letter) == 1 and letter in letters:
            return letter
        if gold in item.choices:
            return letters[item.choices.index(gold)]
    return None


def gold_label(item: Item) -> str | None:
    """The gold answer as it stands among the choices, whatever its case; None if it does not."""
    wanted = [gold.strip().lower() for gold in item.golds[:1]]
    return next((each for each in item.choices if each.lower() in wanted), None)


_LONGBENCH = (
    re.compile(r"The correct answer is \(([A-D])\)"),
    re.compile(r"The correct answer is ([A-D])"),
)


def letter_longbench(reply: str) -> str | None:
    """Read the letter in "The correct answer is (X)" or "… is X", ignoring asterisks."""
    plain = reply.replace("*", "")
    found = (pattern.search(plain) for pattern in _LONGBENCH)
    return next((each[1] for each in found if each is not None), None)


_TOLD = (
    r"(?:know|knew|known(?! for)|mention(?:ed)?|told|tell|said|say|stated?|shared?|specif(?:y|ied)"
    r"|given|provided?|recorded|discussed|c[oa]me up|recall|remember|find|found|sure)"
)
_NOTICE = r"(?:information|details?|idea|records?|mention|knowledge)"
_DECLINES = re.compile(
    r"(?:\b(?:not|never|cannot|nothing|nobody|no one)|n['’]t)(?:\s+\w+){0,3}?"
    rf"\s+(?:{_TOLD}|{_NOTICE})\b|\bno\s+(?:\w+\s+)?{_NOTICE}\b|\bun(?:known|specified|mentioned|stated)\b",
    re.IGNORECASE,
)
_GUESSES = re.compile(
    r"\b(?:but|however|though|although|probably|perhaps|maybe|may|might|likely"
    r"|you (?:told|said|mentioned|shared))\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"\W*(?:please|let me know|if you (?:tell|let|share)|(?:i['’]m |i am )?sorry|i apologi[sz]e)\b"
    r"|.*\byou\b.*\?$",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[^.!?;:–—\n]*\w[^.!?;:–—\n]*[.!?]?")


def declines(reply: str) -> bool:
    """Whether a reply says that something was not told, and nothing else: no clause may guess, or
    tell what was."""
    clauses = [one[0].strip() for one in _CLAUSE.finditer(reply)]
    left = [(one, _DECLINES.sub("", one)) for one in clauses]
    return any(one != rest for one, rest in left) and all(
        not _GUESSES.search(rest) if one != rest else _ASIDE.match(one) for one, rest in left
    )
