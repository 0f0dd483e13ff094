"""OpenVINO GenAI: a GGUF file on the CPU, batched continuously.

One worker thread owns the pipeline and steps it while any request is unfinished, so requests join
and leave the batch at any time; prompts with a common prefix share its cache. Constraints are our
own grammars (``mgl.llm.schemas``): the pipeline's JSON mode leaves white space open, which a small
model pads with until its budget is gone.

It reports no cached tokens (the pipeline has no such counter), and it has no tool calls. A step
holds the interpreter, up to seconds for a long prompt, so the engine runs in a process of its own:
``mgl.llm.engines.host``.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import queue
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mgl.errors import EngineRejected, EngineUnavailable, EngineUnusable, ResourceError
from mgl.llm.base import Completion, FinishReason, Request, TokenUsage
from mgl.llm.engines.tokens import Tokenizer, find_control, link_weights
from mgl.llm.grammar import to_ebnf
from mgl.llm.progress import Listener, Progress, find_listener
from mgl.llm.schemas import compile_request
from mgl.models.files import find_parts, hold_lock

CACHE_GB = 2
CONCURRENCY = 16
BATCHED_TOKENS = 2048  # of all prompts in one step
CONVERTED: Final = "openvino-"  # and the version of OpenVINO
CONVERSION_SPACE: Final = 2  # free disk that a conversion needs, in sizes of the file
_TELEMETRY = "openvino_telemetry"
_importing = threading.Lock()
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Job:
    request: Request
    grammar: str | None
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Completion]
    handle: Any = None
    prompt_tokens: int = 0
    read_tokens: int = 0
    written: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    stopped_by: Any = None
    listener: Listener | None = None
    progress: Progress | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)


class OpenVinoEngine:
    """One GGUF model, loaded on construction (some seconds).

    The folder ``cache`` keeps it converted to OpenVINO's own format, which loads faster;
    ``weights`` is then the conversion that was loaded. ``closed`` says that no request will be
    taken any more.
    """

    native_tools = False
    concurrency = CONCURRENCY

    def __init__(
        self,
        weights: Path,
        *,
        model_id: str,
        context_tokens: int,
        cache_gb: int = CACHE_GB,
        cache: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.model_id = model_id
        self._progress = progress
        self.context_tokens = context_tokens
        self._genai = import_genai()
        self._tensor = importlib.import_module("openvino").Tensor
        self.weights = weights
        self._cache = cache
        self._cache_gb = cache_gb
        self._pipeline = self._load()
        control = find_control(self._genai, self.weights)
        self._tokenizer = Tokenizer(self._pipeline.get_tokenizer(), control)
        self.closed = False
        self._inbox: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._worker = threading.Thread(target=self._work, name="mgl-openvino", daemon=True)
        self._worker.start()

    def _load(self) -> Any:
        scheduler = self._genai.SchedulerConfig()
        scheduler.cache_size = self._cache_gb
        scheduler.max_num_seqs = CONCURRENCY
        scheduler.max_num_batched_tokens = BATCHED_TOKENS
        scheduler.enable_prefix_caching = True
        scheduler.dynamic_split_fuse = True
        try:
            if self._cache is not None and self.weights.is_file():
                self.weights = convert(self._genai, self.weights, self._cache)
            return self._genai.ContinuousBatchingPipeline(str(self.weights), scheduler, "CPU")
        except RuntimeError as error:
            raise ResourceError(
                f"OpenVINO cannot load {self.weights}: {_last_line(error)}",
                hint="`mgl doctor` checks the weights; fetch them again with `mgl models get`, "
                "delete the folder if it is one, "
                "or run a server (--base-url) if OpenVINO does not know their format",
            ) from error

    async def generate(self, request: Request) -> Completion:
        return await self.run(request, self._progress, find_listener())

    async def run(
        self, request: Request, progress: Progress | None, listener: Listener | None
    ) -> Completion:
        """Generate, and tell this progress and this listener of it."""
        grammar = await asyncio.to_thread(_write_grammar, request)  # a large one takes a while
        if self.closed:
            raise EngineUnusable("the engine is closed", hint="open another")
        loop = asyncio.get_running_loop()
        job = _Job(request, grammar, loop, loop.create_future())
        job.listener, job.progress = listener, progress
        self._inbox.put(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            job.cancelled.set()
            raise
        finally:
            if progress is not None:
                progress.end(id(job))

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return await asyncio.to_thread(self._tokenizer.count, texts)

    async def count_prompt_tokens(self, request: Request) -> int:
        return len((await asyncio.to_thread(self._tokenizer.encode_prompt, request))[0])

    async def aclose(self) -> None:
        """Stop the worker; requests still in flight fail."""
        if not self.closed:
            self.closed = True
            self._inbox.put(None)
            await asyncio.to_thread(self._worker.join)

    # The worker thread

    def _work(self) -> None:
        running: list[_Job] = []
        numbers = 0
        while True:
            try:
                job = self._inbox.get(block=not running)
            except queue.Empty:
                running = self._step(running)
                continue
            if job is None:
                self._unload(running)
                return
            numbers += 1
            if self._admit(job, numbers):
                running.append(job)

    def _unload(self, running: list[_Job]) -> None:
        """Fail the unfinished jobs and free the pipeline, which must hold no request by then."""
        for job in running:
            job.handle.cancel()
            job.handle = None
            _fail(job, EngineUnusable("the engine was closed", hint="run it again"))
        with suppress(Exception):
            self._pipeline.step()  # releases the cache of cancelled requests, also of earlier ones
        del self._pipeline

    def _admit(self, job: _Job, number: int) -> bool:
        if job.cancelled.is_set():
            return False
        try:
            prompt = self._tensor(self._tokenizer.encode_prompt(job.request))
            job.prompt_tokens = prompt.shape[1]
            job.handle = self._pipeline.add_request(number, prompt, self._config(job))
            self._report(job)
        except Exception as error:
            refused = EngineRejected(
                f"OpenVINO refused the request: {_last_line(error)}",
                hint="`mgl doctor` checks the installation",
            )
            _fail(job, refused)
            return False
        return True

    def _step(self, running: list[_Job]) -> list[_Job]:
        """Advance the batch by one step; returns the unfinished jobs."""
        for job in running:
            if job.cancelled.is_set():
                job.handle.cancel()
        try:
            self._pipeline.step()
            self._follow(running)
            return [job for job in running if not self._finish(job)]
        except Exception as error:
            failure: Exception = EngineUnavailable(
                f"OpenVINO failed: {_last_line(error)}",
                hint="`mgl doctor` shows the memory that is left; then run the command again",
            )
        # A failed pipeline keeps what made it fail, so a new one takes its place.
        for job in running:
            job.handle = None
        try:
            del self._pipeline
            self._pipeline = self._load()
        except Exception as error:
            failure, self.closed = error, True
        for job in running:
            _fail(job, failure)
        return []

    def _follow(self, running: list[_Job]) -> None:
        """Take what a step wrote, and report how far each job is.

        The pipeline does not say how much of a prompt it has read: one step reads up to
        ``BATCHED_TOKENS`` of all prompts together, the first ones first.
        """
        room = BATCHED_TOKENS - sum(bool(job.written) for job in running)
        for job in running:
            if job.cancelled.is_set():
                continue
            while job.handle.can_read():
                for output in job.handle.read().values():
                    job.written += output.generated_ids
                    job.logprobs += output.generated_log_probs
                    job.stopped_by = output.finish_reason
            unread = job.prompt_tokens - job.read_tokens
            took = unread if job.written else min(room, unread)
            job.read_tokens += took
            room -= took
            self._report(job)

    def _report(self, job: _Job) -> None:
        if job.listener is not None and job.written and not job.cancelled.is_set():
            job.listener(self._decode(job))
        if job.progress is not None and not job.cancelled.is_set():
            job.progress.update(
                id(job),
                read=job.read_tokens,
                prompt=job.prompt_tokens,
                written=len(job.written),
                budget=job.request.sampling.max_tokens,
            )

    def _finish(self, job: _Job) -> bool:
        """Deliver the result of a job that has ended; whether it has."""
        if job.cancelled.is_set():
            job.handle.cancel()  # it may have come since the step began
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
                    hint="use smaller chunks (--set chunk_tokens=N)",
                ),
            )
            return True
        reasons = self._genai.GenerationFinishReason
        reason: FinishReason = "length" if job.stopped_by == reasons.LENGTH else "stop"
        text = self._decode(job)
        logprobs = tuple(job.logprobs) if job.request.choices else ()
        usage = TokenUsage(job.prompt_tokens, len(job.written))
        way = None if job.grammar is None else "grammar (ebnf)"
        completion = Completion(text, reason, usage, logprobs=logprobs, way=way)
        _deliver(job, lambda: job.future.set_result(completion))
        return True

    def _decode(self, job: _Job) -> str:
        """What a job wrote. A control token that a grammar let it write stands for its text, unless
        the reply ends by it."""
        if job.grammar is None:
            return self._tokenizer.decode(job.written)
        written = list(job.written)
        while written and not self._tokenizer.decode(written[-1:]):
            written.pop()
        return self._tokenizer.decode(written, keep_control=True)

    def _config(self, job: _Job) -> Any:
        request, sampling = job.request, job.request.sampling
        config = self._genai.GenerationConfig()
        config.apply_chat_template = False
        config.set_eos_token_id(self._tokenizer.end_token)
        config.max_new_tokens = sampling.max_tokens
        if sampling.temperature > 0:
            config.do_sample = True
            config.temperature = sampling.temperature
            config.top_p = sampling.top_p
            config.rng_seed = sampling.seed
        if job.grammar is not None:
            config.structured_output_config = self._genai.StructuredOutputConfig(
                grammar=job.grammar
            )
        if request.choices:
            config.logprobs = 1
        return config


def _write_grammar(request: Request) -> str | None:
    tree = compile_request(request)
    return None if tree is None else to_ebnf(tree)


def import_genai() -> Any:
    """Import openvino_genai without its telemetry; from several threads, one after another.

    Importing openvino sends a usage event unless its user opted out. It goes without if the package
    that sends is missing, and during this import it is.
    """
    missing: Any = None
    with _importing:
        known = sys.modules.get(_TELEMETRY)
        if known is None:
            sys.modules[_TELEMETRY] = missing
        try:
            import openvino_genai
        finally:
            if known is None:
                del sys.modules[_TELEMETRY]
    return openvino_genai


def convert(genai: Any, weights: Path, folder: Path) -> Path:
    """Convert a GGUF file to OpenVINO's format in ``folder``, once per release of OpenVINO.

    Loading a GGUF file mostly converts it, so later starts are fast. The result is about as large
    and gives the same replies. Returns ``weights`` itself if the disk is too full for a copy, or
    OpenVINO cannot make one.
    """
    kept = folder / f"{CONVERTED}{genai.__version__}"
    if kept.exists():
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    size = sum(path.stat().st_size for path in find_parts(weights))
    if shutil.disk_usage(folder).free < CONVERSION_SPACE * size:
        return weights
    with hold_lock(folder / ".converting"):
        if kept.exists():
            return kept
        for old in folder.glob(f"{CONVERTED}*"):
            shutil.rmtree(old)
        part = folder / f"{kept.name}.part"
        part.mkdir()
        links = link_weights(weights, part)  # OpenVINO saves what it converts beside what it read
        try:
            tokenizer = genai.Tokenizer(str(links[0]), enable_save_ov_model=True)
            scheduler = genai.SchedulerConfig()
            genai.ContinuousBatchingPipeline(
                str(links[0]), tokenizer, scheduler, "CPU", enable_save_ov_model=True
            )
        except RuntimeError as error:  # a disk that filled meanwhile is an "iostream error"
            _log.warning("%s was not converted: %s", weights, _last_line(error))
            shutil.rmtree(part)
            return weights
        for link in links:
            link.unlink()
        part.rename(kept)
    return kept


def _fail(job: _Job, error: Exception) -> None:
    _deliver(job, lambda: job.future.set_exception(error))


def _deliver(job: _Job, settle: Callable[[], None]) -> None:
    """Settle the job's future on its own loop, unless it was cancelled."""
    if not job.loop.is_closed():
        job.loop.call_soon_threadsafe(lambda: None if job.future.done() else settle())


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1][:300] if lines else repr(error)
