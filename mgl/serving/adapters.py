"""LoRA adapters of a running vLLM server: what it has, loading and unloading them.

    load(base_url, api_key, "tales", Path("adapters/tales"))
    adapters(base_url, api_key)     # {"tales": "qwen2.5-7b-instruct"}

A server takes them at run time where it was started with VLLM_ALLOW_RUNTIME_LORA_UPDATING, as
those of ``mgl serve`` are. One that was loaded at run time is gone after a restart.

Whether an adapter was made for the model is checked before (``mgl.serving.checks``): a server says
so in words that nobody understands.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from mgl.errors import EngineError, EngineRejected, EngineUnavailable, UsageError
from mgl.serving.failures import explain

__all__ = ["adapters", "load", "unload"]

# Loading reads the weights and may wait for a slot among the running requests.
_LOAD_S: Final = 300.0


def adapters(base_url: str, api_key: str | None) -> dict[str, str]:
    """The adapters that the server has loaded, each with the name of its base model."""
    listed = _send("GET", base_url, api_key, "models")
    try:
        return {
            str(entry["id"]): str(entry["parent"])
            for entry in listed["data"]
            if entry.get("parent")
        }
    except (TypeError, KeyError, AttributeError):
        raise EngineRejected(
            "the server's list of models is not one of the OpenAI API",
            hint="point --base-url at an OpenAI-compatible server",
        ) from None


def load(base_url: str, api_key: str | None, name: str, path: Path) -> None:
    """Load an adapter's folder under a name that requests then choose.

    Raises UsageError where the name is taken, EngineRejected where the adapter does not fit, or
    the server takes none, and EngineUnavailable where no server answers.
    """
    if name in adapters(base_url, api_key):
        raise UsageError(
            f"the server has an adapter called {name} already",
            hint=f"give this one another name, or `mgl serve unload-adapter {name}` first",
        )
    body = {"lora_name": name, "lora_path": str(path.absolute())}
    _send("POST", base_url, api_key, "load_lora_adapter", body)


def unload(base_url: str, api_key: str | None, name: str) -> None:
    """Unload an adapter; UsageError where the server has none of that name."""
    there = adapters(base_url, api_key)
    if name not in there:
        raise UsageError(
            f"the server has no adapter called {name}",
            hint=f"it has: {', '.join(sorted(there)) or 'none'}",
        )
    _send("POST", base_url, api_key, "unload_lora_adapter", {"lora_name": name})


def _send(
    method: str, base_url: str, api_key: str | None, path: str, body: dict[str, Any] | None = None
) -> Any:
    import httpx

    url = f"{base_url.rstrip('/')}/{path}"
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    place = httpx.URL(url)
    local = place.host in ("127.0.0.1", "localhost", "::1")
    try:
        reply = httpx.request(
            method,
            url,
            json=body,
            headers=headers,
            timeout=_LOAD_S,
            trust_env=not local,
            verify=place.scheme == "https",
        )
    except httpx.HTTPError as error:
        raise EngineUnavailable(
            f"no server answers at {base_url} ({error or type(error).__name__})",
            hint="`mgl serve status` lists those that run",
        ) from error
    if reply.status_code != httpx.codes.OK:
        raise _refusal(reply.status_code, reply.text, url, body)
    return reply.json() if method == "GET" else None


def _refusal(status: int, text: str, url: str, body: dict[str, Any] | None) -> EngineError:
    """The server's refusal, explained where it is one of an adapter that does not fit."""
    from mgl.llm.engines.wire import error_from

    if body is None or status in (401, 403):
        return error_from(status, text, url)
    if status == 404 and "adapter" not in text.lower():
        return EngineRejected(
            "this server takes no adapters while it runs",
            hint="start it with `mgl serve`, on a serving profile that allows adapters",
        )
    failure = explain(text, 1)
    if failure.kind == "adapter":
        return EngineRejected(
            failure.message, hint="train one on this very model, or serve its own"
        )
    return error_from(status, text, url)
