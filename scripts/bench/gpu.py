#!/usr/bin/env python3
"""Measure mgl on a GPU in the minutes that it is there: steps, the most valuable first.

    scripts/bench/gpu.py --list                          the steps, their parts and minutes
    scripts/bench/gpu.py --plan --card "NVIDIA H200,141" what would run, and what has to be carried
    scripts/bench/gpu.py --tokenizer DIR --minutes 14    all that is not done yet, in 14 minutes
    scripts/bench/gpu.py --only profiles
    scripts/bench/gpu.py --tokenizer DIR --pretend       the same steps, small, on this CPU

Each figure is a line of JSON in the record (--record), and so is the end of each part: a part that
is done is skipped by the next run, one that failed is tried again. The models of ``profiles`` and
``loop`` are made there: the publisher's configuration, no weights (vLLM's ``--load-format dummy``),
and the tokenizer of the folder --tokenizer. Their replies are noise; time and memory are not.
``suites``, ``training`` and ``encoders`` need the extras ``evaluation``, ``training`` and
``retrieval``, and weights that are carried.
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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from gpu_loads import FORMATS, QUESTION, REPLY, STORY, measure_loads, record_prompts, write_bodies
from gpu_models import CONFIGS, MADE, TINY, make_model, make_profile, read_log
from stepping import Figures, Part, Record, Step, print_list, print_plan, run_steps
from throughput import load, measure_level
from traffic import RecordingEngine, build_all

from mgl import registry
from mgl.errors import MglError, ResourceError
from mgl.evaluation.runs.manifest import MANIFEST
from mgl.llm.capabilities import ServerEndpoint
from mgl.models import shipped
from mgl.models.profiles import ModelProfile, load_profiles
from mgl.openai.servers import Http, identify
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
LEVELS: Final = (1, 16, 64, 256)
PRETENDED: Final = (1, 8)
VLLM_BENCH: Final = """\
import argparse, json
from vllm.benchmarks.datasets import CustomDataset
from vllm.benchmarks.serve import add_cli_args, main

def load_data(self):
    with open(self.dataset_path) as lines:
        self.data = [json.loads(line) for line in lines]

CustomDataset.load_data = load_data
parser = argparse.ArgumentParser()
add_cli_args(parser)
main(parser.parse_args())
"""
"""`vllm bench serve`, which the CPU build's command cannot run; prompts are read without pandas,
which vLLM's own requirements leave out."""

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
    rows: int = 128
    bases: Sequence[str] = ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")

    @property
    def is_pretended(self) -> bool:
        return self.profile.machine.device == "cpu"

    def limit(self, minutes: float) -> float | None:
        """The seconds that a command may take; a CPU that pretends to be a card has no limit."""
        return None if self.is_pretended else 60 * minutes

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
        seconds, (sent,) = asyncio.run(load(server.base_url, server.api_key, [body], 1))
        if sent.refused:
            raise ResourceError(f"{longest} tokens: {sent.refused}", hint="see the server's log")
        yield "filled_tokens", sent.input_tokens
        yield "filled_s", round(seconds, 2)


async def read_context(server: ServerRecord) -> int:
    """The tokens of the longest sequence that a server takes, by its own word."""
    async with Http(server.base_url, server.api_key) as http:
        return (await identify(http, [server.served_name])).context_tokens or 0


# Loads


def measure_beside_vllm(box: Box, server: ServerRecord, at_once: int, context: int) -> Figures:
    """The same free prompts by mgl's load and by vLLM's own bench, in the same minute."""
    requests = record_prompts("mindgraph", context)
    bodies = write_bodies(requests, server.served_name, None, 2 * at_once)
    for body in bodies:  # vLLM's bench sends one message
        text = "\n\n".join(each["content"] for each in body["messages"])
        body["messages"] = [{"role": "user", "content": text}]
    seconds, sent = asyncio.run(load(server.base_url, server.api_key, bodies, at_once))
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
            level = await measure_level(engine, where, kind, config, works[:8], at_once)
        finally:
            await engine.aclose()
        return iter(
            [
                ("gpu_busy", mean_busy(busy)),
                ("process_cpu", round(made.cpu_seconds / made.seconds, 3)),
                ("build_s", round(made.seconds, 1)),
                ("calls", made.calls),
                ("calls_s", round(made.calls / made.seconds, 2)),
                ("cpu_ms_a_call", round(1000 * made.cpu_seconds / max(1, made.calls), 2)),
                ("mgl_to_ceiling", round(level.output_ratio, 3)),
                ("mgl_to_constrained", round(level.constrained_ratio, 3)),
            ]
        )

    with box.serve(model, "guidance") as server:
        yield from asyncio.run(build(server))


def _evaluate(box: Box, name: str, memory: str, model: str, limit: int) -> list[str]:
    """Evaluate a method at 128 items at once, or resume that run; a ``limit`` of 0 takes all."""
    out = Path("runs") / f"gpu-{name}"
    if (out / MANIFEST).exists():
        return ["mgl", "eval", "resume", str(out), "--json"]
    benchmark = ["locomo"] if box.data else ["recall-chat", "--repeats", "6"]
    limits = ["--limit", str(limit)] if limit else []
    options = ["--memory", memory, "--model", model, "--concurrency", "128", "--out", str(out)]
    return ["mgl", "eval", "run", *benchmark, *limits, *options, "--json"]


def run_served(box: Box, model: ModelProfile, command: Sequence[str], minutes: float) -> Figures:
    with box.serve(model, "guidance"):
        yield from run_command(command, box.limit(minutes))


