"""What a server was seen to honour, and the file that keeps it.

A server may refuse a constraint, or accept it and pass over it in silence: only trying tells
(``mgl.serving.probing``). What was found is kept in ``servers/probed.json`` of the home folder,
under the server's URL, its make and version, and the model, so that a server is tried once.

    >>> seen = Honoured("vllm 0.32.0", ("structured_outputs.json",), ("response_format",),
    ...                 tools=False, logprobs=True, cached_tokens=True, adapters=False)
    >>> seen.warning
    'vllm 0.32.0 accepts without a word, and does not obey: response_format'

It does not know how constraints are sent: ``mgl.llm.engines.ways`` does.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

__all__ = ["Finding", "Honoured", "Verdict", "forget", "keep", "kept"]

Verdict = Literal["honoured", "ignored", "refused", "failed", "answered"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was tried: its name, how it went, and what the server answered, in short.

    ``ignored``: accepted without an error and not obeyed. ``failed``: no answer, or an error that
    says nothing of what was tried. ``answered``: the control, a plain question.
    """

    name: str
    verdict: Verdict
    said: str


@dataclass(frozen=True, slots=True)
class Honoured:
    """What a server was seen to honour, by trying.

    ``server`` is its make and version, ``ways`` the ways of constraining that it honours, the
    strongest first, ``ignored`` those that it accepted and did not obey. ``cached_tokens``: it
    tells what its prefix cache saved. ``adapters``: it has LoRA adapters, or takes them.
    """

    server: str
    ways: tuple[str, ...]
    ignored: tuple[str, ...]
    tools: bool
    logprobs: bool
    cached_tokens: bool
    adapters: bool
    model: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def warning(self) -> str | None:
        """One line on constraints that the server takes and ignores; None where it takes none."""
        if not self.ways:
            tried = ", ".join(self.ignored) or "none was accepted"
            return (
                f"{self.server} decodes under no constraint that mgl can send "
                f"({f'silently ignored: {tried}' if self.ignored else tried}): "
                "replies are checked, and a small model's will often be refused"
            )
        if self.ignored:
            ignored = ", ".join(self.ignored)
            return f"{self.server} accepts without a word, and does not obey: {ignored}"
        return None

    def rows(self) -> list[tuple[str, str, str]]:
        """What was tried, how it went and what was answered: a table to print."""
        return [(found.name, found.verdict, found.said) for found in self.findings]

    @property
    def complete(self) -> bool:
        """Whether everything that was tried got an answer."""
        return all(finding.verdict != "failed" for finding in self.findings)


def kept(home: Path, base_url: str, server: str, model: str) -> Honoured | None:
    """What was found of this server and model before, if it was kept."""
    found = _read(_file(home)).get(_key(base_url, server, model))
    return None if found is None else _from_json(found)


def keep(home: Path, base_url: str, honoured: Honoured) -> None:
    """Keep what was found, in place of what was kept for the same server and model."""
    key = _key(base_url, honoured.server, honoured.model)
    _write(_file(home), {**_read(_file(home)), key: asdict(honoured)})


def forget(home: Path, base_url: str) -> None:
    """Forget what was found at a URL, where a server is about to start with options of its own."""
    found = _read(_file(home))
    left = {key: value for key, value in found.items() if not key.startswith(_key(base_url))}
    if left != found:
        _write(_file(home), left)


def _file(home: Path) -> Path:
    return home / "servers" / "probed.json"


def _key(base_url: str, *of: str) -> str:
    return " ".join([base_url.rstrip("/").removesuffix("/v1"), *of, ""])


def _write(path: Path, value: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".json")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
    Path(name).replace(path)


def _read(path: Path) -> dict[str, Any]:
    """What the file holds; a file that is missing or damaged holds nothing, and is written anew."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _from_json(value: Mapping[str, Any]) -> Honoured | None:
    """The record; None where it is not of this version's form."""
    try:
        findings = tuple(Finding(**one) for one in value["findings"])
        lists = {"ways": tuple(value["ways"]), "ignored": tuple(value["ignored"])}
        return Honoured(**{**value, **lists, "findings": findings})
    except (KeyError, TypeError):
        return None
