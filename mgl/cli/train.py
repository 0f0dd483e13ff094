"""``mgl train``: small models that a memory is read with, and the data that they are trained on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mgl.cli.compare import Rows, compare
from mgl.cli.options import (
    AsJson,
    DataFolder,
    DryRun,
    ModelChoice,
    Seed,
    argument,
    choose_model,
    complete_id,
    complete_source,
    open_lab,
    option,
    split_list,
    with_options,
)
from mgl.cli.output import print_json, print_pairs, say
from mgl.cli.progress import open_observer
from mgl.errors import UsageError

if TYPE_CHECKING:
    from mgl.models.adapters import LoraAdapter

FREE = "longmemeval-s,hotpotqa,musique"

app = typer.Typer(
    help="Train the small models that memories use.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Name = Annotated[str, argument("NAME", "The new adapter's name.")]
Corpora = Annotated[
    list[str] | None, option("--corpus NAME", "Human labels to learn from (repeatable).")
]
HoldOut = Annotated[
    list[str] | None, option("--hold-out SOURCE", "Sources to leave out (repeatable).")
]
On = Annotated[
    str | None,
    option("--on MEMORY", "Learn from questions that the model writes about this memory's text."),
]
Questions = Annotated[int | None, option("--questions N", "Write at most N questions.", min=1)]
Epochs = Annotated[int, option("--epochs N", "Maximum epochs.", min=1)]
Rate = Annotated[float, option("--rate X", "Peak learning rate.")]
Base = Annotated[str, option("--base PROFILE", "Encoder to adapt.")]


@app.command("data")
def data(
    out: Annotated[Path, option("--out FILE", "JSON lines to write.")],
    corpus: Corpora = None,
    log: Annotated[
        list[str] | None,
        option(
            "--log MEMORY|RUN",
            "Learn from the model calls of a memory, or of an evaluation run's folder "
            "(repeatable).",
        ),
    ] = None,
    preferences: Annotated[
        bool, option("--preferences", "Of --log, collect pairs of a better and a worse reply.")
    ] = False,
    hold_out: HoldOut = None,
    folder: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Collect rows to train on, each with its source and licence.

    Rows of one source are all for training or all for development. A run's replies are learnt from
    where they made its memory answer rightly what direct and naive-rag, asked beside it, did not.
    """
    from mgl.training.corpora import collect
    from mgl.training.data import Row, describe_rows, write_rows

    held, rows, facts = frozenset(split_list(hold_out)), list[Row](), {}
    if corpus or not log:
        if folder is None:
            raise UsageError(
                "the folder of the data is not named", hint="give --data, or set MGL_DATA"
            )
        rows += collect(split_list(corpus or [FREE]), folder, held)
    if log:
        with open_lab() as lab:
            found = [lab.read_log(complete_source(lab, name), held) for name in log]
        for one in found:
            rows += one.preferences if preferences else one.examples
        facts = {
            "questions": sum(one.questions for one in found),
            "won": sum(one.won for one in found),
        }
    rows = list(dict.fromkeys(rows))
    if not rows:
        raise _find_nothing(facts, preferences=preferences)
    write_rows(rows, out)
    facts = describe_rows(rows) | facts
    _print_facts(facts, as_json)
    say(f"wrote {out}")


_RESUMES = "If interrupted, run the same command again: it resumes, and ends with the same weights."


