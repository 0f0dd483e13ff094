"""Transformers in this process, constrained by Outlines: a Hugging Face folder or a GGUF file.

Runs where PyTorch runs, on a GPU if there is one. A GGUF file is unpacked to dense weights on
loading (packed weights are unpacked again at every step, ten times slower). Constraints are the
Lark grammars of ``mgl.llm.schemas``, given to Outlines' llguidance backend: its default backend
compiles an automaton, which takes minutes for a schema with long bounded strings, and knows
neither bounds in tokens nor verbatim parts of a text.

One request at a time; no prefix cache, no tool calls. Needs the extra ``transformers``.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mgl.errors import EngineUnavailable, ResourceError, UsageError, install_hint
from mgl.llm.base import Completion, FinishReason, Request, TokenUsage
from mgl.llm.control import ControlTokens, select_control
from mgl.llm.grammar import to_lark
from mgl.llm.schemas import compile_request


class TransformersEngine:
    """One model in memory, loaded on construction (seconds to a minute)."""

    native_tools = False
    concurrency = 1

    def __init__(
        self, weights: Path, *, model_id: str, context_tokens: int, lora: Path | None = None
    ) -> None:
        self.model_id = model_id
        self.context_tokens = context_tokens
        self._torch, self._tokenizer, self._model, self._backend = _load(weights, lora)
        self._control = find_control(self._tokenizer)
        self._tokenizing = threading.Lock()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="mgl-transformers")

    async def generate(self, request: Request) -> Completion:
        stopped = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._worker, self._generate, request, stopped)
        except asyncio.CancelledError:
            stopped.set()
            raise

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return await asyncio.to_thread(lambda: [len(ids) for ids in self._encode(texts)])

    async def count_prompt_tokens(self, request: Request) -> int:
        return len(await asyncio.to_thread(self._prompt, request))

    async def aclose(self) -> None:
        await asyncio.to_thread(self._worker.shutdown, wait=True, cancel_futures=True)

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        with self._tokenizing:
            return encode_texts(self._tokenizer, self._control, texts)

    def _prompt(self, request: Request) -> list[int]:
        with self._tokenizing:
            return encode_prompt(self._tokenizer, self._control, request)

    def _generate(self, request: Request, stopped: threading.Event) -> Completion:
        torch, sampling = self._torch, request.sampling
        tree = compile_request(request)
        grammar = None if tree is None else to_lark(tree)
        prompt = self._prompt(request)
        tokens = torch.tensor([prompt], device=self._model.device)
        options: dict[str, Any] = {"do_sample": sampling.temperature > 0}
        if sampling.temperature > 0:
            options |= {"temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
        if grammar is not None:
            options["logits_processor"] = [self._backend.get_cfg_logits_processor(grammar)]

        def is_stopped(ids: Any, _scores: Any, **_: Any) -> Any:
            return torch.full((ids.shape[0],), stopped.is_set(), device=ids.device)

        try:
            with torch.random.fork_rng(), torch.inference_mode():
                torch.manual_seed(sampling.seed)
                made = self._model.generate(
                    tokens,
                    attention_mask=torch.ones_like(tokens),
                    max_new_tokens=sampling.max_tokens,
                    stopping_criteria=[is_stopped],
                    return_dict_in_generate=True,
                    output_scores=bool(request.choices),
                    **options,
                )
        except (RuntimeError, ValueError) as error:
            raise EngineUnavailable(
                f"transformers failed: {str(error)[:300]}",
                hint="`mgl doctor` shows the memory that is left; use smaller chunks or a server",
            ) from error
        written = made.sequences[0, len(prompt) :].tolist()
        ended = bool(written) and written[-1] in self._ends()
        reason: FinishReason = "stop" if ended else "length"
        with self._tokenizing:
            text = self._tokenizer.decode(written, skip_special_tokens=True)
        return Completion(
            text,
            reason,
            TokenUsage(len(prompt), len(written)),
            logprobs=self._logprobs(made.scores, written) if request.choices else (),
            way=None if grammar is None else "lark",
        )

    def _ends(self) -> set[int]:
        ends = self._model.generation_config.eos_token_id
        return set(ends) if isinstance(ends, list) else {ends}

    def _logprobs(self, scores: Sequence[Any], written: Sequence[int]) -> tuple[float, ...]:
        """Natural log-probabilities of the written tokens, among those the constraint allowed."""
        chosen = (
            float(self._torch.log_softmax(score[0].float(), dim=-1)[token])
            for score, token in zip(scores, written, strict=False)
        )
        return tuple(value if math.isfinite(value) else 0.0 for value in chosen)


def find_control(tokenizer: Any) -> ControlTokens:
    """Find the control tokens of a tokenizer of transformers."""
    template = str(tokenizer.chat_template or "")
    return ControlTokens(select_control(tokenizer.added_tokens_decoder.values(), template))


def encode_texts(tokenizer: Any, control: ControlTokens, texts: Sequence[str]) -> list[list[int]]:
    """The token ids of texts, in which control tokens are spelled out."""
    cut = [control.cut(text) for text in texts]
    flat = [part for parts in cut for part in parts]
    ids = iter(tokenizer(flat, add_special_tokens=False)["input_ids"] if flat else ())
    return [[one for _ in parts for one in next(ids)] for parts in cut]


def encode_prompt(tokenizer: Any, control: ControlTokens, request: Request) -> list[int]:
    """The token ids of a request's messages in the chat template, whose control tokens alone are
    control."""
    marked, mark = control.mark(request)
    messages = [{"role": each.role, "content": each.content} for each in marked.messages]
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    parts = tokenizer(text.split(mark) if mark else [text], add_special_tokens=False)["input_ids"]
    return [one for part in parts for one in part]


def merge_lora(model: Any, folder: Path) -> Any:
    """Merge a LoRA into a model by PEFT; UsageError where that is not installed."""
    try:
        from peft import PeftModel
    except ImportError as error:
        raise UsageError(
            "an adapter cannot be used without the package peft",
            hint=install_hint("training"),
        ) from error
    return PeftModel.from_pretrained(model, folder).merge_and_unload()


def load_weights(weights: Path, dtype: Any) -> tuple[Any, Any]:
    """Load tokenizer and model of a folder or a GGUF file, which is unpacked to ``dtype`` of torch.

    ImportError where a package is missing, ResourceError where it does not load or its tokenizer
    has no chat template.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    options: dict[str, Any] = {"local_files_only": True}
    folder = weights
    if weights.suffix == ".gguf":
        folder, options["gguf_file"] = weights.parent, weights.name
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        if weights.suffix == ".gguf":
            options["quantization_config"] = GgufConfig(dequantize=True)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **options)
    except (OSError, ValueError) as error:
        raise ResourceError(
            f"transformers cannot load {weights}: {str(error)[:300]}",
            hint="give the folder of a Hugging Face model, or a GGUF file",
        ) from error
    if tokenizer.chat_template is None:
        raise ResourceError(
            f"the tokenizer of {weights} has no chat template",
            hint="use an instruction-tuned model; its tokenizer_config.json has one",
        )
    return tokenizer, model


def _load(weights: Path, lora: Path | None = None) -> tuple[Any, Any, Any, Any]:
    """(torch, tokenizer, model, Outlines backend) of a folder or a GGUF file, with the LoRA of a
    folder merged into the model."""
    try:
        import outlines
        import torch
        from outlines.backends.llguidance import LLGuidanceBackend
        from transformers import GenerationConfig
    except ImportError as error:
        raise UsageError(
            f"the engine transformers needs {error.name}",
            hint=install_hint("transformers"),
        ) from error
    tokenizer, model = load_weights(weights, torch.bfloat16)
    if lora is not None:
        model = merge_lora(model, lora)
    # The publisher's sampling defaults must not leak into requests that say how to sample.
    published = model.generation_config
    ends = published.eos_token_id if published.eos_token_id is not None else tokenizer.eos_token_id
    filler = ends[0] if isinstance(ends, list) else ends
    model.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=filler)
    model.eval().to("cuda" if torch.cuda.is_available() else "cpu")
    backend = LLGuidanceBackend(outlines.from_transformers(model, tokenizer))
    return torch, tokenizer, model, backend
