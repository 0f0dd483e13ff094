"""Serving profiles: what ships fits its machines, and what contradicts itself is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from mgl.errors import UsageError
from mgl.models.profiles import load_profiles
from mgl.serving.machine import GIB, compute_memory, compute_sequence_bytes
from mgl.serving.plan import context_length
from mgl.serving.profile import ServingProfile, choose_model, load_serving_profiles

SHIPPED = load_serving_profiles()
MODELS = load_profiles()
PAIRS = [(profile, model) for profile in SHIPPED.values() for model in profile.models]


def profile(**fields: Any) -> ServingProfile:
    return ServingProfile.model_validate(
        {
            "name": "test",
            "description": "a test",
            "machine": {"device": "cuda", "gpus": 1, "memory_gb": 24},
            "models": ["smollm2-135m", "bge-m3"],
            **fields,
        }
    )


def ids(pair: object) -> str:
    return pair.name if isinstance(pair, ServingProfile) else str(pair)


@pytest.mark.parametrize(("serving", "model"), PAIRS, ids=ids)
def test_every_model_fits_the_machine_that_its_profile_was_made_for(
    serving: ServingProfile, model: str
) -> None:
    settings = serving.settings_for(model)
    need = compute_memory(MODELS[model], serving.machine, settings)
    assert need is not None
    if serving.machine.device == "cpu":
        assert need.total < 8 * GIB
        assert compute_sequence_bytes(MODELS[model], settings) <= settings.cpu_kv_cache_gb * GIB
    else:
        # Makers call 23 GiB "24 GB" (L4, A10) and 79 GiB "80 GB".
        share = settings.gpu_memory_utilization * serving.machine.memory_gb * 0.93 * GIB
        assert need.total < share, f"{need} of {share / 1e9:.1f} GB"


def shares(serving: ServingProfile, task: str) -> dict[str, float]:
    """The share of a GPU that each model of a task takes."""
    return {
        name: serving.settings_for(name).gpu_memory_utilization
        for name in serving.models
        if MODELS[name].task == task
    }


@pytest.mark.parametrize("serving", [one for one in SHIPPED.values() if one.machine.gpus == 1])
def test_servers_that_share_a_gpu_take_less_than_all_of_it(serving: ServingProfile) -> None:
    embedder = max(shares(serving, "embed").values())
    reranker = max(shares(serving, "rerank").values())
    for model, share in shares(serving, "generate").items():
        if model == "qwen2.5-32b-instruct":  # in 16 bits, it leaves no room for a reranker
            reranker = 0.0
        assert share + embedder + reranker < 0.995, model


def test_32b_in_4_bits_reads_131072_tokens_on_one_gpu_of_80_gb() -> None:
    serving, model = SHIPPED["gpu-80gb-long"], MODELS["qwen2.5-32b-instruct-awq-yarn"]
    settings = serving.settings_for(model.name)
    need = compute_memory(model, serving.machine, settings)
    assert need is not None
    assert context_length(model, settings) == 131_072
    assert need.sequence == 2 * 64 * 8 * 128 * 2 * 131_072
    assert model.architecture is not None
    assert need.weights == count_awq_bytes(hidden=5120, wide=27648, layers=64, heads=40, kv_heads=8)
    known = MODELS["qwen2.5-7b-instruct-awq"].architecture
    assert known is not None
    assert known.weight_bytes == count_awq_bytes(
        hidden=3584, wide=18944, layers=28, heads=28, kv_heads=4
    )


def count_awq_bytes(*, hidden: int, wide: int, layers: int, heads: int, kv_heads: int) -> int:
    """Bytes of a Qwen2.5 in 4 bits: for each 128 weights a scale in 16 bits and a zero point in 4;
    embeddings, head, norms and biases stay in 16."""
    queries, keys = heads * 128, kv_heads * 128
    linear = layers * hidden * (2 * queries + 2 * keys + 3 * wide)
    rest = 2 * 152064 * hidden + layers * (2 * hidden + queries + 2 * keys) + hidden
    return linear // 2 + linear // 128 * 5 // 2 + 2 * rest


def test_the_32b_model_takes_what_its_parameters_and_cache_take() -> None:
    settings = SHIPPED["gpu-80gb"].settings_for("qwen2.5-32b-instruct")
    need = compute_memory(MODELS["qwen2.5-32b-instruct"], SHIPPED["gpu-80gb"].machine, settings)
    assert need is not None
    assert need.weights == 65_527_752_704  # the total_size of its publisher's index
    assert need.sequence == 2 * 64 * 8 * 128 * 2 * 16384


@pytest.mark.parametrize(("dtype", "value_bytes"), [("auto", 2), ("float32", 4)])
def test_the_cache_is_counted_in_the_precision_of_the_model(dtype: str, value_bytes: int) -> None:
    serving = profile(settings={"max_model_len": 100, "dtype": dtype})
    need = compute_sequence_bytes(MODELS["smollm2-135m"], serving.settings_for("smollm2-135m"))
    assert need == 2 * 30 * 3 * 64 * 100 * value_bytes


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"machine": {"device": "cuda"}}, "cuda needs gpus and memory_gb"),
        ({"machine": {"device": "cpu", "gpus": 1, "memory_gb": 8}}, "cpu has neither"),
        ({"models": []}, "at least 1"),
        ({"overrides": {"other": {}}}, "other, which is not one of the models"),
        ({"overrides": {"bge-m3": {"colour": "red"}}}, "colour"),
        ({"settings": {"tensor_parallel": 2}}, "2 parts of a model need as many GPUs"),
        ({"overrides": {"bge-m3": {"pipeline_parallel": 3}}}, "3 parts of a model"),
        ({"settings": {"gpu_memory_utilization": 1.5}}, "less than or equal to 1"),
        ({"command": "rm -rf"}, "Extra inputs"),
    ],
)
def test_what_contradicts_itself_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        profile(**fields)


def test_a_model_is_chosen_by_name_or_as_the_first() -> None:
    serving = SHIPPED["gpu-24gb"]
    assert choose_model(serving, MODELS).name == "qwen2.5-7b-instruct-awq"
    # A model that the profile does not list is the caller's to try.
    assert choose_model(serving, MODELS, "qwen2.5-7b-instruct").name == "qwen2.5-7b-instruct"
    with pytest.raises(UsageError, match="no model profile called 'bge-m4'"):
        choose_model(serving, MODELS, "bge-m4")
