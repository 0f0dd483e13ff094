"""A decoder with random weights and a tokenizer of bytes, and rows that it can learn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mgl.training.data import Example, Preference
from mgl.training.recipes import CausalBase

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def decoder(path: Path, *, seed: int = 1) -> CausalBase:
    """A Qwen2 of two layers that knows bytes alone, as a model folder."""
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra training")
    pytest.importorskip("trl", reason="needs the extra training")
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    torch.set_num_threads(1)  # for tensors so small, waiting for others is most of the time

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE({each: at for at, each in enumerate(alphabet)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|pad|>"
    )
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(path)
    config = transformers.Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        eos_token_id=tokenizer.eos_token_id,
    )
    transformers.set_seed(seed)
    transformers.Qwen2ForCausalLM(config).save_pretrained(path)
    return CausalBase("tiny", path, "made/tiny")


SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"who": {"type": "string", "maxLength": 20}},
        "required": ["who"],
        "additionalProperties": False,
    }
)


def examples(count: int = 12) -> list[Example]:
    """Who met Bo, in the layout of a reply."""
    return [
        Example(
            (("system", "Be brief."), ("user", f"{name} met Bo. Who met Bo?")),
            json.dumps({"who": name}),
            SCHEMA,
            f"source {number}",
            "made up",
            "none",
        )
        for number in range(count)
        for name in [("Ann", "Cy", "Eve")[number % 3]]
    ]


def judgements(count: int = 12) -> list[Example]:
    return [
        Example((("user", f"Is {n} even?"),), ("Yes", "No")[n % 2], "", f"source {n}", "made", "no")
        for n in range(count)
    ]


def preferences(count: int = 12) -> list[Preference]:
    return [
        Preference(
            row.prompt,
            row.completion,
            json.dumps({"who": "Bo"}),
            SCHEMA,
            row.source,
            row.corpus,
            row.licence,
        )
        for row in examples(count)
    ]
