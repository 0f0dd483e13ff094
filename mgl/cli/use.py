"""``mgl use``: the home's default model."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Annotated

import typer

from mgl.cli.options import AsJson, argument, option
from mgl.cli.output import print_json, say
from mgl.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from mgl.lab.default import DefaultModel


def use(
    name: Annotated[
        str | None,
        argument(
            "MODEL|URL", "A profile or an adapter (`mgl models`), or an OpenAI-compatible server."
        ),
    ] = None,
    model: Annotated[
        str | None, option("--model NAME", "Model of the server. [default: its largest that fits]")
    ] = None,
    unset: Annotated[
        bool, option("--unset", "Go back to the model that ships as default.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Choose the model that every command uses, or show it.

    Options (--model, --base-url, --adapter) and MGL_BASE_URL override it. The key of a server is
    MGL_API_KEY, and is not kept.
    """
    from mgl.lab.default import remove_default, write_default
    from mgl.models import shipped

    home = shipped.home()
    is_url = name is not None and name.startswith(("http://", "https://"))
    if unset and name is not None:
        raise UsageError("--unset takes no model", hint="give one of the two")
    if model is not None and not is_url:
        raise UsageError("--model names a model of a server", hint="mgl use URL --model NAME")
    if unset:
        remove_default(home)
    elif name is not None:
        chosen = _choose_served(name, model, home) if is_url else _choose_own(name, home)
        write_default(home, chosen)
    _show(home, as_json=as_json)


def _choose_served(url: str, name: str | None, home: Path) -> DefaultModel:
    """Choose a model of a server, by the name of its profile if it has one."""
    from mgl.errors import EngineUnusable
    from mgl.lab.default import DefaultModel
    from mgl.models.profiles import load_profiles
    from mgl.openai.servers import find_model
    from mgl.serving.nearby import describe_server
    from mgl.serving.served import match_profile, name_served

    server = asyncio.run(describe_server(url, os.environ.get("MGL_API_KEY")))
    served: dict[str, dict[str, str]] = {each.name: {} for each in server.models}
    if not served:
        raise EngineUnusable(
            f"{server.label} at {url} serves no model that writes text",
            hint="load one there, then run the same command again",
        )
    profiles = load_profiles(home=home)
    wanted = profiles[name].served_names if name in profiles else [name or next(iter(served))]
    found = find_model(served, wanted)
    profile = match_profile({found: {}}, profiles.values())
    return DefaultModel(model=profile.name if profile else name_served(found), base_url=url)


def _choose_own(name: str, home: Path) -> DefaultModel:
    """Choose a profile, or an adapter of a language model; say what it still needs."""
    from mgl.lab.default import DefaultModel
    from mgl.lab.model import ModelChoice
    from mgl.models.adapters import CAUSAL, find_adapter, list_adapters
    from mgl.models.fetch import find_weights
    from mgl.models.profiles import load_profiles

    is_adapter = name not in load_profiles(home=home) and name in list_adapters(home)
    if is_adapter and (kind := find_adapter(name, home).manifest.kind) not in CAUSAL:
        raise UsageError(
            f"{name} is an adapter of kind {kind}, and changes no model that writes",
            hint=f"name it for one command, as `mgl ask --embedder {name}` or `--reranker {name}`",
        )
    choice = ModelChoice(adapter=name) if is_adapter else ModelChoice(name)
    profile = choice.with_adapter(home).load_profile(home)
    if profile.engine == "openai":
        say(f"note: {profile.name} needs a server: `mgl serve`, or `mgl use URL`")
    elif find_weights(profile, home) is None:
        say(f"note: its weights are not here yet: `{profile.fetch_command}`")
    return DefaultModel(adapter=name) if is_adapter else DefaultModel(model=name)


def _show(home: Path, *, as_json: bool) -> None:
    from mgl.lab.default import DefaultModel, read_default
    from mgl.lab.suggestions import suggest_model
    from mgl.models.profiles import DEFAULT_PROFILE

    found = read_default(home)
    url = os.environ.get("MGL_BASE_URL")
    if as_json:
        shown = (found or DefaultModel(model=DEFAULT_PROFILE)).model_dump()
        print_json({**shown, "is_set": found is not None})
        return
    typer.echo(str(found) if found else f"{DEFAULT_PROFILE}, which ships as default")
    if url is not None:
        say(f"note: MGL_BASE_URL overrides it: {url}")
    elif found is None and (better := asyncio.run(suggest_model(home))):
        say(f"note: {better}")
