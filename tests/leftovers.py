"""What a database still has on disk after a deletion."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path


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
