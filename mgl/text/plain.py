"""Plain text and Markdown: the decoded bytes are the document, untouched.

    >>> read_text(b"CHAPTER I\\r\\n\\r\\nIt rained.", "a.txt", None).text
    'CHAPTER I\\r\\n\\r\\nIt rained.'

Markdown is not rendered, so that every offset is one of the file as its author sees it.
"""

from __future__ import annotations

from mgl.text.chapters import markdown_headings, sections, text_headings
from mgl.text.encoding import decode
from mgl.types import Document

__all__ = ["read_markdown", "read_text"]


def read_text(data: bytes, name: str, encoding: str | None) -> Document:
    """A plain text; lines that look like chapter headings give its sections."""
    decoded = decode(data, name, encoding=encoding)
    return Document.from_text(
        name,
        decoded.text,
        sections=sections(text_headings(decoded.text), len(decoded.text)),
        notes=decoded.notes,
    )


def read_markdown(data: bytes, name: str, encoding: str | None) -> Document:
    """A Markdown source; its headings give its sections."""
    decoded = decode(data, name, encoding=encoding)
    return Document.from_text(
        name,
        decoded.text,
        sections=sections(markdown_headings(decoded.text), len(decoded.text)),
        media_type="text/markdown",
        notes=decoded.notes,
    )
