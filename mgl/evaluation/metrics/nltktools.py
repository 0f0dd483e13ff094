"""What scores take from NLTK, loaded once: none of it needs data that NLTK would download.

NLTK ends each match of its own expressions after five seconds by the clock, which short answers
reach only where other work has the processor; that limit is lifted.

>>> nltk_tools().stem("painted")
'paint'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from mgl.errors import UsageError

__all__ = ["NltkTools", "nltk_tools"]


@dataclass(frozen=True, slots=True)
class NltkTools:
    """Porter's stemmer, the word cutter, Punkt's sentences, BLEU with its parts, and METEOR."""

    stem: Callable[[str], str]
    words: Callable[[str], list[str]]
    sentences: Callable[[str], list[str]]
    bleu: Callable[..., float]
    method1: Callable[..., object]
    precision: Callable[..., float]
    brevity: Callable[[int, int], float]
    meteor: Callable[..., float]


@cache
def nltk_tools() -> NltkTools:
    """UsageError where the extra ``evaluation`` is not installed."""
    try:
        from nltk import redos
        from nltk.stem import PorterStemmer
        from nltk.tokenize import NLTKWordTokenizer
        from nltk.translate.bleu_score import (
            SmoothingFunction,
            brevity_penalty,
            modified_precision,
            sentence_bleu,
        )
        from nltk.translate.meteor_score import single_meteor_score
        from punkt import sent_tokenize
    except ImportError as error:
        raise UsageError(
            f"scoring answers needs {error.name}", hint="python -m pip install 'mgl[evaluation]'"
        ) from error
    redos.DEFAULT_TIMEOUT = None
    return NltkTools(
        PorterStemmer().stem,
        NLTKWordTokenizer().tokenize,
        sent_tokenize,
        sentence_bleu,
        SmoothingFunction().method1,
        modified_precision,
        brevity_penalty,
        single_meteor_score,
    )
