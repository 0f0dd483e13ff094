"""What ``mgl eval`` prints: the scores of a run, and what does not agree in one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mgl.cli.output import print_json, print_table, say
from mgl.errors import InputError, MglError

if TYPE_CHECKING:
    from mgl.evaluation.runs.lifecycle import Replay
    from mgl.evaluation.runs.manifest import Manifest
    from mgl.retrieval.matching import TokenMatcher

__all__ = ["print_replay", "print_summary", "verify_scores"]

SHOWN = 20


def print_summary(manifest: Manifest, path: Path, as_json: bool) -> None:
    """The scores of each method of a run; those of several items together are a report's."""
    from mgl.evaluation.runs.folder import RunFolder, summarize
    from mgl.evaluation.scorers.registry import AGGREGATES

    of_items = [name for name in manifest.scorers if name not in AGGREGATES]
    names = [*of_items, *manifest.judges]
    labels = [method.label for method in manifest.methods]
    found = summarize(RunFolder(path).records.values(), labels, names)
    if as_json:
        print_json({"run": str(path), "methods": [asdict(one) for one in found]})
        return
    print_table(
        ("METHOD", "ITEMS", "UNSCORED", "FAILED", "SCORE", "MEAN", "OF SCORED", "N"),
        [
            (
                *(one.method, str(one.items), str(one.unscored), str(one.failed), name),
                _shown(score.mean),
                _shown(score.of_scored),
                str(score.n),
            )
            for one in found
            for name, score in one.scores.items()
        ],
    )
    typer.echo(
        "the mean is over all items, of which those without a score and those that failed count 0; "
        "beside it that over the N with a score; recall of evidence is over items that name any"
    )
    typer.echo(f"records: {path}")


def _shown(mean: float | None) -> str:
    return "-" if mean is None else f"{mean:.3f}"


def verify_scores(path: Path, models: Path | None, as_json: bool) -> None:
    """Compute the scores of a run anew; InputError, after what differs, where any does.

    ``models`` is a folder of profiles.
    """
    from mgl.evaluation.runs.lifecycle import verify_run

    found = verify_run(path, _matcher(path, models))
    if as_json:
        print_json([asdict(one) for one in found])
    elif found:
        print_table(
            ("METHOD", "ITEM", "WHAT", "RECORDED", "FOUND"),
            [(one.method, one.item, one.what, one.recorded, one.found) for one in found[:SHOWN]],
        )
    if found:
        raise InputError(
            f"{len(found)} entries in {path} are not what its records say",
            hint="the records were changed, or the scorers: the manifest has the commit",
        )
    say(f"every score in {path} is what its record says")


def _matcher(path: Path, models: Path | None) -> TokenMatcher | None:
    """What the run's BERTScores are by, where its weights are on this machine; where they are not,
    it is said that the scores are taken as they are."""
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
        lacking = f"the weights of {written} are not on this machine"
    except MglError as error:
        lacking = error.message
    say(f"BERTScores are not computed anew, but taken from the records: {lacking}")
    return None


def print_replay(found: Replay, path: Path, as_json: bool) -> None:
    """What a replay found; InputError where lines differ."""
    if as_json:
        print_json(asdict(found))
    for name in found.exempt[:SHOWN]:
        say(f"failed then, and not now: {name}")
    if found.differing:
        raise InputError(
            f"{len(found.differing)} of {found.lines} lines differ: "
            + "; ".join(found.differing[:SHOWN]),
            hint="replay with the code and the MGL_HOME that the run was made with",
        )
    say(
        f"{found.lines - len(found.exempt)} lines of {path} are the same bytes "
        f"({len(found.exempt)} failed then, and are not compared)"
    )
