"""What a language model is trained on is what its engine sends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mgl.llm.base import Message, Request
from mgl.models.adapters import write_adapter
from mgl.training.data import Example, write_rows
from mgl.training.tokens import tokenize
from tests.cli.conftest import Mgl
from tests.training.tiny_causal import examples

PROMPTS = (
    (("user", "Is Oslo in Norway? Reply Yes or No."),),
    (("system", "You are brief."), ("user", 'Say "it".\n\n  {"a": 1}\n<|im_end|> ↦ é\t日本')),
    (("system", ""), ("user", "word " * 1200)),
)


@pytest.mark.weights
@pytest.mark.transformers
async def test_a_training_prompt_has_the_tokens_of_the_served_request(
    smollm2_weights: Path, converted_weights: Path
) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra training")
    from mgl.llm.engines.openvino import OpenVinoEngine

    weights = smollm2_weights
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        weights.parent, gguf_file=weights.name, local_files_only=True
    )
    cache = converted_weights / "smollm2-135m"
    engine = OpenVinoEngine(weights, model_id="x", context_tokens=8192, cache_gb=1, cache=cache)
    try:
        for prompt in PROMPTS:
            messages = tuple(Message(role, content) for role, content in prompt)  # type: ignore[arg-type]
            served = engine._tokenizer.encode_prompt(Request(messages))[0].tolist()
            ids, answer = tokenize(tokenizer, prompt, "Yes")
            assert ids == served
            assert answer == [*tokenizer.encode("Yes"), engine._tokenizer.end_token]
    finally:
        await engine.aclose()


def test_a_plan_is_printed_and_nothing_is_loaded(mgl: Mgl, tmp_path: Path) -> None:
    rows: list[Example] = examples(40)
    write_rows(rows, tmp_path / "rows")
    plan = ("train", "builder", "mine", "--rows", tmp_path / "rows", "--profile", "gpu-80gb")
    facts = json.loads(mgl(*plan, "--dry-run", "--json").stdout)
    assert facts["base"] == "qwen2.5-7b-instruct"
    assert facts["rows"] + facts["development"] == 40
    assert facts["steps"] == 2 * -(-facts["rows"] // 8)
    # 7.6 billion weights of two bytes, and 16 bytes for each of the LoRA's
    assert facts["memory_gb"] == pytest.approx(15.2 + 1.7, abs=0.1)
    more = json.loads(mgl(*plan, "--dry-run", "--json", "--method", "grpo").stdout)
    assert more["hours"] >= facts["hours"]
    assert "steps" in mgl(*plan, "--dry-run").stdout
    judge = ("train", "yes-no", *plan[2:], "--dry-run", "--json")
    facts = json.loads(mgl(*judge).stdout)
    assert facts["base"] == "qwen2.5-coder-0.5b"
    assert facts["steps"] == -(-facts["rows"] // 8)
    for method in ("dpo", "grpo"):
        assert f"does not learn by {method}" in mgl(*judge, "--method", method).stderr


def test_what_an_adapter_was_trained_for_is_trained_further(
    mgl: Mgl, tmp_path: Path, mgl_home: Path
) -> None:
    about = {"kind": "builder", "base": "smollm2-135m", "licence": "MIT"}
    write_adapter("first", mgl_home, about, [])
    write_rows(examples(40), tmp_path / "rows")
    plan = ("train", "builder", "more", "--rows", tmp_path / "rows", "--from", "first", "--dry-run")
    for profile in ("cpu", "gpu-80gb"):
        facts = json.loads(mgl(*plan, "--profile", profile, "--json").stdout)
        assert facts["base"] == "smollm2-135m"


def test_a_profile_for_a_gpu_asks_for_one(
    mgl: Mgl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mgl.retrieval import computing

    monkeypatch.setattr(computing, "has_gpu", lambda: False)
    write_rows(examples(40), tmp_path / "rows")
    refused = mgl("train", "builder", "mine", "--rows", tmp_path / "rows", "--profile", "gpu-80gb")
    assert refused.exit_code == 2
    assert "is for a GPU, and this machine has none" in refused.stderr
