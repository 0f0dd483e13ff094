"""The words are those that vLLM 0.32, PyTorch and Python end a log with."""

from __future__ import annotations

import pytest

from mgl.serving.logs import explain_failure

WARNING = (
    "(APIServer pid=1) WARNING 11-22 01:48:09 [system_utils.py:255] Found ulimit of 20000 and "
    "failed to automatically increase with error current limit exceeds maximum limit. This can "
    "cause fd limit errors like `OSError: [Errno 24] Too many open files`.\n"
)
HOPELESS = {
    "port": "OSError: [Errno 98] Address already in use",
    "driver": "RuntimeError: Found no NVIDIA driver on your system. Please check that you have",
    "cuda_memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0",
    "kv_cache": "ValueError: To serve at least one request with the model's max seq len (32768), "
    "(4.0 GiB KV cache is needed, which is larger than the available KV cache memory (1.5 GiB).",
    "host_memory": "ValueError: Available memory on node 0 (1.2/23.4 GiB) on startup is less than "
    "desired CPU memory utilization",
    "tool_parser": "KeyError: 'invalid tool call parser: nosuch (chose from { apertus,cohere })'",
    "adapter": "ValueError: Loading lora bad failed: No adapter found for /nowhere",
    "architecture": "Value error, Model architectures ['NoSuchForCausalLM'] are not supported for "
    "now. Supported architectures: dict_keys(['LlamaForCausalLM'",
    "weights": "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name'",
    "argument": "api_server.py: error: unrecognized arguments: --no-such-arg",
    "disk": "OSError: [Errno 28] No space left on device",
}
NAMED = {
    "kv_cache": "32768",
    "tool_parser": "nosuch",
    "adapter": "No adapter found",
    "architecture": "NoSuchForCausalLM",
    "argument": "--no-such-arg",
    "host_memory": "1.2/23.4 GiB",
}


@pytest.mark.parametrize("kind", HOPELESS)
def test_what_a_restart_cannot_mend(kind: str) -> None:
    later = "\n(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause."
    failure = explain_failure(WARNING + "Traceback …\n" + HOPELESS[kind] + later, 1, oom_kills=0)
    assert failure.kind == kind
    assert not failure.restart_helps
    assert failure.hint
    assert "\n" not in failure.message
    assert NAMED.get(kind, "") in failure.message


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


@pytest.mark.parametrize(
    ("kills", "kind"), [(None, "oom_killer"), (1, "oom_killer"), (0, "signal")]
)
def test_a_kill_is_told_from_one_for_want_of_memory(kills: int | None, kind: str) -> None:
    failure = explain_failure(WARNING, -9, was_ready=True, oom_kills=kills)
    assert failure.kind == kind
    assert failure.restart_helps == (kind == "signal")
    assert "signal 9" in failure.message


def test_an_engine_that_the_kernel_killed_takes_the_server_with_it() -> None:
    log = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."
    assert "engine process died" in explain_failure(log, 0, was_ready=True, oom_kills=0).message
    assert explain_failure(log, 1, was_ready=True, oom_kills=1).kind == "oom_killer"
    assert explain_failure(log, 1, was_ready=True, oom_kills=0).kind == "crash"
    assert explain_failure("RuntimeError: the moon is full", 1, oom_kills=1).kind == "crash"


def test_refused_requests_are_not_taken_for_what_ended_a_server_that_was_ready() -> None:
    log = HOPELESS["adapter"] + "\n" + HOPELESS["weights"] + "\nIndexError: list index"
    assert explain_failure(log, 1, was_ready=True, oom_kills=0).restart_helps
    assert explain_failure(HOPELESS["cuda_memory"], 1, was_ready=True).kind == "cuda_memory"
