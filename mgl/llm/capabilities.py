"""A model server as mgl reaches it, and what it was seen to be capable of.

A server may refuse a constraint, or accept it and silently ignore it: only trying shows which
(``mgl.serving.probe``). The findings are kept in ``servers/probed.json`` of the home folder, by the
server's URL, make, version and model, so that a server is probed once.

    >>> seen = Capabilities("vllm 0.32.0", ("structured_outputs.json",), ("response_format",),
    ...                     tools=False, logprobs=True, cached_tokens=True)
    >>> seen.warning
    'vllm 0.32.0 accepts and ignores: response_format'
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from mgl.models.files import write_whole

Verdict = Literal["honoured", "ignored", "refused", "failed", "answered"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One trial: its name, its verdict, and the server's answer in short.

    ``ignored``: accepted without an error and not obeyed. ``failed``: no answer, or an error that
    says nothing about what was tried. ``answered``: the control, a plain question.
    """

    name: str
    verdict: Verdict
    said: str


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens a second that a server reads, and writes, with so many requests ``at_once``."""

    read: float
    written: float
    at_once: int


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a server was seen to do.

    ``server`` is its make and version, ``formats`` the constraint formats that it obeys, the
    strongest first, ``ignored`` those that it accepts and does not obey. ``context_tokens`` is None
    if it does not say what its context holds. ``cached_tokens``: it reports what its prefix cache
    saved. ``speed`` is None if nobody measured it.
    """

    server: str
    formats: tuple[str, ...]
    ignored: tuple[str, ...]
    tools: bool
    logprobs: bool
    cached_tokens: bool
    model: str = ""
    context_tokens: int | None = None
    findings: tuple[Finding, ...] = ()
    speed: Speed | None = None

    @property
    def warning(self) -> str | None:
        """One line on constraints that the server ignores; None if it ignores none."""
        if not self.formats:
            tried = ", ".join(self.ignored) or "none was accepted"
            return (
                f"{self.server} decodes under no constraint that mgl can send "
                f"({f'silently ignored: {tried}' if self.ignored else tried}): "
                "replies are checked, and a small model's will often be refused"
            )
        if self.ignored:
            return f"{self.server} accepts and ignores: {', '.join(self.ignored)}"
        return None

    @property
    def is_complete(self) -> bool:
        """Whether every trial got an answer."""
        return all(finding.verdict != "failed" for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How to reach a model server; ``adapter`` is a LoRA adapter that it has loaded."""

    base_url: str
    api_key: str | None = None
    adapter: str | None = None
    capabilities: Capabilities | None = None


_RECORDS: Final = TypeAdapter(dict[str, Capabilities])


def load_capabilities(home: Path, base_url: str, server: str, model: str) -> Capabilities | None:
    """Load what was found before of this server and model, if anything was."""
    return _load(home).get(_key(base_url, server, model))


def save_capabilities(home: Path, base_url: str, found: Capabilities) -> None:
    """Save what was found, in place of earlier findings for the same server and model."""
    _save(home, {**_load(home), _key(base_url, found.server, found.model): found})


def forget_capabilities(home: Path, base_url: str) -> None:
    """Forget what was found at a URL, because another server is about to start there."""
    found = _load(home)
    left = {key: value for key, value in found.items() if not key.startswith(_key(base_url))}
    if left != found:
        _save(home, left)


def _key(base_url: str, *of: str) -> str:
    return " ".join([base_url.rstrip("/").removesuffix("/v1"), *of, ""])


def _load(home: Path) -> dict[str, Capabilities]:
    """What the file holds; one that is missing or cannot be read costs new probes, no more."""
    try:
        return _RECORDS.validate_json((home / "servers" / "probed.json").read_bytes())
    except (OSError, ValidationError):
        return {}


def _save(home: Path, records: dict[str, Capabilities]) -> None:
    path = home / "servers" / "probed.json"
    write_whole(path, _RECORDS.dump_json(records, indent=1))
