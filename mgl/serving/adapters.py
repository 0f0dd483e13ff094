"""LoRA adapters of a running vLLM server: list, load and unload them.

    load_adapter(base_url, api_key, "tales", Path("adapters/tales"))
    list_adapters(base_url, api_key)     # {"tales": "qwen2.5-7b-instruct"}

A server takes them at run time if it was started with VLLM_ALLOW_RUNTIME_LORA_UPDATING, as those of
``mgl serve`` are. An adapter that was loaded at run time is gone after a restart. Whether it was
trained for the model is checked before (``mgl.serving.checks``): the server's own error is obscure.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from mgl.errors import EngineError, EngineRejected, EngineUnavailable, UsageError
from mgl.serving.logs import explain_failure

# Loading reads the weights and may wait for a slot among the running requests.
_LOAD_S: Final = 300.0


def list_adapters(base_url: str, api_key: str | None) -> dict[str, str]:
    """List the server's adapters, each with the name of its base model."""
    listed = _send("GET", base_url, api_key, "models")
    try:
        return {
            str(entry["id"]): str(entry["parent"])
            for entry in listed["data"]
            if entry.get("parent")
        }
    except (TypeError, KeyError, AttributeError):
        raise EngineRejected(
            "the server's list of models does not follow the OpenAI API",
            hint="point --base-url at an OpenAI-compatible server",
        ) from None


def load_adapter(base_url: str, api_key: str | None, name: str, path: Path) -> None:
    """Load an adapter's folder under a name that requests then use.

    Raises UsageError if the name is taken, EngineRejected if the adapter does not fit or the server
    takes none, and EngineUnavailable if no server answers.
    """
    if name in list_adapters(base_url, api_key):
        raise UsageError(
            f"the server has an adapter called {name} already",
            hint=f"choose another name, or run `mgl serve unload-adapter {name}` first",
        )
    body = {"lora_name": name, "lora_path": str(path.absolute())}
    _send("POST", base_url, api_key, "load_lora_adapter", body)


def unload_adapter(base_url: str, api_key: str | None, name: str) -> None:
    """Unload an adapter; UsageError if the server has none of that name."""
    loaded = list_adapters(base_url, api_key)
    if name not in loaded:
        raise UsageError(
            f"the server has no adapter called {name}",
            hint=f"it has: {', '.join(sorted(loaded)) or 'none'}",
        )
    _send("POST", base_url, api_key, "unload_lora_adapter", {"lora_name": name})


def _send(
    method: str, base_url: str, api_key: str | None, path: str, body: dict[str, Any] | None = None
) -> Any:
    import httpx

    url = httpx.URL(f"{base_url.rstrip('/')}/{path}")
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    is_local = url.host in ("127.0.0.1", "localhost", "::1")
    try:
        reply = httpx.request(
            method,
            url,
            json=body,
            headers=headers,
            timeout=_LOAD_S,
            trust_env=not is_local,
            verify=url.scheme == "https",
        )
    except httpx.HTTPError as error:
        raise EngineUnavailable(
            f"no server answers at {base_url} ({error or type(error).__name__})",
            hint="`mgl serve status` lists the running servers",
        ) from error
    if reply.status_code != httpx.codes.OK:
        raise _explain_refusal(reply.status_code, reply.text, str(url), is_change=body is not None)
    return reply.json() if method == "GET" else None


def _explain_refusal(status: int, text: str, url: str, *, is_change: bool) -> EngineError:
    """The server's refusal, explained if it is about an adapter that does not fit."""
    from mgl.llm.engines.wire import error_from

    if is_change and status not in (401, 403):
        if status == 404 and "adapter" not in text.lower():
            return EngineRejected(
                "this server takes no adapters while it runs",
                hint="start it with `mgl serve start`, on a serving profile that allows adapters",
            )
        failure = explain_failure(text, 1)
        if failure.kind == "adapter":
            hint = "train one for this very model, or serve the model it was trained for"
            return EngineRejected(failure.message, hint=hint)
    return error_from(status, text, url)
