"""``mgl serve``: start a model server for a serving profile, and look after those that run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from mgl.cli.output import one_line, print_json, say
from mgl.errors import EngineUnavailable, ResourceError, UsageError

if TYPE_CHECKING:
    from mgl.serving.plan import LaunchPlan
    from mgl.serving.runfile import ServerRecord

__all__ = ["serve"]

_WITH: Final[Mapping[str, tuple[str, ...]]] = {
    "PROFILE": (
        *("--model", "--task", "--port", "--python", "--weights", "--adapter", "--backend"),
        *("--detach", "--dry-run"),
    ),
    "--status": ("--json",),
    "--stop": ("--port",),
    "--load-adapter": ("--port",),
    "--unload-adapter": ("--port",),
    "--probe": ("--base-url", "--model", "--json"),
    "the list of profiles": ("--json",),
}
"""What may be given, and which options go with it."""


def serve(
    profile: Annotated[
        str | None, typer.Argument(metavar="PROFILE", help="A serving profile: kind of machine.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Serve this model profile.")
    ] = None,
    task: Annotated[
        Literal["generate", "embed", "rerank"] | None,
        typer.Option("--task", help="Serve the profile's model for this."),
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Listen there on 127.0.0.1.")
    ] = None,
    python: Annotated[
        Path | None, typer.Option("--python", metavar="PATH", help="The Python that has vLLM.")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option("--weights", metavar="PATH", help="Serve the weights there.")
    ] = None,
    adapter: Annotated[
        list[str] | None,
        typer.Option("--adapter", metavar="NAME=PATH", help="Load a LoRA adapter; repeatable."),
    ] = None,
    backend: Annotated[
        Literal["guidance", "xgrammar", "outlines"] | None,
        typer.Option("--backend", help="What compiles constraints in the server."),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Leave it running, and return once it is ready.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the server's command, and start nothing.")
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="Show the servers that run.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop a server.")] = False,
    load_adapter: Annotated[
        str | None,
        typer.Option("--load-adapter", metavar="NAME=PATH", help="Load one into a running server."),
    ] = None,
    unload_adapter: Annotated[
        str | None,
        typer.Option("--unload-adapter", metavar="NAME", help="Unload one from a running server."),
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="Try what a running server really honours.")
    ] = False,
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="The server that --probe tries.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run a model on this machine with vLLM, for every other command to use.

    Without arguments the serving profiles are listed. The server listens on 127.0.0.1 only and
    has a key of its own. In the foreground Ctrl-C stops it; after a crash it is started again.
    """
    from mgl.cli import servers

    options = {
        **{"--model": model, "--task": task, "--port": port, "--python": python},
        **{"--weights": weights, "--adapter": adapter, "--backend": backend, "--detach": detach},
        **{"--dry-run": dry_run, "--base-url": base_url, "--json": as_json},
    }
    asked = {
        **{"PROFILE": profile, "--status": status, "--stop": stop, "--probe": probe},
        **{"--load-adapter": load_adapter, "--unload-adapter": unload_adapter},
    }
    what = _only_one(asked, options)
    if profile is not None:
        adapters = dict(_named_path(text, "--adapter") for text in adapter or ())
        plan = _planned(
            profile, model, task, port, python, weights, adapters, backend, check=not dry_run
        )
        if dry_run:
            typer.echo(plan.shell())
        elif detach:
            _start_detached(plan)
        else:
            _start(plan)
    elif what == "--status":
        servers.show(as_json)
    elif what == "--stop":
        servers.stop(port)
    elif load_adapter is not None:
        servers.load(*_named_path(load_adapter, "--load-adapter"), port)
    elif unload_adapter is not None:
        servers.unload(unload_adapter, port)
    elif what == "--probe":
        servers.probe_server(base_url, model, as_json)
    else:
        _list_profiles(as_json)


