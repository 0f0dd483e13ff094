"""A BERT with random weights, a few kilobytes, and rows that it can learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mgl.training.data import Dialogue, Pair
from tests.retrieval.tiny import HIDDEN, sentence_transformer

MARKS = [
    pytest.mark.training,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
"""Of tests that train, whose libraries warn about themselves."""

NAMES = "ann bo cy dee eve fay gus hal ida jon".split()
THINGS = "rings boats cats hats pies maps owls figs keys jars".split()
PLACES = (
    "rome oslo bern lima kiev cork bath york lyon metz brno graz linz jena ulm trier "
    "hof bonn essen hagen"
).split()
WORDS = [*NAMES, *THINGS, *PLACES, *"what does like in there are . ?".split()]


def bert(path: Path, *, seed: int = 1) -> Path:
    """An encoder as all-MiniLM-L6-v2 is one: the mean of the last states is the vector."""
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra training")
    pytest.importorskip("peft", reason="needs the extra training")
    path.mkdir(exist_ok=True)
    vocabulary = path / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    transformers.BertTokenizerFast(str(vocabulary), model_max_length=64).save_pretrained(path)
    config = transformers.BertConfig(
        vocab_size=5 + len(WORDS),
        hidden_size=HIDDEN,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=80,
    )
    transformers.set_seed(seed)
    transformers.BertModel(config).save_pretrained(path)
    return sentence_transformer(path, "mean_tokens")


def dialogues() -> list[Dialogue]:
    """Chats that turn from things to places: there a topic begins."""
    rows = []
    for number in range(40):
        first = 2 + number % 3
        said = [
            f"{NAMES[(number + at) % 10]} like {THINGS[(3 * number + at) % 10]}"
            for at in range(first)
        ]
        said += [f"what in {PLACES[(number + 7 * at) % 20]} ?" for at in range(3)]
        rows.append(Dialogue(tuple(said), (first,), f"chat {number}", "made up", "none"))
    return rows


def pairs() -> list[Pair]:
    """Who likes what, said in twenty places: a name is to find its thing."""
    return [
        Pair(
            f"what does {name} like in {place} ?",
            f"there are {thing} in {place} .",
            (f"there are {THINGS[number - 1]} in {place} .",),
            f"{place} {number // 5}",
            "made up",
            "none",
        )
        for place in PLACES
        for number, (name, thing) in enumerate(zip(NAMES, THINGS, strict=True))
    ]
