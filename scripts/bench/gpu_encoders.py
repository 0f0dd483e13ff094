#!/usr/bin/env python3
"""Measure FlagEmbedding's bge-m3 and bge-reranker-v2-m3 on this machine: texts a second.

    scripts/bench/gpu_encoders.py [--layers 24] [--texts 1024]

Both are made here in a temporary folder: the publisher's configuration, random weights, and a
tokenizer of as many words as the publisher's has tokens. Vectors and scores are noise; time
and memory are not. It needs the extra ``retrieval``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from mgl.retrieval.flag import FlagEmbedder, flag_reranker

WORDS: Final = 250_002
WIDTH: Final = 1024
CONFIG: Final[Mapping[str, Any]] = {
    "vocab_size": WORDS,
    "hidden_size": WIDTH,
    "intermediate_size": 4096,
    "num_attention_heads": 16,
    "max_position_embeddings": 8194,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
    "pad_token_id": 1,
}
"""The publisher's configuration of both, without the number of layers (24)."""


def make_encoder(folder: Path, layers: int, *, is_reranker: bool) -> Path:
    """Write a model folder with random weights, and for bge-m3 its two heads."""
    import torch
    import transformers

    torch.manual_seed(0)
    _make_tokenizer(folder)
    config = transformers.XLMRobertaConfig(**CONFIG, num_hidden_layers=layers, num_labels=1)
    if is_reranker:
        transformers.XLMRobertaForSequenceClassification(config).save_pretrained(folder)
        return folder
    transformers.XLMRobertaModel(config).save_pretrained(folder)
    for name, out in (("colbert_linear", WIDTH), ("sparse_linear", 1)):
        torch.save(torch.nn.Linear(WIDTH, out).state_dict(), folder / f"{name}.pt")
    return folder


def _make_tokenizer(folder: Path) -> None:
    import tokenizers
    import transformers

    marks = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    words = [*marks, *(f"w{number}" for number in range(WORDS - len(marks)))]
    known = {word: number for number, word in enumerate(words)}
    bare = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="<unk>"))
    bare.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    bare.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    names = ("bos", "pad", "eos", "unk", "mask")
    tokens: dict[str, Any] = {f"{n}_token": mark for n, mark in zip(names, marks, strict=True)}
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=bare, cls_token="<s>", sep_token="</s>", model_max_length=8192, **tokens
    ).save_pretrained(folder)


def measure(layers: int, count: int, words: int = 128) -> dict[str, float]:
    """Texts a second for dense vectors alone, for all three, and pairs a second of the reranker."""
    texts = [" ".join(f"w{n * words + k}" for k in range(words)) for n in range(count)]
    with tempfile.TemporaryDirectory() as place:
        made = make_encoder(Path(place) / "bge-m3", layers, is_reranker=False)
        embedder = FlagEmbedder(made, model_id="made", dims=WIDTH, ranking="all")
        judge = flag_reranker(make_encoder(Path(place) / "rr", layers, is_reranker=True), 8192)
    ways: dict[str, Callable[[list[str]], object]] = {
        "dense_texts_s": embedder.embed,
        "dense_sparse_multi_texts_s": embedder.encode,
        "reranker_pairs_s": partial(judge, texts[0]),
    }
    found = {}
    for name, way in ways.items():
        way(texts[:32])
        began = time.perf_counter()
        way(texts)
        found[name] = round(count / (time.perf_counter() - began), 2)
    return found


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--texts", type=int, default=1024)
    options = parser.parse_args(words)
    print(json.dumps(measure(options.layers, options.texts)))


if __name__ == "__main__":
    main()
