"""LoRA adapters of a running vLLM server: list, load and unload them.

    load_adapter(base_url, api_key, "tales", Path("adapters/tales"))
    list_adapters(base_url, api_key)     # {"tales": "qwen2.5-7b-instruct"}

A server takes them at run time if it was started with VLLM_ALLOW_RUNTIME_LORA_UPDATING, as those of
``mgl serve`` are. An adapter that was loaded at run time is gone after a restart. Whether it was
trained for the model is checked before (``mgl.serving.checks``): the server's own error is obscure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mgl.errors import EngineError, EngineRejected, EngineUnusable, UsageError
from mgl.llm.engines.server import Http, list_models
from mgl.serving.logs import explain_failure

# Loading reads the weights and may wait for a slot among the running requests.
_LOAD_S: Final = 300.0


def list_adapters(base_url: str, api_key: str | None) -> dict[str, str]:
    """List the server's adapters, each with the name of its base model."""

    async def read() -> dict[str, str]:
        async with Http(base_url, api_key) as http:
            return await _list(http)

    return asyncio.run(read())


def load_adapter(base_url: str, api_key: str | None, name: str, path: Path) -> None:
    """Load an adapter's folder under a name that requests then use.

    Raises UsageError if the name is taken, EngineRejected if the adapter does not fit or the server
    takes none, and EngineUnavailable if no server answers.
    """

    body = {"lora_name": name, "lora_path": str(path.absolute())}

    async def load() -> None:
        async with Http(base_url, api_key) as http:
            if name in await _list(http):
                raise UsageError(
                    f"the server has an adapter called {name} already",
                    hint=f"choose another name, or run `mgl serve unload-adapter {name}` first",
                )
            await _change(http, "load_lora_adapter", body)

    asyncio.run(load())


def unload_adapter(base_url: str, api_key: str | None, name: str) -> None:
    """Unload an adapter; UsageError if the server has none of that name."""

    async def unload() -> None:
        async with Http(base_url, api_key) as http:
            loaded = await _list(http)
            if name not in loaded:
                raise UsageError(
                    f"the server has no adapter called {name}",
                    hint=f"it has: {', '.join(sorted(loaded)) or 'none'}",
                )
            await _change(http, "unload_lora_adapter", {"lora_name": name})

    asyncio.run(unload())


async def _list(http: Http) -> dict[str, str]:
    served = await list_models(http)
    return {name: str(entry["parent"]) for name, entry in served.items() if entry.get("parent")}


async def _change(http: Http, path: str, body: Mapping[str, str]) -> None:
    """Post a change; a refusal is explained if it is about adapters."""
    try:
        await http.post_text(path, body, _LOAD_S)
    except EngineError as error:
        failure = explain_failure(error.message, 1)
        if failure.kind == "adapter":
            hint = "train one for this very model, or serve the model it was trained for"
            raise EngineRejected(failure.message, hint=hint) from error
        if isinstance(error, EngineUnusable) and "(404)" in error.message:
            raise EngineRejected(
                "this server takes no adapters while it runs",
                hint="start it with --adapter NAME=PATH, or with `adapters: true` in the settings "
                "of a serving profile of your own (MGL_HOME/serving)",
            ) from error
        raise
