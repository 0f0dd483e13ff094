#!/usr/bin/env python3
"""Measure mgl on a GPU in the minutes that it is there: steps, the most valuable first.

    scripts/bench/gpu.py --list                          the steps, their parts and minutes
    scripts/bench/gpu.py --plan --card "NVIDIA H200,141" what would run, and what has to be carried
    scripts/bench/gpu.py --tokenizer DIR --minutes 14    all that is not done yet, in 14 minutes
    scripts/bench/gpu.py --only profiles

Each figure is a line of JSON in the record (--record), and so is the end of each part: a part that
is done is skipped by the next run, one that failed is tried again. The models of ``profiles`` and
``loop`` are made there: the publisher's configuration, no weights (vLLM's ``--load-format dummy``),
and the tokenizer of the folder --tokenizer. Their replies are noise; time and memory are not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from gpu_models import CONFIGS, make_model, read_log
from stepping import Figures, Part, Record, Step, print_list, print_plan, run_steps
from throughput import Throughput, load
from traffic import RecordingEngine, build_all

from mgl import registry
from mgl.errors import EngineRejected, MglError, ResourceError
from mgl.evaluation.runs.manifest import MANIFEST
from mgl.lab import Lab
from mgl.llm.base import Completion, Request
from mgl.llm.capabilities import ServerEndpoint
from mgl.llm.fakes import SchemaEngine
from mgl.models import shipped
from mgl.models.profiles import ModelProfile, load_profiles
from mgl.openai.formats import EBNF, JSON, LARK, Format
from mgl.openai.requests import write_body
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.serving.box import choose_for_cards, parse_card
from mgl.serving.machine import (
    GIB,
    Machine,
    choose_python,
    compute_memory,
    inspect_machine,
)
from mgl.serving.plan import Launch, LaunchPlan, make_plan, weights_folder
from mgl.serving.probe import probe
from mgl.serving.profile import ServingProfile, load_serving_profiles
from mgl.serving.records import ServerRecord
from mgl.serving.supervisor import request_stop, start_detached
from mgl.text import read_document
from mgl.types import Question

ROOT: Final = Path(__file__).parents[2]
STORY, CHAT = ROOT / "examples" / "a-scandal-in-bohemia.txt", ROOT / "examples" / "chat.jsonl"
QUESTION: Final = "What does the King want from Holmes, and how does the matter end?"
LEVELS: Final = (1, 16, 64, 256)
REPLY: Final = 160
"""Tokens of each reply in a load."""

FORMATS: Final[Mapping[str, Format]] = {"guidance": LARK, "xgrammar": EBNF, "outlines": JSON}
METHODS: Final = ("mindgraph", "hgmem", "gam", "mnemis")
PROMPTS: Final = 64

# Made models and their servers


@dataclass(frozen=True, slots=True)
class Box:
    """The machine, its profile, and where things are."""

    machine: Machine
    profile: ServingProfile
    home: Path
    python: Path
    tokenizer: Path
    data: Path | None

    def plan(self, model: ModelProfile, compiler: str) -> LaunchPlan:
        """The profile's own command under a compiler; a made model is loaded without weights."""
        is_made = model.name in CONFIGS
        settings = self.profile.settings.model_copy(update={"structured_outputs": "measured"})
        profile = self.profile.model_copy(update={"settings": settings})
        made = make_plan(
            profile,
            model,
            Launch(
                self.home / "gpu-models" / model.name
                if is_made
                else weights_folder(model, self.home),
                self.python,
                home=self.home,
                compiler=compiler,
            ),
        )
        extra = ("--load-format", "dummy") if is_made else ()
        return replace(made, command=(*made.command, *extra))

    @contextmanager
    def serve(self, model: ModelProfile, compiler: str) -> Iterator[ServerRecord]:
        """Serve a model; ResourceError with the log's last words if it does not start."""
        if model.name in CONFIGS:
            make_model(model.name, self.home / "gpu-models", self.tokenizer)
        plan = self.plan(model, compiler)
        server = start_detached(plan, self.home, report=lambda one: print(f"  {one.state}"))
        try:
            if server.state != "ready":
                raise ResourceError(f"{model.name}: {server.last_error}", hint=server.hint or "")
            yield server
        finally:
            request_stop(self.home, server)


