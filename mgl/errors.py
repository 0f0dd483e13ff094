"""The one error tree of mgl.

    MglError                  message, hint (what to do), retryable, exit_code
    ├── UsageError            an option or argument that cannot work          exit 2
    │   └── WrongKind           a memory of a kind that cannot do this
    ├── InputError            a document or question that cannot be used      exit 3
    │   ├── NotThere            a turn, topic or entity that does not exist
    │   └── Conflict            the stored state does not allow it
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
        ├── StoreConflict       another process wrote first       (retryable)
        └── StoreDeleted        what is worked on was deleted meanwhile

Every error that reaches a user carries a hint: the command or change that mends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Final, Self

from mgl import DISTRIBUTION


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


class WrongKind(UsageError):
    """A memory of a kind that cannot do this, or one of several kinds, and none is named."""


class InputError(MglError):
    """A document or question that cannot be used."""

    exit_code = 3


class NotThere(InputError):
    """A turn, a topic or an entity that is not there, or not any more."""


class Conflict(InputError):
    """What is there does not allow it: an id that is taken, a topic that is frozen."""


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


class StoreDeleted(StoreError):
    """The memory that is worked on was deleted meanwhile, so nothing more is written for it."""

    def __init__(
        self,
        message: str = "this memory was deleted meanwhile",
        *,
        hint: str = "nothing more is kept of it: build or begin it again if you want it back",
    ) -> None:
        super().__init__(message, hint=hint)


def install_hint(extra: str) -> str:
    """The command that installs what an extra of mgl needs, into the Python that runs it.

    It names the packages themselves: mgl may be installed from a checkout, and is in no registry.
    """
    import shlex
    import sys
    from importlib.metadata import PackageNotFoundError, requires

    try:
        listed = [one.split(";") for one in requires(DISTRIBUTION) or ()]
    except PackageNotFoundError:
        return f"python -m pip install -e '.[{extra}]' in the checkout"

    def expand(extra: str) -> Iterator[str]:
        marks = (f'extra == "{extra}"', f"extra == '{extra}'")
        for name, *mark in listed:
            if "".join(mark).strip() in marks:
                inner = name.strip().removeprefix(f"{DISTRIBUTION}[")
                yield from [inner] if inner == name.strip() else expand(inner.removesuffix("]"))

    return shlex.join([sys.executable, "-m", "pip", "install", *expand(extra)])


def describe_fault(fault: Mapping[str, Any], whole: str = "value") -> str:
    """Say what pydantic found wrong, with its place or ``whole``: ``rounds: is missing``."""
    place = ".".join(map(str, fault["loc"])) or whole
    said = _FAULTS.get(fault["type"]) or str(fault["msg"]).removeprefix("Value error, ")
    if said.startswith("Input should be "):
        said = f"must be {said.removeprefix('Input should be ')}"
    return f"{place}: {said}"


_FAULTS: Final = {
    "extra_forbidden": "is not known here",
    "missing": "is missing",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
}
