"""What ``mgl serve`` does with servers that run: show, stop, load and unload adapters, probe."""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mgl.cli.output import one_line, print_json, print_table, say
from mgl.errors import EngineError, EngineUnavailable, ResourceError, UsageError

if TYPE_CHECKING:
    from mgl.serving.runfile import ServerRecord

__all__ = ["load", "probe_server", "show", "stop", "unload"]

_SECRET = ("api_key", "token")


def show(as_json: bool) -> None:
    """The servers that run, with what they are at; what is left of others is said once."""
    from mgl.models.shipped import home
    from mgl.serving.discovery import leftovers
    from mgl.serving.runfile import running

    folder = home()
    alone = []
    for leftover in leftovers(folder):
        say(leftover.describe())
        if leftover.alive:
            alone.append(leftover.record)
    records = [_as_it_is(record) for record in running(folder)]
    if as_json:
        print_json(
            [_json(record, folder, supervised=True) for record in records]
            + [_json(record, folder, supervised=False) for record in alone]
        )
        return
    if alone and not records:
        return
    if not records:
        typer.echo("no server runs: `mgl serve PROFILE` starts one")
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
        said = f"; last crash: {record.last_error}" if record.last_error else ""
        typer.echo(one_line(f"{record.port}: {record.base_url}, log {record.log}{said}"))


def stop(port: int | None) -> None:
    """Stop a server and all its processes, whether or not its supervisor lives."""
    from mgl.models.shipped import home
    from mgl.serving.discovery import leftovers
    from mgl.serving.runfile import running
    from mgl.serving.supervisor import request_stop

    folder = home()
    records = running(folder)
    for leftover in leftovers(folder):
        if leftover.alive:
            records.append(leftover.record)
        else:
            say(leftover.describe())
    chosen = _chosen(records, port)
    if chosen is None:
        typer.echo("no server runs" + ("" if port is None else f" on port {port}"))
        return
    request_stop(folder, chosen)
    typer.echo(f"stopped {chosen.model} on port {chosen.port}")


def load(name: str, path: Path, port: int | None) -> None:
    """Load an adapter into a running server, if it was made for its model."""
    from mgl.models import shipped
    from mgl.models.profiles import load_profile
    from mgl.serving import adapters
    from mgl.serving.checks import check_adapter
    from mgl.serving.plan import weights_folder
    from mgl.serving.profile import load_serving_profile

    home = shipped.home()
    record = _ready(home, port)
    model = load_profile(record.model, home=home)
    settings = load_serving_profile(record.profile, home=home).settings_for(model.name)
    check = check_adapter(name, path, model, settings, weights=weights_folder(model, home))
    if not check.ok:
        raise ResourceError(f"{check.name}: {check.detail}", hint=check.hint)
    adapters.load(record.base_url, record.api_key, name, path)
    typer.echo(f"{record.model} on port {record.port} has the adapter {name}")


def unload(name: str, port: int | None) -> None:
    """Unload an adapter from a running server."""
    from mgl.models.shipped import home
    from mgl.serving import adapters

    record = _ready(home(), port)
    adapters.unload(record.base_url, record.api_key, name)
    typer.echo(f"{record.model} on port {record.port} has the adapter {name} no more")


def probe_server(base_url: str | None, model: str | None, as_json: bool) -> None:
    """Try what a server honours, one that mgl runs or the one at a URL, print it and keep it."""
    from mgl.llm.honoured import keep
    from mgl.models.shipped import home
    from mgl.serving.discovery import find_server, server_at
    from mgl.serving.probing import probe

    folder = home()
    url = base_url or os.environ.get("MGL_BASE_URL")
    own = server_at(folder, url) if url else find_server(folder, model, note=say)
    if own is None and url is None:
        raise EngineUnavailable(
            "there is no server to try",
            hint="`mgl serve PROFILE` starts one, or name one with --base-url",
        )
    if own is not None:
        url, model = own.base_url, model or own.served_name
    assert url is not None
    key = os.environ.get("MGL_API_KEY") or (own.api_key if own is not None else None)
    say(f"trying {url} with a dozen short requests")
    found = asyncio.run(probe(url, key, model))
    if found.complete:
        keep(folder, url, found)
    if as_json:
        print_json({**asdict(found), "base_url": url, "warning": found.warning})
        return
    typer.echo(f"{found.server} at {url}, model {found.model}")
    print_table(("TRIED", "VERDICT", "ANSWER"), found.rows())
    if found.warning is not None:
        say(f"warning: {found.warning}")


def _chosen(records: list[ServerRecord], port: int | None) -> ServerRecord | None:
    """The server on that port, or the only one; UsageError where there are several."""
    if port is not None:
        return next((record for record in records if record.port == port), None)
    if len(records) > 1:
        ports = ", ".join(f"{record.port} ({record.model})" for record in records)
        raise UsageError(f"{len(records)} servers run: {ports}", hint="choose one with --port")
    return records[0] if records else None


def _ready(home: Path, port: int | None) -> ServerRecord:
    from mgl.serving.runfile import running

    generating = [record for record in running(home) if record.task == "generate"]
    record = _chosen(generating, port)
    if record is None:
        raise EngineUnavailable(
            "no server of yours runs" + ("" if port is None else f" on port {port}"),
            hint="`mgl serve PROFILE` starts one; `mgl serve --status` lists them",
        )
    if record.state != "ready":
        raise EngineUnavailable(
            f"your server {record.describe()} is not ready yet",
            hint="wait until `mgl serve --status` says ready",
        )
    return record


def _as_it_is(record: ServerRecord) -> ServerRecord:
    """The record with the adapters that are loaded now, and whether the server answers."""
    from mgl.serving.adapters import adapters
    from mgl.serving.supervisor import is_ready

    if record.state != "ready":
        return record
    if not is_ready(record):
        return replace(record, progress="but does not answer now")
    if record.task != "generate":
        return record
    try:
        return replace(
            record, adapters=dict.fromkeys(adapters(record.base_url, record.api_key), Path())
        )
    except EngineError as error:
        return replace(record, progress=f"but says: {one_line(error.message, 120)}")


def _json(record: ServerRecord, home: Path, *, supervised: bool) -> dict[str, Any]:
    """The record without its secrets, which only its file holds."""
    told = {name: value for name, value in asdict(record).items() if name not in _SECRET}
    return {
        **told,
        "supervised": supervised,
        "port": record.port,
        "log": str(record.log),
        "adapters": sorted(record.adapters),
        "run_file": str(home / "servers" / "run" / f"{record.port}.json"),
    }