@app.command(
    "reranker",
    help=f"Train an encoder that judges whether a text answers a question.\n\n"
    f"Commands use it with --reranker NAME. {_RESUMES}",
)
@app.command(
    "retriever",
    help=f"Train an embedder that finds evidence.\n\n"
    f"Commands use it with --embedder NAME. {_RESUMES}",
)
@with_options(choice=choose_model, omit=("embedder", "reranker", "adapter"))
def retrieval_model(
    context: typer.Context,
    name: Name,
    rows: Rows = None,
    on: On = None,
    questions: Questions = None,
    base: Base = "all-minilm-l6-v2",
    epochs: Epochs = 3,
    rate: Rate = 5e-4,
    seed: Seed = 0,
    *,
    choice: ModelChoice,
    as_json: AsJson = False,
) -> None:
    from mgl.lab import Lab
    from mgl.models.shipped import home
    from mgl.training.data import Pair, read_rows
    from mgl.training.fitting import FitSettings, require_training
    from mgl.training.records import Training
    from mgl.training.reranker import make_reranker
    from mgl.training.retriever import make_retriever

    _check(name, rows, on)
    make = make_retriever if context.info_name == "retriever" else make_reranker
    settings = FitSettings(epochs=epochs, rate=rate, seed=seed)
    learnt = [row for path in rows or () for row in read_rows(path, Pair)]
    with open_observer() as observer:
        if on is not None:
            require_training()
            with Lab.open(choice, observer=observer) as lab:
                learnt += lab.write_questions(complete_id(lab, on), questions)
        adapter = make(Training(name, settings, home(), observer), learnt, base)
    _print(adapter, as_json)