def measure_start(box: Box, model: ModelProfile, server: ServerRecord, seconds: float) -> Figures:
    """What starting took, in time and memory, beside what mgl computes."""
    yield "start_s", round(seconds, 1)
    logged = read_log(server.log.read_text("utf-8", "replace"))
    yield from logged.items()
    settings = box.profile.settings_for(model.name)
    need = compute_memory(model, box.profile.machine, settings)
    if need is not None and "weights_gib" in logged:
        yield "weights_by_plan_gib", round(need.weights / GIB, 2)
        yield "weights_to_plan", round(logged["weights_gib"] * GIB / need.weights, 4)
    for gpu in inspect_machine("cuda").gpus[:1]:
        yield "used_gib", round((gpu.total - gpu.free) / GIB, 2)
        yield "share_gib", round(gpu.total * settings.gpu_memory_utilization / GIB, 2)


# Loads


class Recorder(SchemaEngine):
    """Keeps the requests of a build, as many as are wanted, and then refuses."""

    def __init__(self, most: int) -> None:
        super().__init__(context_tokens=32_768)
        self.most = most
        self.requests: list[Request] = []

    async def generate(self, request: Request) -> Completion:
        if len(self.requests) >= self.most:
            raise EngineRejected("enough requests were recorded", hint="")
        self.requests.append(request)
        return await super().generate(request)


def record_prompts(method: str, most: int = PROMPTS) -> list[Request]:
    """The first requests of a method's build of the demo's story, or of the example's chat."""
    recorder = Recorder(most)
    source = STORY if method in ("mindgraph", "hgmem") else CHAT
    models: dict[str, Any] = {"embedder": WordEmbedder(), "reranker": WordReranker()}
    with (
        tempfile.TemporaryDirectory() as home,
        Lab.open(engine=recorder, home=Path(home), **models) as lab,
        suppress(EngineRejected),
    ):
        lab.build(source, [QUESTION] if source == STORY else [], memory=method)
    return recorder.requests


def write_bodies(
    requests: Sequence[Request], model: str, format_: Format | None, count: int
) -> list[dict[str, Any]]:
    """Bodies of so many requests, each another prompt; unconstrained ones reply at full length."""
    salt, bodies = secrets.token_hex(8), []
    for number in range(count):
        request = requests[number % len(requests)]
        constrained = request.json_schema is not None or bool(request.choices)
        own = format_ if constrained else None
        body = {**write_body(request, model, own), "cache_salt": salt, "max_tokens": REPLY}
        if own is None:
            body |= {"min_tokens": REPLY, "ignore_eos": True}
        if number >= len(requests):
            *before, last = body["messages"]
            body["messages"] = [*before, {**last, "content": f"{last['content']}\n({number})"}]
        bodies.append(body)
    return bodies


def measure_loads(
    url: str, key: str | None, model: str, compiler: str, levels: Sequence[int] = LEVELS
) -> Figures:
    """Tokens a second of each method's prompts, free and constrained, at each level."""
    for method in METHODS:
        requests = record_prompts(method)
        for way in ("free", compiler):
            for at_once in levels:
                bodies = write_bodies(requests, model, FORMATS.get(way), max(8, 2 * at_once))
                seconds, sent = asyncio.run(load(url, bodies, at_once, key))
                name, good = f"{method} {way} x{at_once}", [one for one in sent if one.completed]
                read = sum(one.input_tokens for one in good)
                yield f"{name} read_tok_s", round(read / seconds, 1)
                yield f"{name} write_tok_s", round(sum(o.output_tokens for o in good) / seconds, 1)
                cached = sum(one.cached_tokens for one in good)
                yield f"{name} cached", round(cached / max(1, read), 4)
                if len(good) < len(sent):
                    why = next(one.refused for one in sent if one.refused)
                    yield f"{name} refused", f"{len(sent) - len(good)} of {len(sent)}: {why}"


