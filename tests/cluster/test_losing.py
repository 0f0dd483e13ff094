"""The units of workers that are away go to other workers. Ray is a fake here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from mgl.cluster import executor
from mgl.cluster.executor import RETRIES, _Sharded
from mgl.errors import EngineUnavailable
from mgl.observer import SilentObserver


class RayError(Exception):
    pass


class ActorError(RayError):
    pass


class TaskError(RayError):
    cause: Exception | None = None


RAY = SimpleNamespace(
    exceptions=SimpleNamespace(RayError=RayError, RayActorError=ActorError, RayTaskError=TaskError)
)


class FakeWorker:
    """Dies at its first ``ends`` units, and is away for ``looks`` looks after each."""

    def __init__(self, name: str, *, ends: int = 0, looks: int = 0) -> None:
        self.name, self.ends, self.looks = name, ends, looks
        self.away = 0
        self.away_error: Exception = ActorError("restarting")
        self.asked = 0

    @property
    def judge(self) -> Any:
        return SimpleNamespace(remote=self._judge)

    @property
    def describe_machine(self) -> Any:
        return SimpleNamespace(remote=self._describe)

    async def _judge(self, *_: Any) -> tuple[str, list[str]]:
        assert not self.away, "nothing is sent to a worker that is away"
        self.asked += 1
        if self.asked <= self.ends:
            self.away = self.looks
            raise ActorError("killed")
        return self.name, []

    async def _describe(self) -> tuple[str, str]:
        if self.away:
            self.away -= 1
            raise self.away_error
        return "machine", "code"


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Awaitable[list[Any]]]:
    monkeypatch.setattr(executor, "_LOOK_S", 0.0)

    async def run(units: int, *workers: FakeWorker) -> list[Any]:
        sharded = _Sharded(RAY, workers, SilentObserver())
        record: Any = None
        return [await sharded.judge(record, record) for _ in range(units)]

    return run


async def test_the_units_of_a_lost_machine_go_to_the_others(judge: Any) -> None:
    lost, left = FakeWorker("lost", ends=1, looks=1_000_000), FakeWorker("left")
    assert await judge(3, lost, left) == ["left"] * 3
    assert lost.asked == 1


async def test_a_worker_that_comes_back_is_used_again(judge: Any) -> None:
    only = FakeWorker("only", ends=2, looks=3)
    assert await judge(2, only) == ["only", "only"]
    assert only.asked == 4


async def test_a_unit_that_ends_its_workers_is_an_error(judge: Any) -> None:
    workers = [FakeWorker("one", ends=99), FakeWorker("two", ends=99)]
    with pytest.raises(EngineUnavailable, match=f"ended {RETRIES + 1} times at the same work"):
        await judge(1, *workers)
    assert sum(each.asked for each in workers) == RETRIES + 1


async def test_a_worker_that_fails_at_its_return_is_waited_for(
    judge: Any,
) -> None:
    """And what is no failure of Ray's is raised, not looked at again and again."""
    lost = FakeWorker("lost", ends=1, looks=3)
    lost.away_error = TaskError("no weights")
    assert await judge(1, lost) == ["lost"]
    lost = FakeWorker("lost", ends=1, looks=3)
    lost.away_error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        await judge(1, lost)


async def test_a_cluster_without_workers_is_not_waited_for_for_ever(
    judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "READY_S", 0.05)
    with pytest.raises(EngineUnavailable, match="no worker of the cluster came back"):
        await judge(1, FakeWorker("lost", ends=1, looks=1_000_000))
