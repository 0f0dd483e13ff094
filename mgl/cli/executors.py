"""Where a run is worked on, by its options: in this process, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mgl.errors import UsageError

if TYPE_CHECKING:
    from mgl.cli.workplaces import Workplaces
    from mgl.evaluation.runs.executing import OpenExecutor
    from mgl.evaluation.runs.manifest import ExecutorName

__all__ = ["BaseUrls", "Executing", "Executor", "RayAddress"]

BaseUrls = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL[,URL…]",
        envvar="MGL_BASE_URL",
        show_envvar=False,
        help="Use this OpenAI-compatible server; several with --executor ray.",
    ),
]
Executor = Annotated[
    Literal["local", "ray"],
    typer.Option("--executor", help="Work in this process, or on a Ray cluster."),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="ADDRESS",
        help="The Ray cluster, if not RAY_ADDRESS or one of this machine alone.",
    ),
]


@dataclass(frozen=True)
class Executing:
    """``urls`` are the model servers: one where the run is of this process."""

    name: ExecutorName
    address: str | None
    urls: tuple[str, ...]

    @classmethod
    def asked(
        cls, name: ExecutorName, address: str | None, urls: str | None, *, runs: bool
    ) -> Executing:
        """What the options say; UsageError where they do not go together. ``runs`` is whether
        there is a run to be worked on."""
        listed = tuple(url for part in (urls or "").split(",") if (url := part.strip()))
        if name == "ray":
            if not runs:
                raise UsageError(
                    "--executor ray goes with a run that asks a model", hint="leave it out"
                )
        elif address is not None:
            raise UsageError("--ray-address goes with --executor ray", hint="give both, or none")
        elif len(listed) > 1:
            raise UsageError(
                "a run in one process has one server, and --base-url names several",
                hint="name one, or shard the run: --executor ray",
            )
        return cls(name, address, listed)

    @property
    def url(self) -> str | None:
        """The server that this process asks, if one is named."""
        return next(iter(self.urls), None)

    @contextmanager
    def opened(self, places: Workplaces, *, concurrency: int, keep: bool) -> Iterator[OpenExecutor]:
        """What opens the executors of a run."""
        if self.name == "local":
            from mgl.evaluation.runs.executing import here

            yield here
            return
        from mgl.cluster import connected, sharded

        with connected(self.address) as ray:
            yield sharded(
                ray,
                places.store.path,
                places.choice,
                self.urls,
                places.observer,
                concurrency=concurrency,
                keep=keep,
            )
