"""Model servers that other programs already run on this machine, and the best of their models.

    for server in asyncio.run(find_nearby(home)):
        print(server.label, server.base_url, server.models[0].name)

``PORTS`` of 127.0.0.1 are asked for their list of models, without a key; servers of `mgl serve`
are left out. The best model is the largest that writes text and fits the memory: by what the server
says of it (Ollama's ``/api/tags``, LM Studio's ``/api/v0/models``, llama.cpp's ``meta``), else by
the size in its name. Models that Ollama runs on another machine are left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
from pydantic import BaseModel, ValidationError

from mgl.errors import MglError
from mgl.openai.servers import Http, get_optional, identify, list_models
from mgl.serving.records import server_at
from mgl.serving.served import guess_billions, writes_text

PORTS: tuple[int, ...] = (11434, 1234, 8080, 8000)
"""Of Ollama, LM Studio, llama.cpp and vLLM, as they are set by default."""

_ANSWER_S: Final = 2.0
_BILLION_BYTES: Final = 0.6e9  # of a thousand million parameters in 4 bits, about


class _Meta(BaseModel):
    n_params: float = 0.0


class _Details(BaseModel):
    parameter_size: str = ""


class _ModelInfo(BaseModel):
    """What servers say of a model: vLLM, llama.cpp, Ollama and LM Studio, in this order."""

    max_model_len: int | None = None
    meta: _Meta | None = None
    size: int | None = None
    details: _Details | None = None
    remote_host: str | None = None
    type: str | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model of a server; ``billions`` are its thousand million parameters, 0 if unknown."""

    name: str
    billions: float
    fits: bool

    @property
    def rank(self) -> tuple[bool, float]:
        """Orders models: those that fit the memory, then the larger ones."""
        return self.fits, self.billions


@dataclass(frozen=True, slots=True)
class NearbyServer:
    """A server and its models that write text, the best first."""

    label: str
    base_url: str
    models: tuple[ServedModel, ...]


async def find_nearby(home: Path) -> list[NearbyServer]:
    """Find the servers that answer within two seconds and serve a model that writes text."""
    urls = [f"http://127.0.0.1:{port}/v1" for port in PORTS]
    others = [url for url in urls if server_at(home, url) is None]
    found = await asyncio.gather(*map(_ask, others))
    return [server for server in found if server is not None and server.models]


async def _ask(base_url: str) -> NearbyServer | None:
    try:
        async with asyncio.timeout(_ANSWER_S):
            return await describe_server(base_url, None)
    except (MglError, TimeoutError):  # nothing there, or no model server
        return None


async def describe_server(base_url: str, api_key: str | None) -> NearbyServer:
    """Ask a server what it is and which models it has; raises what ``identify`` raises."""
    async with Http(base_url, api_key) as http:
        served = await list_models(http)
        server = await identify(http)
        if server.kind == "ollama":
            listed = (await get_optional(http, "/api/tags")).get("models")
        elif server.kind == "lm studio":
            listed = (await get_optional(http, "/api/v0/models")).get("data")
        else:
            listed = served.values()
    info = _read_info(listed or ())
    models = [
        _describe_model(name, info.get(name, _ModelInfo()))
        for name, entry in served.items()
        if writes_text(name, entry)
    ]
    fitting = [model for model in models if model is not None]
    fitting.sort(key=lambda model: model.rank, reverse=True)
    return NearbyServer(server.label, base_url, tuple(fitting))


def _read_info(listed: Iterable[Any]) -> dict[str, _ModelInfo]:
    """Read the entries of a list by their name; those of another form say nothing."""
    info: dict[str, _ModelInfo] = {}
    for entry in listed:
        if not isinstance(entry, Mapping):
            continue
        with suppress(ValidationError):
            info[str(entry.get("id") or entry.get("name"))] = _ModelInfo.model_validate(entry)
    return info


def _describe_model(name: str, info: _ModelInfo) -> ServedModel | None:
    """Describe a model; None if it embeds, or runs on another machine."""
    if info.remote_host or info.type == "embeddings":
        return None
    size = info.details.parameter_size if info.details else ""
    counted = info.meta.n_params / 1e9 if info.meta else 0.0
    billions = counted or guess_billions(size) or guess_billions(name) or 0.0
    is_loaded = bool(info.max_model_len or info.meta) or info.state == "loaded"
    needed = info.size or billions * _BILLION_BYTES
    return ServedModel(name, billions, is_loaded or needed <= psutil.virtual_memory().total)
