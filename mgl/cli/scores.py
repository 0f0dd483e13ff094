"""What ``mgl eval`` prints: the scores of a run, and what verifying or replaying it found."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mgl.cli.output import print_json, print_table, say
from mgl.errors import InputError, MglError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mgl.evaluation.runs.lifecycle import Difference, Replay
    from mgl.evaluation.runs.manifest import Manifest
    from mgl.retrieval.matching import TokenMatcher

__all__ = ["find_matcher", "print_differences", "print_replay", "print_summary"]

SHOWN = 20


def print_summary(manifest: Manifest, path: Path, as_json: bool) -> None:
    """Print the scores of each method; scores over several items are left to the report."""
    from mgl.evaluation.runs.folder import RunFolder, summarize
    from mgl.evaluation.scorers.registry import AGGREGATES

    of_items = [name for name in manifest.scorers if name not in AGGREGATES]
    labels = [method.label for method in manifest.methods]
    found = summarize(RunFolder(path).records.values(), labels, [*of_items, *manifest.judges])
    if as_json:
        print_json({"run": str(path), "methods": [asdict(one) for one in found]})
        return
    print_table(
        ("METHOD", "ITEMS", "UNSCORED", "FAILED", "SCORE", "MEAN", "OF SCORED", "N"),
        [
            (
                *(one.method, str(one.items), str(one.unscored), str(one.failed), name),
                *("-" if mean is None else f"{mean:.3f}" for mean in (score.mean, score.of_scored)),
                str(score.n),
            )
            for one in found
            for name, score in one.scores.items()
        ],
    )
    typer.echo(
        "MEAN is over all items, unscored and failed ones counting 0; OF SCORED is over the N with "
        f"a score; evidence recall is over items that name their evidence\nrecords: {path}"
    )


def print_differences(found: Sequence[Difference], path: Path, as_json: bool) -> None:
    """Print what verifying a run found; InputError if anything differs."""
    if as_json:
        print_json([asdict(one) for one in found])
    elif found:
        print_table(
            ("METHOD", "ITEM", "WHAT", "RECORDED", "FOUND"),
            [(one.method, one.item, one.what, one.recorded, one.found) for one in found[:SHOWN]],
        )
    if found:
        raise InputError(
            f"{len(found)} entries in {path} do not match its records",
            hint="the records or the scorers were changed: the manifest names the commit",
        )
    say(f"every score in {path} matches its record")


def find_matcher(path: Path, models: Path | None) -> TokenMatcher | None:
    """Find the model of a run's BERTScores; if it is not here, say that they are not verified."""
    from mgl.evaluation.runs.manifest import Manifest
    from mgl.models import shipped
    from mgl.retrieval.matching import open_matcher
    from mgl.retrieval.models import Source

    written = Manifest.read(path).arguments.bertscore
    if written is None:
        return None
    try:
        match = open_matcher(written, shipped.home(), Source(models=models))
        if match.at_hand:
            return match
        problem = f"the weights of {written} are not on this machine"
    except MglError as error:
        problem = error.message
    say(f"BERTScores are not verified, but taken from the records: {problem}")
    return None


def print_replay(found: Replay, path: Path, as_json: bool) -> None:
    """Print what replaying a run found; InputError if lines differ."""
    if as_json:
        print_json(asdict(found))
    for name in found.exempt[:SHOWN]:
        say(f"failed in the run, but not in the replay: {name}")
    if found.differing:
        raise InputError(
            f"{len(found.differing)} of {found.lines} lines differ: "
            + "; ".join(found.differing[:SHOWN]),
            hint="replay with the code and the MGL_HOME of the run",
        )
    say(
        f"{found.lines - len(found.exempt)} lines of {path} are identical "
        f"({len(found.exempt)} failed in the run and are not compared)"
    )
