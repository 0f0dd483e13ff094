#!/usr/bin/env python3
"""Measure mgl on a GPU in the minutes that it is there: steps, the most valuable first.

    scripts/bench/gpu.py --list                          the steps, their parts and minutes
    scripts/bench/gpu.py --plan --card "NVIDIA H200,141" what would run, and what has to be carried
    scripts/bench/gpu.py --tokenizer DIR --minutes 14    all that is not done yet, in 14 minutes
    scripts/bench/gpu.py --only profiles
    scripts/bench/gpu.py --tokenizer DIR --pretend       steps 1 and 2, small, on vLLM's CPU build

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
import random
import secrets
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from gpu_models import CONFIGS, MADE, TINY, make_model, make_profile, read_log
from stepping import Figures, Part, Record, Step, print_list, print_plan, run_steps
from throughput import Throughput, load
from traffic import RecordingEngine, build_all

from mgl import registry
from mgl.errors import EngineRejected, MglError, ResourceError
from mgl.evaluation.runs.manifest import MANIFEST
from mgl.lab import Lab, OwnModels
from mgl.llm.base import Completion, Message, Request
from mgl.llm.capabilities import ServerEndpoint
from mgl.llm.fakes import SchemaEngine
from mgl.models import shipped
from mgl.models.profiles import ModelProfile, load_profiles
from mgl.openai.formats import EBNF, JSON, LARK, Format
from mgl.openai.requests import write_body
from mgl.openai.servers import Http, identify
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.serving.box import choose_for_cards, parse_card
from mgl.serving.machine import (
    GIB,
    Machine,
    choose_python,
    compute_memory,
    compute_sequence_bytes,
    inspect_machine,
)
from mgl.serving.plan import Launch, LaunchPlan, context_length, make_plan, weights_folder
from mgl.serving.probe import probe
from mgl.serving.profile import ServingProfile, load_serving_profile, load_serving_profiles
from mgl.serving.records import ServerRecord
from mgl.serving.supervisor import request_stop, start_detached
from mgl.text import read_document, sentence_spans
from mgl.training.corpora import collect
from mgl.training.data import Example, Preference, write_rows
from mgl.training.hindsight import HelpfulSpan, write_edits
from mgl.types import Document, Question

ROOT: Final = Path(__file__).parents[2]
STORY, CHAT = ROOT / "examples" / "a-scandal-in-bohemia.txt", ROOT / "examples" / "chat.jsonl"
QUESTION: Final = "What does the King want from Holmes, and how does the matter end?"
LEVELS: Final = (1, 16, 64, 256)
PRETENDED: Final = (1, 8)
REPLY: Final = 160
"""Tokens of each reply in a load."""

FORMATS: Final[Mapping[str, Format]] = {"guidance": LARK, "xgrammar": EBNF, "outlines": JSON}
METHODS: Final = ("mindgraph", "hgmem", "gam", "mnemis")
PROMPTS: Final = 64
VLLM_BENCH: Final = """\
import argparse
from vllm.benchmarks.serve import add_cli_args, main
parser = argparse.ArgumentParser()
add_cli_args(parser)
main(parser.parse_args())
"""
"""`vllm bench serve`, which the CPU build's command cannot run."""

