"""Errors on the wire, read from the answers of servers and written by ours.

raise error_from(response.status_code, response.text, url)     # the client's side
status, body = write_error(error)                              # the server's side
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from mgl.errors import (
    Conflict,
    ContextOverflow,
    EngineError,
    EngineRejected,
    EngineTimeout,
    EngineUnavailable,
    EngineUnusable,
    InputError,
    MglError,
    NotThere,
    ResourceError,
    StoreDeleted,
    StoreError,
    UsageError,
    WrongKind,
)
from mgl.openai.shapes import Failed, Fault

_LATER: Final = frozenset({408, 425, 429, 502, 503})
_CONTEXT: Final = re.compile(
    r"context (length|size|window)|maximum context|max_model_len|too many tokens|too long",
    re.IGNORECASE,
)
_CONSTRAINT: Final = re.compile(
    r"grammar|schema|regex|lark|ebnf|structured|response_?format|compil|constrain|pattern|enum",
    re.IGNORECASE,
)
_COMPILING: Final = re.compile(
    r"(grammar|schema|regex|structured).*(compil|timed out|pars|convert|invalid|fail|support)"
    r"|(compil|pars|convert|invalid|fail).*(grammar|schema|regex|structured)",
    re.IGNORECASE,
)


class ServerFailed(EngineUnavailable):
    """The server failed with an error of its own; it may or may not fail at other requests."""


class ConstraintRefused(EngineRejected):
    """The server cannot decode under the constraint that was sent; a looser one may work."""


class Refused(UsageError):
    """A request that cannot be served as it is; ``param`` is what to change."""

    def __init__(self, message: str, *, hint: str, param: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.param = param


class NotServed(UsageError):
    """A path, a model or a memory that is not there."""


class AccessDenied(UsageError):
    """A request without the key, or from a web page."""


class OverLimit(UsageError):
    """A request that is too large, too slow, or one too many; ``status`` says which."""

    def __init__(self, status: int, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.status = status


def error_from(status: int, text: str, url: str) -> EngineError:
    """Make the error that a status other than 200 stands for."""
    said = _error_message(text)
    if status in (401, 403):
        return EngineUnusable(
            f"the server refuses the key ({status})",
            hint="give the server's key in the environment as MGL_API_KEY",
        )
    if status == 404 and "model" in said.lower():
        return EngineUnusable(
            f"the server says: {said}",
            hint="choose the profile of the model that is served (--model), or serve this one",
        )
    if status in (404, 405) or status in range(300, 400):
        return EngineUnusable(
            f"{url} is not there ({status})",
            hint="give the URL of the server's API, for instance http://127.0.0.1:8000/v1",
        )
    if status in (400, 413, 422) and _CONTEXT.search(said):
        return ContextOverflow(
            f"the server says: {said}",
            hint="use smaller chunks, or start the server with a longer context",
        )
    constraint = _CONSTRAINT if status in (400, 422) else _COMPILING if status == 500 else None
    if constraint is not None and constraint.search(said):
        return ConstraintRefused(
            f"the server refused the constraint ({status}): {said}",
            hint="`mgl serve probe` shows what the server obeys; look at the server's log",
        )
    if status >= 500 or status in _LATER:
        kind = EngineUnavailable if status in _LATER else ServerFailed
        return kind(
            f"the server failed ({status}): {said}",
            hint="look at the server's log, then run the command again",
        )
    return EngineRejected(
        f"the server refused the request ({status}): {said}",
        hint="look at the server's log; its version may not know a parameter that was sent",
    )


def _error_message(text: str) -> str:
    """The message within an error's body, in one line."""
    try:
        value = json.loads(text)
    except ValueError:
        value = "an HTML page" if "<html" in text[:1000].lower() else text
    while isinstance(value, Mapping):
        inner = next((value[k] for k in ("error", "message", "detail") if value.get(k)), None)
        value = json.dumps(value) if inner is None else inner
    return " ".join(str(value).split())[:500] or "nothing"


def write_error(error: MglError) -> tuple[int, dict[str, Any]]:
    """The status and the body that say what went wrong, and what to change."""
    status, kind, code = 500, "server_error", None
    match error:
        case OverLimit():
            status, kind, code = error.status, "invalid_request_error", "over_limit"
        case AccessDenied():
            status, kind, code = 401, "invalid_request_error", "access_denied"
        case NotServed() | NotThere():
            status, kind, code = 404, "invalid_request_error", "not_served"
        case Conflict() | WrongKind():
            status, kind, code = 409, "invalid_request_error", "conflict"
        case StoreDeleted():
            status, kind, code = 410, "invalid_request_error", "deleted"
        case ContextOverflow():
            status, kind, code = 400, "invalid_request_error", "context_length_exceeded"
        case UsageError() | InputError() | EngineRejected():
            status, kind = 400, "invalid_request_error"
        case EngineTimeout():
            status, code = 504, "engine_timeout"
        case EngineUnavailable():
            status, code = 503, "engine_unavailable"
        case ResourceError() | StoreError():
            code = "storage"
    param = error.param if isinstance(error, Refused) else None
    said = Fault(message=f"{error.message} ({error.hint})", type=kind, param=param, code=code)
    return status, Failed(error=said).write()