def measure_beside_vllm(box: Box, server: ServerRecord, at_once: int = 64) -> Figures:
    """The same free prompts by mgl's load and by vLLM's own bench, in the same minute."""
    bodies = write_bodies(record_prompts("mindgraph"), server.served_name, None, 2 * at_once)
    seconds, sent = asyncio.run(load(server.base_url, bodies, at_once, server.api_key))
    ours = sum(one.output_tokens for one in sent) / seconds
    with tempfile.TemporaryDirectory() as folder:
        prompts, result = Path(folder) / "prompts.jsonl", Path(folder) / "result.json"
        lines = (json.dumps({"prompt": one["messages"][-1]["content"]}) for one in bodies)
        prompts.write_text("\n".join(lines) + "\n", encoding="utf-8")
        root = server.base_url.removesuffix("/v1")
        command = [str(box.python), "-m", "vllm.entrypoints.cli.main", "bench", "serve"]
        command += ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
        command += ["--base-url", root, "--model", server.served_name]
        command += ["--tokenizer", str(box.tokenizer), "--dataset-name", "custom"]
        command += ["--dataset-path", str(prompts), "--custom-output-len", str(REPLY)]
        command += ["--num-prompts", str(len(bodies)), "--max-concurrency", str(at_once)]
        command += ["--ignore-eos", "--save-result", "--result-filename", str(result)]
        env = {**os.environ, "OPENAI_API_KEY": server.api_key, "HF_HUB_OFFLINE": "1"}
        subprocess.run(command, env=env, check=True, capture_output=True, timeout=240)
        theirs = float(json.loads(result.read_text("utf-8"))["output_throughput"])
    yield "mgl_write_tok_s", round(ours, 1)
    yield "vllm_bench_write_tok_s", round(theirs, 1)
    yield "mgl_to_vllm_bench", round(ours / theirs, 3)


def run_profile(box: Box, model: ModelProfile, compiler: str) -> Figures:
    began = time.monotonic()
    with box.serve(model, compiler) as server:
        yield from measure_start(box, model, server, time.monotonic() - began)
        found = asyncio.run(probe(server.base_url, server.api_key))
        yield from ((f"probe {one.name}", one.verdict) for one in found.findings)
        yield from measure_loads(server.base_url, server.api_key, server.served_name, compiler)
        if compiler == "guidance":
            yield from measure_beside_vllm(box, server)


# mgl's own loop