def _only_one(asked: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """Which one thing is asked for; UsageError where there are two, or options of another."""
    given = [name for name, value in asked.items() if value not in (None, False)]
    if len(given) > 1:
        raise UsageError(
            f"{given[0]} and {given[1]} exclude each other", hint="give one of them at a time"
        )
    what = given[0] if given else "the list of profiles"
    for name, value in options.items():
        if value not in (None, False, []) and name not in _WITH[what]:
            raise UsageError(
                f"{name} does not go with {what}",
                hint=f"with {what} go: {', '.join(_WITH[what])}",
            )
    if options["--detach"] and options["--dry-run"]:
        raise UsageError(
            "--detach and --dry-run exclude each other", hint="--dry-run starts nothing"
        )
    return what


def _named_path(text: str, option: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise UsageError(
            f"{option} {text!r} is not NAME=PATH",
            hint=f"for instance {option} tales=adapters/tales",
        )
    return name, Path(path).expanduser().absolute()


def _planned(
    profile_name: str,
    model_name: str | None,
    task: Literal["generate", "embed", "rerank"] | None,
    port: int | None,
    python: Path | None,
    weights: Path | None,
    adapters: Mapping[str, Path],
    backend: Literal["guidance", "xgrammar", "outlines"] | None,
    *,
    check: bool,
) -> LaunchPlan:
    """What is to be started, after every check where ``check``."""
    from mgl.models import shipped
    from mgl.models.profiles import load_profiles
    from mgl.serving.checks import check_plan
    from mgl.serving.environment import expected_python, find_environment
    from mgl.serving.plan import make_plan, weights_folder
    from mgl.serving.profile import choose_model, load_serving_profile

    home = shipped.home()
    profile = load_serving_profile(profile_name, home=home)
    model = choose_model(profile, load_profiles(home=home), model=model_name, task=task)
    device = profile.machine.device
    explicit = None if weights is None else weights.expanduser().absolute()
    folder = weights_folder(model, home, explicit)
    plan = make_plan(
        profile,
        model,
        weights=folder,
        python=expected_python(device, home, python),
        port=port,
        adapters=adapters,
        backend=backend,
        home=home,
    )
    if not check:
        return plan
    _require_free(home, plan.port)
    environment = find_environment(device, home, python)
    bad = []
    for one in check_plan(plan, profile, model, weights=folder, environment=environment):
        say(f"{'ok' if one.ok else '!!'}  {one.name}: {one_line(one.detail)}")
        if not one.ok:
            say(f"    → {one_line(one.hint)}")
            bad.append(one)
    if bad:
        names = ", ".join(one.name for one in bad)
        raise ResourceError(f"the server is not started: {names}", hint=one_line(bad[0].hint))
    for line in plan.elsewhere:
        say(f"on the other machines: {line}")
    return plan


def _require_free(home: Path, port: int) -> None:
    """UsageError where a server of ours has the port; what ended is said and cleaned."""
    if os.name != "posix":
        raise UsageError("vLLM does not run on this system", hint="use Linux, or WSL on Windows")
    from mgl.serving.discovery import leftovers
    from mgl.serving.runfile import running
    from mgl.serving.supervisor import port_taken

    for leftover in leftovers(home):
        say(leftover.describe())
        if leftover.alive and leftover.record.port == port:
            raise UsageError(
                f"port {port} is held by a server that lost its supervisor",
                hint=f"`mgl serve --stop --port {port}` ends it",
            )
    for record in running(home):
        if record.port == port:
            raise port_taken(port, record)


def _start(plan: LaunchPlan) -> None:
    from mgl.cli.readiness import telling
    from mgl.models import shipped
    from mgl.serving.supervisor import Supervisor

    home = shipped.home()
    with telling(home) as report:
        final = Supervisor(plan, home, report=report).run()
    _require_not_failed(final, home)
    say("stopped")


def _start_detached(plan: LaunchPlan) -> None:
    from mgl.cli.readiness import telling
    from mgl.models import shipped
    from mgl.serving.detached import start_detached

    home = shipped.home()
    with telling(home) as report:
        final = start_detached(plan, home, report=report)
    _require_not_failed(final, home)
    say(f"it keeps running: `mgl serve --stop --port {plan.port}` ends it")


def _require_not_failed(final: ServerRecord, home: Path) -> None:
    from mgl.serving.runfile import forget

    if final.state == "failed":
        forget(home, final.port)
        raise EngineUnavailable(
            f"the server {final.model} failed: {final.last_error}",
            hint=f"{final.hint} (log: {final.log})",
        )


def _list_profiles(as_json: bool) -> None:
    from mgl.serving.profile import load_serving_profiles

    profiles = load_serving_profiles()
    if as_json:
        print_json([profile.model_dump(mode="json") for profile in profiles.values()])
        return
    for one in profiles.values():
        typer.echo(f"{one.name}: {one.description}")
        typer.echo(f"    {', '.join(one.models)}")
    say("`mgl serve PROFILE` starts its first model; `mgl serve --status` shows what runs")
