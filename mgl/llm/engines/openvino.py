"""OpenVINO GenAI in this process: a GGUF file on the CPU, batched continuously.

One worker thread owns the pipeline and steps it while any request is unfinished, so requests join
and leave the batch at any time; prompts that begin alike share their prefix' cache. Constraints
are given as a grammar made here (``mgl.llm.constraints``): the pipeline's own JSON mode leaves
white space open, which a small model pads with until its budget is gone.

It reports no cached tokens (the pipeline has no such counter), and it has no tool calls.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mgl.errors import EngineRejected, EngineUnavailable, ResourceError
from mgl.llm.base import Completion, FinishReason, Request, TokenUsage
from mgl.llm.constraints import compile_schema
from mgl.llm.grammar import Node, literals, to_ebnf

__all__ = ["OpenVinoEngine"]

CACHE_GB = 2
CONCURRENCY = 16


@dataclass(slots=True)
class _Job:
    request: Request
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Completion]
    handle: Any = None
    prompt_tokens: int = 0
    cancelled: threading.Event = field(default_factory=threading.Event)


class OpenVinoEngine:
    """One GGUF model, loaded when this is made (some seconds)."""

    native_tools = False
    concurrency = CONCURRENCY

    def __init__(
        self, weights: Path, *, model_id: str, context_tokens: int, cache_gb: int = CACHE_GB
    ) -> None:
        import openvino_genai

        self.model_id = model_id
        self.context_tokens = context_tokens
        self._genai = openvino_genai
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.cache_size = cache_gb
        scheduler.max_num_seqs = CONCURRENCY
        scheduler.enable_prefix_caching = True
        scheduler.dynamic_split_fuse = True
        try:
            self._pipeline = openvino_genai.ContinuousBatchingPipeline(
                str(weights), scheduler, "CPU"
            )
        except RuntimeError as error:
            raise ResourceError(
                f"OpenVINO cannot load {weights}: {_first_line(error)}",
                hint="`mgl doctor` checks the weights; fetch them again with `mgl models get`",
            ) from error
        self._tokenizer = self._pipeline.get_tokenizer()
        self._tokenizing = threading.Lock()
        self._inbox: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._worker = threading.Thread(target=self._work, name="mgl-openvino", daemon=True)
        self._worker.start()

    async def generate(self, request: Request) -> Completion:
        loop = asyncio.get_running_loop()
        job = _Job(request, loop, loop.create_future())
        self._inbox.put(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            job.cancelled.set()
            raise

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return await asyncio.to_thread(lambda: [self._encode(text).shape[1] for text in texts])

    async def count_prompt_tokens(self, request: Request) -> int:
        tokens: int = (await asyncio.to_thread(self._prompt, request)).shape[1]
        return tokens

    async def aclose(self) -> None:
        self._inbox.put(None)
        await asyncio.to_thread(self._worker.join)

    def _encode(self, text: str) -> Any:
        with self._tokenizing:
            return self._tokenizer.encode(text, add_special_tokens=False).input_ids

    def _prompt(self, request: Request) -> Any:
        messages = [
            {"role": message.role, "content": message.content} for message in request.messages
        ]
        with self._tokenizing:
            text = self._tokenizer.apply_chat_template(messages, add_generation_prompt=True)
        return self._encode(text)

    # The worker thread

    def _work(self) -> None:
        running: list[_Job] = []
        numbers = 0
        while True:
            try:
                job = self._inbox.get(block=not running)
            except queue.Empty:
                job = None
            else:
                if job is None:
                    for left in running:
                        _fail(left, EngineUnavailable("the engine was closed", hint="run it again"))
                    return
                numbers += 1
                if self._admit(job, numbers):
                    running.append(job)
                continue
            self._step(running)
            running = [job for job in running if not self._finished(job)]

    def _admit(self, job: _Job, number: int) -> bool:
        try:
            prompt = self._prompt(job.request)
            job.prompt_tokens = prompt.shape[1]
            job.handle = self._pipeline.add_request(number, prompt, self._config(job.request))
        except Exception as error:
            _fail(
                job,
                EngineRejected(
                    f"OpenVINO refused the request: {_first_line(error)}",
                    hint="report the schema or prompt that it refused",
                ),
            )
            return False
        return True

    def _step(self, running: list[_Job]) -> None:
        for job in running:
            if job.cancelled.is_set():
                job.handle.cancel()
        try:
            self._pipeline.step()
        except Exception as error:
            for job in running:
                _fail(
                    job,
                    EngineUnavailable(
                        f"OpenVINO failed: {_first_line(error)}",
                        hint="see `mgl doctor` for memory, then run the command again",
                    ),
                )
            raise

    def _finished(self, job: _Job) -> bool:
        if job.cancelled.is_set():
            return True
        status = self._genai.GenerationStatus
        state = job.handle.get_status()
        if state == status.RUNNING:
            return False
        if state == status.IGNORED:
            _fail(
                job,
                EngineRejected(
                    "the engine's cache has no room for this prompt",
                    hint="use smaller chunks (--chunk-tokens)",
                ),
            )
            return True
        (output,) = job.handle.read_all()
        reasons = self._genai.GenerationFinishReason
        reason: FinishReason = "length" if output.finish_reason == reasons.LENGTH else "stop"
        with self._tokenizing:
            text = self._tokenizer.decode(output.generated_ids)
        logprobs = tuple(output.generated_log_probs) if job.request.choices else ()
        usage = TokenUsage(job.prompt_tokens, len(output.generated_ids))
        _succeed(job, Completion(text, reason, usage, logprobs=logprobs))
        return True

    def _config(self, request: Request) -> Any:
        sampling = request.sampling
        config = self._genai.GenerationConfig()
        config.apply_chat_template = False
        config.set_eos_token_id(self._tokenizer.get_eos_token_id())
        config.max_new_tokens = sampling.max_tokens
        if sampling.temperature > 0:
            config.do_sample = True
            config.temperature = sampling.temperature
            config.top_p = sampling.top_p
            config.rng_seed = sampling.seed
        grammar = _grammar(request)
        if grammar is not None:
            config.structured_output_config = self._genai.StructuredOutputConfig(
                grammar=to_ebnf(grammar)
            )
        if request.choices:
            config.logprobs = 1
        return config


def _grammar(request: Request) -> Node | None:
    if request.choices:
        return literals(request.choices)
    if request.json_schema is not None:
        return compile_schema(request.json_schema)
    return None


def _succeed(job: _Job, completion: Completion) -> None:
    def hand_over() -> None:
        if not job.future.done():
            job.future.set_result(completion)

    job.loop.call_soon_threadsafe(hand_over)


def _fail(job: _Job, error: Exception) -> None:
    def hand_over() -> None:
        if not job.future.done():
            job.future.set_exception(error)

    job.loop.call_soon_threadsafe(hand_over)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else repr(error)
