"""The exact command that launches a server, made from a serving profile and a model profile.

    plan = make_plan(profile, model, Launch(folder, environment.python))
    plan.command          # (".../python", "-m", "vllm.entrypoints.openai.api_server", …)
    print(plan.shell())   # what --dry-run prints, to paste into a shell

The server's key is not part of it: the supervisor sets VLLM_API_KEY in its environment. Nothing is
started or inspected here.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mgl.errors import ResourceError, UsageError
from mgl.models import shipped
from mgl.models.profiles import ModelProfile, Task
from mgl.serving.profile import ServingProfile, Settings

DEFAULT_PORTS: Final[Mapping[Task, int]] = {"generate": 8000, "embed": 8001, "rerank": 8002}
"""One for each task, so that a generator, an embedder and a reranker can run side by side."""

_HOST: Final = "127.0.0.1"
_RAY_PORT: Final = 6379
# The same in every version since 0.12; not every build has the `vllm` command.
_SERVER: Final = ("-m", "vllm.entrypoints.openai.api_server")
_ALWAYS: Final[Mapping[str, str]] = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """The command that starts a server, its environment, and what else has to run."""

    profile: str
    model: str
    task: Task
    served_name: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    host: str
    port: int
    elsewhere: tuple[str, ...]
    adapters: Mapping[str, Path]

    @property
    def base_url(self) -> str:
        return f"http://{self.host}:{self.port}/v1"

    def shell(self) -> str:
        """Format the plan for a shell, one option a line."""
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in self.env.items())
        lines = [*(f"# {line}" for line in self.elsewhere)]
        return "\n".join([*lines, " \\\n  ".join([settings, *_option_lines(self.command)])])


@dataclass(frozen=True, slots=True)
class Launch:
    """What the launch of a server takes besides its profile and its model.

    ``weights`` is the folder to load; without it the command names the hub's repository, which the
    server finds in the Hugging Face cache (it never asks the hub). LoRA is on only if there are
    ``adapters``: it costs memory and speed. ``compiler`` compiles constraints where the profile
    says ``measured`` (``mgl.serving.backends``).
    """

    weights: Path | None
    python: Path
    port: int | None = None
    adapters: Mapping[str, Path] = field(default_factory=dict)
    home: Path | None = None
    compiler: str = "guidance"


def make_plan(profile: ServingProfile, model: ModelProfile, launch: Launch) -> LaunchPlan:
    """Plan the launch of one model on one kind of machine.

    Raises UsageError for adapters of a model that does not generate, and for an invalid port.
    """
    settings, weights = profile.settings_for(model.name), launch.weights
    port = DEFAULT_PORTS[model.task] if launch.port is None else launch.port
    if not 0 < port < 65536:
        raise UsageError(f"{port} is not a port", hint="give one between 1024 and 65535")
    adapters = dict(launch.adapters)
    _require_adapters_fit(model, adapters)
    command = [str(launch.python), *_SERVER]
    command += ["--model", str(weights) if weights is not None else model.weights.hub.repo]
    if weights is None and model.weights.hub.revision != "main":
        command += ["--revision", model.weights.hub.revision]
    command += ["--served-model-name", model.name, "--host", _HOST, "--port", str(port)]
    command += _machine_options(profile, model, settings)
    command += _task_options(model, settings, adapters, launch.home, launch.compiler)
    env = {**_ALWAYS, **profile.env}
    if profile.machine.device == "cpu":
        env["VLLM_CPU_KVCACHE_SPACE"] = str(settings.cpu_kv_cache_gb)
        env.setdefault("OMP_NUM_THREADS", str(_cores()))
    return LaunchPlan(
        profile=profile.name,
        model=model.name,
        task=model.task,
        served_name=model.name,
        command=tuple(command),
        env=dict(sorted(env.items())),
        host=_HOST,
        port=port,
        elsewhere=_elsewhere(profile, settings),
        adapters=adapters,
    )


def context_length(model: ModelProfile, settings: Settings) -> int:
    """Tokens of the longest sequence that the server takes, at most the model's context."""
    return min(settings.max_model_len or model.context_tokens, model.context_tokens)


