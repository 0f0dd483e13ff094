"""``mgl serve``: run model servers on this machine, for every other command to use."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.doctor import print_check
from mgl.cli.options import AsJson, BaseUrl, Detach, DryRun, Model, argument, option
from mgl.cli.output import clean, one_line, print_json, print_table, say
from mgl.errors import EngineUnavailable, ResourceError, UsageError

if TYPE_CHECKING:
    from mgl.llm.capabilities import ProbeResult
    from mgl.serving.plan import LaunchPlan
    from mgl.serving.records import ServerRecord

SECRETS = ("api_key", "token")

app = typer.Typer(
    help="Run model servers (vLLM) on this machine.",
    rich_markup_mode=None,
    invoke_without_command=True,
)

Port = Annotated[
    int | None, option("--port N", "Port of the server on 127.0.0.1.", min=1, max=65535)
]


@app.callback()
def list_profiles(context: typer.Context, as_json: AsJson = False) -> None:
    """List the serving profiles; the verbs below start, show and stop servers."""
    if context.invoked_subcommand is not None:
        return
    from mgl.serving.profile import load_serving_profiles

    profiles = load_serving_profiles()
    if as_json:
        print_json([profile.model_dump(mode="json") for profile in profiles.values()])
        return
    for one in profiles.values():
        typer.echo(f"{one.name}: {one.description}")
        typer.echo(f"    {', '.join(one.models)}")
    say("`mgl serve start PROFILE` starts its first model; `mgl serve status` lists servers")


@app.command("setup")
def setup(
    card: Annotated[
        list[str] | None,
        option(
            "--card NAME,GB[,DRIVER]",
            "With --dry-run: plan for this GPU, not for the machine's own (repeatable).",
        ),
    ] = None,
    port: Port = None,
    dry_run: DryRun = False,
) -> None:
    """Set up this GPU box, from nothing to a running server.

    The model is chosen by the memory of the GPUs. vLLM is installed from a lock with hashes, and
    the weights come from the model hub; how much is downloaded is said first. If interrupted, run
    the same command again.
    """
    from mgl.cli.setup import set_up_box

    def start_chosen(profile: str, model: str) -> None:
        start(profile, model=model, port=port, detach=True)

    set_up_box(card or (), port=port, dry_run=dry_run, start=start_chosen)


@app.command("start")
def start(
    profile: Annotated[str, argument("PROFILE", "A serving profile (`mgl serve`).")],
    model: Annotated[str | None, option("--model NAME", "Serve this model profile.")] = None,
    port: Port = None,
    python: Annotated[Path | None, option("--python PATH", "The Python that has vLLM.")] = None,
    weights: Annotated[Path | None, option("--weights PATH", "Path of the weights.")] = None,
    adapter: Annotated[
        list[str] | None,
        option("--adapter NAME[=PATH]", "Load a LoRA of `mgl train`, or of a folder (repeatable)."),
    ] = None,
    detach: Detach = False,
    dry_run: DryRun = False,
    as_json: Annotated[bool, option("--json", "With --dry-run: print the plan as JSON.")] = False,
) -> None:
    """Start a server.

    Memory, versions, chat template and adapters are checked first. It listens on 127.0.0.1 only
    and has its own key. Ctrl-C stops it, and it is restarted after a crash.
    """
    from mgl.models import shipped
    from mgl.models.profiles import load_profiles
    from mgl.serving.backends import choose_backend
    from mgl.serving.checks import check_plan
    from mgl.serving.machine import choose_python, find_environment
    from mgl.serving.plan import Launch, make_plan, weights_folder
    from mgl.serving.profile import choose_model, load_serving_profile

    if detach and dry_run:
        raise UsageError("--dry-run starts nothing", hint="leave out --detach")
    if as_json and not dry_run:
        raise UsageError(
            "--json prints a plan and starts nothing",
            hint="add --dry-run; `mgl serve status --json` describes the servers that run",
        )
    home = shipped.home()
    adapters = dict(_parse_adapter(text, home) for text in adapter or ())
    serving = load_serving_profile(profile, home=home)
    chosen = choose_model(serving, load_profiles(home=home), model)
    device = serving.machine.device
    explicit = None if weights is None else weights.expanduser().absolute()
    folder = weights_folder(chosen, home, explicit)
    launch = Launch(folder, choose_python(device, home, python), port, adapters, home)
    plan = make_plan(serving, chosen, launch)
    if as_json:
        named = {name: str(path) for name, path in adapters.items()}
        print_json({**asdict(plan), "adapters": named, "base_url": plan.base_url})
        return
    if dry_run:
        typer.echo(plan.shell())
        return
    _require_free(home, plan.port)
    environment = find_environment(device, home, python)
    failed = []
    for check in check_plan(plan, serving, chosen, weights=folder, environment=environment):
        print_check(check, err=True)
        failed += [] if check.ok else [check]
    if failed:
        names = ", ".join(check.name for check in failed)
        raise ResourceError(f"the server was not started: {names}", hint=one_line(failed[0].hint))
    is_measured = serving.settings_for(chosen.name).structured_outputs == "measured"
    if is_measured and chosen.task == "generate" and folder is not None:
        compiler = choose_backend(environment, folder, home, note=say)
        plan = make_plan(serving, chosen, replace(launch, compiler=compiler))
    for line in plan.elsewhere:
        say(f"on the other machines: {line}")
    _run(plan, home, detach=detach)


@app.command("status")
def status(as_json: AsJson = False) -> None:
    """List servers, running or crashed, and loaded models.

    OpenVINO runs a model in a process of its own. Commands share it, and it ends after some idle
    minutes.
    """
    from mgl.llm.engines.shared import list_hosts
    from mgl.models.shipped import home
    from mgl.serving.supervisor import is_ready

    folder = home()
    hosts = list_hosts(folder)
    records, orphans = _find_servers(folder)
    records = [
        record
        if record.state != "ready" or is_ready(record)
        else replace(record, progress="but does not answer now")
        for record in records
    ]
    if as_json:
        print_json(
            [_to_json(record, folder, supervised=True) for record in records]
            + [_to_json(record, folder, supervised=False) for record in orphans]
            + [{**asdict(host), "socket": str(host.socket)} for host in hosts]
        )
        return
    for host in hosts:
        typer.echo(one_line(host.describe()))
    if not records and not hosts and not orphans:
        typer.echo("no server runs: `mgl serve start PROFILE` starts one")
    if not records:
        return
    print_table(
        ("PORT", "MODEL", "TASK", "PROFILE", "RESTARTS", "ADAPTERS", "STATE"),
        [
            (
                str(record.port),
                record.model,
                record.task,
                record.profile,
                str(record.restarts),
                ", ".join(record.adapters) or "-",
                f"{record.state}, {record.progress}" if record.progress else record.state,
            )
            for record in records
        ],
    )
    for record in records:
        crash = f"; last crash: {record.last_error}" if record.last_error else ""
        typer.echo(one_line(f"{record.port}: {record.base_url}, log {record.log}{crash}"))


@app.command("stop")
def stop(port: Port = None) -> None:
    """Stop a server and all its processes.

    Without --port the models that OpenVINO runs are stopped, too; the next command that needs one
    starts it again.
    """
    from mgl.llm.engines.shared import list_hosts, stop_host
    from mgl.models.shipped import home
    from mgl.serving.supervisor import request_stop

    folder = home()
    records, orphans = _find_servers(folder)
    found = [each for each in (*records, *orphans) if port in (None, each.port)]
    if port is None and len(found) > 1:
        ports = ", ".join(f"{each.port} ({each.model})" for each in found)
        raise UsageError(f"{len(found)} servers run: {ports}", hint="choose one with --port")
    chosen = found[0] if found else None
    hosts = list_hosts(folder) if port is None else []
    for host in hosts:
        stop_host(host)
        typer.echo(f"stopped {host.model_id}, process {host.pid}")
    if chosen is None and hosts:
        return
    if chosen is None:
        typer.echo("no server runs" + ("" if port is None else f" on port {port}"))
        return
    request_stop(folder, chosen)
    typer.echo(f"stopped {chosen.model} on port {chosen.port}")


@app.command("probe")
def probe(base_url: BaseUrl = None, model: Model = None, as_json: AsJson = False) -> None:
    """Test a server for the features that mgl relies on.

    Constraints are tried one by one. An embedding or reranking server is tested at its task if `mgl
    serve` started it.
    """
    from mgl.llm.capabilities import load_capabilities, save_capabilities
    from mgl.models.shipped import home
    from mgl.serving.probe import probe as probe_server
    from mgl.serving.probe import probe_pooling
    from mgl.serving.records import find_server, server_at

    folder = home()
    own = server_at(folder, base_url) if base_url else find_server(folder, model, note=say)
    if own is not None:
        base_url, model = own.base_url, model or own.served_name
    if base_url is None:
        raise EngineUnavailable(
            "no server to probe",
            hint="start one with `mgl serve start PROFILE`, or name one with --base-url",
        )
    key = os.environ.get("MGL_API_KEY") or (own.api_key if own is not None else None)
    say(f"probing {base_url} with a dozen short requests")
    if own is not None and own.task != "generate":
        tried = asyncio.run(probe_pooling(base_url, key, own.served_name))
        if as_json:
            print_json({"base_url": base_url, "findings": [asdict(one) for one in tried]})
        else:
            _print_findings(tried)
        return
    found = asyncio.run(probe_server(base_url, key, model))
    known = load_capabilities(folder, base_url, found.server, found.model)
    found = replace(found, speed=None if known is None else known.speed)
    if found.is_complete:
        save_capabilities(folder, base_url, found)
    if as_json:
        print_json({**asdict(found), "base_url": base_url, "warning": found.warning})
        return
    typer.echo(f"{found.server} at {base_url}, model {found.model}")
    _print_findings(found.findings)
    if found.warning is not None:
        say(f"warning: {found.warning}")


def _print_findings(findings: Iterable[ProbeResult]) -> None:
    rows = [(one.name, one.verdict, one.said) for one in findings]
    print_table(("TRIAL", "VERDICT", "ANSWER"), rows)


def _parse_adapter(text: str, home: Path) -> tuple[str, Path]:
    """The identity by which the server knows the adapter, and its folder."""
    from mgl.models.adapters import find_adapter, open_lora

    name, equals, path = text.partition("=")
    if not name or bool(equals) != bool(path):
        raise UsageError(
            f"the adapter {text!r} is not NAME or NAME=PATH",
            hint="for example tales=adapters/tales",
        )
    folder = Path(path).expanduser().absolute() if equals else find_adapter(name, home).folder
    return open_lora(name, folder)[0], folder


def _require_free(home: Path, port: int) -> None:
    """UsageError if one of our servers has the port; crashed servers are reported once."""
    if os.name != "posix":
        raise UsageError("vLLM does not run on this system", hint="use Linux, or WSL on Windows")
    from mgl.serving.supervisor import port_taken

    records, orphans = _find_servers(home)
    if any(record.port == port for record in orphans):
        raise UsageError(
            f"port {port} is held by a server that lost its supervisor",
            hint=f"stop it: `mgl serve stop --port {port}`",
        )
    for record in records:
        if record.port == port:
            raise port_taken(port, record)


def _run(plan: LaunchPlan, home: Path, *, detach: bool) -> None:
    from mgl.serving.records import remove_record
    from mgl.serving.supervisor import Supervisor, start_detached

    with _report_start(home) as report:
        if detach:
            final = start_detached(plan, home, report=report)
        else:
            final = Supervisor(plan, home, report=report).run()
    if final.state == "failed":
        remove_record(home, final.port)
        raise EngineUnavailable(
            f"the server {final.model} failed: {final.last_error}",
            hint=f"{final.hint} (log: {final.log})",
        )
    say(f"stop it with `mgl serve stop --port {plan.port}`" if detach else "stopped")


@contextmanager
def _report_start(home: Path) -> Iterator[Callable[[ServerRecord], None]]:
    """Report a starting server: one updated line on a terminal, plain lines elsewhere.

    The line with the server's URL goes to stdout.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from mgl.serving.records import run_file

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("")
    restarts = 0

    def report(record: ServerRecord) -> None:
        nonlocal restarts
        if record.restarts > restarts:
            restarts = record.restarts
            bar.stop()
            say(f"{record.model} crashed: {record.last_error}")
        if record.state == "ready":
            bar.stop()
            typer.echo(f"{record.model} is ready at {record.base_url}")
            path = run_file(home, record.port)
            say(f"mgl commands find it by themselves; its key for other programs is in {path}")
        elif record.state in ("starting", "restarting"):
            again = "restarting, " if record.state == "restarting" else ""
            text = f"{record.model}: {again}{record.progress or 'starting'}"
            if sys.stderr.isatty():
                bar.update(task, description=clean(text))
                bar.start()
            else:
                say(text)

    try:
        yield report
    finally:
        bar.stop()


def _find_servers(home: Path) -> tuple[list[ServerRecord], list[ServerRecord]]:
    """Find the servers that run, and those that lost their supervisor; report the latter, and
    once those that ended without being stopped."""
    from mgl.serving.records import find_leftovers, list_running

    orphans = []
    for leftover in find_leftovers(home):
        say(leftover.describe())
        if leftover.alive:
            orphans.append(leftover.record)
    return list_running(home), orphans


def _to_json(record: ServerRecord, home: Path, *, supervised: bool) -> dict[str, Any]:
    """Describe a server without its secrets, which only its run file holds."""
    from mgl.serving.records import run_file

    public = {name: value for name, value in asdict(record).items() if name not in SECRETS}
    return {
        **public,
        "supervised": supervised,
        "port": record.port,
        "log": str(record.log),
        "adapters": sorted(record.adapters),
        "run_file": str(run_file(home, record.port)),
    }
