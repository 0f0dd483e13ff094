"""NoCha: claims about whole novels, in pairs that differ little: one is true, one is false.

Source: Karpinska et al., One Thousand and One Pairs (EMNLP 2024); the public sample, MIT: two
classic books in ``classic_books.pkl`` and 60 claims in ``data_sample.json``.

    >>> books = read_nocha(Path("nocha"))           # doctest: +SKIP
    >>> books[0].claims[0].pair                     # doctest: +SKIP
    'anne_of_green_gables_lm_montgomery/153'

The two claims of a pair have the same book and the same ``index``, and share the explanation of
what is wrong with the false one. The pickle is held to what it should be: a dict of texts.
Anything else in it, code above all, is refused before it is loaded.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from pydantic import BaseModel, ConfigDict, Field, StrictBool, TypeAdapter, ValidationError

from mgl.errors import InputError
from mgl.text.conversations import read_json
from mgl.text.encoding import decode
from mgl.text.files import read_bytes
from mgl.text.plain import read_text
from mgl.types import Document

__all__ = ["NochaBook", "NochaClaim", "read_nocha"]

QUESTION: Final = (
    "Answer TRUE if the statement is true, otherwise answer FALSE.\n"
    "[Statement]: {claim}\n"
    "[Question]: Based on the context provided, is the above statement TRUE or FALSE?"
)
"""How HGMem puts a claim (Table 6), with our line breaks."""

_OPCODES = frozenset(
    "PROTO FRAME STOP POP MARK EMPTY_DICT DICT SETITEM SETITEMS UNICODE BINUNICODE "
    "SHORT_BINUNICODE BINUNICODE8 MEMOIZE PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET".split()
)
_PUTS = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))


@dataclass(frozen=True, slots=True)
class NochaClaim:
    """A claim and whether it is true. ``pair`` is what it has in common with its counterpart;
    ``explanation`` says what is wrong with the false one of the two, and is not to be shown to
    a model."""

    id: str
    pair: str
    text: str
    label: bool
    explanation: str

    @property
    def question(self) -> str:
        """The claim as it is put to a memory."""
        return QUESTION.format(claim=self.text)


@dataclass(frozen=True, slots=True)
class NochaBook:
    """A book and its claims, pairs side by side in the order of ``index``, the true one first."""

    name: str
    document: Document
    claims: tuple[NochaClaim, ...]

    @property
    def title(self) -> str:
        """The book's title and author, as its name has them."""
        return self.name.replace("_", " ")

    def read(self) -> Document:
        """The book, as ``NarrativeBook`` has it."""
        return self.document


class _Claim(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    book_title: str
    claim: str = Field(min_length=1)
    type: StrictBool
    index: int
    explanation: str = Field("", alias="false-claim-explanation")


def read_nocha(folder: Path) -> list[NochaBook]:
    """The books that have claims, in the order of their names.

    InputError where a file is not as described, a claim's book is not there, or a pair is not
    one true and one false claim.
    """
    path = folder / "data_sample.json"
    value = read_json(decode(read_bytes(path), path.name).text, path)
    try:
        claims = TypeAdapter(list[_Claim]).validate_python(value)
    except ValidationError as error:
        raise InputError(
            f"{path}: {_place(error)}", hint="it is a list of claims, as in NoCha's public sample"
        ) from error
    pairs = _pairs(claims, path)
    texts = _texts(folder / "classic_books.pkl")
    books: dict[str, list[NochaClaim]] = defaultdict(list)
    for (name, index), pair in sorted(pairs.items()):
        if name not in texts:
            raise InputError(
                f"{path}: the text of {name} is not in classic_books.pkl",
                hint="take both files from the same release",
            )
        for claim in sorted(pair, key=lambda claim: not claim.type):
            id = f"{name}/{index}/{str(claim.type).lower()}"
            books[name].append(
                NochaClaim(id, f"{name}/{index}", claim.claim, claim.type, claim.explanation)
            )
    return [
        NochaBook(name, _document(name, texts[name]), tuple(own)) for name, own in books.items()
    ]


def _pairs(claims: Sequence[_Claim], path: Path) -> Mapping[tuple[str, int], list[_Claim]]:
    pairs: dict[tuple[str, int], list[_Claim]] = defaultdict(list)
    for claim in claims:
        pairs[claim.book_title, claim.index].append(claim)
    for (name, index), pair in pairs.items():
        if sorted(claim.type for claim in pair) != [False, True]:
            labels = ", ".join(str(claim.type) for claim in pair)
            raise InputError(
                f"{path}: pair {index} of {name} has the labels {labels}",
                hint="a pair is one true and one false claim with the same book and index",
            )
    return pairs


def _place(error: ValidationError) -> str:
    fault = error.errors()[0]
    number, *field = fault["loc"] or ("",)
    place = f"claim {number + 1}" if isinstance(number, int) else "value"
    return f"{'.'.join([place, *map(str, field)])}: {fault['msg']}"


def _document(name: str, text: str) -> Document:
    try:
        return read_text(text.encode(), f"{name}.txt", "utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"the text of {name} holds half a character at position {error.start:,}",
            hint="the pickle is damaged: fetch it again",
        ) from error


class _TextUnpickler(pickle.Unpickler):
    """Loads built-in values and nothing that has to be imported."""

    def find_class(self, module: str, name: str, /) -> NoReturn:
        raise pickle.UnpicklingError(f"it names {module}.{name}")


def _texts(path: Path) -> dict[str, str]:
    data = read_bytes(path)
    try:
        _check(data)
        value: Any = _TextUnpickler(io.BytesIO(data)).load()
    except (ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, TypeError,
            ValueError, pickle.UnpicklingError) as error:  # fmt: skip
        raise InputError(
            f"{path} is not a pickle of texts: {error}",
            hint="use classic_books.pkl of NoCha's public sample",
        ) from error
    if not isinstance(value, dict) or not value:
        raise InputError(f"{path} holds no dict of texts", hint="use NoCha's classic_books.pkl")
    for name, text in value.items():
        if not isinstance(name, str) or not isinstance(text, str) or not text.strip():
            raise InputError(
                f"{path}: {name!r} is not a text", hint="use NoCha's classic_books.pkl"
            )
    return value


def _check(data: bytes) -> None:
    """Every opcode is one that a dict of texts needs, and none reserves memory beyond the file."""
    for opcode, argument, position in pickletools.genops(data):
        if opcode.name not in _OPCODES:
            raise pickle.UnpicklingError(f"it holds {opcode.name} at byte {position}")
        if opcode.name in _PUTS and isinstance(argument, int) and argument > len(data):
            raise pickle.UnpicklingError(f"it is damaged at byte {position}")
