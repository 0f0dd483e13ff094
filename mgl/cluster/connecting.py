"""Connect to a Ray cluster, and check that its machines have the same mgl.

    >>> with connect("10.0.0.1:6379") as ray:                         # doctest: +SKIP
    ...     ray.cluster_resources()["CPU"]

Without an address, a cluster of this machine alone is started, and stopped at the end. It listens
on 127.0.0.1 and reports nothing to anyone.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Any, Final

from mgl.errors import ResourceError, UsageError, install_hint

__all__ = ["check_code", "connect"]

LOCAL: Final = "local"
LOOPBACK: Final = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""If this is 0 when ray is imported, Ray stays on the loopback interface, on any system."""
REACH_S: Final = 10.0
CHECK_S: Final = 120.0  # for a machine's first worker to start and to read mgl's files


@contextmanager
def connect(address: str | None = None) -> Iterator[Any]:
    """Yield the module ``ray``, connected to ``address``, RAY_ADDRESS, or a cluster of its own.

    An existing connection of this process is used, and left open. UsageError if ray is not
    installed or the address cannot be used, ResourceError if no cluster answers, or if a machine of
    it has other code than this one.
    """
    address = address or os.environ.get("RAY_ADDRESS") or LOCAL
    if address == LOCAL:
        os.environ[LOOPBACK] = "0"
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "--executor ray needs the package ray", hint=install_hint("ray")
        ) from error
    own = not ray.is_initialized()
    if own:
        _connect(ray, address)
    try:
        check_code(_code_by_machine(ray))
        yield ray
    finally:
        if own:
            with redirect_stdout(sys.stderr):  # where Ray reports what is left to report
                ray.shutdown()


def check_code(found: Mapping[str, tuple[str, str]]) -> None:
    """Raise ResourceError for the first machine without mgl, or with another: ``found`` has each
    one's version and hash of the code, or an empty version and the reason."""
    version, own = _make_probe()()
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


def _connect(ray: Any, address: str) -> None:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if address.startswith("ray://"):
        raise UsageError(
            f"{address} is for programs that run outside the cluster",
            hint="start mgl on a machine of the cluster, with --ray-address auto",
        )
    options = {"include_dashboard": False} if address == LOCAL else {}
    try:
        _reach(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except Exception as error:  # Ray raises bare exceptions, too
        raise ResourceError(
            f"no Ray cluster answers at {address}: {' '.join(str(error).split())[:300]}",
            hint="`ray status` says whether one runs; leave out --ray-address for one of this "
            "machine alone",
        ) from error


def _reach(address: str) -> None:
    """OSError if nothing listens at a host and port: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_S).close()


def _code_by_machine(ray: Any) -> dict[str, tuple[str, str]]:
    """Find the mgl of each machine that has processors."""
    pinned = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    probe = ray.remote(num_cpus=0)(_make_probe())
    asked = {
        f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})": probe.options(
            scheduling_strategy=pinned(node["NodeID"], soft=False)
        ).remote()
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU")
    }
    try:
        found = ray.get(list(asked.values()), timeout=CHECK_S)
    except ray.exceptions.RayError as error:
        raise ResourceError(
            f"a machine of the Ray cluster runs nothing: {' '.join(str(error).split())[:300]}",
            hint="`ray status` lists the machines; take out the one that does not work",
        ) from error
    return dict(zip(asked, found, strict=True))


def _make_probe() -> Callable[[], tuple[str, str]]:
    """Make a function that travels as code, since the machine that runs it may not have mgl."""

    def probe() -> tuple[str, str]:
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

    return probe
