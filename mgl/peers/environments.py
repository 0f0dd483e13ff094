"""The environments of peers: what may be installed, from which lock, and where it lies.

    install(home, "lightrag", report=print)
    find_python(home, "lightrag")          # the Python that has it

``locks/NAME.txt`` pins every package of an environment by version and hashes; nothing else gets in,
and nothing is built from source. It was resolved once, for all systems, by ``uv pip compile``.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mgl.errors import ResourceError, UsageError
from mgl.serving.installing import find_own_python, install_locked, run

LOCKS: Final = Path(__file__).parent / "locks"
_MARK: Final = "installed.json"


@dataclass(frozen=True, slots=True)
class Peer:
    """A package that runs beside mgl; ``python`` is the oldest version that it runs on."""

    name: str
    package: str
    version: str
    licence: str
    about: str
    python: tuple[int, int] = (3, 11)


PEERS: Final[Mapping[str, Peer]] = {
    peer.name: peer
    for peer in (
        Peer("lightrag", "lightrag-hku", "1.5.7", "MIT", "entities and relations of a document"),
        Peer(
            "graphiti", "graphiti-core", "0.31.2", "Apache-2.0", "facts of a conversation, as Zep"
        ),
        Peer("langmem", "langmem", "0.0.30", "MIT", "memories that an agent of a speaker writes"),
        Peer(
            "mem0", "mem0ai", "1.0.11", "Apache-2.0", "facts of a conversation (arXiv 2504.19413)"
        ),
        Peer("rlms", "rlms", "0.1.1", "MIT", "nothing: code reads the text (arXiv 2512.24601)"),
    )
}


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment as it was made: its lock, its Python, and what it took."""

    lock: str
    python: str
    seconds: float
    megabytes: int


def find_peer(name: str) -> Peer:
    """The peer of a name; UsageError for an unknown one."""
    if name not in PEERS:
        raise UsageError(f"there is no peer {name!r}", hint=f"choose one of: {', '.join(PEERS)}")
    return PEERS[name]


def lock_hash(name: str) -> str:
    """What pins a peer's environment: the hash of its lock."""
    return hashlib.sha256((LOCKS / f"{name}.txt").read_bytes()).hexdigest()[:12]


def find_installed(home: Path, name: str) -> Installed | None:
    """A peer's environment; None where it is missing, or was made from another lock."""
    try:
        made = Installed(**json.loads((_folder(home, name) / _MARK).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return made if made.lock == lock_hash(name) else None


def find_python(home: Path, name: str) -> Path:
    """The Python of a peer's environment; ResourceError where it is not installed."""
    if find_installed(home, name) is None:
        raise ResourceError(f"the peer {name} is not installed", hint=f"`mgl peer install {name}`")
    return find_own_python(_folder(home, name))


def install(
    home: Path, name: str, *, python: Path | None = None, report: Callable[[str], None]
) -> Installed:
    """Make a peer's environment anew, from its lock alone.

    ``python`` makes it, by default the one that runs mgl. ResourceError where that is too old, or
    something cannot be downloaded.
    """
    peer, folder, start = find_peer(name), _folder(home, name), time.monotonic()
    chosen = str(python or sys.executable)
    shown = "import sys; print(*sys.version_info[:3], sep='.')"
    version = run([chosen, "-c", shown]).strip()
    if tuple(map(int, version.split(".")[:2])) < peer.python:
        needed = ".".join(map(str, peer.python))
        raise ResourceError(
            f"{peer.package} needs Python {needed} or newer, and {chosen} is {version}",
            hint=f"name one: `mgl peer install {name} --python PATH`",
        )
    shutil.rmtree(folder, ignore_errors=True)
    report(f"making an environment for {peer.package} {peer.version} (Python {version})")
    install_locked(folder, LOCKS / f"{name}.txt", chosen)
    size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    made = Installed(lock_hash(name), version, time.monotonic() - start, size // 2**20)
    fields = {each: getattr(made, each) for each in Installed.__slots__}
    (folder / _MARK).write_text(json.dumps(fields), encoding="utf-8")
    return made


def remove(home: Path, name: str) -> bool:
    """Remove a peer's environment; whether there was one."""
    folder = _folder(home, find_peer(name).name)
    if not folder.exists():
        return False
    shutil.rmtree(folder)
    return True


def _folder(home: Path, name: str) -> Path:
    return home / "peers" / name