NOTHING: Final = '{"operations": []}'

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
    levels: Sequence[int] = LEVELS
    memories: int = 64
    characters: int = 60_000

    @property
    def is_pretended(self) -> bool:
        return self.profile.machine.device == "cpu"

    def plan(self, model: ModelProfile, compiler: str, *, longest: bool = False) -> LaunchPlan:
        """The profile's own command under a compiler; a made model is loaded without weights.

        ``longest``: vLLM itself chooses the longest context that its cache holds.
        """
        is_made = model.name in MADE
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
        command = [*made.command, *(("--load-format", "dummy") if is_made else ())]
        if longest:
            command[command.index("--max-model-len") + 1] = "auto"
        return replace(made, command=tuple(command))

    @contextmanager
    def serve(
        self, model: ModelProfile, compiler: str, *, longest: bool = False
    ) -> Iterator[ServerRecord]:
        """Serve a model; ResourceError with the log's last words if it does not start."""
        if model.name in MADE:
            make_model(model.name, self.home / "gpu-models", self.tokenizer)
        plan = self.plan(model, compiler, longest=longest)
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
    settings, hardware = box.profile.settings_for(model.name), box.profile.machine
    need = compute_memory(model, hardware, settings)
    if need is None:
        return
    cache = need.sequence  # what a CPU reserves; on a GPU what the share leaves
    for gpu in box.machine.gpus[:1]:
        share = int(gpu.total * settings.gpu_memory_utilization)
        cache = share - need.weights - need.work
        yield "share_gib", round(share / GIB, 2)
        for now in inspect_machine("cuda").gpus[:1]:
            yield "used_gib", round((now.total - now.free) / GIB, 2)
    per_token = compute_sequence_bytes(model, settings) / context_length(model, settings)
    yield "weights_by_plan_gib", round(need.weights / GIB, 3)
    yield "cache_tokens_by_plan", round(cache / per_token)
    if "weights_gib" in logged:
        yield "weights_to_plan", round(logged["weights_gib"] * GIB / need.weights, 4)
    if "cache_tokens" in logged:
        yield "cache_to_plan", round(logged["cache_tokens"] * per_token / cache, 4)


def run_longest(box: Box, model: ModelProfile) -> Figures:
    """Serve the longest context that fits, and fill it by one prompt."""
    began = time.monotonic()
    with box.serve(model, "guidance", longest=True) as server:
        yield from measure_start(box, model, server, time.monotonic() - began)
        longest = asyncio.run(read_context(server))
        yield "longest_context", longest
        body = {"model": server.served_name, "max_tokens": 1, "temperature": 0.0}
        body["messages"] = [{"role": "user", "content": " a" * (longest - 64)}]
        seconds, (sent,) = asyncio.run(load(server.base_url, [body], 1, server.api_key))
        if sent.refused:
            raise ResourceError(f"{longest} tokens: {sent.refused}", hint="see the server's log")
        yield "filled_tokens", sent.input_tokens
        yield "filled_s", round(seconds, 2)


async def read_context(server: ServerRecord) -> int:
    """The tokens of the longest sequence that a server takes, by its own word."""
    async with Http(server.base_url, server.api_key) as http:
        return (await identify(http, [server.served_name])).context_tokens or 0


# Loads


class Recorder(SchemaEngine):
    """Keeps the different prompts of a build, as many as are wanted, and then refuses."""

    def __init__(self, most: int, context: int) -> None:
        super().__init__(context_tokens=context)
        self.most = most
        self.kept: dict[tuple[Message, ...], Request] = {}

    async def generate(self, request: Request) -> Completion:
        if len(self.kept) >= self.most:
            raise EngineRejected("enough requests were recorded", hint="")
        self.kept.setdefault(tuple(request.messages), request)
        return await super().generate(request)


