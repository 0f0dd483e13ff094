from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mgl.llm.capabilities import (
    Capabilities,
    ProbeResult,
    forget_capabilities,
    load_capabilities,
    save_capabilities,
)

URL, OTHER = "http://127.0.0.1:8000/v1", "http://127.0.0.1:80001/v1"
SEEN = Capabilities(
    server="vllm 0.32.0",
    formats=("structured_outputs.json", "response_format"),
    ignored=(),
    tools=False,
    logprobs=True,
    cached_tokens=True,
    model="m",
    findings=(ProbeResult("tools", "refused", "no parser"),),
)


def test_what_is_kept_comes_back_by_server_version_and_model_until_it_is_forgotten(
    tmp_path: Path,
) -> None:
    save_capabilities(tmp_path, URL, SEEN)
    for server, model in (("vllm 0.33.0", "m"), ("vllm 0.32.0", "n")):
        assert load_capabilities(tmp_path, URL, server, model) is None
        other = replace(SEEN, server=server, model=model, tools=True)
        save_capabilities(tmp_path, URL, other)
        assert load_capabilities(tmp_path, URL, server, model) == other
    assert load_capabilities(tmp_path, OTHER, "vllm 0.32.0", "m") is None
    assert load_capabilities(tmp_path, "http://127.0.0.1:8000/", "vllm 0.32.0", "m") == SEEN
    save_capabilities(tmp_path, OTHER, SEEN)
    forget_capabilities(tmp_path, URL)
    assert load_capabilities(tmp_path, URL, "vllm 0.32.0", "m") is None
    assert load_capabilities(tmp_path, OTHER, "vllm 0.32.0", "m") == SEEN


@pytest.mark.parametrize("damaged", ["", "[]", '{"http": 1}', "\x00"])
def test_a_damaged_file_holds_nothing_and_is_written_anew(tmp_path: Path, damaged: str) -> None:
    save_capabilities(tmp_path, URL, SEEN)
    path = tmp_path / "servers" / "probed.json"
    path.write_text(damaged)
    assert load_capabilities(tmp_path, URL, "vllm 0.32.0", "m") is None
    save_capabilities(tmp_path, URL, SEEN)
    assert load_capabilities(tmp_path, URL, "vllm 0.32.0", "m") == SEEN
    assert [one.name for one in path.parent.iterdir()] == ["probed.json"]
