"""From a bare GPU box to a server (``mgl serve setup``), in steps that a second run skips."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mgl.cli.doctor import print_check
from mgl.cli.output import one_line, say
from mgl.errors import ResourceError, UsageError

if TYPE_CHECKING:
    from mgl.models.profiles import ModelProfile
    from mgl.serving.machine import Machine


def set_up_box(
    cards: Sequence[str], *, port: int | None, dry_run: bool, start: Callable[[str, str], None]
) -> None:
    """Take every step to a running server, or print them all.

    ``cards`` are made-up GPUs, as ``mgl.serving.box.parse_card`` takes them; ``start`` gets the
    profile's and the model's name, and starts them on ``port``, or on the default one.
    """
    from mgl.models import shipped
    from mgl.models.fetch import find_weights
    from mgl.models.profiles import load_profiles
    from mgl.serving import box, installing
    from mgl.serving.checks import check_gpus
    from mgl.serving.machine import choose_python
    from mgl.serving.plan import Launch, make_plan
    from mgl.serving.profile import load_serving_profiles
    from mgl.serving.records import list_running

    if cards and not dry_run:
        raise UsageError("--card is a made-up GPU", hint="add --dry-run to see what it would get")
    home = shipped.home()
    machine = _find_machine(cards)
    for gpu in machine.gpus:
        typer.echo(f"card: {gpu.name}, {gpu.total / 1e9:.0f} GB, driver {gpu.driver}")
    profile, model = box.choose_for_cards(
        machine.gpus, load_serving_profiles(), load_profiles(home=home)
    )
    typer.echo(f"profile: {profile.name} ({profile.description.rstrip('.')})")
    missing = installing.find_missing(home)
    checks = check_gpus(profile, model, machine)
    if missing is not None:
        checks.append(box.check_driver(machine.gpus[0]))
    for check in checks:
        print_check(check)
    if failed := [check for check in checks if not check.ok]:
        raise ResourceError(
            f"{model.name} cannot be served: {failed[0].detail}", hint=one_line(failed[0].hint)
        )
    weights = find_weights(model, home)
    size = f"{box.find_size(model) / 1e9:.1f} GB"
    typer.echo(f"vLLM: {missing or choose_python('cuda', home)}")
    if missing is not None:
        typer.echo(f"to install: {installing.describe_install(home)}")
    typer.echo(
        f"weights: {weights}" if weights else f"weights: {size} from {model.weights.hub.repo}"
    )
    launch = Launch(weights, choose_python("cuda", home), home=home, port=port)
    plan = make_plan(profile, model, launch)
    wish = "" if port is None else f" --port {port}"
    typer.echo(f"server: mgl serve start {profile.name} --model {model.name}{wish} --detach")
    if dry_run:
        typer.echo(plan.shell())
        return
    if missing is not None:
        installing.install_vllm(home, report=say)
    if weights is None:
        _fetch(model, home, size)
    if any(one.model == model.name and one.state == "ready" for one in list_running(home)):
        typer.echo(f"{model.name} is served already")
        return
    start(profile.name, model.name)


def _find_machine(cards: Sequence[str]) -> Machine:
    from mgl.serving.box import parse_card
    from mgl.serving.machine import Machine, inspect_machine

    if cards:
        return Machine(None, tuple(parse_card(one) for one in cards))
    found = inspect_machine("cuda")
    if found.trouble or not found.gpus:
        raise ResourceError(
            found.trouble or "CUDA_VISIBLE_DEVICES hides every GPU",
            hint="install the driver until nvidia-smi lists a GPU; without one scripts/demo runs "
            "on the CPU, and --dry-run --card 'NVIDIA L4,24' shows what a card would get",
        )
    return found


def _fetch(model: ModelProfile, home: Path, size: str) -> None:
    from mgl.cli.progress import open_observer
    from mgl.models import shipped
    from mgl.models.fetch import fetch_weights
    from mgl.models.hub import cache_folder
    from mgl.observer import report_fetch
    from mgl.serving.box import find_size

    shipped.require_space(cache_folder(), find_size(model))
    say(f"fetching {model.name} from the hub: {size}")
    with open_observer() as observer:
        fetch_weights(model, home, allow_hub=True, progress=report_fetch(observer))
