"""The words are those that vLLM 0.32, PyTorch and Python end a log with."""

from __future__ import annotations

import pytest

from mgl.serving.logs import explain_failure

WARNING = (
    "(APIServer pid=1) WARNING 11-22 01:48:09 [system_utils.py:255] Found ulimit of 20000 and "
    "failed to automatically increase with error current limit exceeds maximum limit. This can "
    "cause fd limit errors like `OSError: [Errno 24] Too many open files`.\n"
)
CUDA_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0"
WEIGHTS = "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name'"
ADAPTER = "ValueError: Loading lora bad failed: No adapter found for /nowhere"
HOPELESS = {
    "OSError: [Errno 98] Address already in use": "port is taken",
    "RuntimeError: Found no NVIDIA driver on your system": "no usable GPU driver: ",
    CUDA_MEMORY: "the GPU's memory is too small or in use: ",
    "ValueError: To serve at least one request with the model's max seq len (32768), "
    "(4.0 GiB KV cache is needed, which is larger than the available KV cache memory (1.5 GiB).": (
        "sequence of the model's context (32768)"
    ),
    "ValueError: Available memory on node 0 (1.2/23.4 GiB) on startup is less than "
    "desired CPU memory utilization": "1.2/23.4 GiB",
    "KeyError: 'invalid tool call parser: nosuch (chose from { apertus,cohere })'": "parser nosuch",
    ADAPTER: "No adapter found",
    "Value error, Model architectures ['NoSuchForCausalLM'] are not supported for "
    "now. Supported architectures: dict_keys(['LlamaForCausalLM'": "(NoSuchForCausalLM)",
    WEIGHTS: "weights are missing or broken: ",
    "api_server.py: error: unrecognized arguments: --no-such-arg": "--no-such-arg",
    "OSError: [Errno 28] No space left on device": "a disk is full",
}


@pytest.mark.parametrize("words", HOPELESS)
def test_what_a_restart_cannot_mend(words: str) -> None:
    later = "\n(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause."
    failure = explain_failure(f"{WARNING}Traceback …\n{words}{later}", 1, oom_kills=0)
    assert HOPELESS[words] in failure.message
    assert not failure.restart_helps
    assert failure.hint
    assert "\n" not in failure.message


def test_a_crash_for_no_known_reason_may_be_mended() -> None:
    log = WARNING + (
        "(EngineCore pid=2) ERROR 11-22 01:52:19 [core.py:17] RuntimeError: the moon is full\n"
        "(APIServer pid=1) vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an "
        "issue. See stack trace (above) for the root cause.\n"
    )
    failure = explain_failure(log, 1, was_ready=True, oom_kills=0)
    assert failure.restart_helps
    assert failure.message == "the server ended with exit code 1: RuntimeError: the moon is full"
    assert explain_failure("", 0).message == "the server ended with exit code 0"


@pytest.mark.parametrize("kills", [None, 1, 0])
def test_a_kill_is_told_from_one_for_want_of_memory(kills: int | None) -> None:
    failure = explain_failure(WARNING, -9, was_ready=True, oom_kills=kills)
    assert failure.restart_helps == ("memory" not in failure.message) == (kills == 0)
    assert "signal 9" in failure.message


def test_an_engine_that_the_kernel_killed_takes_the_server_with_it() -> None:
    log = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."
    assert "engine process died" in explain_failure(log, 0, was_ready=True, oom_kills=0).message
    assert not explain_failure(log, 1, was_ready=True, oom_kills=1).restart_helps
    assert explain_failure("RuntimeError: the moon is full", 1, oom_kills=1).restart_helps


def test_refused_requests_are_not_taken_for_what_ended_a_server_that_was_ready() -> None:
    log = f"{ADAPTER}\n{WEIGHTS}\nIndexError: list index"
    assert explain_failure(log, 1, was_ready=True, oom_kills=0).restart_helps
    assert not explain_failure(CUDA_MEMORY, 1, was_ready=True).restart_helps
