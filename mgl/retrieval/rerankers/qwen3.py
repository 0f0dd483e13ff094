"""Qwen3-Reranker: a language model that was trained to say yes or no to a query and a document.

Source: Zhang et al., Qwen3 Embedding (2025); the prompt is the publisher's. P(relevant) is what
"yes" has of "yes" and "no" after the prompt, so one pass over it gives the score.

    reranker = LocalReranker(lambda: qwen3_reranker(folder, 8192), model_id="qwen3-reranker-0.6b")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgl.errors import ResourceError
from mgl.models.profiles import FloatName
from mgl.prompt import Prompt
from mgl.retrieval.computing import device, loading, number_format
from mgl.retrieval.rerankers.local import Judge

__all__ = ["PAIR", "qwen3_reranker"]

_BATCH = 8
_PREFIX: Final = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    'the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
    "<|im_start|>user\n"
)
_SUFFIX: Final = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"

PAIR: Final = Prompt(
    "qwen3_reranker.pair",
    source="Qwen3-Reranker's model card",
    text=(
        "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n"
        "<Query>: {query}\n<Document>: {document}"
    ),
    variables=("query", "document"),
)


def qwen3_reranker(folder: Path, max_tokens: int, dtype: FloatName | None = None) -> Judge:
    """The folder's model, loaded; a document is cut so that the prompt has ``max_tokens``.

    Raises UsageError and ResourceError.
    """
    with loading(folder):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer: Any = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, padding_side="left"
        )
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, dtype=getattr(torch, number_format(dtype))
        )
        model.eval().to(device())
    words = [tokenizer.encode(word, add_special_tokens=False) for word in ("no", "yes")]
    if any(len(tokens) != 1 for tokens in words):
        raise ResourceError(
            f"the tokenizer in {folder} has no single tokens for yes and no",
            hint="give the folder of a Qwen3-Reranker",
        )
    no_yes = [tokens[0] for tokens in words]
    prefix, suffix = (
        tokenizer.encode(text, add_special_tokens=False) for text in (_PREFIX, _SUFFIX)
    )
    room = max_tokens - len(prefix) - len(suffix)

    def judge(query: str, texts: Sequence[str]) -> ArrayLike:
        pairs = [PAIR.render(query=query, document=text) for text in texts]
        bodies = tokenizer(pairs, add_special_tokens=False, truncation=True, max_length=room)[
            "input_ids"
        ]
        prompts = [[*prefix, *body, *suffix] for body in bodies]
        found = np.zeros(len(prompts), dtype=np.float32)
        for places in _alike_long(prompts):
            batch = tokenizer.pad(
                {"input_ids": [prompts[at] for at in places]}, return_tensors="pt"
            )
            found[places] = shares(batch)
        return found

    def shares(batch: Any) -> NDArray[np.float32]:
        with torch.inference_mode():
            logits = model(**batch.to(model.device), logits_to_keep=1).logits[:, -1, no_yes]
        shares: NDArray[np.float32] = logits.float().softmax(dim=-1)[:, 1].cpu().numpy()
        return shares

    return judge


def _alike_long(prompts: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """The places of the prompts in batches of similar length, so that little is padded."""
    order = sorted(range(len(prompts)), key=lambda at: len(prompts[at]))
    return (order[start : start + _BATCH] for start in range(0, len(order), _BATCH))
