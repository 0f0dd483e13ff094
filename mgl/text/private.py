"""Secrets and personal data in a text: where they are.

    >>> text = "Write to ann@example.org, the password is hunter2!"
    >>> [text[start:end] for start, end in find_private(text)]
    ['ann@example.org', 'hunter2']

- keys and tokens in the forms of known services (detect-secrets); private keys; what the text calls
  a password, a PIN or a key
- numbers of cards and bank accounts (IBAN), by form and check digits
- the form of a US social security number, except those never issued
- addresses of e-mail and of the internet, by form
- telephone numbers that are valid with their country's code, or in the United States
  (phonenumbers)

Nothing is looked up online. Names, addresses, birthdays and what is personal by its meaning are not
found: that takes a model. Needs the extra ``privacy``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from ipaddress import ip_address
from itertools import chain

from mgl.errors import UsageError, install_hint

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


def find_private(text: str) -> list[tuple[int, int]]:
    """The private parts of a text, as ranges in order that do not overlap.

    Raises UsageError where the extra is not installed.
    """
    by_form = (_spans(pattern, text) for pattern in (_EMAIL, _SSN))
    found = [*_secrets(text), *_cards(text), *_ibans(text), *_ips(text), *chain(*by_form)]
    found = _merge(found)
    # last: digits beside a number keep it from being found
    return _merge([*found, *_phones(_mask(text, found))])


def _merge(found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Put ranges in order, those that overlap as one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start < merged[-1][1]:
            start, end = merged[-1][0], max(merged.pop()[1], end)
        merged.append((start, end))
    return merged


def _mask(text: str, found: Sequence[tuple[int, int]]) -> str:
    """Overwrite ranges, which are in order, keeping offsets."""
    parts, position = [], 0
    for start, end in found:
        parts += [text[position:start], ";" * (end - start)]
        position = end
    return "".join((*parts, text[position:]))


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
        reached = 0
        for start, end in _spans(pattern, text):
            if end > reached:  # else it is in the rest of the last one
                rest = _REST_OF_TOKEN.match(text, end)
                reached = end + len(rest[0].rstrip(".") if rest else "")
                yield start, reached


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


def _phones(text: str) -> Iterator[tuple[int, int]]:
    try:
        from phonenumbers import PhoneNumberMatcher
    except ImportError as error:
        raise _report_missing(error) from error
    if sum(map(str.isdigit, text)) > 5:
        for found in PhoneNumberMatcher(text, "US"):
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
