"""What is still on disk after a deletion."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from mgl.retrieval.embedders import CachedEmbedder
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store


def left(path: Path, texts: Iterable[str]) -> list[str]:
    """Those texts that the database's files have, as they are or as JSON escapes them."""
    files = [file.read_bytes() for file in path.parent.glob(f"{path.name}*")]
    return [
        text
        for text in texts
        if any(
            form in file
            for file in files
            for form in (text.encode(), json.dumps(text)[1:-1].encode())
        )
    ]


def find_left(folder: Path, texts: Iterable[str]) -> dict[str, set[str]]:
    """Where a folder still has some of these texts: in which of its files, or their names.

    They are found as UTF-8 and UTF-16, as JSON escapes them, in hexadecimal and in base64, and in
    any case of letters.
    """
    forms = {text: [form.lower() for form in _write(text)] for text in texts}
    found: dict[str, set[str]] = {}
    for path in (each for each in folder.rglob("*") if each.is_file()):
        held = path.name.encode().lower() + b"\n" + path.read_bytes().lower()
        for text, written in forms.items():
            if any(form in held for form in written):
                found.setdefault(text, set()).add(path.relative_to(folder).as_posix())
    return found


def keep_vectors(memory: Any) -> WordEmbedder:
    """Have the store keep the vectors of what a memory embeds from now on."""
    embedder = WordEmbedder()
    cached = CachedEmbedder(embedder, memory._tools.store)
    memory._tools = replace(memory._tools, embedder=cached)
    return embedder


def find_kept(store: Store, embedder: WordEmbedder) -> set[str]:
    """The texts that were embedded, of which the store still has a vector."""
    texts = list(dict.fromkeys(embedder.embedded))
    return {
        text
        for model_id in (embedder.model_id, f"{embedder.model_id} as query")
        for text, vector in zip(texts, store.vectors(model_id, texts), strict=True)
        if vector is not None
    }


def _write(text: str) -> Iterator[bytes]:
    for said in {text, text.casefold(), text.capitalize()}:
        plain = said.encode()
        yield plain
        yield json.dumps(said)[1:-1].encode()
        yield said.encode("utf-16-le")
        yield said.encode("utf-16-be")
        yield plain.hex().encode()
        for before in range(3):  # where it may begin within three bytes
            coded = base64.b64encode(b"\0" * before + plain)
            sure = coded[4 * (before > 0) : len(coded) // 4 * 4 - 4]
            if len(sure) >= 8:  # shorter ones occur by chance
                yield sure
