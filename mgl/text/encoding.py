"""Decode bytes: by a byte order mark, else as strict UTF-8, else by a guess that is noted.

    >>> decode("Où est-il ?".encode("utf-16"), "note.txt").encoding
    'utf-16'

Line ends stay as they are; a byte order mark is not part of the text. Guesses between single-byte
encodings (by charset-normalizer) may be wrong: then the file is to be saved as UTF-8.
"""

from __future__ import annotations

import codecs
from contextlib import suppress
from dataclasses import dataclass

from mgl.errors import InputError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# In order of preference where two fit equally well.
_GUESSES = (
    "cp1252", "cp1250", "cp1254", "cp1255", "cp1251", "koi8_r", "cp1253", "cp1256",
    "cp932", "euc_jp", "gb18030", "big5", "cp949",
)  # fmt: skip
_SAMPLE_BYTES = 1 << 17
_ASCII = bytes(range(128))
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b"))
_CONVERT = "save it as UTF-8, for instance: iconv -f ENCODING -t UTF-8 in.txt > out.txt"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text, its encoding, and notes on what was decided."""

    text: str
    encoding: str
    notes: tuple[str, ...] = ()


def decode(data: bytes, name: str, *, encoding: str | None = None) -> Decoded:
    """Decode a file's bytes, by detection, or by an ``encoding`` that fits them.

    Raises InputError where the bytes are not text.
    """
    if encoding is None:
        decoded = _detect(data, name)
    else:
        decoded = Decoded(data.decode(encoding).removeprefix("\ufeff"), encoding)
    if "\0" in decoded.text:
        position = decoded.text.index("\0")
        raise InputError(
            f"{name} holds NUL characters, the first at position {position:,}: "
            "it is binary, damaged, or in another encoding",
            hint=f"if it is text, {_CONVERT}",
        )
    return decoded


def _detect(data: bytes, name: str) -> Decoded:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return Decoded(data.decode(encoding), encoding.removesuffix("-sig"))
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{name} begins with the mark of {encoding.removesuffix('-sig')} "
                    f"but cannot be decoded at byte {error.start:,}",
                    hint="the file is damaged or cut off: fetch or save it again",
                ) from error
    try:
        return Decoded(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError as error:
        return _decode_damaged_utf8(data, error.start) or _guess(data, name)


def _decode_damaged_utf8(data: bytes, first: int) -> Decoded | None:
    """Decode UTF-8 with at most one wrong high byte in twenty, replacing those."""
    text = data.decode("utf-8", "replace")
    wrong = text.count("\ufffd") - data.count("\ufffd".encode())
    if wrong * 20 > len(data.translate(None, _ASCII)):
        return None
    note = f"damaged UTF-8: {wrong} sequences replaced by U+FFFD, the first at byte {first:,}"
    return Decoded(text, "utf-8", (note,))


def _guess(data: bytes, name: str) -> Decoded:
    """Decode by the most plausible encoding that fits all bytes."""
    from charset_normalizer import from_bytes

    controls = len(data) - len(data.translate(None, _CONTROLS))
    if controls * 100 > len(data):
        raise InputError(
            f"{name} looks binary: {controls:,} control bytes in {len(data):,}",
            hint="give a text, Markdown, HTML, EPUB, Word or PDF file",
        )
    ranks = {
        encoding: (round(match.chaos, 2), -round(match.coherence, 2), rank)
        for match in from_bytes(_sample(data), cp_isolation=list(_GUESSES))
        for rank, encoding in enumerate(_GUESSES)
        if encoding in match.could_be_from_charset
    }
    for encoding in sorted(ranks, key=ranks.__getitem__):
        with suppress(UnicodeDecodeError):
            note = f"encoding guessed: {encoding} (not valid UTF-8, no byte order mark)"
            return Decoded(data.decode(encoding), encoding, (note,))
    raise InputError(f"the encoding of {name} cannot be detected", hint=_CONVERT)


def _sample(data: bytes) -> bytes:
    """Take the first lines that are not ASCII: only they tell encodings apart."""
    sample = bytearray()
    for line in data.splitlines(keepends=True):
        if not line.isascii():
            sample += line
        if len(sample) > _SAMPLE_BYTES:
            cut = sample.rfind(b" ", 0, _SAMPLE_BYTES)  # no character of any guess has a space
            return bytes(sample[: cut if cut > 0 else _SAMPLE_BYTES])
    return bytes(sample)
