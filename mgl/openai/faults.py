"""Report mgl's own faults from servers: the client gets an id, and the log what it stands for.

    except Exception as error:
        log_fault(error, identity)
        status, body = write_fault(identity)

The log says where an error was raised, and its type. It omits the error's message, which may hold
a user's words or keys: ``KeyError('my diary')``.
"""

from __future__ import annotations

import logging
import secrets
import sys
import traceback
from collections.abc import Iterator
from typing import Any, Final

from mgl.openai.shapes import Failed, Fault

CODE: Final = "internal_error"
_log = logging.getLogger(__name__)


def new_identity() -> str:
    """An id for a request, by which it is found in the log."""
    return f"req_{secrets.token_hex(12)}"


def describe_fault(identity: str) -> str:
    """What a client is told of a fault."""
    return f"unexpected error; the server's log has it under {identity}, please report it"


def write_fault(identity: str) -> tuple[int, dict[str, Any]]:
    """The status and the body of an answer that failed by a fault."""
    said = Fault(
        message=describe_fault(identity),
        type="server_error",
        param=None,
        code=CODE,
        request_id=identity,
    )
    return 500, Failed(error=said).write()


def log_fault(error: BaseException, identity: str) -> None:
    """Write a fault to the log, with the id of its request."""
    _log.error("%s: %s\n%s", identity, CODE, trace(error))


def trace(error: BaseException) -> str:
    """Where an error and its causes were raised, and their types, without what they say."""
    return "".join(_trace(error, set())).rstrip("\n")


def log_privately() -> None:
    """Log warnings and errors to stderr, those of other packages, too, without what errors say."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PrivateFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


class PrivateFormatter(logging.Formatter):
    """Leaves out of a record with an error what it says, and the arguments of its message."""

    def format(self, record: logging.LogRecord) -> str:
        if not record.exc_info or record.exc_info[1] is None:
            return super().format(record)
        # asyncio has written the error into the message itself.
        said = "asyncio: an error that nobody awaited" if record.name == "asyncio" else record.msg
        return f"{said}\n{trace(record.exc_info[1])}"


def _trace(error: BaseException, seen: set[int]) -> Iterator[str]:
    if id(error) in seen:
        return
    seen.add(id(error))
    if error.__cause__ is not None:
        yield from _trace(error.__cause__, seen)
        yield "which caused:\n"
    elif error.__context__ is not None and not error.__suppress_context__:
        yield from _trace(error.__context__, seen)
        yield "while it was handled:\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{type(error).__module__}.{type(error).__qualname__}\n"
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield "one of them:\n"
            yield from _trace(each, seen)
