"""``mgl up``: the memory as a server for other programs."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mgl.cli.options import Detach, ModelChoice, StopDetached, choose_model, option, with_options
from mgl.cli.output import say

if TYPE_CHECKING:
    from mgl.api.keys import Keys
    from mgl.api.server import MemoryServer
    from mgl.lab import Lab

# The server's own, whose modules are slow to import.
PORT: Final = 8788
HOST: Final = "127.0.0.1"
RATE: Final = 1200


@with_options(choice=choose_model)
def up(
    *,
    choice: ModelChoice,
    host: Annotated[str, option("--host H", "Address to listen on.")] = HOST,
    port: Annotated[int, option("--port N", "Port to listen on.", min=1, max=65535)] = PORT,
    tenant: Annotated[
        list[str] | None,
        option("--tenant NAME", "Make and print a key whose memories are separate (repeatable)."),
    ] = None,
    rate: Annotated[int, option("--rate N", "Requests a minute, 0 for any number.", min=0)] = RATE,
    runs: Annotated[Path, option("--runs DIR", "Where the inspector finds evaluations.")] = Path(
        "runs"
    ),
    detach: Detach = False,
    stop: StopDetached = False,
) -> None:
    """Serve memories over the OpenAI API, REST and MCP.

    Clients of the OpenAI API choose the model mgl/gam and name a conversation (the header
    X-MGL-Conversation, metadata.conversation, or user): what is said is remembered, and replies
    cite it. Every request brings the key: MGL_UP_KEY, or one that is made and kept in MGL_HOME. It
    listens on 127.0.0.1; another host needs a key of your own. Ctrl-C ends it.
    """
    from mgl.api.keys import KEY, Keys
    from mgl.api.limits import Limits
    from mgl.api.server import check_host
    from mgl.models import shipped
    from mgl.openai.detached import start_detached, stop_detached
    from mgl.openai.listening import find_loop, root_of

    if stop:
        typer.echo(stop_detached("up", port))
        return
    keys = Keys.open(shipped.home(), os.environ.get(KEY))
    check_host(host, has_own_key=keys.is_own)
    for name in tenant or ():
        keys.add(name)
    if detach:
        root = root_of(host, port)
        _, log = start_detached("up", port, root)
        _print_keys(root, keys, tenant or ())
        say(f"stop it with `mgl up --stop --port {port}`; its log is {log}")
    else:
        with asyncio.Runner(loop_factory=find_loop()) as runner:
            server = _make_server(
                choice, keys, host=host, port=port, limits=Limits(rate), runs=runs
            )
            runner.run(_serve(server, keys, tenant or ()))


def _make_server(choice: ModelChoice, keys: Keys, **settings: Any) -> MemoryServer:
    from mgl.api.relay import Relay
    from mgl.api.server import MemoryServer
    from mgl.lab import Lab

    def open_lab(folder: Path) -> Lab:
        return Lab.open(choice, home=keys.home, memories=folder, observer=Relay())

    return MemoryServer(keys, open_lab, **settings)


async def _serve(server: MemoryServer, keys: Keys, tenants: Sequence[str]) -> None:
    from mgl.api.keys import KEY, OWNER
    from mgl.openai.faults import log_privately

    log_privately()
    async with server:
        served = await server.open_tenant(OWNER)
        if sys.stdout.isatty():
            _print_keys(server.root, keys, tenants)
        else:  # a log, which is no place for keys
            where = f"of {KEY}" if keys.is_own else f"in {keys.path}"
            typer.echo(f"ready at {server.base_url} with the key {where}")
        say(f"models: {', '.join(served.chat.models)}; Ctrl-C ends it")
        await server.wait()


def _print_keys(root: str, keys: Keys, tenants: Sequence[str]) -> None:
    from mgl.api.keys import KEY, OWNER

    key = f"of {KEY}" if keys.is_own else keys.add(OWNER)
    typer.echo(f"ready at {root}/v1 with the key {key}")
    typer.echo(f"look at the memories, with the key: {root}/inspect/")
    for name in tenants:
        typer.echo(f"{name}: {keys.add(name)}")
