"""A book of Project Gutenberg without what stands around it: header, credits, licence.

    >>> text = "Title: A\\n*** START OF THIS PROJECT GUTENBERG EBOOK A ***\\n\\nIt rained.\\n"
    >>> without_licence(Document.from_text("a.txt", text)).text
    'It rained.'

The text is cut at the lines ``*** START OF … ***`` and ``*** END OF … ***``, then the credits
after the first and the words "End of Project Gutenberg's …" before the second are left out.
Texts from before 1998 say other things there, and stay as they are.
"""

from __future__ import annotations

import re

from mgl.text.chapters import sections, text_headings
from mgl.types import Document

__all__ = ["without_licence"]

_EBOOK = r"(?:THE|THIS) PROJECT GUTENBERG E-?BOOK"
_START = re.compile(rf"^\*\*\* ?START OF {_EBOOK}[^*]*\*\*\*", re.IGNORECASE | re.MULTILINE)
_END = re.compile(rf"^\*\*\* ?END OF {_EBOOK}", re.IGNORECASE | re.MULTILINE)
_CREDITS = re.compile(r"\s*(?:Produced by|E-text prepared by)\s(?:[^\r\n]+\r?\n)*", re.IGNORECASE)
_LAST_WORDS = re.compile(
    r"^End of (?:the )?Project Gutenberg[^\r\n]*(?:\r?\n[^\r\n]+)*\s*\Z",
    re.IGNORECASE | re.MULTILINE,
)


def without_licence(document: Document) -> Document:
    """The book alone, a document of its own whose positions count from its first word.

    A document without the two lines is given back as it is; ``notes`` says what was left out.
    """
    text = document.text
    if (start := _START.search(text)) is not None:
        text = text[start.end() :]
        if (credits_ := _CREDITS.match(text)) is not None:
            text = text[credits_.end() :]
    if (end := _END.search(text)) is not None:
        text = _LAST_WORDS.sub("", text[: end.start()])
    if (start is None and end is None) or not text.strip():
        return document
    text = text.strip()
    note = f"Project Gutenberg's header and licence left out: {len(text):,} characters remain"
    return Document.from_text(
        document.name,
        text,
        sections=sections(text_headings(text), len(text)),
        media_type=document.media_type,
        notes=(*document.notes, note),
    )
