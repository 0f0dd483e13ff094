"""``scripts/bench/gpu.py`` without a card: its plan, its record, its made models and its loads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import gpu
import pytest
from gpu_models import CONFIGS, make_model, read_log
from stepping import Figures, Part, Record, Step, run_steps

from mgl.errors import EngineRejected, ResourceError
from mgl.models.profiles import load_profile
from mgl.openai.formats import EBNF, JSON, LARK, Format
from tests.scripts.counting import counting

H200 = ("--card", "NVIDIA H200,141")


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_text('{"chat_template": "{{ messages }}"}')
    return folder


@pytest.mark.parametrize("name", CONFIGS)
def test_a_made_model_has_as_many_parameters_as_its_profile_says(name: str) -> None:
    config, known = CONFIGS[name], load_profile(name).architecture
    assert known is not None
    hidden, layers, heads = (
        config[each] for each in ("hidden_size", "num_hidden_layers", "num_key_value_heads")
    )
    head = hidden // config["num_attention_heads"]
    queries = hidden * hidden + hidden
    keys = 2 * (hidden * heads * head + heads * head)
    rest = hidden * hidden + 3 * hidden * config["intermediate_size"] + 2 * hidden
    total = layers * (queries + keys + rest) + hidden + 2 * config["vocab_size"] * hidden
    assert total == known.parameters
    assert (layers, heads, head) == (known.layers, known.kv_heads, known.head_dim)
    assert config["torch_dtype"] == known.dtype
    assert ("quantization_config" in config) == (known.weight_bytes is not None)


def test_a_made_model_needs_a_tokenizer(tokenizer: Path, tmp_path: Path) -> None:
    made = make_model("qwen2.5-7b-instruct", tmp_path / "made", tokenizer)
    assert json.loads((made / "config.json").read_text())["num_hidden_layers"] == 28
    assert (made / "tokenizer.json").is_file()
    with pytest.raises(ResourceError, match=r"no tokenizer\.json"):
        make_model("qwen2.5-7b-instruct", tmp_path / "made", tmp_path)


def test_what_vllm_logs_of_memory_is_read() -> None:
    log = (
        "(Worker pid=9) INFO [gpu_model_runner.py:5] Model loading took 14.27 GiB memory and 3 s\n"
        "(EngineCore pid=8) INFO [kv_cache_utils.py:1] GPU KV cache size: 1,234,560 tokens\n"
    )
    assert read_log(log) == {"weights_gib": 14.27, "cache_tokens": 1_234_560}
    assert read_log("nothing of it") == {}


def make_step(ran: list[str], **runs: Callable[[], Figures]) -> Step:
    def noted(name: str, run: Callable[[], Figures]) -> Callable[[], Figures]:
        def whole() -> Figures:
            ran.append(name)
            yield from run()

        return whole

    parts = (Part(name, 2, (), noted(name, run)) for name, run in runs.items())
    return Step("s", "a test", tuple(parts))


def one_figure() -> Figures:
    yield "x", 1.5


def failing() -> Figures:
    yield "y", 2.0
    raise EngineRejected("the server refused", hint="")


def test_what_is_done_is_not_done_again_and_what_failed_is(tmp_path: Path) -> None:
    path, ran = tmp_path / "runs" / "gpu.jsonl", list[str]()
    step = make_step(ran, good=one_figure, bad=failing, last=one_figure)
    assert run_steps([step], Record(path), minutes=60) == 1
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [one.get("value") for one in lines if one["part"] == "bad"] == [2.0, None]
    assert "the server refused" in lines[3]["failed"]
    assert run_steps([make_step(ran, good=one_figure, bad=one_figure)], Record(path), 60) == 0
    assert ran == ["good", "bad", "last", "bad"]


def test_a_part_that_fails_unexpectedly_costs_no_other(tmp_path: Path) -> None:
    """For instance where another version of vLLM's bench writes other names."""

    def unexpected() -> Figures:
        yield "x", dict[str, float]()["output_throughput"]

    ran: list[str] = []
    record = Record(tmp_path / "r.jsonl")
    assert run_steps([make_step(ran, bad=unexpected, good=one_figure)], record, 60) == 1
    assert ran == ["bad", "good"]
    assert "KeyError: 'output_throughput'" in (tmp_path / "r.jsonl").read_text()


def test_no_part_begins_that_the_minutes_left_do_not_hold(tmp_path: Path) -> None:
    ran: list[str] = []
    assert run_steps([make_step(ran, one=one_figure)], Record(tmp_path / "r.jsonl"), 1.5) == 0
    assert ran == []


