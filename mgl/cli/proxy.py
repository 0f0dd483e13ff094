"""``mgl proxy``: a model behind the OpenAI API, with every call in the log."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mgl.cli.options import ModelChoice, choose_model, with_options
from mgl.cli.output import say
from mgl.errors import EngineUnavailable, UsageError

if TYPE_CHECKING:
    from mgl.lab.workplace import Workplace

__all__ = ["proxy"]

PORT: Final = 8787
START_S: Final = 120.0


@with_options(choice=choose_model)
def proxy(
    *,
    choice: ModelChoice,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=1, max=65535, help="Port on 127.0.0.1.")
    ] = PORT,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            envvar="MGL_PROXY_KEY",
            help="Refuse requests without this key.",
        ),
    ] = None,
    reply_tokens: Annotated[
        int,
        typer.Option(
            "--reply-tokens", metavar="N", min=1, help="Budget of a reply whose request names none."
        ),
    ] = 2048,
    replay: Annotated[
        bool, typer.Option("--replay", help="Answer from the log alone; no model runs.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Leave it running, and return when it is ready.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop the one that was detached.")] = False,
) -> None:
    """Serve a model to other programs, and record their calls.

    A program that speaks the OpenAI API (chat completions with streaming, JSON and tools,
    embeddings) uses it by its base URL. A call that is in the log is answered from there, so the
    program can be run again for nothing. Ctrl-C ends it.
    """
    if stop:
        _stop(port)
    elif detach:
        _detach(port)
    else:
        _serve(choice, port, key, reply_tokens, replay=replay)


def _serve(
    choice: ModelChoice, port: int, key: str | None, reply_tokens: int, *, replay: bool
) -> None:
    from mgl.cli.progress import open_observer
    from mgl.lab.workplace import DATABASE, Workplace
    from mgl.models import shipped
    from mgl.store import Store

    home = shipped.home()
    with open_observer() as observer, Store.open(home / DATABASE) as store:
        with Workplace(home, store, choice, observer) as place:
            if not replay:
                _run(place, port, key, reply_tokens)
                return
            facts = place.facts
        with Workplace(home, store, choice, observer, recorded=facts) as place:
            _run(place, port, key, reply_tokens)


def _run(place: Workplace, port: int, key: str | None, reply_tokens: int) -> None:
    from mgl.peers.proxy import Proxy
    from mgl.types import StageUsage

    name, embedder = place.facts.profile, place.embedder

    async def serve() -> None:
        client = place.client()
        serving = Proxy(client, embedder, model=name, key=key, port=port, reply_tokens=reply_tokens)
        try:
            async with serving:
                typer.echo(f"{name} is ready at {serving.base_url}")
                say(f"models: {name} (chat), {serving.embedder_name} (embeddings); Ctrl-C ends it")
                await serving.wait()
        finally:
            used = client.usage().get(serving.stage, StageUsage())
            calls = f"{used.calls:,} calls, {used.replayed:,} from the log"
            say(f"{serving.calls:,} requests: {calls}")

    place.run(serve)


def _detach(port: int) -> None:
    """Start the same command in a session of its own, and wait until it answers."""
    import os
    import secrets

    from mgl.models import shipped
    from mgl.serving.logs import open_log
    from mgl.serving.records import token_environment

    path, token = _record(port), secrets.token_hex(16)
    log = shipped.home() / "proxies" / f"{port}.log"
    arguments = [each for each in sys.argv[1:] if each != "--detach"]
    with open_log(log) as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "mgl", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **token_environment(token)},
            start_new_session=True,
        )
    deadline = time.monotonic() + START_S
    while not (model := _ask_health(port)):
        if process.poll() is not None or time.monotonic() > deadline:
            process.terminate()
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            errors = [line for line in said if line.startswith("error: ")]
            raise EngineUnavailable(
                (errors or ["it did not start"])[-1].removeprefix("error: "),
                hint=f"see {log}; without --detach it runs in this terminal",
            )
        time.sleep(0.1)
    if process.poll() is not None:
        raise UsageError(f"port {port} is taken", hint="choose another with --port")
    path.write_text(json.dumps({"token": token}), encoding="utf-8")
    typer.echo(f"{model} is ready at http://127.0.0.1:{port}/v1")
    say(f"stop it with `mgl proxy --stop --port {port}`; its log is {log}")


def _stop(port: int) -> None:
    from mgl.serving.records import end_processes

    path = _record(port)
    if not path.exists():
        typer.echo(f"no proxy was detached on port {port}")
        return
    end_processes(json.loads(path.read_text(encoding="utf-8"))["token"], patience_s=10)
    path.unlink()
    typer.echo(f"stopped the proxy on port {port}")


def _record(port: int) -> Path:
    from mgl.models import shipped

    return shipped.home() / "proxies" / f"{port}.json"


def _ask_health(port: int) -> str | None:
    """The model of the proxy on a port; None where none answers."""
    import httpx

    try:
        answer = httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).json()
        return str(answer["model"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None
