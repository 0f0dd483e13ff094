"""What some kinds of memory can do besides building and answering, as types.

    if supports(kind, Retrying):
        ...

A kind that is told a conversation turn by turn derives from ``mgl.memories.talk.TalkMemory``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from mgl.memories.base import MemoryKind
    from mgl.memories.estimates import Estimate
    from mgl.store import MemoryRecord, Store


@runtime_checkable
class Estimating(Protocol):
    """Estimates from its source what building it takes."""

    async def estimate(self) -> Estimate | None:
        """Estimate what is left to do, without a call of the model; None where nothing tells."""
        ...


@runtime_checkable
class Retrying(Protocol):
    """Reads the parts of its source again that gave no usable reply."""

    async def retry_failed(self) -> None: ...


@runtime_checkable
class Dependent(Protocol):
    """Is read together with another memory, which cannot be deleted alone."""

    @classmethod
    def find_base(cls, store: Store, record: MemoryRecord) -> str | None:
        """Find the id of the memory that a stored one cannot be read without."""
        ...


def supports(kind: MemoryKind, capability: type) -> bool:
    """Whether memories of a kind have a capability."""
    return isinstance(kind, type) and issubclass(kind, capability)
