"""A server's log, explained: what the server is doing, and why it failed.

    find_stage("Loading safetensors checkpoint shards:  50% Completed | 2/4")
    failure = explain_failure(log_tail, exit_code=1, oom_kills=0)

The patterns are vLLM 0.32's own messages and those of Python, PyTorch and CUDA. The first entry of
``_KNOWN`` that matches explains a failure, so specific entries come before general ones; otherwise
the log's last error line does.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mgl.prompt import one_line

_STAGES: Final = tuple(
    (re.compile(pattern), stage)
    for pattern, stage in (
        (r"Loading [\w ]*checkpoint shards:\s+(\d+)%", "loading weights {0}%"),
        (r"Starting to load model", "loading weights"),
        (r"Capturing CUDA graphs?[^%]*?(\d+)%", "capturing CUDA graphs {0}%"),
        (r"Capturing CUDA graph", "capturing CUDA graphs"),
        (r"Warming up model for the compilation|Start(?:ing)? compil|Dynamo bytecode transform"
         r"|Compiling a graph|torch\.compile takes", "compiling"),
        (r"KV cache size|Available KV cache memory|for KV cache on node", "sizing the KV cache"),
        (r"Initializing a V1 LLM engine", "starting the engine"),
        (r"Starting vLLM(?: API)? server on", "opening the port"),
        (r"non-default args", "reading the model's configuration"),
    )
)  # fmt: skip


def find_stage(line: str) -> str | None:
    """Find what a line of the log says the starting server is doing, or None."""
    for pattern, stage in _STAGES:
        if match := pattern.search(line):
            return stage.format(*match.groups())
    return None


_DIED: Final = re.compile(r"(?:died|exited) unexpectedly|EngineDeadError|exit code:? -9\b|SIGKILL")
_VMSTAT: Final = Path("/proc/vmstat")
_ADVICE_LINKS: Final = re.compile(r"\bSee https?://\S+[^.]*(\.|$)|For further information.*")
_PREFIX: Final = re.compile(r"^\([\w ]+pid=\d+\)\s*(?:ERROR \S+ \S+ \[[^\]]*\]\s*)?")
_LAST_ERROR: Final = re.compile(
    r"^(?:[\w.]+\.)?(?:[A-Z]\w*(?:Error|Exception|Interrupt))\b.*|^.*\berror: .*", re.MULTILINE
)
_EMPTY_PHRASES: Final = re.compile(
    r"Engine core initialization failed|EngineDeadError|See (root cause|stack trace) above",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Failure:
    """One explained failure. ``restart_helps`` is False if the same would happen again."""

    message: str
    hint: str
    restart_helps: bool = False


@dataclass(frozen=True, slots=True)
class _Known:
    """A failure that logs report; ``{0}`` in its message is what the pattern's group matched.

    Unless ``always``, it happens only while a server starts: later the words concern requests.
    """

    pattern: re.Pattern[str]
    message: str
    hint: str
    always: bool


def _describe(pattern: str, message: str, hint: str, *, always: bool = False) -> _Known:
    return _Known(re.compile(pattern, re.IGNORECASE), message, hint, always)


_KNOWN: Final = (
    _describe(
        r"address already in use|\[Errno (?:98|48)\]",
        "the port is taken by another program",
        "give another with --port, or end that program",
    ),
    _describe(
        r"found no nvidia driver|NVIDIA driver on your system is too old|no CUDA GPUs are available"
        r"|libcuda\.so\.1|Failed to infer device type|CUDA driver version is insufficient"
        r"|couldn't communicate with the NVIDIA driver",
        "no usable GPU driver: {0}",
        "`nvidia-smi` has to list the GPUs; without one, `mgl serve start cpu`",
        always=True,
    ),
    _describe(
        r"(?:torch\.OutOfMemoryError: )?CUDA out of memory[^\n]{0,80}|torch\.OutOfMemoryError"
        r"|CUBLAS_STATUS_ALLOC_FAILED|Free memory on device[^\n]{0,160}",
        "the GPU's memory is too small or in use: {0}",
        "end what uses it (`nvidia-smi`), take a smaller or quantised model, or a lower "
        "gpu_memory_utilization",
        always=True,
    ),
    _describe(
        r"the model's max seq len \((\d+)\)[^\n]*KV\s+cache is needed|"
        r"No available memory for the cache blocks|larger than the maximum number of tokens that "
        r"can be stored in KV cache",
        "the KV cache is too small for one sequence of the model's context ({0})",
        "give max_model_len a smaller value in a serving profile of your own, or free some memory",
    ),
    _describe(
        r"Available memory on node[^\n]{0,120}|\bMemoryError\b|Cannot allocate memory|\[Errno 12\]"
        r"|DefaultCPUAllocator: (?:can't|not enough)|std::bad_alloc",
        "this machine's memory is too small or in use: {0}",
        "close other programs, take a smaller model, or less cpu_kv_cache_gb in the profile",
        always=True,
    ),
    _describe(
        r"No space left on device|\[Errno 28\]",
        "a disk is full, or /dev/shm is",
        "`df -h` shows which; free some space there",
        always=True,
    ),
    _describe(
        r"invalid tool call parser: ([\w.-]+)",
        "this vLLM has no tool parser {0}",
        "mend tool_parser in the model's profile, or install a newer vLLM",
    ),
    _describe(
        r"Call to add_lora method failed: ([^\n]{1,160})|LoRA rank \d+ is greater than[^\n]{0,60}"
        r"|No adapter found for [^\n]{0,80}|Loading lora [^\n]{0,80} failed[^\n]{0,80}"
        r"|is not supported LoRA|expected target modules in[^\n]{0,80}",
        "an adapter does not fit this model: {0}",
        "give adapters that were trained on this very model (--adapter NAME=PATH), or none",
    ),
    _describe(
        r"Model architectures \[?'?(\w+)'?\]? (?:failed|are not supported)"
        r"|model type `?(\w+)`? but Transformers does not recognize",
        "this vLLM cannot run the model's architecture ({0})",
        "install a newer vLLM, or choose another model",
    ),
    _describe(
        r"HFValidationError|LocalEntryNotFoundError|RepositoryNotFoundError"
        r"|(?:Cannot find any model weights|does not appear to have a file named) ?[^\n]{0,80}"
        r"|Invalid repository ID or local directory|SafetensorError[^\n]{0,80}"
        r"|is not a valid model identifier|OfflineModeIsEnabled|we couldn't connect to 'https",
        "the model's weights are missing or broken: {0}",
        "`mgl models get NAME` fetches them; `--weights PATH` names a folder that has them",
    ),
    _describe(
        r"error: (unrecognized arguments: [^\n]{1,120}|argument [^\n]{1,160})",
        "the server refuses an option: {0}",
        "this version of vLLM may not know it: see `mgl serve start PROFILE --dry-run`",
    ),
)


def explain_failure(
    log: str, exit_code: int, *, was_ready: bool = False, oom_kills: int | None = None
) -> Failure:
    """Explain why a server ended, from the end of its log.

    ``exit_code`` is minus the signal's number if a signal ended it. ``oom_kills`` counts the
    processes that the kernel killed meanwhile because memory ran out; if it is None (unknown), a
    kill -9 is taken for one of these.
    """
    killed = exit_code == -signal.SIGKILL
    if (killed and oom_kills != 0) or (oom_kills and _DIED.search(log)):
        return Failure(
            "the server was killed (signal 9), as the kernel does when memory runs out",
            "close other programs, take a smaller model, or less cpu_kv_cache_gb in the profile",
        )
    for known in _KNOWN:
        if (known.always or not was_ready) and (match := known.pattern.search(log)):
            found = next((group for group in match.groups() if group), match[0])
            return Failure(known.message.format(_shorten(found)), known.hint)
    if exit_code < 0:
        name = _signal_name(-exit_code)
        return Failure(f"the server was ended by {name}", _LOOK, restart_helps=True)
    said = _last_error(log)
    if not said and _DIED.search(log):
        said = "its engine process died without an error message"
    return Failure(
        f"the server ended with exit code {exit_code}" + (f": {said}" if said else ""),
        _LOOK,
        restart_helps=True,
    )


_LOOK: Final = "its log says more (`mgl serve status` names it)"


def count_oom_kills() -> int | None:
    """Count the processes the kernel has killed because memory ran out; None if unknown."""
    try:
        match = re.search(r"^oom_kill (\d+)$", _VMSTAT.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) if match else None


def _last_error(log: str) -> str:
    """The last line that names an error and says more than that there was one."""
    plain = "\n".join(_PREFIX.sub("", line) for line in log.splitlines())
    said = [line for line in _LAST_ERROR.findall(plain) if not _EMPTY_PHRASES.search(line)]
    return _shorten(said[-1]) if said else ""


def _shorten(text: str, width: int = 240) -> str:
    return one_line(one_line(_ADVICE_LINKS.sub("", text)).rstrip(" .:"), width)


def _signal_name(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} (signal {number})"
    except ValueError:
        return f"signal {number}"
