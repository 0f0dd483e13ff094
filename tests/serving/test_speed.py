"""The speed of made-up servers, by a clock that stands still while anybody works."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from mgl.errors import EngineLost, EngineUnusable
from mgl.llm.capabilities import Capabilities, ProbeResult, Speed, Verdict, load_capabilities
from mgl.openai.servers import Http, Server
from mgl.serving import speed as speeds
from mgl.serving.speed import find_speed, measure_speed

ResultT = TypeVar("ResultT")
SERVER = Server("vllm", "0.32.0", "m", 32_768)


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time jumps to the next timer when nothing else is left to do."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


class Card:
    """A card that works at ``slots`` requests at once, each at the same pace."""

    def __init__(self, slots: int, *, read: float = 1000.0, write: float = 50.0) -> None:
        self.read, self.write = read, write
        self.slots = asyncio.Semaphore(slots)
        self.bodies: list[Mapping[str, Any]] = []

    async def post(self, path: str, body: Mapping[str, Any], limit_s: float | None) -> Any:
        assert (path, limit_s) == ("chat/completions", None)
        self.bodies.append(body)
        prompt = 3 * len(body["messages"][0]["content"].split())
        async with self.slots:
            await asyncio.sleep(prompt / self.read + body["max_tokens"] / self.write)
        return {"usage": {"prompt_tokens": prompt, "completion_tokens": body["max_tokens"]}}


def run(work: Callable[[], Awaitable[ResultT]]) -> ResultT:
    async def wait() -> ResultT:
        return await work()

    with asyncio.Runner(loop_factory=Clock) as runner:
        return runner.run(wait())


async def measure(card: Any, steps: tuple[int, ...] = (4, 16, 64)) -> Speed:
    return await measure_speed(cast(Http, card), SERVER, seconds=80, steps=steps)


@pytest.mark.parametrize(("slots", "best"), [(4, 4), (17, 16), (20, 64), (300, 64)])
def test_no_more_requests_are_sent_at_once_than_make_it_faster(slots: int, best: int) -> None:
    speed = run(lambda: measure(Card(slots)))
    assert speed.at_once == best
    assert speed.read == pytest.approx(1000 * min(best, slots), rel=0.1)
    assert speed.written == pytest.approx(50 * min(best, slots), rel=0.1)


def test_it_takes_its_time_and_no_more_and_no_prompt_twice() -> None:
    async def work() -> tuple[float, Card]:
        card = Card(1000)
        await measure(card)
        return asyncio.get_running_loop().time(), card

    seconds, card = run(work)
    assert seconds == pytest.approx(80)
    asked = [str(body["messages"]) for body in card.bodies]
    assert len({*asked}) == len(asked)
    assert all(
        body["ignore_eos"] and body["min_tokens"] == body["max_tokens"] for body in card.bodies
    )


def test_a_server_that_is_too_slow_for_the_next_step_keeps_the_last() -> None:
    """Sixteen prompts at once take it longer than a step has."""
    speed = run(lambda: measure(Card(1, read=400.0, write=50.0), (1, 16)))
    assert speed.at_once == 1


def test_a_server_that_answers_nothing_in_time_is_said_to() -> None:
    with pytest.raises(EngineUnusable, match="finished no request"):
        run(lambda: measure(Card(1, read=1.0)))


def test_a_server_that_goes_away_is_no_slow_server() -> None:
    class Gone:
        async def post(self, *_: Any) -> Any:
            raise EngineLost("no server answers", hint="start it")

    with pytest.raises(EngineLost):
        run(lambda: measure(Gone()))


def test_a_measurement_that_is_cancelled_leaves_no_request_in_flight() -> None:
    async def work() -> set[str]:
        measuring = asyncio.create_task(measure(Card(1, read=1.0)))
        await asyncio.sleep(1)
        measuring.cancel()
        await asyncio.wait([measuring])
        return {each.get_name() for each in asyncio.all_tasks() if each != asyncio.current_task()}

    assert run(work) == set()


@pytest.mark.parametrize(("verdict", "is_kept"), [("honoured", True), ("failed", False)])
async def test_a_speed_is_kept_with_a_probe_that_was_complete(
    verdict: Verdict, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial without an answer is tried again by the next command."""
    trial = ProbeResult("tools", verdict, "")
    seen = Capabilities(SERVER.label, (), (), False, False, False, SERVER.model, findings=(trial,))
    measured, url = Speed(1000.0, 50.0, 16), "http://127.0.0.1:9/v1"

    async def answer_identify(*_: Any) -> Server:
        return SERVER

    async def answer_probe(*_: Any) -> Capabilities:
        return seen

    async def answer_speed(*_: Any, **__: Any) -> Speed:
        return measured

    monkeypatch.setattr(speeds, "identify", answer_identify)
    monkeypatch.setattr(speeds, "probe_once", answer_probe)
    monkeypatch.setattr(speeds, "measure_speed", answer_speed)
    assert await find_speed(url, None, (), tmp_path, lambda _: None) == measured
    kept = load_capabilities(tmp_path, url, SERVER.label, SERVER.model)
    assert (kept is not None and kept.speed == measured) is is_kept
