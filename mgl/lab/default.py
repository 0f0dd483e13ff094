"""The home's default model: what commands use where neither option nor environment names a model.

    write_default(home, DefaultModel(model="llama3.1:8b", base_url="http://127.0.0.1:11434/v1"))
    choice = ModelChoice().with_default(home)

`mgl use` sets it. It is a file in the home, without the server's key, which is MGL_API_KEY.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from mgl.errors import ResourceError
from mgl.models.files import write_whole

_FILE: Final = "default.json"


class DefaultModel(BaseModel):
    """A profile, an adapter (which brings its base), or a server and the name of its model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str | None = None
    base_url: str | None = None
    adapter: str | None = None

    def __str__(self) -> str:
        if self.adapter is not None:
            return f"the adapter {self.adapter}"
        return f"{self.model} of {self.base_url}" if self.base_url else str(self.model)


def read_default(home: Path) -> DefaultModel | None:
    """Read the home's default model; None if there is none, ResourceError for a broken file."""
    path = home / _FILE
    try:
        return DefaultModel.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise ResourceError(
            f"{path} cannot be read", hint="`mgl use --unset` removes it; then set the model again"
        ) from error


def write_default(home: Path, default: DefaultModel) -> None:
    write_whole(home / _FILE, default.model_dump_json(exclude_none=True).encode())


def remove_default(home: Path) -> None:
    (home / _FILE).unlink(missing_ok=True)