def record_prompts(method: str, context: int, most: int = PROMPTS) -> list[Request]:
    """The first prompts of a method's build of the demo's story, or of the example's chat.

    ``context`` is the server's, in tokens; a quarter is left for how its tokenizer counts.
    """
    recorder = Recorder(most, context * 3 // 4)
    source = STORY if method in ("mindgraph", "hgmem") else CHAT
    models = OwnModels(recorder, WordEmbedder(), WordReranker())
    with (
        tempfile.TemporaryDirectory() as home,
        Lab.open(models, home=Path(home)) as lab,
        suppress(EngineRejected),
    ):
        lab.build(source, [QUESTION] if source == STORY else [], memory=method)
    return list(recorder.kept.values())


def count_shared(text: str, other: str) -> int:
    """Count the characters that two texts share at their beginning."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((at for at, (one, two) in pairs if one != two), min(len(text), len(other)))


def write_bodies(
    requests: Sequence[Request], model: str, format_: Format | None, count: int
) -> list[dict[str, Any]]:
    """Bodies of so many requests; unconstrained ones reply at full length.

    No two prompts are alike: repetitions are numbered where the prompts begin to differ, so that
    the cache holds as much of them as of a build's.
    """
    salt, bodies = secrets.token_hex(8), []
    texts = [request.messages[-1].content for request in requests]
    shared = [
        max((count_shared(text, other) for other in texts if other != text), default=0)
        for text in texts
    ]
    for number in range(count):
        request = requests[number % len(requests)]
        constrained = request.json_schema is not None or bool(request.choices)
        own = format_ if constrained else None
        body = {**write_body(request, model, own), "cache_salt": salt, "max_tokens": REPLY}
        if own is None:
            body |= {"min_tokens": REPLY, "ignore_eos": True}
        if number >= len(requests):
            *before, last = body["messages"]
            text, start = last["content"], shared[number % len(requests)]
            numbered = f"{text[:start]}({number}) {text[start:]}"
            body["messages"] = [*before, {**last, "content": numbered}]
        bodies.append(body)
    return bodies


def measure_loads(
    url: str, key: str | None, model: str, compiler: str, levels: Sequence[int], context: int
) -> Figures:
    """Tokens a second of each method's prompts, free and constrained, at each level."""
    for method in METHODS:
        requests = record_prompts(method, context)
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


def measure_beside_vllm(box: Box, server: ServerRecord, at_once: int, context: int) -> Figures:
    """The same free prompts by mgl's load and by vLLM's own bench, in the same minute."""
    requests = record_prompts("mindgraph", context)
    bodies = write_bodies(requests, server.served_name, None, 2 * at_once)
    for body in bodies:  # vLLM's bench sends one message
        text = "\n\n".join(each["content"] for each in body["messages"])
        body["messages"] = [{"role": "user", "content": text}]
    seconds, sent = asyncio.run(load(server.base_url, bodies, at_once, server.api_key))
    ours = sum(one.output_tokens for one in sent) / seconds
    yield "mgl_write_tok_s", round(ours, 1)
    with tempfile.TemporaryDirectory() as folder:
        prompts, result = Path(folder) / "prompts.jsonl", Path(folder) / "result.json"
        lines = (json.dumps({"prompt": one["messages"][0]["content"]}) for one in bodies)
        prompts.write_text("\n".join(lines) + "\n", encoding="utf-8")
        root = server.base_url.removesuffix("/v1")
        command = [str(box.python), "-c", VLLM_BENCH]
        command += ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
        command += ["--base-url", root, "--model", server.served_name]
        command += ["--tokenizer", str(box.tokenizer), "--dataset-name", "custom"]
        command += ["--dataset-path", str(prompts), "--custom-output-len", str(REPLY)]
        command += ["--num-prompts", str(len(bodies)), "--max-concurrency", str(at_once)]
        command += ["--skip-chat-template", "--temperature", "0", "--ignore-eos"]
        command += ["--save-result", "--result-filename", str(result)]
        env = {**os.environ, "OPENAI_API_KEY": server.api_key, "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            command, env=env, check=False, capture_output=True, text=True, timeout=240
        )
        if done.returncode or not result.is_file():
            said = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["it said nothing"]
            yield "vllm_bench_write_tok_s", f"not measured: {said[0]}"
            return
        theirs = float(json.loads(result.read_text("utf-8"))["output_throughput"])
    yield "vllm_bench_write_tok_s", round(theirs, 1)
    yield "mgl_to_vllm_bench", round(ours / theirs, 3)


def run_profile(box: Box, model: ModelProfile, compiler: str) -> Figures:
    began = time.monotonic()
    with box.serve(model, compiler) as server:
        yield from measure_start(box, model, server, time.monotonic() - began)
        found = asyncio.run(probe(server.base_url, server.api_key))
        yield from ((f"probe {one.name}", one.verdict) for one in found.findings)
        where = server.base_url, server.api_key, server.served_name
        context = asyncio.run(read_context(server))
        yield from measure_loads(*where, compiler, box.levels, context)
        if compiler == "guidance":
            yield from measure_beside_vllm(box, server, min(64, max(box.levels)), context)


# mgl's own loop


@contextmanager
def sample_gpu() -> Iterator[list[float]]:
    """Per cent of the time that the card was busy, each second; nothing without nvidia-smi."""
    busy: list[float] = []
    if shutil.which("nvidia-smi") is None:
        yield busy
        return
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    with subprocess.Popen([*command, "-l", "1"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reader = threading.Thread(target=_read_samples, args=(process.stdout, busy))
        reader.start()
        try:
            yield busy
        finally:
            process.terminate()
            reader.join()


def _read_samples(lines: Iterable[str], busy: list[float]) -> None:
    for line in lines:
        with suppress(ValueError):  # what a driver cannot tell is [N/A]
            busy.append(float(line))


def mean_busy(busy: Sequence[float]) -> float | str:
    return round(statistics.fmean(busy), 1) if busy else "not measured: no sample of nvidia-smi"


def read_novels(data: Path | None, count: int, length: int) -> list[Document]:
    """Parts of novels, no two alike: real ones of a folder of benchmarks, then made ones.

    A made part has the sentences of the demo's story in an order of its own.
    """
    books = sorted((data / "narrativeqa" / "books").glob("*.txt")) if data else []
    texts = [
        text[start : start + length]
        for text in (read_document(book).text for book in books)
        for start in range(0, len(text) - length, length)
    ][:count]
    sentences = read_document(STORY).text.split(". ")
    for number in range(count - len(texts)):
        made, draw = "", random.Random(number)
        while len(made) < length:
            made += ". ".join(draw.sample(sentences, len(sentences))) + ". "
        texts.append(made[:length])
    return [Document.from_text(f"novel {number}", text) for number, text in enumerate(texts)]


def run_loop(box: Box, model: ModelProfile, at_once: int) -> Figures:
    """One process builds a memory of each novel: how busy are the card and the process?"""
    novels = read_novels(box.data, box.memories, box.characters)
    works = [(novel, Question(QUESTION)) for novel in novels]
    kind = registry.load("memory", "mindgraph")
    config = kind.Config(preset="paper", build_tokens=REPLY, max_operations=4)

    async def build(server: ServerRecord) -> Figures:
        where = server.base_url, server.api_key
        seen = await probe(*where)
        endpoint = ServerEndpoint(*where, capabilities=seen)
        engine = await RecordingEngine.record(endpoint, model, model_id=model.name)
        try:
            engine.begin(secrets.token_hex(8))
            with sample_gpu() as busy:
                made = await build_all(engine, kind, config, works, concurrency=at_once)
            whole = Throughput(engine, *where, kind, config, works[:8], rounds=1)
            level = await whole.measure(at_once)
        finally:
            await engine.aclose()
        calls = sum(made.outcomes.values())
        return iter(
            [
                ("gpu_busy", mean_busy(busy)),
                ("process_cpu", round(made.cpu_seconds / made.seconds, 3)),
                ("build_s", round(made.seconds, 1)),
                ("calls", calls),
                ("calls_s", round(calls / made.seconds, 2)),
                ("cpu_ms_a_call", round(1000 * made.cpu_seconds / max(1, calls), 2)),
                ("mgl_to_ceiling", round(level.output_ratio, 3)),
                ("mgl_to_constrained", round(level.constrained_ratio, 3)),
            ]
        )

    with box.serve(model, "guidance") as server:
        yield from asyncio.run(build(server))


def _evaluation(out: Path, model: str, memory: str, benchmark: Sequence[str]) -> list[str]:
    """Evaluate a method at 128 items at once, or resume that run."""
    if (out / MANIFEST).exists():
        return ["mgl", "eval", "resume", str(out)]
    options = ["--memory", memory, "--model", model, "--concurrency", "128", "--out", str(out)]
    return ["mgl", "eval", "run", *benchmark, *options]


def run_served(box: Box, model: ModelProfile, command: Sequence[str], minutes: float) -> Figures:
    with box.serve(model, "guidance"):
        yield from run_command(command, minutes)


def run_command(command: Sequence[str], minutes: float) -> Figures:
    """Run a command: its seconds, how busy card and process were, and what it printed."""
    if command[0] == "mgl":
        command = [sys.executable, "-m", "mgl", *command[1:]]
    began, before = time.monotonic(), os.times()
    with sample_gpu() as busy:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=60 * minutes
        )
    seconds, after = time.monotonic() - began, os.times()
    worked = after.children_user + after.children_system
    worked -= before.children_user + before.children_system
    yield "seconds", round(seconds, 1)
    yield "gpu_busy", mean_busy(busy)
    yield "process_cpu", round(worked / seconds, 3)
    yield "said", (done.stdout + done.stderr)[-4000:]
    if done.returncode:
        raise ResourceError(f"exit {done.returncode}: {shlex.join(command)}", hint="see `said`")


def write_training_rows(data: Path | None, folder: Path, count: int = 128) -> Figures:
    """Rows for a builder: ``gpu-sft.jsonl``, the same for GRPO, and pairs for DPO.

    They are HotpotQA's marked sentences as edits where its file is, else some sentences of made
    novels. The worse of a pair edits nothing.
    """
    corpus, rows = "hotpotqa-edits", list[Example]()
    if data is not None and (data / "multihop").is_dir():
        rows = [row for row in collect([corpus], data) if isinstance(row, Example)]
    else:
        corpus = "made"
        for text in read_novels(None, count, 2_000):
            marked = [HelpfulSpan(*span, "Holmes") for span in sentence_spans(text.text)[1:9:3]]
            rows += [
                Example((("user", one.prompt),), one.completion, one.schema, text.id, corpus, "CC0")
                for one in write_edits(text, QUESTION, marked)
            ]
    write_rows(rows, folder / "gpu-sft.jsonl")
    write_rows(rows, folder / "gpu-grpo.jsonl")
    about = ("prompt", "schema", "source", "corpus", "licence")
    pairs = [
        Preference(
            chosen=row.completion,
            rejected=NOTHING,
            **{name: getattr(row, name) for name in about},
        )
        for row in rows
        if row.completion != NOTHING
    ]
    write_rows(pairs, folder / "gpu-dpo.jsonl")
    yield "rows", len(rows)
    yield "pairs", len(pairs)
    yield "corpus", corpus


# The steps


def list_steps(box: Box) -> list[Step]:
    """The steps on a machine: its profile's models, and what commands need."""
    known = load_profiles()
    small = known["qwen2.5-coder-1.5b"]
    models = [known[name] for name in CONFIGS if name in box.profile.models]
    if box.is_pretended:
        return _list_served(box, [make_profile(TINY)], small, ("guidance",))
    steps = _list_served(box, models, models[-1] if models else None, tuple(FORMATS))
    suites = []
    for memory in ("turns", "naive-rag", "gam", "mnemis", "transcript"):
        command = _evaluation(Path("runs") / f"gpu-{memory}", small.name, memory, ["locomo"])
        suites.append(_served_part(box, memory, 8, small, command))
    rows = Part("rows", 1, (), partial(write_training_rows, box.data, Path()))
    training, before = [rows], ""
    for base in ("qwen2.5-coder-0.5b", small.name):
        for method in ("sft", "dpo", "grpo"):
            own = f"gpu-{base.rsplit('-', 1)[1].replace('.', '')}-{method}"
            start = f"--from {before}" if method != "sft" else f"--base {base}"
            options = f"--rows gpu-{method}.jsonl --profile {box.profile.name} --method {method}"
            training.append(_command_part(f"mgl train builder {own} {start} {options} --json", 8))
            before = own
    encoders = shlex.join([sys.executable, str(ROOT / "scripts/bench/gpu_encoders.py")])
    weights = [box.home / "weights" / name for name in ("qwen2.5-coder-0.5b", small.name)]
    data = (box.data,) if box.data else ()
    return [
        *steps,
        Step("suites", "LoCoMo by the 1.5B with every method", tuple(suites), (weights[1], *data)),
        Step("training", "SFT, DPO and GRPO of a builder", tuple(training), (*weights, *data)),
        Step(
            "encoders",
            "FlagEmbedding's bge-m3 and reranker, made",
            (_command_part(encoders, 4, name="bge-m3"),),
        ),
    ]


def _list_served(
    box: Box, models: Sequence[ModelProfile], largest: ModelProfile | None, ways: Sequence[str]
) -> list[Step]:
    """The profiles, and mgl's own loop on the largest model."""
    profiles = [
        Part(
            f"{model.name} {compiler}",
            7 if compiler == "guidance" else 5,
            (box.plan(model, compiler).shell(),),
            partial(run_profile, box, model, compiler),
        )
        for compiler in ways
        for model in models
    ]
    profiles += [
        Part(
            f"{model.name} longest",
            4,
            (box.plan(model, "guidance", longest=True).shell(),),
            partial(run_longest, box, model),
        )
        for model in models
    ]
    asked = ["locomo", "--limit", "200"] if box.data else ["recall-chat", "--repeats", "6"]
    asked = ["recall-chat", "--limit", "8"] if box.is_pretended else asked
    loops = []
    for model in [largest] if largest else []:
        shown = (box.plan(model, "guidance").shell(), f"{box.characters:,} characters of each")
        loops += [
            Part(f"{box.memories} novels x{n}", 8, shown, partial(run_loop, box, model, n))
            for n in (max(box.levels) // 8, max(box.levels) // 2)
        ]
        command = _evaluation(Path("runs/gpu-loop"), model.name, "transcript", asked)
        loops.append(_served_part(box, "items x128", 8, model, command))
    return [
        Step("profiles", "the profiles with made models", tuple(profiles), (box.tokenizer,)),
        Step("loop", "one process fills the card", tuple(loops), (box.tokenizer,)),
    ]


def _served_part(
    box: Box, name: str, minutes: float, model: ModelProfile, command: Sequence[str]
) -> Part:
    run = partial(run_served, box, model, command, minutes - 1)
    return Part(name, minutes, (shlex.join(command),), run)


def _command_part(line: str, minutes: float, name: str = "") -> Part:
    return Part(name or line, minutes, (line,), partial(run_command, shlex.split(line), minutes))


def open_box(options: argparse.Namespace) -> Box:
    """The machine with its profile: with --card a made-up one, with --pretend its CPU."""
    home = shipped.home()
    if options.pretend:
        profile, machine = load_serving_profile("cpu"), inspect_machine("cpu")
    else:
        cards = tuple(parse_card(one) for one in options.card or ())
        machine = Machine(None, cards) if cards else inspect_machine("cuda")
        if machine.trouble:
            hint = "--plan and --list take --card 'NVIDIA H200,141'; --pretend takes the CPU"
            raise ResourceError(machine.trouble, hint=hint)
        profile, _ = choose_for_cards(machine.gpus, load_serving_profiles(), load_profiles())
    python = options.python or choose_python(profile.machine.device, home)
    box = Box(machine, profile, home, python, options.tokenizer, options.data)
    return replace(box, levels=PRETENDED, memories=2, characters=8_000) if options.pretend else box


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="the steps with their minutes")
    parser.add_argument("--plan", action="store_true", help="what would run; runs nothing")
    parser.add_argument("--pretend", action="store_true", help="take the CPU for a card")
    parser.add_argument("--only", metavar="STEP")
    parser.add_argument("--card", action="append", metavar="NAME,GB", help="for --list and --plan")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="do not begin what takes longer"
    )
    parser.add_argument("--record", type=Path, default=Path("runs/gpu.jsonl"))
    parser.add_argument("--python", type=Path, help="the Python that has vLLM")
    parser.add_argument("--tokenizer", type=Path, default=Path("gpu-tokenizer"))
    parser.add_argument("--data", type=Path, help="the folder of benchmarks (MGL_DATA)")
    options = parser.parse_args(words)
    if options.card and not (options.list or options.plan):
        parser.error("--card is a made-up GPU: add --plan or --list")
    if options.data:
        os.environ["MGL_DATA"] = str(options.data)
    return options


def main(words: Sequence[str] | None = None) -> int:
    options = parse(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # `timeout` ends it with its server
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
