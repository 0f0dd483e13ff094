"""``scripts/bench/gpu.py`` without a card: its plan, its record, its made models and its loads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gpu
import gpu_encoders
import gpu_loads
import psutil
import pytest
from gpu_loads import count_shared, record_prompts, write_bodies
from gpu_models import CONFIGS, TINY, make_model, make_profile, read_log
from stepping import Figures, Part, Record, Step, run_steps

from mgl import processes
from mgl.errors import EngineRejected, ResourceError
from mgl.models.profiles import load_profile
from mgl.openai.formats import EBNF, JSON, LARK, Format
from mgl.serving.machine import Machine
from mgl.serving.profile import load_serving_profile
from mgl.serving.records import ServerRecord, find_leftovers, list_running
from mgl.training.data import Example, Preference, read_rows
from mgl.training.tokens import lay_out
from tests.openai.answering import Server
from tests.patience import PATIENCE_S, wait_until
from tests.scripts.counting import MODEL, counting
from tests.serving.conftest import free_port
from tests.serving.supervised import hear_signals

H200 = ("--card", "NVIDIA H200,141")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """``main`` is for a process of its own: it says where the data are, and what SIGTERM does."""
    before = signal.getsignal(signal.SIGTERM)
    with patch.dict(os.environ):
        yield
    signal.signal(signal.SIGTERM, before)


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


@pytest.mark.parametrize("name", [name for name in CONFIGS if "awq" not in name])
def test_a_made_profile_is_computed_as_the_shipped_one(name: str) -> None:
    assert make_profile(name).architecture == load_profile(name).architecture


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


def unexpected() -> Figures:
    """As where another version of vLLM's bench writes other names."""
    yield "x", dict[str, float]()["output_throughput"]


def test_what_is_done_is_not_done_again_and_what_failed_costs_no_other(tmp_path: Path) -> None:
    path, ran = tmp_path / "runs" / "gpu.jsonl", list[str]()
    step = make_step(ran, good=one_figure, bad=failing, odd=unexpected, last=one_figure)
    assert run_steps([step], Record(path), minutes=60) == 2
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [one.get("value") for one in lines if one["part"] == "bad"] == [2.0, None]
    failed = {one["part"]: one["failed"] for one in lines if "failed" in one}
    assert "the server refused" in failed["bad"]
    assert "KeyError: 'output_throughput'" in failed["odd"]
    assert run_steps([make_step(ran, good=one_figure, bad=one_figure)], Record(path), 60) == 0
    assert ran == ["good", "bad", "odd", "last", "bad"]


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
    words = (*words, "--data", str(tmp_path))
    assert gpu.main(["--plan", "--card", "NVIDIA L4,24", *words]) == 0
    plan = capsys.readouterr().out
    assert "gpu-models" not in plan
    assert "mgl eval run locomo --memory turns" in plan


@pytest.mark.usefixtures("mgl_home")
def test_a_plan_says_what_would_run_and_what_has_to_be_carried(
    tokenizer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*H200, "--tokenizer", str(tokenizer), "--record", str(tmp_path / "r.jsonl"))
    words = (*words, "--data", str(tmp_path))
    assert gpu.main(["--plan", *words]) == 0
    plan = capsys.readouterr().out
    size = sum(file.stat().st_size for file in tokenizer.iterdir())
    assert f"carry {tokenizer}: {size:,} bytes" in plan
    assert plan.count("--load-format dummy") == 4 * len(CONFIGS) + 2
    assert '"backend":"outlines"' in plan
    assert "mgl eval run locomo --memory gam" in plan
    assert plan.count("--max-model-len auto") == len(CONFIGS)
    assert "scripts/bench/gpu_encoders.py\n" in plan
    Record(tmp_path / "r.jsonl").write("loop", "64 novels x32", done=True)
    assert gpu.main(["--list", "--only", "loop", *words]) == 0
    assert "24 minutes, 16 of them left" in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("mgl_home")
def test_no_step_takes_more_than_eight_minutes_a_part(tokenizer: Path) -> None:
    options = gpu.parse(["--plan", *H200, "--tokenizer", str(tokenizer)])
    steps = gpu.list_steps(gpu.open_box(options))
    assert [step.name for step in steps] == ["profiles", "loop", "suites", "training", "encoders"]
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


