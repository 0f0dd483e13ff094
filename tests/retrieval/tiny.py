"""Model folders with random weights: the architectures of real models, a few kilobytes each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

WORDS = (
    "ann bo met in rome who where the ring was lost at sea yes no a of . ? : "
    "query document instruct"
).split()
HIDDEN = 32


def tokenizer(path: Path, *, kind: str) -> int:
    """A tokenizer of a few words in the style of ``roberta`` or ``qwen``; how many it knows."""
    tokenizers: Any = pytest.importorskip("tokenizers", reason="needs the extra retrieval")
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra retrieval")
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    known = {word: number for number, word in enumerate([*special, *WORDS])}
    bare = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="<unk>"))
    bare.normalizer = tokenizers.normalizers.Lowercase()
    bare.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.WhitespaceSplit(), tokenizers.pre_tokenizers.Punctuation()]
    )
    if kind == "qwen":
        bare.post_processor = tokenizers.processors.TemplateProcessing(
            single="$A </s>", special_tokens=[("</s>", known["</s>"])]
        )
    if kind == "roberta":
        bare.post_processor = tokenizers.processors.TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> </s> $B </s>",
            special_tokens=[("<s>", known["<s>"]), ("</s>", known["</s>"])],
        )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=bare,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_max_length=64,
    ).save_pretrained(path)
    return len(known)


def roberta(path: Path, *, labels: int | None = None) -> Path:
    """An encoder (``labels`` None), or a reranker (one label)."""
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra retrieval")
    size = tokenizer(path, kind="roberta")
    config = transformers.XLMRobertaConfig(
        vocab_size=size,
        hidden_size=HIDDEN,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=80,
        pad_token_id=1,
        num_labels=labels or 1,
    )
    transformers.set_seed(1)
    if labels is None:
        transformers.XLMRobertaModel(config).save_pretrained(path)
    else:
        transformers.XLMRobertaForSequenceClassification(config).save_pretrained(path)
    return path


def qwen3(path: Path, *, causal: bool) -> Path:
    """Qwen3-Reranker (a causal model), or Qwen3-Embedding: its last token's state is the vector."""
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra retrieval")
    size = tokenizer(path, kind="qwen")
    config = transformers.Qwen3Config(
        vocab_size=size,
        hidden_size=HIDDEN,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=512,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    transformers.set_seed(3)
    if causal:
        transformers.Qwen3ForCausalLM(config).save_pretrained(path)
        return path
    transformers.Qwen3Model(config).save_pretrained(path)
    return sentence_transformer(path, "lasttoken")


def sentence_transformer(path: Path, pooling: str) -> Path:
    """Adds what sentence-transformers reads beside a model."""
    steps = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": folder,
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, (folder, kind) in enumerate(steps)
    ]
    (path / "modules.json").write_text(json.dumps(modules))
    for folder in ("1_Pooling", "2_Normalize"):
        (path / folder).mkdir()
    (path / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": HIDDEN, f"pooling_mode_{pooling}": True})
    )
    (path / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "Query: ", "document": ""}})
    )
    return path


def bge_m3(path: Path) -> Path:
    """XLM-RoBERTa of two layers in bge-m3's layout: its weights as PyTorch's, and two heads."""
    torch: Any = pytest.importorskip("torch", reason="needs the extra retrieval")
    roberta(path)
    from safetensors.torch import load_file

    torch.save(load_file(path / "model.safetensors"), path / "pytorch_model.bin")
    (path / "model.safetensors").unlink()
    torch.manual_seed(2)
    for name, size in (("sparse_linear.pt", 1), ("colbert_linear.pt", HIDDEN)):
        torch.save(torch.nn.Linear(HIDDEN, size).state_dict(), path / name)
    return path
