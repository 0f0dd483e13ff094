#!/usr/bin/env python3
"""Simulate how often a nominal 95% interval holds the true mean, and a test sees what is not there.

    python scripts/bench/intervals.py [--draws 2000]

Scores are 0 or 1 (mean 0.6) or F1-like (beta); the questions of a conversation share a part of
their chance, by the intra-class correlation. Conversations are ten of 154 questions, or of the
sizes that LoCoMo's have.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from mgl.evaluation.statistics import compare_pairs, mean_interval, wilson_interval

SIZES = {
    "10 of 154": [154] * 10,
    "LoCoMo's": [152, 81, 152, 199, 178, 123, 150, 191, 156, 158],
}
MEAN = 0.6


def draw(
    random: np.random.Generator, sizes: Sequence[int], icc: float, *, graded: bool
) -> list[float]:
    """Draw a score for each question."""
    shares = np.full(len(sizes), MEAN)
    if icc:
        shares = random.beta(MEAN * (1 / icc - 1), (1 - MEAN) * (1 / icc - 1), len(sizes))
    share = np.repeat(shares, sizes)
    if graded:
        return [float(value) for value in random.beta(share, 1 - share + 1e-9)]
    return [float(value) for value in random.random(share.size) < share]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    draws = parser.parse_args().draws
    print("| conversations | scores | ICC | covered, by source | covered, items alone | alarms |")
    print("|---|---|---|---|---|---|")
    for name, sizes in SIZES.items():
        sources = [f"s{place}" for place, size in enumerate(sizes) for _ in range(size)]
        for graded in (False, True):
            for icc in (0.0, 0.01, 0.05):
                random = np.random.default_rng(0)
                covered = alone = alarms = 0
                for _ in range(draws):
                    values = draw(random, sizes, icc, graded=graded)
                    other = draw(random, sizes, icc, graded=graded)
                    found = mean_interval(values, sources)
                    covered += found.low <= MEAN <= found.high
                    plain = (
                        mean_interval(values)
                        if graded
                        else wilson_interval(round(sum(values)), len(values))
                    )
                    alone += plain.low <= MEAN <= plain.high
                    alarms += compare_pairs(values, other, sources).p <= 0.05
                kind = "graded" if graded else "0 or 1"
                shares = " | ".join(f"{n / draws:.1%}" for n in (covered, alone, alarms))
                print(f"| {name} | {kind} | {icc} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
