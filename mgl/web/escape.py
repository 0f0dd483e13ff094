"""Pages: their assets, and text that others wrote, made harmless in HTML, scripts and XML.

    >>> html_text("a < b\\x00")
    'a &lt; b␀'

What a page shows of a control character is its Unicode picture (``␀`` for NUL); half a surrogate
pair, which no encoding can carry, and code points that are no characters become the replacement
character. This module knows nothing of graphs.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

__all__ = [
    "asset",
    "html_text",
    "json_text",
    "make_visible",
    "script_hash",
    "script_json",
    "visible",
    "xml_text",
]

_NONCHARACTERS = "\ufdd0-\ufdef" + "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
)
_INVISIBLE = re.compile(f"[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff{_NONCHARACTERS}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_IN_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
_DELETE = 0x7F
_PICTURES = 0x2400


def asset(name: str) -> str:
    """Read a file of ``mgl/web/assets``; ``palette.css`` has the colours of all pages."""
    return (resources.files("mgl.web") / "assets" / name).read_text(encoding="utf-8")


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code > _DELETE:
        return "\ufffd"
    return "\u2421" if code == _DELETE else chr(_PICTURES + code)


def visible(text: str) -> str:
    """The text with a visible sign for each character that a page cannot show or carry.

    One character stays one character, so offsets into the result are offsets into ``text``.
    """
    return _INVISIBLE.sub(_picture, text)


def make_visible(value: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object whose texts are all ``visible``."""
    return {visible(str(name)): _show(each) for name, each in value.items()}


def _show(value: object) -> object:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return make_visible(value)
    return [_show(each) for each in value] if isinstance(value, list | tuple) else value


def html_text(text: str) -> str:
    """The text as HTML that shows it, safe between tags and between quotes."""
    return html.escape(visible(text), quote=True)


def script_json(value: Any) -> str:
    """JSON in plain ASCII that no HTML parser can take for the end of its script element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return re.sub("[<>&]", lambda match: _IN_SCRIPT[match.group()], text)


def script_hash(text: str) -> str:
    """The source expression by which a content security policy allows this script or style."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def json_text(value: Any) -> str:
    """Indented JSON in readable Unicode, with half surrogate pairs escaped so it can be encoded."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text) + "\n"


def xml_text(text: str) -> str:
    """The text without the characters that XML 1.0 forbids."""
    return _NOT_XML.sub("", text)
