"""The home folder, the data that ships with mgl, and the YAML files in it.

The home folder is ``MGL_HOME``, or the platform's folder for user data. ``models/``, ``serving/``
and ``eval/`` are data, not Python: a folder that the caller gives is read first, then the one of
that name in the home folder, then what the wheel ships, or in a checkout its top-level folder.
"""

from __future__ import annotations

import difflib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from mgl.errors import InputError, ResourceError, UsageError, describe_fault
from mgl.models.permissions import can_others_use, make_private_folder, restrict_tree

DataKind = Literal["models", "serving", "eval", "examples"]

_PRIVATE: Final = (
    "*.sqlite*",
    "keys.json",
    "default.json",
    "jobs",
    "tenants",
    "locks",
    "engines",
    "up",
    "proxies",
    "servers/log",
    "servers/run",
    "adapters",
    "training",
)
"""What of a home holds words or keys of its user; weights and environments are public."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_P = TypeVar("_P", bound=_Named)


@dataclass(frozen=True, slots=True)
class Shipped(Generic[_P]):
    """One kind of shipped YAML file, in ``folder`` or ``under`` a folder of that.

    ``called`` names the kind in messages, ``listed_by`` is the command that lists it, and ``fault``
    is raised for an invalid file.
    """

    folder: DataKind
    called: str
    listed_by: str
    read: Callable[[object], _P]
    under: str = ""
    fault: type[UsageError] | type[InputError] = UsageError


def home(override: Path | None = None) -> Path:
    """The folder where mgl keeps weights and memories; created if missing, for its owner alone.

    ``override`` comes before ``MGL_HOME``, and that before the platform's user data folder. A home
    that other users could read is restricted, with a warning. Raises ResourceError if it cannot be
    created or written to.
    """
    folder = _home_path(override)
    try:
        make_private_folder(folder)
        if can_others_use(folder):
            restrict_tree(folder, _PRIVATE)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ResourceError(
            f"the home folder {folder} cannot be written to: {error.strerror or error}",
            hint="set MGL_HOME to a folder of yours with a few GB free",
        ) from error
    return folder


def data_dirs(
    kind: DataKind, override: Path | None = None, *, home: Path | None = None
) -> list[Path]:
    """Every folder with shipped data of one kind, in the order in which they are read.

    Raises UsageError if ``override`` is not a folder, and ResourceError if nothing ships.
    """
    package = Path(__file__).resolve().parents[1]
    places = [_home_path(home) / kind, package / "_shipped" / kind]
    if (package.parent / "pyproject.toml").is_file():
        places.append(package.parent / kind)
    if override is not None:
        if not override.is_dir():
            raise UsageError(
                f"{override} is not a folder", hint=f"give the folder that holds the {kind} files"
            )
        places.insert(0, override)
    found = [place for place in places if place.is_dir()]
    if not found:
        raise ResourceError(
            f"this installation has no {kind} folder",
            hint="install mindgraph-lab again: its wheel carries that folder",
        )
    return found


def load(
    name: str, kind: Shipped[_P], override: Path | None = None, *, home: Path | None = None
) -> _P:
    """Load a file of a kind by name, from the first folder that has it.

    Raises UsageError if there is none (close names are suggested), and the kind's fault, with the
    place, if it is invalid.
    """
    files = dict(_files(kind, override, home))
    if name not in files:
        raise UsageError(
            f"there is no {kind.called} called {name!r}",
            hint=f"{suggest(name, files)}there are: {', '.join(sorted(files))}",
        )
    return _parse(files[name], kind)


def load_all(
    kind: Shipped[_P], override: Path | None = None, *, home: Path | None = None
) -> dict[str, _P]:
    """Load every file of a kind, sorted by name; errors as in ``load``."""
    return {name: _parse(path, kind) for name, path in sorted(_files(kind, override, home))}


def suggest(name: str, names: Iterable[str]) -> str:
    """Suggest close names for an unknown one (``did you mean …? ``), or nothing."""
    close = difflib.get_close_matches(name, names, n=2, cutoff=0.4)
    return f"did you mean {' or '.join(close)}? " if close else ""


def require_space(folder: Path, needed: int) -> None:
    """Raise ResourceError unless the disk that holds ``folder`` has ``needed`` bytes free."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise ResourceError(
            f"not enough disk: {_megabytes(needed)} needed, {_megabytes(free)} free at {existing}",
            hint="free some space there, or set MGL_HOME to a folder on a larger disk",
        )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def _home_path(override: Path | None) -> Path:
    if override is not None:
        return override.expanduser().absolute()
    if configured := os.environ.get("MGL_HOME"):
        return Path(configured).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("mgl", appauthor=False)


def _files(
    kind: Shipped[_P], override: Path | None, home: Path | None
) -> Iterator[tuple[str, Path]]:
    """List the files of a kind by name, each from the first folder that has it."""
    seen: set[str] = set()
    for place in data_dirs(kind.folder, override, home=home):
        for path in sorted((place / kind.under).glob("*.yaml")):
            if path.stem not in seen:
                seen.add(path.stem)
                yield path.stem, path


def _parse(path: Path, kind: Shipped[_P]) -> _P:
    import yaml
    from pydantic import ValidationError

    try:
        read = kind.read(yaml.load(path.read_text(encoding="utf-8"), Loader=_loader()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise kind.fault(
            f"the {kind.called} {path} cannot be read: {error}", hint="it has to be YAML in UTF-8"
        ) from error
    except ValidationError as error:
        fault = describe_fault(dict(error.errors()[0]), "the file")
        raise kind.fault(
            f"the {kind.called} {path} is not valid: {fault}",
            hint=f"compare it with one that ships; `{kind.listed_by}` lists them",
        ) from error
    if read.name != path.stem:
        raise kind.fault(
            f"the {kind.called} {path} calls itself {read.name!r}",
            hint="give the file and its name field the same name",
        )
    return read


@cache
def _loader() -> Any:
    """PyYAML's safe loader, except that duplicate keys are errors.

    Runs in C if PyYAML was built with libyaml, as its wheels are: ten times as fast.
    """
    import yaml

    safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(safe):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[str] = set()
            for key, _ in node.value:
                if str(key.value) in seen:
                    raise yaml.MarkedYAMLError(None, None, f"{key.value!r} twice", key.start_mark)
                seen.add(str(key.value))
            return super().construct_mapping(node, deep)

    return Loader
