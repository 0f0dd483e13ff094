"""The way to a Ray cluster, and whether its machines have the same mgl.

    >>> with connect("10.0.0.1:6379") as ray:                         # doctest: +SKIP
    ...     ray.cluster_resources()["CPU"]

Without an address, a cluster of this machine alone is started, and ended at the end. It listens on
127.0.0.1 and reports nothing to anyone.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Any, Final

from mgl.errors import MglError, ResourceError, UsageError

__all__ = ["check_code", "connect", "told"]

LOCAL: Final = "local"
LOOPBACK: Final = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Where this is 0 when ray is imported, Ray stays on the loopback interface, on any system."""
KNOCK_S: Final = 10.0
LOOK_S: Final = 120.0  # for a machine's first worker to start and to read mgl's files


@contextmanager
def connect(address: str | None = None) -> Iterator[Any]:
    """The module ``ray``, connected: to ``address``, to RAY_ADDRESS, or to a cluster of its own.

    A connection that this process has already is used, and left. UsageError where ray is not
    installed or the address cannot be used, ResourceError where no cluster answers, or where a
    machine of it has not the code that runs here.
    """
    address = address or os.environ.get("RAY_ADDRESS") or LOCAL
    if address == LOCAL:
        os.environ[LOOPBACK] = "0"
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "--executor ray needs the package ray", hint='pip install "mgl[ray]"'
        ) from error
    own = not ray.is_initialized()
    if own:
        _connect(ray, address)
    try:
        check_code(_code_by_machine(ray))
        yield ray
    finally:
        if own:
            with redirect_stdout(sys.stderr):  # Ray tells there, too, what it has left to tell
                ray.shutdown()


def check_code(found: Mapping[str, tuple[str, str]]) -> None:
    """Refuse machines that have no mgl, or another: ``found`` has each one's version and hash of
    the code, or "" and why there is none. ResourceError names the first of them."""
    version, own = _looker()()
    for machine, (its_version, its_hash) in found.items():
        if not its_version:
            raise ResourceError(
                f"the machine {machine} of the cluster has no mgl: {its_hash}",
                hint="install the same mgl there, in the Python that its `ray start` runs in",
            )
        if its_hash != own:
            raise ResourceError(
                f"the machine {machine} of the cluster has another mgl: {its_version} "
                f"({its_hash[:12]}), and this is {version} ({own[:12]})",
                hint="install the same mgl on every machine: records must not depend on where "
                "they were made",
            )


def told(ray: Any, reference: Any) -> Any:
    """What a reference holds; an error of mgl that was raised there is raised here."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, MglError):
            raise error.cause from None
        raise


def _connect(ray: Any, address: str) -> None:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if address.startswith("ray://"):
        raise UsageError(
            f"{address} is for programs that run outside the cluster",
            hint="start mgl on a machine of the cluster, with --ray-address auto",
        )
    options = {"include_dashboard": False} if address == LOCAL else {}
    try:
        _knock(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except Exception as error:  # Ray raises bare exceptions, too
        raise ResourceError(
            f"no Ray cluster answers at {address}: {' '.join(str(error).split())[:300]}",
            hint="`ray status` says whether one runs; leave out --ray-address for one of this "
            "machine alone",
        ) from error


def _knock(address: str) -> None:
    """OSError where nothing listens at a host and port: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_S).close()


def _code_by_machine(ray: Any) -> dict[str, tuple[str, str]]:
    """What each machine that has processors to give has of mgl."""
    pinned = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    look = ray.remote(num_cpus=0)(_looker())
    asked = {
        f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})": look.options(
            scheduling_strategy=pinned(node["NodeID"], soft=False)
        ).remote()
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU")
    }
    try:
        found = ray.get(list(asked.values()), timeout=LOOK_S)
    except ray.exceptions.RayError as error:
        raise ResourceError(
            f"a machine of the Ray cluster runs nothing: {' '.join(str(error).split())[:300]}",
            hint="`ray status` lists the machines; take out the one that does not work",
        ) from error
    return dict(zip(asked, found, strict=True))


def _looker() -> Callable[[], tuple[str, str]]:
    """A function that travels as its code, since the machine that runs it may not have mgl."""

    def look() -> tuple[str, str]:
        import hashlib
        from importlib import metadata
        from pathlib import Path

        try:
            import mgl
        except ImportError as error:
            return "", str(error)
        folder = Path(mgl.__file__).parent
        hashed = hashlib.sha256()
        for path in sorted(folder.rglob("*.py")):
            hashed.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
        try:
            return metadata.version("mgl"), hashed.hexdigest()
        except metadata.PackageNotFoundError:
            return "a version that is not installed", hashed.hexdigest()

    return look
