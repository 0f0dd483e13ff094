"""Text: read documents and conversations from files, cut them up, find quotes and times in them.

    document = read_document(Path("story.txt"))
    conversations = read_conversations(Path("log.jsonl"))
    found = locate("the woman", document.text)

All offsets are characters of ``document.text``. No model is known here: whoever chunks a document
passes the function that counts tokens. Each name below is imported when it is first used:
asking a memory needs no readers of files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mgl.text.chunks import chunk_document, window_document
    from mgl.text.conversations import read_conversations
    from mgl.text.private import find_private
    from mgl.text.quotes import Located, locate
    from mgl.text.reading import read_document
    from mgl.text.sentences import numbered_sentences, sentence_spans
    from mgl.text.times import TimeMention, time_mentions

__all__ = [
    "Located",
    "TimeMention",
    "chunk_document",
    "find_private",
    "locate",
    "numbered_sentences",
    "read_conversations",
    "read_document",
    "sentence_spans",
    "time_mentions",
    "window_document",
]

_HOMES = {
    "Located": "quotes",
    "TimeMention": "times",
    "chunk_document": "chunks",
    "find_private": "private",
    "locate": "quotes",
    "numbered_sentences": "sentences",
    "read_conversations": "conversations",
    "read_document": "reading",
    "sentence_spans": "sentences",
    "time_mentions": "times",
    "window_document": "chunks",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mgl.text' has no attribute {name!r}")
    return getattr(import_module(f"mgl.text.{_HOMES[name]}"), name)
