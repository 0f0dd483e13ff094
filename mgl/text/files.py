"""The bytes of one file that a user named, or an error that says what is the matter with it."""

from __future__ import annotations

import stat
from pathlib import Path

from mgl.errors import InputError

__all__ = ["MAX_BYTES", "read_bytes"]

MAX_BYTES = 256 * 1024 * 1024


def read_bytes(path: Path, *, largest: int = MAX_BYTES) -> bytes:
    """All bytes of a regular file of at most ``largest`` bytes; InputError where it is none."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"{path} is a folder", hint="name one file in it")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path} is not a regular file", hint="save its content in a file")
        if status.st_size > largest:
            raise InputError(
                f"{path} has {status.st_size:,} bytes, more than the {largest:,} that are read",
                hint="split it into parts, for instance: split -C 50M FILE",
            )
        with path.open("rb") as file:
            data = file.read()
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist", hint="check its spelling") from error
    except PermissionError as error:
        raise InputError(f"{path} may not be read", hint=f"allow it: chmod u+r '{path}'") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", hint="check the path") from error
    if not data:
        raise InputError(f"{path} is empty", hint="give a file that holds text")
    return data
