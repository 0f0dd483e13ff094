"""Adapters of language models: merged into a GGUF file, known by content, refused if wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mgl.errors import MglError, ResourceError
from mgl.lab.model import ModelChoice, defer
from mgl.models.adapters import (
    LORA,
    MANIFEST,
    LoraAdapter,
    find_adapter,
    hash_vocabulary,
    merge_causal,
    open_lora,
    read_lora,
)
from mgl.models.gguf import make_loadable, merge_gguf
from mgl.models.profiles import load_profile
from mgl.observer import SILENT
from mgl.serving.checks import check_adapter
from mgl.serving.profile import load_serving_profile
from mgl.store import Store
from tests.models.tiny_gguf import HEADS, HIDDEN, QUERY, TOKENS, read_gguf, write_gguf, write_lora


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "base.gguf")


def test_a_merged_file_has_the_change_and_all_else_as_it_was(base: Path, tmp_path: Path) -> None:
    import gguf

    adapter = write_lora(tmp_path, base)
    merged = merge_causal(adapter, base, "smollm2-135m", tmp_path / "merged.gguf")
    before, after = read_gguf(base), read_gguf(merged)
    change = read_lora(adapter)[QUERY]
    from safetensors.numpy import load_file

    down, up = load_file(adapter.file(LORA)).values()
    if down.shape[0] != 2:
        down, up = up, down
    np.testing.assert_allclose(change, 2 * up.astype(np.float32) @ down.astype(np.float32), 1e-4)
    name = "blk.0.attn_q.weight"
    step = np.abs(before[name][2] + change).max() / 127  # of Q8_0, whose blocks have a scale each
    np.testing.assert_allclose(after[name][2], before[name][2] + change, atol=step)
    assert (after["blk.0.attn_norm.weight"][1] == 1).all()
    assert {kind for kind, *_ in after.values()} == {"F32", "Q8_0"}, "OpenVINO reads no Q5_0"
    fields = [dict(gguf.GGUFReader(path).fields) for path in (base, merged)]
    assert fields[0].keys() == fields[1].keys()
    assert fields[1]["tokenizer.ggml.tokens"].contents() == list(TOKENS)
    inode = merged.stat().st_ino
    assert merge_causal(adapter, base, "smollm2-135m", merged).stat().st_ino == inode, "made once"


def test_llama_files_hold_the_rows_of_queries_interleaved(tmp_path: Path) -> None:
    base = write_gguf(tmp_path / "base.gguf", arch="llama")
    change = np.repeat(np.arange(HIDDEN, dtype=np.float32)[:, None], HIDDEN, axis=1)
    merged = merge_gguf(base, {QUERY: 100 * change}, tmp_path / "merged.gguf")
    name = "blk.0.attn_q.weight"
    added = (read_gguf(merged)[name][2] - read_gguf(base)[name][2]).mean(1) / 100
    size = HIDDEN // HEADS  # of a head: its halves 0..7 and 8..15 become 0, 8, 1, 9, …
    first = [
        row for pair in zip(range(size // 2), range(size // 2, size), strict=True) for row in pair
    ]
    assert added[:size].round().tolist() == first


def test_a_copy_that_openvino_reads_is_made_where_one_is_needed(base: Path, tmp_path: Path) -> None:
    copy = make_loadable(base, tmp_path / "new" / "loadable.gguf")
    assert copy is not None
    assert make_loadable(copy, tmp_path / "again.gguf") is None
    assert read_gguf(copy)["blk.0.attn_output.weight"][0] == "Q8_0"


def poison(adapter: LoraAdapter) -> None:
    path = adapter.folder / MANIFEST
    path.write_text(path.read_text().replace('"files": {', '"files": {"x": "", '))
    (adapter.folder / LORA).write_bytes(b"other weights")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("files", "is not the file that the adapter's manifest describes"),
        ("model", "mine was trained for smollm2-135m, not for qwen2.5-coder-1.5b"),
        ("weights", "mine was trained with other weights than"),
        ("tokenizer", "mine was trained with another tokenizer than"),
        ("kind", "mine is an adapter of kind retriever, and changes no language model"),
        ("shape", "no model of qwen2 has"),
        ("disk", "not enough disk"),
    ],
)
def test_what_does_not_fit_is_one_line(
    base: Path, tmp_path: Path, wrong: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    more: dict[str, Any] = {"kind": "retriever"} if wrong == "kind" else {}
    if wrong == "shape":
        more["module"] = "model.layers.0.conv"
    adapter = write_lora(tmp_path, base, **more)
    name = "qwen2.5-coder-1.5b" if wrong == "model" else "smollm2-135m"
    if wrong == "files":
        poison(adapter)
        adapter = find_adapter("mine", tmp_path)
    if wrong == "weights":
        base.write_bytes(base.read_bytes() + b" ")
    if wrong == "tokenizer":
        base = write_gguf(tmp_path / "other.gguf", tokens=("b", "a", "<|im_end|>"))
    if wrong == "disk":
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(MglError, match=told) as raised:
        merge_causal(adapter, base, name, tmp_path / "merged.gguf")
    assert raised.value.hint
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "merged.gguf").exists()


def test_a_manifest_that_is_none_is_one_line(base: Path, tmp_path: Path) -> None:
    adapter = write_lora(tmp_path, base)
    (adapter.folder / MANIFEST).write_text('{"kind": "builder", "run": "rm"}')
    with pytest.raises(ResourceError, match="cannot be read: "):
        find_adapter("mine", tmp_path)


def test_a_vocabulary_has_one_hash_in_both_formats(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    padded = write_gguf(tmp_path / "base.gguf", tokens=(*TOKENS, "[PAD3]"))
    folder = tmp_path / "dense"
    folder.mkdir()
    core = Tokenizer(models.WordLevel({each: at for at, each in enumerate(TOKENS)}, "a"))
    core.save(str(folder / "tokenizer.json"))
    assert hash_vocabulary(padded) == hash_vocabulary(folder)


def test_the_models_id_tells_two_trainings_of_one_name_apart(base: Path, tmp_path: Path) -> None:
    """So that a completion of the first is not replayed as one of the second."""

    def identify(**options: Any) -> str:
        choice = ModelChoice("smollm2-135m", **options)
        profile = load_profile("smollm2-135m")
        with Store.open(tmp_path / "store") as store:
            return defer(choice, profile, tmp_path, store, SILENT, context_tokens=100).model_id

    ways = ({"engine": "openvino"}, {"engine": "transformers"}, {"base_url": "http://127.0.0.1:1"})
    found = {identify(**way) for way in ways}
    for seed in (1, 2):
        write_lora(tmp_path, base, seed=seed)
        found |= {identify(adapter="mine", **way) for way in ways}
    assert len(found) == 9
    assert sum("mine@" in id for id in found) == 6


def test_a_folder_that_others_trained_is_known_by_its_content(base: Path, tmp_path: Path) -> None:
    ids = set()
    for seed in (1, 2):
        folder = write_lora(tmp_path, base, seed=seed).folder
        (folder / MANIFEST).unlink()
        ids.add(open_lora("tales", folder)[0])
    assert len(ids) == 2
    assert all(id.startswith("tales@") for id in ids)
    assert open_lora("tales", tmp_path / "nowhere") == ("tales", None)


def test_an_adapter_brings_its_base(base: Path, tmp_path: Path) -> None:
    write_lora(tmp_path, base)
    assert ModelChoice(adapter="mine").with_adapter(tmp_path).profile == "smollm2-135m"
    assert ModelChoice("x", adapter="mine").with_adapter(tmp_path).profile == "x"
    assert ModelChoice(adapter="others").with_adapter(tmp_path).profile is None


def test_a_server_is_not_started_with_one_that_does_not_fit(base: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    profile = load_profile("smollm2-135m")
    settings = load_serving_profile("cpu").settings_for("smollm2-135m")
    adapter = write_lora(tmp_path, base)
    dense = tmp_path / "dense"
    dense.mkdir()

    def check(tokens: tuple[str, ...]) -> Any:
        core = Tokenizer(models.WordLevel({each: at for at, each in enumerate(tokens)}, "a"))
        core.save(str(dense / "tokenizer.json"))
        return check_adapter(adapter.identity, adapter.folder, profile, settings, weights=dense)

    assert check(TOKENS).ok
    assert "another tokenizer" in check(TOKENS[::-1]).detail
    poison(adapter)
    assert "the adapter's manifest describes" in check(TOKENS).detail
