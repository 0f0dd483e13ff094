"""Claims judged TRUE or FALSE: what a reply decides, and the scores of claims and of pairs.

    >>> verdict("FALSE. Daisy was driving."), verdict("I cannot tell.")
    (False, None)

Source: NoCha counts a pair only where both of its claims are judged rightly; HGMem reports the
share of claims. What decides in a reply is ours: its first word; else TRUE or FALSE in capitals;
else "the claim is true" and the like; "not true" is false. Where these disagree with themselves,
nothing is decided.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from mgl.evaluation.intervals import Interval, wilson_interval

__all__ = ["ClaimScores", "JudgedClaim", "claim_scores", "verdict"]

_FIRST = re.compile(r"[\W_]*(true|false)\b(?!\s*(?:or\b|/))", re.IGNORECASE)
_CAPITALS = re.compile(r"\b(TRUE|FALSE)\b")
_SAID = re.compile(
    r"\b(?:claim|statement|answer|verdict|it|this|that)(?:\s+is|\s*:)\s+(true|false)\b(?!\s+that\b)",
    re.IGNORECASE,
)


_EMPHASIS = re.compile(r"[*_`\"“”]")
_DENIED = re.compile(r"\b(?:(?:not|never)|(\w+)n['’]t)\s+(?:be\s+)?(true|false)\b", re.IGNORECASE)


def verdict(reply: str) -> bool | None:
    """Whether a reply says TRUE or FALSE; None where it says neither, or both."""
    reply = _DENIED.sub(_opposite, _EMPHASIS.sub("", reply))
    if (first := _FIRST.match(reply)) is not None:
        return first[1].lower() == "true"
    for pattern in (_CAPITALS, _SAID):
        said = {word.lower() for word in pattern.findall(reply)}
        if said:
            return said == {"true"} if len(said) == 1 else None
    return None


def _opposite(denied: re.Match[str]) -> str:
    """What a denial says: "not TRUE" is "FALSE", and "isn't true" is "is false"."""
    verb, word = denied.groups()
    other = "false" if word.lower() == "true" else "true"
    return " ".join(filter(None, (verb, other.upper() if word.isupper() else other)))


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim of a pair, whether it is true, and what was said of it (None: nothing)."""

    pair: str
    label: bool
    said: bool | None

    @property
    def right(self) -> bool:
        return self.said is self.label


@dataclass(frozen=True, slots=True)
class ClaimScores:
    """Shares judged rightly, with Wilson's intervals.

    ``pairs`` is over the pairs of which both claims were asked, None where there is none.
    ``undecided`` claims, of which nothing was said, are in both shares as wrong. ``said_true``
    tells a judge that says TRUE of everything: it has half of the claims and no pair.
    """

    claims: Interval
    pairs: Interval | None
    undecided: int
    said_true: int


def claim_scores(judged: Iterable[JudgedClaim]) -> ClaimScores:
    """The scores of the claims that were asked. ValueError where there are none, or where two
    claims of a pair have the same label."""
    claims = list(judged)
    pairs: dict[str, dict[bool, bool]] = defaultdict(dict)
    for claim in claims:
        if claim.label in pairs[claim.pair]:
            raise ValueError(f"pair {claim.pair} has two claims that are {claim.label}")
        pairs[claim.pair][claim.label] = claim.right
    whole = [all(pair.values()) for pair in pairs.values() if len(pair) == 2]
    return ClaimScores(
        claims=wilson_interval(sum(claim.right for claim in claims), len(claims)),
        pairs=wilson_interval(sum(whole), len(whole)) if whole else None,
        undecided=sum(claim.said is None for claim in claims),
        said_true=sum(claim.said is True for claim in claims),
    )