@contextmanager
def sample_gpu() -> Iterator[list[float]]:
    """Per cent of the time that the card was busy, each second."""
    busy: list[float] = []
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    with subprocess.Popen([*command, "-l", "1"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reader = threading.Thread(
            target=lambda out: busy.extend(float(line) for line in out if line.strip()),
            args=(process.stdout,),
        )
        reader.start()
        try:
            yield busy
        finally:
            process.terminate()
            reader.join()


def run_loop(box: Box, model: ModelProfile, memories: int, at_once: int) -> Figures:
    """One process builds memories side by side: how busy are the card and the process?"""
    story = read_document(STORY)
    works = [(story, Question(f"{QUESTION} ({number})")) for number in range(memories)]
    kind = registry.load("memory", "mindgraph")
    config = kind.Config(preset="paper", build_tokens=REPLY, max_operations=4)

    async def build(server: ServerRecord) -> Figures:
        seen = await probe(server.base_url, server.api_key)
        endpoint = ServerEndpoint(server.base_url, server.api_key, capabilities=seen)
        engine = await RecordingEngine.record(endpoint, model, model_id=model.name)
        try:
            engine.begin(secrets.token_hex(8))
            with sample_gpu() as busy:
                made = await build_all(engine, kind, config, works, concurrency=at_once)
            whole = Throughput(engine, server.base_url, server.api_key, kind, config, works[:8])
            level = await whole.measure(at_once)
        finally:
            await engine.aclose()
        calls = sum(made.outcomes.values())
        return iter(
            [
                ("gpu_busy", round(statistics.fmean(busy or [0.0]), 1)),
                ("process_cpu", round(made.cpu_seconds / made.seconds, 3)),
                ("calls_s", round(calls / made.seconds, 2)),
                ("cpu_ms_a_call", round(1000 * made.cpu_seconds / max(1, calls), 2)),
                ("mgl_to_ceiling", round(level.output_ratio, 3)),
                ("mgl_to_constrained", round(level.constrained_ratio, 3)),
            ]
        )

    with box.serve(model, "guidance") as server:
        yield from asyncio.run(build(server))


def _suite(model: ModelProfile, memory: str) -> list[str]:
    out = Path("runs") / f"gpu-{memory}"
    if (out / MANIFEST).exists():
        return ["mgl", "eval", "resume", str(out)]
    options = ["--model", model.name, "--concurrency", "128", "--out", str(out)]
    return ["mgl", "eval", "run", "locomo", "--memory", memory, *options]


def run_suite(box: Box, model: ModelProfile, memory: str) -> Figures:
    """Evaluate a method on LoCoMo, or go on with that."""
    with box.serve(model, "guidance"):
        yield from run_command(_suite(model, memory), 7)


def run_command(command: Sequence[str], minutes: float) -> Figures:
    """Run a command: its seconds, how busy the card was, and what it printed."""
    if command[0] == "mgl":
        command = [sys.executable, "-m", "mgl", *command[1:]]
    began = time.monotonic()
    with sample_gpu() as busy:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=60 * minutes
        )
    yield "seconds", round(time.monotonic() - began, 1)
    yield "gpu_busy", round(statistics.fmean(busy or [0.0]), 1)
    yield "said", (done.stdout + done.stderr)[-4000:]
    if done.returncode:
        raise ResourceError(f"exit {done.returncode}: {shlex.join(command)}", hint="see `said`")


FLAG: Final = """\
import json, sys, time
from FlagEmbedding import BGEM3FlagModel, FlagReranker
folder, reranker = sys.argv[1:]
texts = [f"Name{n} met Name{n * 7 % 311} at the harbour. " * 12 for n in range(1024)]
model = BGEM3FlagModel(folder, use_fp16=True)
model.encode(texts[:64])
start = time.time()
model.encode(texts, return_dense=True, return_sparse=True, return_colbert_vecs=True)
print(json.dumps({"bge_m3_texts_s": len(texts) / (time.time() - start)}))
ranker = FlagReranker(reranker, use_fp16=True)
start = time.time()
ranker.compute_score([[texts[0], text] for text in texts])
print(json.dumps({"reranker_pairs_s": len(texts) / (time.time() - start)}))
"""


# The steps


def list_steps(box: Box) -> list[Step]:
    """The steps on a machine: its profile's models, and what commands need."""
    served_by_name = load_profiles()
    models = [served_by_name[name] for name in CONFIGS if name in box.profile.models]
    profiles = [
        Part(
            f"{model.name} {compiler}",
            7 if compiler == "guidance" else 5,
            (box.plan(model, compiler).shell(),),
            partial(run_profile, box, model, compiler),
        )
        for compiler in FORMATS
        for model in models
    ]
    loops = [
        Part(
            f"64 memories x{at_once}",
            6,
            (box.plan(largest, "guidance").shell(), f"build 64 memories, {at_once} calls at once"),
            partial(run_loop, box, largest, 64, at_once),
        )
        for largest in models[-1:]
        for at_once in (32, 128)
    ]
    small = served_by_name["qwen2.5-coder-1.5b"]
    suites = [
        Part(
            memory, 8, (shlex.join(_suite(small, memory)),), partial(run_suite, box, small, memory)
        )
        for memory in ("turns", "naive-rag", "gam", "mnemis", "transcript")
    ]
    training, before = [], ""
    for base in ("qwen2.5-coder-0.5b", small.name):
        for method in ("sft", "dpo", "grpo"):
            own = f"gpu-{base.rsplit('-', 1)[1].replace('.', '')}-{method}"
            start = f"--from {before}" if method != "sft" else f"--base {base}"
            rows = f"--rows gpu-{method}.jsonl --profile {box.profile.name} --method {method}"
            training.append(f"mgl train builder {own} {start} {rows}")
            before = own
    flag = shlex.join([sys.executable, "-c", FLAG, "bge-m3", "bge-reranker-v2-m3"])
    weights = box.home / "weights" / small.name
    return [
        Step("profiles", "the profiles with made models", tuple(profiles), (box.tokenizer,)),
        Step("loop", "one process fills the card", tuple(loops), (box.tokenizer,)),
        Step(
            "suites",
            "LoCoMo by the 1.5B with every method",
            tuple(suites),
            (weights, *([box.data] if box.data else ())),
        ),
        Step(
            "training",
            "SFT, DPO and GRPO of a builder",
            tuple(_command_part(line, 8) for line in training),
            (weights, *(Path(f"gpu-{each}.jsonl") for each in ("sft", "dpo", "grpo"))),
        ),
        Step(
            "flag",
            "FlagEmbedding's bge-m3 and reranker",
            (_command_part(flag, 4, name="bge-m3"),),
            (box.home / "weights" / "bge-m3", box.home / "weights" / "bge-reranker-v2-m3"),
        ),
    ]


def _command_part(line: str, minutes: float, name: str = "") -> Part:
    return Part(name or line, minutes, (line,), partial(run_command, shlex.split(line), minutes))


def open_box(options: argparse.Namespace) -> Box:
    """The machine with its profile; with --card a made-up one."""
    home = shipped.home()
    cards = tuple(parse_card(one) for one in options.card or ())
    machine = Machine(None, cards) if cards else inspect_machine("cuda")
    if machine.trouble:
        raise ResourceError(machine.trouble, hint="--plan and --list take --card 'NVIDIA H200,141'")
    profile, _ = choose_for_cards(machine.gpus, load_serving_profiles(), load_profiles())
    python = options.python or choose_python("cuda", home)
    return Box(machine, profile, home, python, options.tokenizer, options.data)


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="the steps with their minutes")
    parser.add_argument("--plan", action="store_true", help="what would run; runs nothing")
    parser.add_argument("--only", metavar="STEP")
    parser.add_argument("--card", action="append", metavar="NAME,GB", help="for --list and --plan")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="do not begin what takes longer"
    )
    parser.add_argument("--record", type=Path, default=Path("runs/gpu.jsonl"))
    parser.add_argument("--python", type=Path, help="the Python that has vLLM")
    parser.add_argument("--tokenizer", type=Path, default=Path("gpu-tokenizer"))
    parser.add_argument("--data", type=Path, help="benchmarks, to carry")
    options = parser.parse_args(words)
    if options.card and not (options.list or options.plan):
        parser.error("--card is a made-up GPU: add --plan or --list")
    return options


def main(words: Sequence[str] | None = None) -> int:
    options = parse(words)
    try:
        steps, record = list_steps(open_box(options)), Record(options.record)
    except MglError as error:
        print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return 2
    names = [step.name for step in steps]
    if options.only not in (None, *names):
        print(f"error: there is no step {options.only}\nhint: {', '.join(names)}", file=sys.stderr)
        return 2
    chosen = [step for step in steps if options.only in (None, step.name)]
    if options.list or options.plan:
        (print_list if options.list else print_plan)(chosen, record)
        return 0
    return int(run_steps(chosen, record, options.minutes) > 0)


if __name__ == "__main__":
    sys.exit(main())