record = cache(record_prompts)
"""What builds of the short story send, recorded once for all tests."""


@pytest.fixture
def short_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = tmp_path / "story.txt"
    story.write_text(gpu_loads.STORY.read_text("utf-8")[:40_000], encoding="utf-8")
    for module in (gpu, gpu_loads):
        monkeypatch.setattr(module, "STORY", story)


@pytest.mark.usefixtures("short_story")
@pytest.mark.parametrize("method", gpu_loads.METHODS)
def test_the_prompts_are_those_that_builds_send(method: str) -> None:
    requests = record(method, 32_768, most=3)
    assert len(requests) == 3
    assert any(one.json_schema is not None or one.choices for one in requests)
    for format_ in (LARK, EBNF, JSON, None):
        bodies = write_bodies(requests, "m", format_, 7)
        assert len({json.dumps(body["messages"]) for body in bodies}) == 7
        assert len({body["cache_salt"] for body in bodies}) == 1
        for body in bodies:
            is_held = "structured_outputs" in body
            assert body.get("ignore_eos", False) != is_held
            assert not (is_held and format_ is None)


@pytest.mark.usefixtures("short_story")
def test_loads_are_figures_for_each_method_way_and_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_loads, "METHODS", ("mindgraph",))
    formats: dict[str, Format] = {"guidance": LARK}
    monkeypatch.setattr(gpu_loads, "FORMATS", formats)
    requests = record("mindgraph", 32_768, most=3)
    monkeypatch.setattr(gpu_loads, "record_prompts", lambda *_: requests)
    with counting() as (server, held):
        figures = dict(
            gpu_loads.measure_loads(f"{server.url}/v1", None, "m", "guidance", (2,), 32_768)
        )
    assert {name.rsplit(" ", 1)[0] for name in figures} == {
        f"mindgraph {way} x2" for way in ("free", "guidance")
    }
    assert all(float(figures[name]) > 0 for name in figures if name.endswith("_tok_s"))
    assert sum("structured_outputs" in body for body in held.bodies) == 8


