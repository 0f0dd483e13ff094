"""EBNF as xgrammar reads it, turned into a Python regular expression: a second reading of it."""

from __future__ import annotations

import json
import re
from typing import Any

_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*") | (?P<klass>\[(?:[^\]\\]|\\.)*\]) | (?P<name>[a-z]\w*)
      | (?P<count>\{\d+(?:,\d*)?\}) | (?P<sign>[|()?*+]) | (?P<space>\s+)""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)


def pattern_of(ebnf: str) -> str:
    """The language of ``root``. Fails on anything that is not the notation, and on recursion."""
    rules = dict(line.split(" ::= ", 1) for line in ebnf.splitlines())
    return _expanded("root", rules, ())


def _expanded(name: str, rules: dict[str, str], above: tuple[str, ...]) -> str:
    assert name not in above, f"{name} is recursive"
    body, position, written = rules[name], 0, ""
    while position < len(body):
        token = _TOKEN.match(body, position)
        assert token, f"not EBNF: {body[position : position + 40]!r}"
        position = token.end()
        text = token.group()
        match token.lastgroup:
            case "text":
                # The whole literal is one unit, also for a quantifier that follows it.
                written += f"(?:{re.escape(_ESCAPE.sub(_unescaped, text[1:-1]))})"
            case "name":
                written += _expanded(text, rules, (*above, name))
            case "klass" | "count":
                written += text
            case "sign":
                written += "(?:" if text == "(" else text
    return f"(?:{written})"


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    if code.startswith("x"):
        return chr(int(code[1:], 16))
    return {"n": "\n", "r": "\r", "t": "\t"}.get(code, code)


def laid_out(value: Any) -> str:
    """A JSON value in the layout of the grammars: objects of a list on lines of their own."""
    if isinstance(value, dict):
        members = (f"{laid_out(key)}: {laid_out(item)}" for key, item in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        items = [laid_out(item) for item in value]
        if items and all(isinstance(item, dict) for item in value):
            return "[\n  " + ",\n  ".join(items) + "\n]"
        return "[" + ", ".join(items) + "]"
    return json.dumps(value, ensure_ascii=False)
