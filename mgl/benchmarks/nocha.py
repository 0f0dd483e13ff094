"""NoCha: claims about whole novels, in pairs that differ little: one is true, one is false.

Source: Karpinska et al., One Thousand and One Pairs (EMNLP 2024); the public sample, MIT: classic
novels in ``classic_books.pkl``, claims about them in ``data_sample.json`` (HGMem asks 126 about 4
books); the set itself is not published.

The two claims of a pair have the same book and the same ``index``. What is wrong with the false one
(``false-claim-explanation``) is not read. The pickle is held to what it should be: a dict of texts.
Anything else in it, code above all, is refused before it is loaded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, Field, StrictBool, StringConstraints, TypeAdapter, ValidationError

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.benchmarks.files import DataFile, first_fault, hash_files, open_file, with_labels
from mgl.errors import InputError
from mgl.text.reading import read_text
from mgl.types import Document, Question

QUESTION: Final = (
    "Answer TRUE if the statement is true, otherwise answer FALSE.\n"
    "[Statement]: {claim}\n"
    "[Question]: Based on the context provided, is the above statement TRUE or FALSE?"
)
"""How HGMem puts a claim (Table 6), with our line breaks."""
OPTIONS: Final = ("TRUE", "FALSE")

_Text = Annotated[str, StringConstraints(pattern=r"\S")]
_TEXTS: Final = TypeAdapter(Annotated[dict[str, _Text], Field(min_length=1)])


class _Claim(BaseModel):
    book_title: str
    claim: str = Field(min_length=1)
    type: StrictBool
    index: int


def _read(folder: Path) -> Dataset:
    """Read the claims by book and ``index``, the true one of each pair first.

    InputError if a file is not as described, a claim's book is not there, or a pair is not
    one true and one false claim.
    """
    claims = open_file(folder / "data_sample.json")
    pairs = _pairs(claims.rows(_Claim, hint="take data_sample.json of NoCha"), claims.path)
    books = open_file(folder / "classic_books.pkl")
    texts = _texts(books)
    items: list[Item] = []
    for (name, index), pair in sorted(pairs.items()):
        if name not in texts:
            raise InputError(
                f"{claims.path}: the text of {name} is not in classic_books.pkl",
                hint="take both files from the same release",
            )
        for claim in sorted(pair, key=lambda claim: not claim.type):
            items.append(
                Item(
                    f"{name}/{index}/{str(claim.type).lower()}",
                    name,
                    Question(QUESTION.format(claim=claim.claim), options=OPTIONS),
                    (str(claim.type).upper(),),
                    choices=OPTIONS,
                    pair=f"{name}/{index}",
                    labels={"claim": str(claim.type).lower()},
                )
            )
    sources = {name: partial(_document, name, texts[name]) for name, _ in sorted(pairs)}
    return Dataset(tuple(items), sources, hash_files([claims, books]))


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


def _document(name: str, text: str) -> Document:
    return read_text(text.encode(), f"{name}.txt")


def _texts(file: DataFile) -> dict[str, str]:
    """Texts by name; InputError for anything else, and for half a character."""
    hint = "use classic_books.pkl of NoCha's public sample, or fetch it again"
    value = file.unpickle(hint=hint)
    try:
        texts = _TEXTS.validate_python(value, strict=True)
        "".join(texts.values()).encode()
    except (ValidationError, UnicodeEncodeError) as error:
        why = first_fault(error) if isinstance(error, ValidationError) else str(error)
        raise InputError(f"{file.path} holds no texts: {why}", hint=hint) from error
    return texts


NOCHA: Final = FileBenchmark(
    name="nocha",
    about=About(
        title="NoCha, public sample",
        paper="Karpinska et al., One Thousand and One Pairs: A novel challenge for long-context "
        "language models, EMNLP 2024, arXiv:2406.16264",
        where="https://github.com/marzenakrp/nocha (the public sample; the set itself is not "
        "published)",
        licence="MIT",
        files="data_sample.json and classic_books.pkl, in one folder",
        items=126,
        folder="nocha",
    ),
    reads="document",
    scorers=("claim_accuracy", "pair_accuracy"),
    judge=None,
    read=with_labels(_read),
)
