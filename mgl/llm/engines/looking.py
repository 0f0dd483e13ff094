"""What a server is, as it says itself: its make and version, the model it serves, its context.

It asks only what costs nothing. What a server honours is found by trying: ``mgl.serving.probing``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mgl.errors import EngineRejected, EngineUnavailable, EngineUnusable
from mgl.llm.engines.http import Http

__all__ = ["Kind", "Server", "look", "require_adapter", "served_models"]

Kind = Literal["vllm", "llama.cpp", "sglang", "ollama", "lm studio", "unknown"]


@dataclass(frozen=True, slots=True)
class Server:
    """What a server said of itself; ``version`` is empty where it tells none."""

    kind: Kind
    version: str
    model: str
    context_tokens: int | None

    @property
    def label(self) -> str:
        """Make and version, for instance ``vllm 0.32.0``."""
        return f"{self.kind} {self.version}".rstrip()

    @property
    def numbers(self) -> tuple[int, ...]:
        """The first two numbers of the version, as far as they are numbers."""
        return tuple(int(part) for part in self.version.split(".")[:2] if part.isdecimal())


async def look(http: Http, names: Sequence[str] = ()) -> Server:
    """The server and the model it serves under one of ``names``, or without names its first.

    Raises EngineUnusable where it is no OpenAI-compatible server or does not serve the model, and
    what the connection raises.
    """
    served = await served_models(http)
    model = _matching(served, names) if names else next(iter(served), "")
    entry = served.get(model, {})
    kind, version, context = await _identified(http, entry)
    return Server(kind, version, model, entry.get("max_model_len") or context)


async def served_models(http: Http) -> dict[str, Mapping[str, Any]]:
    """The entries of the server's list of models by name, in its order."""
    listing = await http.get("models")
    try:
        return {str(entry["id"]): entry for entry in listing["data"]}
    except (TypeError, KeyError):
        raise EngineUnusable(
            "the server's list of models is not one of the OpenAI API",
            hint="point --base-url at an OpenAI-compatible server",
        ) from None


async def require_adapter(http: Http, adapter: str, model: str) -> None:
    """EngineUnusable unless the server has loaded that adapter on top of that model."""
    parents = {name: entry.get("parent") for name, entry in (await served_models(http)).items()}
    if parents.get(adapter) != model:
        own = ", ".join(sorted(name for name, parent in parents.items() if parent == model))
        raise EngineUnusable(
            f"the server has no adapter {adapter} of {model}; it has {own or 'none'}",
            hint=f"`mgl serve load-adapter {adapter}=PATH` loads it into a server of mgl's own",
        )


async def _identified(http: Http, entry: Mapping[str, Any]) -> tuple[Kind, str, int | None]:
    owner = entry.get("owned_by")
    if owner == "llamacpp":
        return _llama(await _asked(http, "/props"))
    if owner != "sglang" and "max_model_len" in entry:
        version = (await _asked(http, "/version")).get("version")
        if version is not None:
            return "vllm", str(version), None
    for path in ("/server_info", "/get_server_info"):
        version = (await _asked(http, path)).get("version")
        if version is not None:
            return "sglang", str(version), None
    version = (await _asked(http, "/api/version")).get("version")
    if version is not None:
        return "ollama", str(version), None
    if "data" in await _asked(http, "/api/v0/models"):
        return "lm studio", "", None
    properties = await _asked(http, "/props")
    return (
        _llama(properties) if "default_generation_settings" in properties else ("unknown", "", None)
    )


def _llama(properties: Mapping[str, Any]) -> tuple[Kind, str, int | None]:
    settings = properties.get("default_generation_settings", {})
    return "llama.cpp", str(properties.get("build_info", "")), settings.get("n_ctx")


async def _asked(http: Http, path: str) -> Mapping[str, Any]:
    """What the server says at a path that not every server has; nothing where it has none."""
    try:
        answer = await http.get(path)
    except (EngineRejected, EngineUnavailable):
        return {}
    return answer if isinstance(answer, Mapping) else {}


def _matching(served: Mapping[str, Any], names: Sequence[str]) -> str:
    """The served name that stands for the model: one of its names, or a path that ends in one."""
    for name in names:
        if name in served:
            return name
    endings = {name.rsplit("/", 1)[-1].lower() for name in names}
    for candidate in served:
        if candidate.rstrip("/").rsplit("/", 1)[-1].lower() in endings:
            return candidate
    listed = ", ".join(sorted(served)) or "no model"
    raise EngineUnusable(
        f"the server does not serve {names[0]}; it serves {listed}",
        hint="choose the profile of the model that is served (--model), or serve this one",
    )
