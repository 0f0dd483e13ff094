"""Passages by words and by meaning."""

from __future__ import annotations

import numpy as np
import pytest

from mgl.retrieval.fakes import WordEmbedder
from mgl.retrieval.lexical import LexicalIndex
from mgl.retrieval.passages import PassageIndex, standardize

TEXTS = ["Ann met Bo in Rome.", "The ring was lost at sea.", "Snow fell on the hills."]
ASKED = "Where was the ring lost?"


def test_scores_have_mean_0_and_deviation_1() -> None:
    assert standardize(np.array([1.0, 2.0, 3.0])) == pytest.approx([-(1.5**0.5), 0.0, 1.5**0.5])
    assert standardize(np.array([2.0, 2.0])).tolist() == [0.0, 0.0]


def test_both_orders_count_alike() -> None:
    embedder = WordEmbedder(512)
    words = standardize(LexicalIndex.of(TEXTS).scores(ASKED))
    meaning = standardize(embedder.embed(TEXTS) @ embedder.embed([ASKED], task="query")[0])
    scores = PassageIndex(embedder, TEXTS).scores(ASKED)
    assert scores == pytest.approx(words + meaning)
    assert int(np.argmax(scores)) == 1


def test_no_passages_have_no_scores() -> None:
    assert PassageIndex(WordEmbedder(), []).scores(ASKED).tolist() == []
