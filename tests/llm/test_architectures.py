"""GGUF files of the architectures that profiles name, from the file to the probability of a reply.

The models are made (two layers, random weights) and compute what NumPy computes of the same file.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from mgl.llm.base import Message, Request, Sampling
from mgl.llm.engines.openvino import OpenVinoEngine, import_genai
from mgl.llm.engines.tokens import find_control
from tests.llm.decoder import Architecture, Vocabulary, write_decoder

pytestmark = pytest.mark.weights

SPELLED = "Is <think> ice cold? a or b?"
ASK = (Message("system", "Reply with a letter."), Message("user", SPELLED))
RENDERED = (
    f"<|im_start|>system\nReply with a letter.<|im_end|>\n<|im_start|>user\n{SPELLED}<|im_end|>\n"
    "<|im_start|>assistant\n<think>\n\n</think>\n\n"
)
SCHEMA = {
    "type": "object",
    "properties": {"cold": {"type": "boolean"}},
    "required": ["cold"],
    "additionalProperties": False,
}
CLOSE = 0.1  # log-probability; the engine rounds activations


@pytest.mark.parametrize(
    ("architecture", "tensors_a_file"),
    [("qwen2", 12), pytest.param("qwen3", 0, marks=pytest.mark.slow)],
)
async def test_a_model_of_the_architecture_is_read_converted_and_asked(
    architecture: Architecture, tensors_a_file: int, vocabulary: Vocabulary, tmp_path: Path
) -> None:
    path = tmp_path / "m.gguf"
    decoder = write_decoder(path, architecture, vocabulary, tensors_a_file=tensors_a_file)
    assert (len(decoder.files) > 1) == (tensors_a_file > 0)
    control = find_control(import_genai(), decoder.files[0])
    assert control.cut("<think>") == ["<", "think>"]
    engine = await asyncio.to_thread(
        OpenVinoEngine,
        decoder.files[0],
        model_id="m",
        context_tokens=2048,
        cache_gb=1,
        cache=tmp_path / "cache",
    )
    assert sorted(path.name for path in engine.weights.iterdir()) == [
        *("openvino_detokenizer.bin", "openvino_detokenizer.xml"),
        *("openvino_model.bin", "openvino_model.xml"),
        *("openvino_tokenizer.bin", "openvino_tokenizer.xml"),
    ]

    # The prompt tells the model not to think, and what a user wrote is no control token.
    ids = [int(one) for one in engine._tokenizer.encode_prompt(Request(ASK))[0]]
    assert engine._tokenizer.decode(ids, keep_control=True) == RENDERED
    assert (ids.count(3), ids.count(4)) == (1, 1)

    # What it writes, and how likely it says that is, are the model's.
    expected = decoder.predict(ids)
    free = await engine.generate(Request(ASK, sampling=Sampling(max_tokens=1)))
    (wrote,) = engine._tokenizer.encode(free.text)[0]
    assert expected[wrote] > expected.max() - CLOSE
    chosen = await engine.generate(
        Request(ASK, choices=("a", "b"), sampling=Sampling(max_tokens=8))
    )
    likely = {name: expected[engine._tokenizer.encode(name)[0][0]] for name in ("a", "b")}
    assert likely[chosen.text] > max(likely.values()) - CLOSE
    assert chosen.logprobs[0] == pytest.approx(likely[chosen.text], abs=CLOSE)

    # A constraint holds.
    replied = await engine.generate(Request(ASK, SCHEMA, sampling=Sampling(max_tokens=64)))
    assert replied.finish_reason == "stop"
    assert json.loads(replied.text).keys() == {"cold"}
    await engine.aclose()
