"""The one error tree of mgl.

    MglError                  message, hint (what to do), retryable, exit_code
    ├── UsageError            an option or argument that cannot work          exit 2
    ├── InputError            a document or question that cannot be used      exit 3
    ├── EngineError           a model engine or server that did not deliver   exit 4
    │   ├── EngineUnavailable   not reachable, or died            (retryable)
    │   │   └── EngineLost        it answered before, and may be back (retryable)
    │   ├── EngineFailed        it failed at this request alone   (retryable)
    │   ├── EngineTimeout       no answer in time                 (retryable)
    │   ├── EngineRejected      it refused the request
    │   │   └── EngineUnusable    it refuses every request alike
    │   ├── ContextOverflow     the prompt does not fit the model's context
    │   └── ReplyInvalid        the reply does not satisfy its schema
    ├── ResourceError         weights, disk, or the home folder               exit 5
    │   └── ResourceUnreachable a registry or hub is not reachable  (retryable)
    └── StoreError            the database, or an id that is not in it        exit 6
        └── StoreConflict       another process wrote first       (retryable)

Every error that reaches a user carries a hint: the command or change that mends it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Self

__all__ = [
    "ContextOverflow",
    "EngineError",
    "EngineFailed",
    "EngineLost",
    "EngineRejected",
    "EngineTimeout",
    "EngineUnavailable",
    "EngineUnusable",
    "InputError",
    "MglError",
    "ReplyInvalid",
    "ResourceError",
    "ResourceUnreachable",
    "StoreConflict",
    "StoreError",
    "UsageError",
]


class MglError(Exception):
    """Base of every error that mgl raises on purpose."""

    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})"

    def __reduce__(self) -> tuple[Callable[[], Self], tuple[()]]:
        """So that it can be raised in another process than the one it happened in."""
        return partial(type(self), self.message, hint=self.hint), ()


class UsageError(MglError):
    """An option or argument that cannot work."""

    exit_code = 2


class InputError(MglError):
    """A document or question that cannot be used."""

    exit_code = 3


class EngineError(MglError):
    """A model engine or server that did not deliver."""

    exit_code = 4


class EngineUnavailable(EngineError):
    """The engine cannot be reached, or died during the call."""

    retryable = True


class EngineLost(EngineUnavailable):
    """A server that answered before cannot be reached: it may be starting again."""


class EngineFailed(EngineError):
    """The engine failed at this request, and is there for others."""

    retryable = True


class EngineTimeout(EngineError):
    """The engine gave no answer within the call's deadline."""

    retryable = True


class EngineRejected(EngineError):
    """The engine refused the request, so sending it again would not help."""


class EngineUnusable(EngineRejected):
    """The engine refuses every request alike: it is closed, or its URL, key, model or adapter is
    not what was thought."""


class ContextOverflow(EngineError):
    """The prompt and its reply do not fit the model's context."""


class ReplyInvalid(EngineError):
    """The reply does not satisfy its schema, after every allowed retry."""


class ResourceError(MglError):
    """Weights, disk space or the home folder are not as needed."""

    exit_code = 5


class ResourceUnreachable(ResourceError):
    """A package registry or model hub cannot be reached now."""

    retryable = True


class StoreError(MglError):
    """The database cannot be used, or does not hold what was asked for."""

    exit_code = 6


class StoreConflict(StoreError):
    """Another process has written what was to be written next: read again, then go on."""

    retryable = True
