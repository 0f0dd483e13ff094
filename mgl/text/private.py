"""Secrets and personal data in a text: where they are, and the text without them.

    >>> text = "Write to ann@example.org, the password is hunter2!"
    >>> redact(text, find_private(text))
    'Write to [email], the password is [secret]!'

- ``secret``: keys and tokens in the forms of known services (detect-secrets); private keys; what
  the text calls a password, a PIN or a key
- ``card``, ``iban``: by form and check digits
- ``ssn``: the form of a US social security number, except those never issued
- ``email``, ``ip``: by form
- ``phone``: numbers that are valid in a country (phonenumbers)

Nothing is looked up online. Names, addresses, birthdays and what is personal by its meaning are not
found: that takes a model. Needs the extra ``mgl[privacy]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from typing import Literal, get_args

from mgl.errors import UsageError, install_hint

__all__ = ["PRIVATE_KINDS", "Private", "PrivateKind", "find_private", "redact"]

PrivateKind = Literal["secret", "card", "iban", "ssn", "email", "ip", "phone"]
PRIVATE_KINDS: tuple[PrivateKind, ...] = get_args(PrivateKind)
"""In order of precedence, where two overlap."""

_EMAIL = re.compile(r"[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}\b")
_CARD = re.compile(
    r"(?<![\w-])(?:[2-6]\d{12,18}"
    r"|[2-6]\d{3}(?:( )|-)\d{4}(?(1) |-)\d{4}(?(1) |-)\d{1,7}"
    r"|3\d{3}(?:( )|-)\d{6}(?(2) |-)\d{5})(?![\w-])"
)
_IBAN = re.compile(r"\b[A-Z]{2}\d\d(?: ?[A-Z0-9]){11,30}\b")
_SHORTEST_IBAN = 15
_SSN = re.compile(r"(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\d-])")
_IP = re.compile(
    r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)"
    r"|(?<![\w:])[\da-fA-F]{0,4}(?::[\da-fA-F]{0,4}){2,7}(?![\w:])"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]{0,40}-----|\Z)",
    re.DOTALL,
)
_TOLD = re.compile(
    r"\b(?:pass(?:word|code|phrase)|pwd|pin"
    r"|(?:api|access|secret|private|security)[ _-]?(?:key|token|code))"
    r"(?:\s+(?:is|was|will be)\s*:?|\s*[:=]+)\s*(?P<quote>[\"'`“‘]?)(?P<secret>\S{3,})",
    re.IGNORECASE,
)
_NOT_A_WORD = re.compile(r"[\d_@#$%^&*+=~]")
_REST_OF_TOKEN = re.compile(r"[\w.+/=-]*")


@dataclass(frozen=True, slots=True)
class Private:
    """Characters ``start`` to ``end`` (exclusive) of a text, and what they are."""

    kind: PrivateKind
    start: int
    end: int


def find_private(
    text: str, *, kinds: Sequence[PrivateKind] = PRIVATE_KINDS, region: str | None = "US"
) -> list[Private]:
    """The private parts of a text, in order; none overlap.

    ``region`` is the country (ISO 3166) whose telephone numbers need no country code; with None
    all need one. Raises UsageError where the extra is not installed.
    """
    finders: dict[PrivateKind, Callable[[str], Iterator[tuple[int, int]]]] = {
        "secret": _secrets,
        "card": _cards,
        "iban": _ibans,
        "ssn": lambda text: _spans(_SSN, text),
        "email": lambda text: _spans(_EMAIL, text),
        "ip": _ips,
    }
    asked = [kind for kind in finders if kind in kinds]
    found = [Private(kind, *span) for kind in asked for span in finders[kind](text)]
    if "phone" in kinds:  # last: digits beside a number keep it from being found
        found += [Private("phone", *span) for span in _phones(_mask(text, found), region)]
    return _merge(found)


def redact(text: str, found: Sequence[Private]) -> str:
    """Replace each private part of a text by its kind in brackets."""
    pieces: list[str] = []
    position = 0
    for part in sorted(found, key=lambda part: part.start):
        pieces += text[position : part.start], f"[{part.kind}]"
        position = part.end
    return "".join((*pieces, text[position:]))


def _mask(text: str, found: Sequence[Private]) -> str:
    """Overwrite what was found, keeping offsets."""
    for part in found:
        text = text[: part.start] + ";" * (part.end - part.start) + text[part.end :]
    return text


def _merge(found: Sequence[Private]) -> list[Private]:
    merged: list[Private] = []
    for part in sorted(found, key=lambda part: (part.start, -part.end)):
        if merged and part.start < merged[-1].end:
            last = merged.pop()
            kind = min(last.kind, part.kind, key=PRIVATE_KINDS.index)
            part = Private(kind, last.start, max(last.end, part.end))
        merged.append(part)
    return merged


def _spans(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    return (found.span() for found in pattern.finditer(text))


def _secrets(text: str) -> Iterator[tuple[int, int]]:
    yield from _spans(_PRIVATE_KEY, text)
    for found in _TOLD.finditer(text):
        secret = found["secret"].rstrip(".,;:!?)\"'`”’")
        if found["quote"] or _NOT_A_WORD.search(secret):
            start = found.start("secret")
            yield start, start + len(secret)
    for pattern in _known_forms():
        for start, end in _spans(pattern, text):
            rest = _REST_OF_TOKEN.match(text, end)
            yield start, end + len(rest[0].rstrip(".") if rest else "")


def _cards(text: str) -> Iterator[tuple[int, int]]:
    for start, end in _spans(_CARD, text):
        digits = [int(character) for character in text[start:end] if character.isdigit()]
        doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
        if (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1:
            yield start, end


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    for start, end in _spans(_IBAN, text):
        whole = text[start:end]
        ends = [place for place, character in enumerate(whole) if character == " "]
        for length in (len(whole), *reversed(ends)):  # words and numbers may follow it
            plain = whole[:length].replace(" ", "")
            number = "".join(str(int(character, 36)) for character in plain[4:] + plain[:4])
            if len(plain) >= _SHORTEST_IBAN and int(number) % 97 == 1:
                yield start, start + length
                break


def _ips(text: str) -> Iterator[tuple[int, int]]:
    for start, end in _spans(_IP, text):
        try:
            known = ip_address(text[start:end])
        except ValueError:
            continue
        if not (known.is_unspecified or known.is_loopback):
            yield start, end


def _phones(text: str, region: str | None) -> Iterator[tuple[int, int]]:
    try:
        from phonenumbers import PhoneNumberMatcher
    except ImportError as error:
        raise _report_missing(error) from error
    if sum(map(str.isdigit, text)) > 5:
        for found in PhoneNumberMatcher(text, region):
            yield found.start, found.end


@cache
def _known_forms() -> tuple[re.Pattern[str], ...]:
    """Load the patterns of detect-secrets; its checks against services are never called."""
    try:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
        from detect_secrets.plugins.base import RegexBasedDetector
        from detect_secrets.plugins.ip_public import IPPublicDetector
    except ImportError as error:
        raise _report_missing(error) from error
    return tuple(
        pattern
        for plugin in get_mapping_from_secret_type_to_class().values()
        if issubclass(plugin, RegexBasedDetector) and plugin is not IPPublicDetector
        for pattern in plugin().denylist
    )


def _report_missing(error: ImportError) -> UsageError:
    return UsageError(f"finding private data needs {error.name}", hint=install_hint("privacy"))
