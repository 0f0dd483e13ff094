from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mgl.errors import ResourceError
from mgl.lab.engines import LocalModel, model_id, open_engine
from mgl.models.profiles import load_profile
from tests.patience import PATIENCE_S


def test_the_model_id_tells_weights_and_engine_apart() -> None:
    small, large = load_profile("smollm2-135m"), load_profile("qwen2.5-coder-1.5b")
    ids = {model_id(p, e) for p in (small, large) for e in ("openvino", "transformers", "openai")}
    assert len(ids) == 6
    assert small.weights.sha256 is not None
    assert small.weights.sha256[:12] in model_id(small, "openvino")


async def test_a_file_that_is_no_model_is_a_resource_error(tmp_path: Path) -> None:
    broken = tmp_path / "model.gguf"
    broken.write_bytes(b"GGUF, but not really")
    with pytest.raises(ResourceError):
        await open_engine(load_profile("smollm2-135m"), LocalModel("openvino", broken))


IMPORTS = """
import sys
import mgl.lab.engines, mgl.llm.client, mgl.llm.fakes
heavy = {"httpx", "openvino", "openvino_genai", "transformers", "torch", "outlines"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
from mgl.llm.engines.openvino import import_genai
import_genai()
assert "openvino.tools.ovc.telemetry_stub" in sys.modules
assert not [name for name in sys.modules if name.split(".")[0] == "openvino_telemetry"]
import openvino_telemetry
"""


def test_engines_import_their_libraries_when_they_are_opened_and_no_telemetry() -> None:
    subprocess.run([sys.executable, "-c", IMPORTS], check=True, timeout=PATIENCE_S)
