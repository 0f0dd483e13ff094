"""Whose memories a request may use: a key for each tenant, kept in the home.

    keys = Keys.open(home, os.environ.get(KEY))     # without one, the owner's key is made
    keys.add("ann"); keys.find_tenant(given)

The owner's memories are the home's. Each other tenant has a folder of its own, with a store of its
own: what lies in one file cannot be read by a query over another.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from mgl.errors import ResourceError, UsageError
from mgl.models.files import write_whole
from mgl.models.permissions import restrict
from mgl.openai.listening import check_key

OWNER: Final = ""
"""The tenant whose memories are the home's own."""

KEY: Final = "MGL_UP_KEY"
"""The variable of the environment that names the owner's key."""

_FILE: Final = "keys.json"
_SENDABLE: Final = re.compile(r"[!-~]+")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def tenant_folder(home: Path, tenant: str) -> Path:
    """The folder of a tenant's memories; UsageError for an invalid name."""
    if tenant == OWNER:
        return home
    if not _NAME.fullmatch(tenant):
        raise UsageError(
            f"{tenant!r} cannot be a tenant's name", hint="use small letters, digits, - and _"
        )
    return home / "tenants" / tenant


class Keys:
    """The keys of all tenants; only their owner can read the file that keeps them."""

    def __init__(self, home: Path, kept: Mapping[str, str], own: str | None) -> None:
        self.home = home
        self._kept = dict(kept)
        self._own = own

    @classmethod
    def open(cls, home: Path, own: str | None = None) -> Self:
        """Read the keys. The owner's is ``own``, which is not stored; without it one is made and
        stored.

        ResourceError for a file that cannot be read; UsageError where ``own`` is a tenant's key, or
        cannot be sent in a header.
        """
        own = own or None
        path = home / _FILE
        restrict(path)
        try:
            stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            kept = {str(name): str(key) for name, key in stored.items()}
        except (OSError, ValueError, AttributeError) as error:
            raise ResourceError(
                f"{path} cannot be read ({type(error).__name__})",
                hint="delete it: new keys are made",
            ) from error
        if own in [key for tenant, key in kept.items() if tenant != OWNER]:
            raise UsageError("this key is a tenant's", hint=f"set {KEY} to another")
        if own is not None and not _SENDABLE.fullmatch(own):
            raise UsageError(
                f"{KEY} cannot be sent in a header", hint="use letters, digits and signs of ASCII"
            )
        keys = cls(home, kept, own)
        keys.add(OWNER)
        return keys

    @property
    def is_own(self) -> bool:
        """Whether the owner's key was given, and not made."""
        return self._own is not None

    @property
    def path(self) -> Path:
        """The file that keeps the keys that were made."""
        return self.home / _FILE

    @property
    def tenants(self) -> list[str]:
        """The names of all tenants but the owner."""
        return [name for name in self._kept if name != OWNER]

    def add(self, tenant: str) -> str:
        """Return the key of a tenant; make one if it has none."""
        tenant_folder(self.home, tenant)
        if tenant == OWNER and self._own:
            return self._own
        if tenant not in self._kept:
            self._kept[tenant] = f"mgl-{secrets.token_urlsafe(24)}"
            self._write()
        return self._kept[tenant]

    def find_tenant(self, given: str) -> str | None:
        """The tenant whose key this is, in a time that tells nothing of the keys."""
        keys = {**self._kept, OWNER: self._own or self._kept[OWNER]}
        fits = [tenant for tenant, key in keys.items() if check_key(given, key)]
        return fits[0] if given and fits else None

    def _write(self) -> None:
        write_whole(self.path, json.dumps(self._kept, indent=1).encode())
