"""Server-sent events: a stream of JSON, one object a line, that ends with ``[DONE]``.

>>> decode_event(encode_event({"id": 1}).decode().strip())
{'id': 1}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from mgl.errors import EngineRejected

_DATA: Final = "data:"
_END: Final = "[DONE]"


def encode_event(event: Mapping[str, Any] | None) -> bytes:
    """Write an event as a line of a stream; None ends it."""
    written = _END if event is None else json.dumps(event, ensure_ascii=False)
    return f"{_DATA} {written}\n\n".encode("utf-8", "replace")


def decode_event(line: str) -> Any:
    """Read the event of a line; None for a line without one. EngineRejected if it is not JSON."""
    if not line.startswith(_DATA) or (data := line.removeprefix(_DATA).strip()) == _END:
        return None
    try:
        return json.loads(data)
    except ValueError as error:
        raise EngineRejected(
            "the server's stream is not JSON",
            hint="give the URL of an OpenAI-compatible server",
        ) from error