def run_command(command: Sequence[str], limit_s: float | None = None) -> Figures:
    """Run a command: its seconds, how busy card and process were, and the numbers of the JSON that
    it printed, each named by the keys that lead to it. ``said`` is the end of what it told."""
    if command[0] == "mgl":
        command = [sys.executable, "-m", "mgl", *command[1:]]
    began = time.monotonic()
    with (
        sample_gpu() as busy,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        with subprocess.Popen(command, stdout=out, stderr=err) as process:
            before = os.times()  # what earlier parts started was reaped by now
            try:
                code: int | str = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                code = f"after {limit_s:g} s"
            finally:
                process.kill()
        seconds, after = time.monotonic() - began, os.times()
        printed, said = _read_back(out), _read_back(err)
    worked = after.children_user + after.children_system
    worked -= before.children_user + before.children_system
    yield "seconds", round(seconds, 1)
    yield "gpu_busy", mean_busy(busy)
    yield "process_cpu", round(worked / seconds, 3)
    numbers = read_json(printed)
    yield "said", (said if numbers is not None else printed + said)[-4000:]
    yield from list_numbers(numbers)
    if code:
        raise ResourceError(f"exit {code}: {shlex.join(command)}", hint="see `said`")


def _read_back(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def read_json(printed: str) -> dict[str, Any] | None:
    """The object that a command printed as JSON; None if it printed something else."""
    try:
        read = json.loads(printed)
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def list_numbers(value: Any, *keys: str) -> Figures:
    """The numbers in parsed JSON, named by the keys that lead to them."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from list_numbers(each, *keys, str(key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield ".".join(keys), value


def write_training_rows(data: Path | None, folder: Path, count: int) -> Figures:
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
    models = [known[name] for name in CONFIGS if name in box.profile.models]
    models = [make_profile(TINY)] if box.is_pretended else models
    served, few = known[box.bases[-1]], 2 if box.is_pretended else 0
    suites = [
        _served_part(box, memory, served, _evaluate(box, memory, memory, served.name, few))
        for memory in ("turns", "naive-rag", "gam", "mnemis", "transcript")
    ]
    script = shlex.join([sys.executable, str(ROOT / "scripts/bench/gpu_encoders.py")])
    encoders = f"{script} --layers 1 --texts 8" if box.is_pretended else script
    data = (box.data,) if box.data else ()
    weights = [box.home / "weights" / name for name in box.bases]
    about = "LoCoMo" if box.data else "recall-chat"
    return [
        Step("profiles", "the profiles with made models", _profiles(box, models), (box.tokenizer,)),
        Step("loop", "one process fills the card", _loops(box, models[-1:]), (box.tokenizer,)),
        Step("suites", f"{about} by {served.name}", tuple(suites), (weights[-1], *data)),
        Step("training", "SFT, DPO and GRPO of a builder", _trainings(box), (*weights, *data)),
        Step(
            "encoders",
            "FlagEmbedding's bge-m3 and reranker, made",
            (_command_part(box, encoders, 4, name="bge-m3"),),
        ),
    ]


def _profiles(box: Box, models: Sequence[ModelProfile]) -> tuple[Part, ...]:
    """Each model under each compiler, and its longest context."""
    loads = [
        Part(
            f"{model.name} {compiler}",
            7 if compiler == "guidance" else 5,
            (box.plan(model, compiler).shell(),),
            partial(run_profile, box, model, compiler),
        )
        for compiler in (("guidance",) if box.is_pretended else FORMATS)
        for model in models
    ]
    longest = [
        Part(
            f"{model.name} longest",
            4,
            (box.plan(model, "guidance", longest=True).shell(),),
            partial(run_longest, box, model),
        )
        for model in models
    ]
    return (*loads, *longest)


def _loops(box: Box, largest: Sequence[ModelProfile]) -> tuple[Part, ...]:
    """mgl's own loop on the largest model, if any can be made: builds, and an evaluation."""
    loops: list[Part] = []
    for model in largest:
        shown = (box.plan(model, "guidance").shell(), f"{box.characters:,} characters of each")
        loops += [
            Part(f"{box.memories} novels x{n}", 8, shown, partial(run_loop, box, model, n))
            for n in (max(box.levels) // 8, max(box.levels) // 2)
        ]
        asked = _evaluate(box, "loop", "transcript", model.name, 8 if box.is_pretended else 200)
        loops.append(_served_part(box, "items x128", model, asked))
    return tuple(loops)


def _trainings(box: Box) -> tuple[Part, ...]:
    """A builder of each base: by SFT, that one by DPO, and that one by GRPO."""
    parts = [Part("rows", 1, (), partial(write_training_rows, box.data, Path(), box.rows))]
    for base in box.bases:
        start = f"--base {base}"
        for method in ("sft", "dpo", "grpo"):
            own = f"gpu-{base.rsplit('-', 1)[1].replace('.', '')}-{method}"
            options = f"--rows gpu-{method}.jsonl --profile {box.profile.name} --method {method}"
            parts.append(_command_part(box, f"mgl train builder {own} {start} {options} --json", 8))
            start = f"--from {own}"
    return tuple(parts)


def _served_part(box: Box, name: str, model: ModelProfile, command: Sequence[str]) -> Part:
    return Part(name, 8, (shlex.join(command),), partial(run_served, box, model, command, 7))


def _command_part(box: Box, line: str, minutes: float, name: str = "") -> Part:
    run = partial(run_command, shlex.split(line), box.limit(minutes))
    return Part(name or line, minutes, (line,), run)


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
    if not options.pretend:
        return box
    small = replace(box, levels=PRETENDED, memories=2, characters=8_000, rows=4)
    return replace(small, bases=("smollm2-135m",))


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
