"""What a build or a run would take, before it begins.

    >>> cost = Estimate(calls=40, input_tokens=24_000, done=10, chunks=30)
    >>> cost.at([(Pace(10, 6_000, 500, 30.0), 40)]).describe()
    '20 of 30 chunks: 40 model calls, 24,000 tokens in, 2,000 out, about 2 min (from 10 calls of \
this model on this machine)'

Memories count what they still have to read (``mgl.memories.capabilities.Estimating``), a lab scales
what earlier builds took (``mgl.lab.estimates``), and an evaluation what earlier runs took
(``mgl.evaluation.papers.estimates``). All say it by this, and take their seconds from the pace at
which the model made such calls on this machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mgl.store.calls import Pace


@dataclass(frozen=True, slots=True)
class Estimate:
    """Calls, tokens and wall time; None for what nothing tells.

    ``basis`` names what it is estimated from, and what is not included. Where it ``is_bound``, it
    is the most that may be needed. ``chunks`` is all that a document has, ``done`` how many of them
    are in the log; 0 where nothing is read in chunks.
    """

    calls: float
    input_tokens: float
    output_tokens: float | None = None
    seconds: float | None = None
    basis: tuple[str, ...] = ()
    is_bound: bool = False
    chunks: int = 0
    done: int = 0

    def at(self, paces: Iterable[tuple[Pace | None, float]]) -> Estimate:
        """Add seconds, and tokens written unless they are known, by paces, each with the calls that
        are made at it.

        Calls without a pace are made at the mean of the known ones; where none is known, nothing is
        added.
        """
        each = [*paces]
        known = [pace for pace, _ in each if pace is not None]
        if not self.calls:
            return replace(self, output_tokens=0, seconds=0.0)
        if not known:
            return self
        made = sum(pace.calls for pace in known)
        written = sum(pace.output_tokens for pace in known)
        mean = Pace(made, 0, written, sum(pace.seconds for pace in known))
        rates = [(pace or mean, calls) for pace, calls in each]
        output = round(sum(calls * pace.output_tokens / pace.calls for pace, calls in rates))
        return replace(
            self,
            output_tokens=output if self.output_tokens is None else self.output_tokens,
            seconds=sum(calls * pace.seconds / pace.calls for pace, calls in rates),
            basis=(*self.basis, f"{made:,} calls of this model on this machine"),
        )

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            _add(self.output_tokens, other.output_tokens),
            _add(self.seconds, other.seconds),
            tuple(dict.fromkeys((*self.basis, *other.basis))),
            self.is_bound or other.is_bound,
            self.chunks + other.chunks,
            self.done + other.done,
        )

    def describe(self) -> str:
        """Say in a line what it takes, and how that is known."""
        if not self.calls:
            return "no model call"
        parts = f"{self.chunks - self.done:,} of {self.chunks:,} chunks: " if self.chunks else ""
        most = "at most " if self.is_bound else ""
        written = "" if self.output_tokens is None else f", {self.output_tokens:,.0f} out"
        time = "unknown time"
        if self.seconds is not None:
            time = f"about {format_duration(self.seconds)}"
        basis = f" (from {'; '.join(self.basis)})" if self.basis else ""
        calls = "1 model call" if round(self.calls) == 1 else f"{self.calls:,.0f} model calls"
        counted = f"{calls}, {self.input_tokens:,.0f} tokens in{written}"
        return f"{parts}{most}{counted}, {time}{basis}"


def _add(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def format_duration(seconds: float) -> str:
    """Format seconds in the largest unit that fits."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86_400:.1f} days"