@pytest.mark.usefixtures("mgl_home")
def test_a_cpu_that_pretends_runs_all_steps_small(
    tokenizer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--tokenizer", str(tokenizer), "--record", str(tmp_path / "r.jsonl"))
    assert gpu.main(["--plan", "--pretend", *words]) == 0
    plan = capsys.readouterr().out
    assert [line.split(":")[0] for line in plan.splitlines() if line.startswith("==")] == [
        f"== {name}" for name in ("profiles", "loop", "suites", "training", "encoders")
    ]
    assert f"-- {TINY} longest: 4 minutes" in plan
    assert "mgl eval run recall-chat --repeats 6 --limit 8" in plan
    assert plan.count("recall-chat --repeats 6 --limit 2 --memory") == 5
    assert plan.count("--model smollm2-135m") == 5
    assert plan.count("\nmgl train builder") == 3
    assert "--base smollm2-135m --rows gpu-sft.jsonl" in plan
    assert "gpu_encoders.py --layers 1 --texts 8" in plan
    assert "nvidia" not in plan


@pytest.mark.usefixtures("mgl_home")
def test_a_card_and_a_cpu_train_each_base_by_what_was_trained_before(tokenizer: Path) -> None:
    for words, bases in ((("--plan", *H200), 2), (("--pretend",), 1)):
        options = gpu.parse([*words, "--tokenizer", str(tokenizer)])
        training = gpu.list_steps(gpu.open_box(options))[3]
        lines = [part.shown[0].split() for part in training.parts if part.shown]
        assert len(lines) == 3 * bases
        for sft, dpo, grpo in (lines[at : at + 3] for at in range(0, len(lines), 3)):
            assert sft[4] == "--base"
            assert [one[4:6] for one in (dpo, grpo)] == [["--from", sft[3]], ["--from", dpo[3]]]


def test_each_number_that_a_command_prints_is_a_figure_and_its_use_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no driver is, the card was not measured: zero per cent would be a figure."""
    monkeypatch.setenv("PATH", str(tmp_path))
    printed = {"loss": 0.5, "by": [{"f1": 1, "n": "2"}], "is_good": True, "none": None}
    program = f"import json, sys; print(json.dumps({printed})); print('slow', file=sys.stderr)"
    figures = dict(gpu.run_command([sys.executable, "-c", program]))
    assert figures.pop("seconds") is not None
    assert str(figures.pop("gpu_busy")).startswith("not measured")
    assert float(figures.pop("process_cpu")) > 0
    assert figures == {"loss": 0.5, "by.0.f1": 1, "said": "slow\n"}


def start_and_forget(program: str) -> int:
    return subprocess.Popen([sys.executable, "-c", program]).pid


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_command_is_not_charged_with_what_was_started_before_it() -> None:
    """The supervisor of an earlier part's server is reaped when the next process starts."""
    earlier = start_and_forget("import time\nwhile time.process_time() < 0.7: pass")
    wait_until(lambda: psutil.Process(earlier).status() == psutil.STATUS_ZOMBIE)
    figures = dict(gpu.run_command([sys.executable, "-S", "-c", ""]))
    assert float(figures["process_cpu"]) * float(figures["seconds"]) < 0.5


@pytest.mark.parametrize(
    ("ends", "limit_s", "told"),
    [("exit 3", None, "exit 3: "), ("exec sleep 600", 2.0, "after 2 s")],
)
def test_a_command_that_fails_or_takes_too_long_leaves_what_it_said(
    ends: str, limit_s: float | None, told: str
) -> None:
    figures = gpu.run_command(["sh", "-c", f"echo no weights >&2; {ends}"], limit_s)
    before = dict(islice(figures, 4))
    assert before["said"] == "no weights\n"
    with pytest.raises(ResourceError, match=told):
        next(figures)


def test_encoders_are_asked_for_layers_and_texts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(layers: int, count: int) -> dict[str, float]:
        return {"layers": layers, "texts": count}

    monkeypatch.setattr(gpu_encoders, "measure", measure)
    for words, asked in (((), (24, 1024)), (("--layers", "1", "--texts", "8"), (1, 8))):
        gpu_encoders.main(words)
        printed = gpu.read_json(capsys.readouterr().out)
        assert tuple(dict(gpu.list_numbers(printed)).values()) == asked
    with pytest.raises(SystemExit):
        gpu_encoders.main(["--layers", "few"])


@pytest.mark.retrieval
def test_made_encoders_embed_and_score(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("FlagEmbedding", reason="needs the extra retrieval")
    small = {"vocab_size": 600, "hidden_size": 64, "intermediate_size": 64}
    monkeypatch.setattr(gpu_encoders, "WORDS", 600)
    monkeypatch.setattr(gpu_encoders, "WIDTH", 64)
    monkeypatch.setattr(gpu_encoders, "CONFIG", {**gpu_encoders.CONFIG, **small})
    figures = gpu_encoders.measure(layers=1, count=4)
    assert set(figures) == {"dense_texts_s", "dense_sparse_multi_texts_s", "reranker_pairs_s"}
    assert all(value > 0 for value in figures.values())


def test_samples_of_a_card_leave_out_what_its_driver_cannot_tell() -> None:
    busy: list[float] = []
    gpu._read_samples(["50\n", "[N/A]\n", "\n", "70\n"], busy)
    assert busy == [50.0, 70.0]
    assert gpu.mean_busy(busy) == 60.0


def test_novels_are_real_ones_first_and_each_is_another(tmp_path: Path) -> None:
    books = tmp_path / "narrativeqa" / "books"
    books.mkdir(parents=True)
    (books / "b.txt").write_text("".join(f"Sentence {n}. " for n in range(500)), "utf-8")
    novels = gpu.read_novels(tmp_path, 6, 3_000)
    assert [len(novel.text) for novel in novels] == [3_000] * 6
    assert len({novel.id for novel in novels}) == 6
    assert [novel.text.startswith("Sentence 0.") for novel in novels] == [True] + [False] * 5
    assert ["Holmes" in novel.text for novel in novels] == [False] * 2 + [True] * 4
    assert novels == gpu.read_novels(tmp_path, 6, 3_000)


@pytest.mark.usefixtures("short_story")
def test_rows_to_train_on_are_made_where_no_corpus_is(tmp_path: Path) -> None:
    figures = dict(gpu.write_training_rows(None, tmp_path, 12))
    rows = read_rows(tmp_path / "gpu-sft.jsonl", Example)
    assert len({row.source for row in rows}) == 12
    assert rows == read_rows(tmp_path / "gpu-grpo.jsonl", Example)
    assert figures["rows"] == len(rows) > 0
    assert all(lay_out(row.completion, row.schema) is not None for row in rows)
    pairs = read_rows(tmp_path / "gpu-dpo.jsonl", Preference)
    assert figures["pairs"] == len(pairs) > 0
    for pair in pairs:
        assert pair.chosen != pair.rejected
        assert lay_out(pair.rejected, pair.schema) is not None


@pytest.fixture
def pretended(
    tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[gpu.Box, list[dict[str, Any]]]]:
    """A box whose servers are stand-ins, and the bodies that they got."""
    with counting() as (server, held):

        @contextmanager
        def serve(*_: object, **__: object) -> Iterator[ServerRecord]:
            yield make_record(server, tmp_path)

        monkeypatch.setattr(gpu.Box, "serve", serve)
        cpu = load_serving_profile("cpu")
        box = gpu.Box(Machine(None), cpu, tmp_path, Path("python"), tokenizer, None, (1, 2))
        yield box, held.bodies


def make_record(server: Server, folder: Path) -> ServerRecord:
    log = folder / "8000.log"
    log.write_text("INFO CPU KV cache size: 1,048,576 tokens, Maximum concurrency for 8,192\n")
    about = ("cpu", "made", "generate", MODEL, f"{server.url}/v1", "key", "token", 1)
    return ServerRecord(*about, log=log, state="ready")


def test_the_longest_context_is_filled_by_one_prompt(
    pretended: tuple[gpu.Box, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mgl.serving.profile.native_float", lambda: "bfloat16")
    box, bodies = pretended
    figures = dict(gpu.run_longest(box, make_profile(TINY)))
    assert figures["longest_context"] == 8192
    assert figures["filled_tokens"] == 8192 - 64
    assert [body["max_tokens"] for body in bodies] == [1]
    # two layers of two heads of 64 numbers, keys and values of two bytes each, in 2 GiB
    assert figures["cache_tokens_by_plan"] == 2 * 2**30 / (2 * 2 * 2 * 64 * 2)
    assert figures["cache_to_plan"] == 0.5


@pytest.mark.usefixtures("short_story")
def test_a_bench_of_vllms_that_cannot_run_costs_no_other_figure(
    pretended: tuple[gpu.Box, list[dict[str, Any]]], tmp_path: Path
) -> None:
    python = tmp_path / "python"
    told = "ModuleNotFoundError: No module named 'vllm'"
    python.write_text(f'#!/bin/sh\necho Namespace\necho "{told}" >&2\nexit 1\n')
    python.chmod(0o755)
    box = replace(pretended[0], python=python)
    figures = dict(gpu.measure_beside_vllm(box, make_record_of(box), 2, 8192))
    assert float(figures["mgl_write_tok_s"]) > 0
    assert figures["vllm_bench_write_tok_s"] == f"not measured: {told}"
    assert all(len(body["messages"]) == 1 for body in pretended[1])


READS_WITH_PANDAS = """
class CustomDataset:
    def __init__(self, dataset_path):
        self.dataset_path = dataset_path
        self.load_data()

    def load_data(self):
        raise ModuleNotFoundError("No module named 'pandas'")
"""
WRITES_ITS_RESULT = """
import json
from pathlib import Path
from vllm.benchmarks.datasets import CustomDataset

def add_cli_args(parser):
    parser.add_argument("--dataset-path")
    parser.add_argument("--result-filename", type=Path)
    parser.parse_args = lambda: parser.parse_known_args()[0]

def main(options):
    prompts = [one["prompt"] for one in CustomDataset(options.dataset_path).data]
    result = {"output_throughput": len(prompts) if all(prompts) else 0}
    options.result_filename.write_text(json.dumps(result))
"""


@pytest.mark.usefixtures("short_story")
def test_a_bench_of_vllms_reads_our_prompts_without_pandas(
    pretended: tuple[gpu.Box, list[dict[str, Any]]], tmp_path: Path
) -> None:
    """vLLM's own requirements leave it out."""
    package = tmp_path / "vllm" / "benchmarks"
    package.mkdir(parents=True)
    (package / "datasets.py").write_text(READS_WITH_PANDAS)
    (package / "serve.py").write_text(WRITES_ITS_RESULT)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    box = replace(pretended[0], python=python)
    figures = dict(gpu.measure_beside_vllm(box, make_record_of(box), 2, 8192))
    assert figures["vllm_bench_write_tok_s"] == 4
    ratio = float(figures["mgl_write_tok_s"]) / 4
    assert figures["mgl_to_vllm_bench"] == pytest.approx(ratio, abs=0.05)


def make_record_of(box: gpu.Box) -> ServerRecord:
    with box.serve(make_profile(TINY), "guidance") as server:
        return server


@pytest.mark.usefixtures("short_story")
def test_repeated_prompts_share_with_others_what_a_builds_prompts_share() -> None:
    """A number at their end left the whole of a prompt in the cache."""
    requests = record("mindgraph", 32_768, most=3)
    texts = [request.messages[-1].content for request in requests]
    assert len({*texts}) == 3
    bodies = write_bodies(requests, "m", None, 6)
    for text, body in zip(texts, bodies[3:], strict=True):
        again = body["messages"][-1]["content"]
        others = [one for one in texts if one != text]
        in_a_build = max(count_shared(text, one) for one in others)
        assert 0 <= count_shared(again, text) - in_a_build <= 1
        assert in_a_build < len(text) / 2


@pytest.mark.usefixtures("short_story")
def test_prompts_are_recorded_for_the_context_of_the_server() -> None:
    long, short = (
        max(len(one.messages[-1].content) for one in record("mindgraph", context, most=3))
        for context in (32_768, 4096)
    )
    assert short < long
    assert short / 3 < 4096


ONE_PART = """
import sys
from functools import partial
from pathlib import Path

import gpu
from stepping import Part, Step
from mgl.models.profiles import load_profile
from tests.serving.conftest import plan_of

port, loaded, *words = sys.argv[1:]
command = [sys.executable, "-c", "import time; print('asked', flush=True); time.sleep(600)"]

def list_steps(box):
    run = partial(gpu.run_served, box, load_profile("smollm2-135m"), command, 10)
    return [Step("s", "a test", (Part("served", 1, (), run),))]

gpu.Box.plan = lambda *_, **__: plan_of(int(port), "--load-until", loaded)
gpu.list_steps = list_steps
sys.exit(gpu.main(words))
"""


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_run_that_is_ended_leaves_no_server_and_is_not_done(
    mgl_home: Path, tmp_path: Path, *, is_loaded: bool
) -> None:
    """By ``timeout``, say: while its server starts, and while a part asks it."""
    loaded, record = tmp_path / "loaded", tmp_path / "gpu.jsonl"
    if is_loaded:
        loaded.touch()
    words = (str(free_port()), str(loaded), "--pretend", "--record", str(record))
    run = subprocess.Popen(
        [sys.executable, "-c", ONE_PART, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=hear_signals,
    )

    def find_server() -> ServerRecord | None:
        assert run.poll() is None, run.communicate()
        begun = [one for one in list_running(mgl_home) if processes.find_processes(one.token)]
        return next((one for one in begun if (one.state == "ready") == is_loaded), None)

    wait_until(lambda: find_server() is not None)
    server = find_server()
    assert server is not None
    try:
        if is_loaded:
            wait_until(lambda: len(psutil.Process(run.pid).children()) > 1)  # the part's command
        run.send_signal(signal.SIGTERM)
        said = run.communicate(timeout=PATIENCE_S)
        assert run.returncode == 143, said
        wait_until(lambda: not processes.find_processes(server.token))
        assert list_running(mgl_home) == find_leftovers(mgl_home) == []
        assert Record(record).done == set()
    finally:
        run.kill()
        processes.end_processes(server.token, patience_s=0.0)
