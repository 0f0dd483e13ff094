"""What can be wrong with a model folder or an adapter's folder, read without loading weights.

    weights_trouble(folder)                   # None, or why a server could not load it
    parser_trouble("hermes", chat_template(folder))
    adapter_trouble(adapter, model, max_rank=32, weights=folder)

It does not open weight files.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from mgl.models.hub import is_complete_model
from mgl.models.profiles import ModelProfile

__all__ = ["adapter_trouble", "chat_template", "parser_trouble", "weights_trouble"]

Trouble = tuple[str, str]
"""What is wrong, and what to do."""

_TOKENIZERS: Final = ("tokenizer.json", "tokenizer.model", "vocab.txt", "tekken.json", "vocab.json")
_ADAPTER_WEIGHTS: Final = ("adapter_model.safetensors", "adapter_model.bin")

# How a template that asks for a call in a parser's language shows it. Where several fit, the first
# is the one to suggest; the order goes from the particular to the general.
_SPOKEN: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (r"<function=", ("qwen3_coder", "qwen3_xml")),
    (r"\[TOOL_CALLS\]", ("mistral",)),
    (r"<tool_call>", ("hermes", "qwen3_json", "hf")),
    (r"<\|tool_call\|>", ("granite", "phi4_mini_json")),
    (r"ipython|python_tag", ("llama3_json", "llama4_json", "pythonic", "llama4_pythonic")),
)
_QUANTISED = re.compile(r"-(gguf|awq|gptq(-int\d)?|int[48]|fp8|bnb-4bit|(unsloth-)?bnb-4bit)$")
_ALIKE = ("model_type", "hidden_size", "num_hidden_layers", "intermediate_size")


def weights_trouble(folder: Path) -> str | None:
    """Why a server could not load this folder."""
    if not folder.is_dir():
        return f"there is no model folder at {folder}"
    if not (folder / "config.json").is_file():
        return f"{folder} is no model folder: it has no config.json"
    if not is_complete_model(folder):
        return f"{folder} is not complete: weight files are missing"
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        return f"{folder} has no tokenizer"
    return None


def chat_template(folder: Path) -> str | None:
    """The chat template of a model folder, from where publishers put it."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8") or None
    for name in ("chat_template.json", "tokenizer_config.json"):
        template = _object(folder / name).get("chat_template")
        if isinstance(template, list):  # several, each with a name
            named = {entry.get("name"): entry.get("template") for entry in template}
            template = named.get("tool_use") or named.get("default")
        if isinstance(template, str) and template:
            return template
    return None


def parser_trouble(parser: str, template: str) -> Trouble | None:
    """Why a parser would not understand the calls that a chat template asks for.

    A template in a language that is not known here passes: the server has the last word.
    """
    if not re.search(r"\btools\b", template):
        return (
            f"the model's chat template knows no tools, so the parser {parser} finds no calls",
            "leave tool_parser out of the model profile",
        )
    for mark, parsers in _SPOKEN:
        if re.search(mark, template):
            if parser in parsers:
                return None
            return (
                f"the tool parser {parser} does not fit the model: its chat template asks for "
                f"calls as {parsers[0]} reads them",
                f"set tool_parser: {parsers[0]} in the model profile",
            )
    return None


def adapter_trouble(
    folder: Path, model: ModelProfile, max_rank: int, weights: Path | None = None
) -> Trouble | None:
    """Why an adapter cannot be served on a model, whose folder is ``weights``."""
    config = _object(folder / "adapter_config.json")
    if not config:
        return (
            f"{folder} is no adapter: it has no readable adapter_config.json",
            "give the folder that training saved, with adapter_config.json in it",
        )
    if not any((folder / name).is_file() for name in _ADAPTER_WEIGHTS):
        return f"{folder} has no adapter weights", f"it needs {_ADAPTER_WEIGHTS[0]}"
    if config.get("peft_type") != "LORA" or config.get("use_dora"):
        kind = "DoRA" if config.get("use_dora") else config.get("peft_type")
        return f"{folder} is a {kind} adapter, and vLLM serves LoRA", "train a LoRA adapter"
    rank = config.get("r")
    if not isinstance(rank, int) or rank > max_rank:
        return (
            f"{folder} has rank {rank}, and the server takes up to {max_rank}",
            "raise max_adapter_rank in a serving profile of your own (MGL_HOME/serving)",
        )
    base = str(config.get("base_model_name_or_path") or "")
    if not _same_base(base, model, weights):
        return (
            f"{folder} was made for {base or 'a model that it does not name'}, not for "
            f"{model.name}",
            "serve the model that it was made for, or choose another adapter",
        )
    return None


def _same_base(base: str, model: ModelProfile, weights: Path | None) -> bool:
    """Whether an adapter's base is this model, in whatever precision either of them is stored."""
    own = {_plain(name) for name in (model.name, model.weights.hub.repo, model.source)}
    if base and _plain(base) in own:
        return True
    trained_on = Path(base)
    if weights is None or not base or not (trained_on / "config.json").is_file():
        return False
    ours, theirs = _object(weights / "config.json"), _object(trained_on / "config.json")
    return all(ours.get(key) == theirs.get(key) for key in _ALIKE)


def _plain(name: str) -> str:
    """A model's name without its owner, place and precision."""
    return _QUANTISED.sub("", name.rstrip("/").rsplit("/", 1)[-1].lower())


def _object(path: Path) -> dict[str, Any]:
    """A JSON file's object; empty where there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
