"""An encoder with a LoRA in its layers: what the retriever and the boundary detector train."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mgl.models.adapters import LORA, LORA_CONFIG
from mgl.retrieval.computing import choose_device, load_model, to_utf8
from mgl.training.fitting import explain_import

if TYPE_CHECKING:
    import torch

LAYERS: Final = r".*encoder.*\.(query|key|value|dense)"
"""The linear layers of a BERT encoder, without its pooler."""


class LoraEncoder:
    """Texts to the mean of their last hidden states: shape (n, dims).

    ``rank`` is that of the update of each linear layer; its factor is 2 (alpha = 2 · rank).
    ``seed`` draws its first weights. Texts longer than ``max_tokens`` are truncated. Raises
    UsageError without the extra ``training``, ResourceError where the folder does not load.
    """

    def __init__(self, folder: Path, *, rank: int, max_tokens: int, seed: int) -> None:
        with load_model(folder):
            from transformers import AutoModel, AutoTokenizer

            self._tokenizer: Any = AutoTokenizer.from_pretrained(
                folder, local_files_only=True, split_special_tokens=True
            )
            self._model: Any = AutoModel.from_pretrained(folder, local_files_only=True)
        try:
            from peft import LoraConfig, inject_adapter_in_model
        except ImportError as error:
            raise explain_import(error) from error
        import torch

        torch.manual_seed(seed)
        config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=LAYERS)
        inject_adapter_in_model(config, self._model)
        self._model.eval().to(choose_device())
        for name, each in self._model.named_parameters():
            each.requires_grad_("lora_" in name)
        self._rank, self._max_tokens = rank, max_tokens

    @property
    def dims(self) -> int:
        return int(self._model.config.hidden_size)

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """The weights of the LoRA, by name."""
        return {name: each for name, each in self._model.named_parameters() if each.requires_grad}

    def encode(self, texts: Sequence[str]) -> torch.Tensor:
        states, mask = self.encode_tokens(texts)
        return average(states, mask)

    def encode_tokens(self, texts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """The last hidden states, shape (n, tokens, dims), and a mask that is 1 on tokens."""
        batch = self._tokenizer(
            to_utf8(texts),
            padding=True,
            truncation=True,
            max_length=self._max_tokens,
            return_tensors="pt",
        ).to(self._model.device)
        states = self._model(**batch).last_hidden_state
        return states, batch["attention_mask"]

    def write(self, folder: Path) -> list[Path]:
        """Write the LoRA as PEFT does, in float16: weights and configuration."""
        import torch
        from safetensors.torch import save_file

        weights = {
            f"base_model.model.{name.replace('.default', '')}": each.detach()
            .to(torch.float16)
            .cpu()
            for name, each in self.parameters().items()
        }
        config = {
            "peft_type": "LORA",
            "task_type": "FEATURE_EXTRACTION",
            "r": self._rank,
            "lora_alpha": 2 * self._rank,
            "target_modules": LAYERS,
        }
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: each.contiguous() for name, each in weights.items()}, folder / LORA)
        (folder / LORA_CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
        return [folder / LORA, folder / LORA_CONFIG]


def average(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The mean of each text's states: shape (n, dims)."""
    weights = mask.unsqueeze(-1).to(states.dtype)
    mean: torch.Tensor = (states * weights).sum(1) / weights.sum(1)
    return mean