def weights_folder(model: ModelProfile, home: Path, explicit: Path | None = None) -> Path | None:
    """The folder that a server loads, or None if it is not on this machine.

    A GGUF file is served from the folder it was unpacked to; that path is returned whether or not
    it exists yet. Errors as in ``mgl.models.fetch.find_weights``.
    """
    from mgl.models.fetch import find_weights

    if model.weights.format == "gguf":
        return explicit or home / "weights" / model.name / "dense"
    return find_weights(model, home, explicit)


def _machine_options(
    profile: ServingProfile, model: ModelProfile, settings: Settings
) -> Iterator[str]:
    yield from ("--dtype", settings.dtype)
    yield from ("--max-model-len", str(context_length(model, settings)))
    yield from ("--max-num-seqs", str(settings.max_num_seqs))
    if profile.machine.device == "cuda":
        yield from ("--gpu-memory-utilization", str(settings.gpu_memory_utilization))
        if settings.tensor_parallel > 1:
            yield from ("--tensor-parallel-size", str(settings.tensor_parallel))
        if settings.pipeline_parallel > 1:
            yield from ("--pipeline-parallel-size", str(settings.pipeline_parallel))
    if settings.executor is not None:
        yield from ("--distributed-executor-backend", settings.executor)


def _task_options(
    model: ModelProfile,
    settings: Settings,
    adapters: Mapping[str, Path],
    home: Path | None,
    compiler: str,
) -> Iterator[str]:
    needs = model.server
    if needs.hf_overrides:
        yield from ("--hf-overrides", _compact(needs.hf_overrides))
    if needs.template is not None:
        yield from ("--chat-template", str(_template(needs.template, home)))
    if model.task != "generate":
        yield from ("--runner", "pooling")
        if needs.convert is not None:
            yield from ("--convert", needs.convert)
        return
    yield from ("--enable-prefix-caching", "--enable-prompt-tokens-details")
    backend: str = settings.structured_outputs
    if backend == "measured":
        backend = compiler
    # Outlines has no such switch, and vLLM rejects it there.
    compact = {} if backend == "outlines" else {"disable_any_whitespace": True}
    yield from ("--structured-outputs-config", _compact({"backend": backend, **compact}))
    if model.tool_parser is not None:
        yield from ("--enable-auto-tool-choice", "--tool-call-parser", model.tool_parser)
    if adapters:
        yield "--enable-lora"
        yield from ("--max-loras", str(settings.max_adapters))
        yield from ("--max-lora-rank", str(settings.max_adapter_rank))
        yield "--lora-modules"
        yield from (f"{name}={path}" for name, path in adapters.items())


def _require_adapters_fit(model: ModelProfile, adapters: Mapping[str, Path]) -> None:
    if adapters and model.task != "generate":
        raise UsageError(
            f"{model.name} is a model for {model.task}, which takes no adapters",
            hint="leave out --adapter",
        )
    if model.name in adapters:
        raise UsageError(
            f"an adapter cannot be called {model.name}, as the model is",
            hint="requests choose by that name: give the adapter another",
        )


def _template(name: str, home: Path | None) -> Path:
    for folder in shipped.data_dirs("serving", home=home):
        if (folder / name).is_file():
            return folder / name
    raise ResourceError(
        f"the chat template {name} is not one of the serving files",
        hint="install mindgraph-lab again, or put it into serving/ in MGL_HOME",
    )


def _elsewhere(profile: ServingProfile, settings: Settings) -> tuple[str, ...]:
    if settings.executor != "ray" or profile.machine.nodes == 1:
        return ()
    ray = "RAY_USAGE_STATS_ENABLED=0 ray start"
    return (
        f"{ray} --head --port={_RAY_PORT}   # on this machine, before the command",
        f"{ray} --address=<this machine>:{_RAY_PORT}   # on each of the other "
        f"{profile.machine.nodes - 1}, with the same vLLM and the weights in the same place",
    )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _compact(value: Mapping[str, object]) -> str:
    return json.dumps(dict(value), separators=(",", ":"))


def _option_lines(command: tuple[str, ...]) -> Iterator[str]:
    """The command's words, quoted, each option on its own line with its values."""
    line: list[str] = []
    for word in command:
        if word.startswith("--") and line:
            yield " ".join(line)
            line = []
        line.append(shlex.quote(word))
    yield " ".join(line)