@app.command("boundary")
def boundary(
    name: Name,
    rows: Rows = None,
    base: Base = "all-minilm-l6-v2",
    epochs: Epochs = 3,
    rate: Rate = 5e-4,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train an encoder that finds changes of topic.

    If interrupted, run the same command again: it resumes, and ends with the same weights.
    """
    from mgl.models.shipped import home
    from mgl.training.boundary import make_boundary
    from mgl.training.data import Dialogue, read_rows
    from mgl.training.fitting import FitSettings
    from mgl.training.records import Training

    _check(name, rows)
    learnt = [row for path in rows or () for row in read_rows(path, Dialogue)]
    settings = FitSettings(epochs=epochs, rate=rate, seed=seed)
    with open_observer() as observer:
        adapter = make_boundary(Training(name, settings, home(), observer), learnt, base)
    _print(adapter, as_json)


@app.command(
    "yes-no",
    help=f"Train a language model to judge by Yes or No.\n\n"
    f"Commands use it with --adapter NAME. {_RESUMES}",
)
@app.command(
    "builder",
    help=f"Train a language model to build memories.\n\n"
    f"Commands use it with --adapter NAME. {_RESUMES}",
)
def language_model(
    context: typer.Context,
    name: Name,
    rows: Rows = None,
    method: Annotated[
        Literal["sft", "dpo", "grpo"],
        option("--method", "Imitate answers, prefer the better, or raise a reward."),
    ] = "sft",
    base: Annotated[str | None, option("--base PROFILE", "Language model to adapt.")] = None,
    start: Annotated[
        str | None, option("--from ADAPTER", "Continue training from ADAPTER.")
    ] = None,
    machine: Annotated[str, option("--profile NAME", "The machine (`mgl serve`).")] = "cpu",
    weights: Annotated[
        Path | None, option("--weights PATH", "Load the base from this folder or GGUF file.")
    ] = None,
    epochs: Annotated[
        int | None, option("--epochs N", "Maximum epochs. [default: 2, of yes-no 1]", min=1)
    ] = None,
    rate: Rate = 2e-4,
    rank: Annotated[int, option("--rank N", "Rank of the LoRA.", min=1)] = 16,
    batch: Annotated[int, option("--batch N", "Batch size.", min=1)] = 8,
    max_tokens: Annotated[
        int | None,
        option(
            "--max-tokens N",
            "Leave out rows of more tokens. [default: 2048, of yes-no 512]",
            min=16,
        ),
    ] = None,
    seed: Seed = 0,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    from mgl.models.adapters import find_adapter
    from mgl.models.fetch import fetch_weights
    from mgl.models.profiles import load_profile
    from mgl.models.shipped import home
    from mgl.observer import report_fetch
    from mgl.serving.profile import load_serving_profile
    from mgl.training.causal import CausalKind, CausalTask, make_causal
    from mgl.training.data import Example, Preference, read_rows
    from mgl.training.fitting import FitSettings
    from mgl.training.recipes import CausalBase, Recipe, TrainingPlan
    from mgl.training.records import Training

    _check(name, rows)
    kind: CausalKind = "yes-no" if context.info_name == "yes-no" else "builder"
    if kind == "yes-no" and method != "sft":
        raise UsageError(f"a judge does not learn by {method}", hint="leave out --method")
    usual = (1, 512) if kind == "yes-no" else (2, 2048)
    device = load_serving_profile(machine, home=home()).machine.device
    begun = None if start is None else find_adapter(start, home(), kind)
    is_small = device == "cpu" or kind == "yes-no"
    model = "qwen2.5-coder-0.5b" if is_small else "qwen2.5-7b-instruct"
    profile = load_profile(base or (model if begun is None else begun.manifest.base))
    learnt: list[Example] | list[Preference]
    if method == "dpo":
        learnt = [row for path in rows or () for row in read_rows(path, Preference)]
    else:
        learnt = [row for path in rows or () for row in read_rows(path, Example)]
    settings = FitSettings(epochs or usual[0], batch, rate, rank, max_tokens or usual[1], seed=seed)
    recipe = Recipe(
        method,
        at_once=math.gcd(batch, 4) if device == "cuda" else 1,
        start=begun,
        vllm=device == "cuda",
    )
    plan = TrainingPlan.of(profile, learnt, settings, recipe, device)
    if dry_run:
        _print_facts(plan.describe(), as_json)
        return
    say(f"about {plan.hours:.1f} hours on such a machine, and {plan.memory_gb:.1f} GB of weights")
    _require_device(machine, device)
    with open_observer() as observer:
        folder = fetch_weights(profile, home(), explicit=weights, progress=report_fetch(observer))
        own = CausalBase(profile.name, folder, profile.weights.hub.repo)
        task = CausalTask(kind, own, learnt, recipe)
        adapter = make_causal(Training(name, settings, home(), observer), task)
    _print(adapter, as_json)


app.command("compare")(compare)


def _find_nothing(facts: Mapping[str, int], *, preferences: bool) -> UsageError:
    """The error where no rows were found; ``facts`` are those of the logs, empty without one."""
    problem, hint = "there is nothing to learn from", "name another corpus or log"
    if facts and preferences:
        problem = "no reply in the log has a better one beside it"
    elif facts and not facts["questions"]:
        problem = "the log of a memory does not tell which of its replies were right"
        hint = "name the folder of an evaluation run, or collect --preferences"
    elif facts:
        hint = (
            f"{facts['won']} of {facts['questions']} answers beat those of direct and "
            "naive-rag, none by what a call wrote; --preferences need no right answers"
        )
    return UsageError(problem, hint=hint)


def _require_device(profile: str, device: str) -> None:
    from mgl.retrieval.computing import has_gpu

    if device == "cuda" and not has_gpu():
        raise UsageError(
            f"the profile {profile} is for a GPU, and this machine has none",
            hint="use --profile cpu with a small --base, or --dry-run",
        )


def _check(name: str, rows: list[Path] | None, on: str | None = None) -> None:
    """Check what can be checked before anything is asked or read."""
    from mgl.models.adapters import check_name

    check_name(name)
    if not rows and on is None:
        raise UsageError("there is nothing to learn from", hint="give --rows FILE or --on MEMORY")


def _print(adapter: LoraAdapter, as_json: bool) -> None:
    manifest = adapter.manifest
    facts = {
        "adapter": adapter.identity,
        "kind": manifest.kind,
        "base": manifest.base,
        "licence of the data": manifest.licence,
        **{key: f"{value:.3f}" for key, value in manifest.metrics.items()},
        "folder": str(adapter.folder),
    }
    if as_json:
        print_json({**facts, **manifest.metrics, "rows": dict(manifest.rows)})
    else:
        print_pairs(facts)


def _print_facts(facts: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(facts)
    else:
        print_pairs({key.replace("_", " "): _format(value) for key, value in facts.items()})


def _format(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count:,}" for name, count in value.items())
    return f"{value:,}" if isinstance(value, int | float) else str(value)
