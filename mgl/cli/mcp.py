"""``mgl mcp``: the memory as tools of an agent or an editor."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Annotated, Any, Final, Literal

import typer

from mgl.cli.options import ModelChoice, collect_model, option, with_options, write_choice
from mgl.cli.output import say
from mgl.cli.up import HOST, PORT
from mgl.errors import ResourceError, install_hint

PASSED_ON: Final = (
    "MGL_ENGINE_IDLE",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "XDG_CACHE_HOME",
)
"""What else decides which model is found: clients start servers without a shell's environment."""


@with_options(choice=collect_model)
def mcp(
    *,
    choice: ModelChoice,
    config: Annotated[
        Literal["stdio", "http"] | None,
        option("--config", "Print what to paste into a client: for this, or for `mgl up`."),
    ] = None,
    port: Annotated[
        int | None,
        option("--port N", "Port of `mgl up`, if not the one that runs.", min=1, max=65535),
    ] = None,
) -> None:
    """Give agents and editors the memory as tools (MCP).

    It speaks on stdin and stdout. Its tools are remember, recall, ask_document, list_memories,
    forget and delete_memory; nodes can be read as resources. Claude Desktop, Claude Code, Cursor,
    VS Code and others start it by what --config prints. `mgl up` serves the same at /mcp.
    """
    if config is not None:
        typer.echo(json.dumps({"mcpServers": {"mgl": _configure(config, choice, port)}}, indent=2))
        return
    try:
        from mgl.api.mcp import make_mcp
    except ImportError as error:
        raise ResourceError(f"MCP needs {error.name}", hint=install_hint("mcp")) from error
    from mgl.api.memories import Memories
    from mgl.api.relay import Relay
    from mgl.lab import Lab
    from mgl.models import shipped
    from mgl.openai.faults import log_privately

    log_privately()
    with Lab.open(choice.with_default(shipped.home()), observer=Relay()) as lab:
        memories = Memories(lab)
        asyncio.run(make_mcp(lambda _: memories).run_stdio_async())


def _configure(
    way: Literal["stdio", "http"], choice: ModelChoice, port: int | None
) -> dict[str, Any]:
    """One server as clients write it, with all that it needs to start from anywhere."""
    from mgl.api.keys import KEY, OWNER, Keys
    from mgl.models import shipped
    from mgl.openai.detached import find_detached

    home = shipped.home()
    if way == "http":
        if write_choice(choice):
            say("the options of the model are for `mgl up`: this only names its address")
        key = Keys.open(home, os.environ.get(KEY)).add(OWNER)
        headers = {"Authorization": f"Bearer {key}"}
        root = f"http://{HOST}:{port or PORT}"
        if port is None and (running := find_detached("up")):
            root = running[-1]
            if len(running) > 1:
                say(f"of {', '.join(running)}, this is {root}: --port chooses another")
        return {"type": "http", "url": f"{root}/mcp", "headers": headers}
    arguments = ["-m", "mgl", "mcp", *write_choice(choice)]
    environment = {"MGL_HOME": str(home.absolute())}
    if choice.api_key:
        environment["MGL_API_KEY"] = choice.api_key
    environment |= {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {"command": sys.executable, "args": arguments, "env": environment}