def test_a_line_that_was_cut_off_is_ignored_and_never_continued(tmp_path: Path) -> None:
    path, ran = tmp_path / "gpu.jsonl", list[str]()
    step = make_step(ran, one=one_figure)
    run_steps([step], Record(path), 60)
    whole = path.read_text()
    path.write_text(whole + '{"step": "s", "part": "two", "do')
    assert Record(path).done == {("s", "one")}
    assert path.read_text() == whole


@pytest.mark.usefixtures("mgl_home")
def test_a_card_whose_models_cannot_be_made_is_planned_without_them(
    tokenizer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The profile of 24 GB names quantized models alone, whose configurations are not here."""
    words = ("--tokenizer", str(tokenizer), "--record", str(tmp_path / "r.jsonl"))
    assert gpu.main(["--plan", "--card", "NVIDIA L4,24", *words]) == 0
    plan = capsys.readouterr().out
    assert "gpu-models" not in plan
    assert "mgl eval run locomo --memory turns" in plan


@pytest.mark.usefixtures("mgl_home")
def test_a_plan_says_what_would_run_and_what_has_to_be_carried(
    tokenizer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*H200, "--tokenizer", str(tokenizer), "--record", str(tmp_path / "r.jsonl"))
    assert gpu.main(["--plan", *words]) == 0
    plan = capsys.readouterr().out
    size = sum(file.stat().st_size for file in tokenizer.iterdir())
    assert f"carry {tokenizer}: {size:,} bytes" in plan
    assert plan.count("--load-format dummy") == 3 * len(CONFIGS) + 2
    assert '"backend":"outlines"' in plan
    assert "mgl eval run locomo --memory gam" in plan
    Record(tmp_path / "r.jsonl").write("loop", "64 memories x32", done=True)
    assert gpu.main(["--list", "--only", "loop", *words]) == 0
    assert "12 minutes, 6 of them left" in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("mgl_home")
def test_no_step_takes_more_than_eight_minutes_a_part(tokenizer: Path) -> None:
    options = gpu.parse(["--plan", *H200, "--tokenizer", str(tokenizer)])
    steps = gpu.list_steps(gpu.open_box(options))
    assert [step.name for step in steps] == ["profiles", "loop", "suites", "training", "flag"]
    assert all(part.minutes <= 8 for step in steps for part in step.parts)
    names = [(step.name, part.name) for step in steps for part in step.parts]
    assert len({*names}) == len(names)


def test_a_machine_without_a_card_is_told_how_to_plan(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu.main([]) == 2
    assert "--plan and --list take --card" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        gpu.main([*H200])


@pytest.fixture
def short_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = tmp_path / "story.txt"
    story.write_text(gpu.STORY.read_text("utf-8")[:40_000], encoding="utf-8")
    monkeypatch.setattr(gpu, "STORY", story)


@pytest.mark.usefixtures("short_story")
@pytest.mark.parametrize("method", gpu.METHODS)
def test_the_prompts_are_those_that_builds_send(method: str) -> None:
    requests = gpu.record_prompts(method, most=3)
    assert len(requests) == 3
    assert any(one.json_schema is not None or one.choices for one in requests)
    for format_ in (LARK, EBNF, JSON, None):
        bodies = gpu.write_bodies(requests, "m", format_, 7)
        assert len({json.dumps(body["messages"]) for body in bodies}) >= 5
        assert len({body["cache_salt"] for body in bodies}) == 1
        for body in bodies:
            is_held = "structured_outputs" in body
            assert body.get("ignore_eos", False) != is_held
            assert not (is_held and format_ is None)


@pytest.mark.usefixtures("short_story")
def test_loads_are_figures_for_each_method_way_and_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "METHODS", ("mindgraph",))
    formats: dict[str, Format] = {"guidance": LARK}
    monkeypatch.setattr(gpu, "FORMATS", formats)
    requests = gpu.record_prompts("mindgraph", most=4)
    monkeypatch.setattr(gpu, "record_prompts", lambda _: requests)
    with counting() as (server, held):
        figures = dict(gpu.measure_loads(f"{server.url}/v1", None, "m", "guidance", levels=(2,)))
    assert {name.rsplit(" ", 1)[0] for name in figures} == {
        f"mindgraph {way} x2" for way in ("free", "guidance")
    }
    assert all(float(figures[name]) > 0 for name in figures if name.endswith("_tok_s"))
    assert sum("structured_outputs" in body for body in held.bodies) == 8
