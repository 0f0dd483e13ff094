"""The store: documents, memories, their edit logs, model calls and reports, in one SQLite file."""

from mgl.store.database import Store
from mgl.store.records import EditRecord, MemoryCost, MemoryRecord

__all__ = ["EditRecord", "MemoryCost", "MemoryRecord", "Store"]
