"""LooGLE's automatic scores of an answer: BLEU and ROUGE recall; and a METEOR of ours.

    >>> rouge_recall("the cat sat", "the cat sat on it", 1)
    0.6

Source: Li et al., LooGLE (2023), ``Evaluation/automatic_metrics.py``.
Words are what white space separates, as written (METEOR lower-cases them). BLEU-1 and BLEU-4 are
the precision of single words and of four in a row, times the brevity penalty, without smoothing.
ROUGE is that of the package ``rouge``: sentences end at each full stop, each word counts once,
and ROUGE-L is the union of longest common subsequences over sentences; it is written out here
because the package recurses once a word. A property test holds the two together.

An empty reply is scored as "None", as the script has it.

METEOR is ours, by NLTK on the words without repetitions. LooGLE passes unordered sets, whose order,
and with it the score, changes from run to run; here each word stays where it stood first. WordNet's
synonyms, which NLTK does not ship, are not matched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from mgl.evaluation.scorers.words import nltk_tools

_EMPTY: Final = "None"


def bleu(prediction: str, gold: str, n: Literal[1, 4]) -> float:
    """Precision of n words in a row times the brevity penalty, 0 to 1."""
    said, wanted = (prediction or _EMPTY).split(), gold.split()
    if not set(said) & set(wanted):
        return 0.0
    tools = nltk_tools()
    brevity = tools.brevity(len(wanted), len(said))
    return float(brevity * tools.precision([wanted], said, n))


def rouge_recall(prediction: str, gold: str, kind: Literal[1, "L"]) -> float:
    """Share of the gold answer's distinct words, or of those in common subsequences."""
    said, wanted = _sentences(prediction or _EMPTY), _sentences(gold)
    if not said or not wanted:
        return 0.0
    if kind != "L":
        found, there = ({word for each in own for word in each} for own in (said, wanted))
        return len(found & there) / len(there)
    shared: set[str] = set()
    for sentence in wanted:
        for other in said:
            shared |= _common(sentence, other)
    return len(shared) / len({word for sentence in wanted for word in sentence})


def meteor_stems(prediction: str, gold: str) -> float:
    """METEOR that matches words and their Porter stems, and no synonyms."""
    said, wanted = (list(dict.fromkeys(text.split())) for text in (prediction or _EMPTY, gold))
    if not said or not wanted:
        return 0.0
    return float(nltk_tools().meteor(wanted, said, wordnet=_NoSynonyms()))


class _NoSynonyms:
    """Stands for NLTK's WordNet."""

    def synsets(self, _word: str) -> list[object]:
        return []


def _sentences(text: str) -> list[list[str]]:
    """Split at full stops, then into words; a part of white space gives one empty word."""
    return [part.split() or [""] for part in text.split(".") if part]


def _common(one: Sequence[str], other: Sequence[str]) -> set[str]:
    """The words of a longest common subsequence; of several, the one that the package takes."""
    lengths = [[0] * (len(other) + 1)]
    for word in one:
        above, row = lengths[-1], [0]
        for place, candidate in enumerate(other):
            same = word == candidate
            row.append(above[place] + 1 if same else max(above[place + 1], row[place]))
        lengths.append(row)
    words: set[str] = set()
    i, j = len(one), len(other)
    while i and j:
        if one[i - 1] == other[j - 1]:
            words.add(one[i - 1])
            i, j = i - 1, j - 1
        elif lengths[i - 1][j] > lengths[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return words
