"""``mgl proxy``: a model behind the OpenAI API, with every call in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from mgl.cli.options import Detach, ModelChoice, StopDetached, choose_model, option, with_options
from mgl.cli.output import say

if TYPE_CHECKING:
    from mgl.lab.workplace import Workplace

PORT: Final = 8787
KEY: Final = "MGL_PROXY_KEY"


@with_options(choice=choose_model)
def proxy(
    *,
    choice: ModelChoice,
    port: Annotated[int, option("--port N", "Port on 127.0.0.1.", min=1, max=65535)] = PORT,
    key: Annotated[
        str | None, option("--key KEY", "Refuse requests without this key.", envvar=KEY)
    ] = None,
    reply_tokens: Annotated[
        int, option("--reply-tokens N", "Budget of a reply whose request names none.", min=1)
    ] = 2048,
    replay: Annotated[
        bool, option("--replay", "Answer from the log alone; no model runs.")
    ] = False,
    detach: Detach = False,
    stop: StopDetached = False,
) -> None:
    """Serve a model to other programs, and record their calls.

    A program that speaks the OpenAI API (chat completions with streaming, JSON and tools,
    embeddings) uses it by its base URL. A call that is in the log is answered from there, so the
    program can be run again for nothing. Ctrl-C ends it.
    """
    from mgl.openai.detached import start_detached, stop_detached

    if stop:
        typer.echo(stop_detached("proxies", port))
    elif detach:
        from mgl.openai.listening import HOST, root_of

        root = root_of(HOST, port)
        named = None if key is None else {KEY: key}
        health, log = start_detached("proxies", port, root, named)
        typer.echo(f"{health['model']} is ready at {root}/v1")
        say(f"stop it with `mgl proxy --stop --port {port}`; its log is {log}")
    else:
        _serve(choice, port, key, reply_tokens, replay=replay)


def _serve(
    choice: ModelChoice, port: int, key: str | None, reply_tokens: int, *, replay: bool
) -> None:
    from mgl.cli.progress import open_observer
    from mgl.lab.workplace import DATABASE, Workplace
    from mgl.models import shipped
    from mgl.openai.faults import log_privately
    from mgl.store import Store

    log_privately()
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
    from mgl.peers.proxy import Proxy, ServedModels
    from mgl.types import StageUsage

    name, embedder = place.facts.profile, place.embedder

    async def serve() -> None:
        client = place.client()
        served = ServedModels(client, name, embedder, reply_tokens)
        serving = Proxy(served, key=key, port=port)
        try:
            async with serving:
                typer.echo(f"{name} is ready at {serving.base_url}")
                say(f"models: {name} (chat), {served.embedder_name} (embeddings); Ctrl-C ends it")
                await serving.wait()
        finally:
            used = client.usage().get(serving.stage, StageUsage())
            calls = f"{used.calls:,} calls, {used.replayed:,} from the log"
            say(f"{serving.calls:,} requests: {calls}")

    place.run(serve)
