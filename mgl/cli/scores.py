"""What ``mgl eval`` prints: the scores of a run, and what verifying or replaying it found."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mgl.cli.output import count, one_line, print_json, print_table, say
from mgl.errors import EngineFailed, InputError, MglError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mgl.evaluation.runs.folder import Tally
    from mgl.evaluation.runs.lifecycle import Difference, Replay
    from mgl.evaluation.runs.manifest import Manifest
    from mgl.retrieval.matching import TokenMatcher

SHOWN = 20


def print_summary(manifest: Manifest, path: Path, as_json: bool) -> None:
    """Print the scores of each method."""
    from mgl.evaluation.runs.folder import RunFolder, summarize

    labels = [method.label for method in manifest.methods]
    records = RunFolder(path).log.answers.values()
    found = summarize(records, labels, [*manifest.judges, *manifest.scorers])
    if as_json:
        print_json({"run": str(path), "methods": [asdict(one) for one in found]})
        return
    print_table(
        ("METHOD", "ANSWERS", "FAILED", "SCORE", "MEAN", "N", "MISSING"),
        [
            (
                *(one.method, str(one.items), str(one.failed), name),
                *(
                    ("-", "-", "-")
                    if score is None
                    else (f"{score.mean:.3f}", str(score.n - score.missing), _format_missing(score))
                ),
            )
            for one in found
            for name, score in one.scores.items()
        ],
    )
    typer.echo(
        "MEAN is over the N items (or pairs, or dialogues) that can have the score: failed ones "
        "count 0, and MISSING ones (no verdict that can be read, no rule that decides) are left out"
        f"\nrecords: {path}"
    )


def require_answers(paths: Iterable[Path]) -> None:
    """EngineFailed if some method of these runs has no answer that did not fail."""
    from mgl.evaluation.runs.folder import RunFolder

    for path in paths:
        reasons: dict[str, list[str]] = {}
        answered = set[str]()
        for record in RunFolder(path).log.answers.values():
            if record.failed:
                reasons.setdefault(record.method, []).append(record.reason)
            else:
                answered.add(record.method)
        for method in (name for name in reasons if name not in answered):
            (reason, _), *others = Counter(reasons[method]).most_common()
            more = f" (and {count(len(others), 'other reason')})" if others else ""
            raise EngineFailed(
                f"every answer of {method} failed: {one_line(reason, 200)}{more}",
                hint=f"mend that, then `mgl eval retry {path}` asks again",
            )


def _format_missing(score: Tally) -> str:
    if not score.missing:
        return "-"
    return f"{score.missing} ({score.least:.3f} to {score.most:.3f} with them)"


def print_evidence(found: dict[str, Any], as_json: bool) -> None:
    """Print the recall of evidence at each cutoff, of all items and by category."""
    if as_json:
        print_json(found)
        return
    categories = next((list(one) for of in found.values() for one in of.values()), ["all"])
    print_table(
        ("MEMORY", "RECALL", *(name.upper() for name in categories)),
        [
            (
                memory,
                name.removeprefix("recall"),
                *(
                    f"{one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}] (n = {one['n']})"
                    for one in by_part.values()
                ),
            )
            for memory, measured in found.items()
            for name, by_part in measured.items()
        ],
    )
    for memory in (name for name, measured in found.items() if not measured):
        typer.echo(
            f"{memory} has no recall: it returned every turn, or turns in the order of the talk"
        )


def print_differences(found: Sequence[Difference], path: Path, as_json: bool) -> None:
    """Print what verifying a run found; InputError if anything differs."""
    if as_json:
        print_json([asdict(one) for one in found])
    elif found:
        print_table(
            ("RECORD", "WHAT", "RECORDED", "FOUND"),
            [(one.name, one.what, one.recorded, one.found) for one in found[:SHOWN]],
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
            f"{len(found.differing)} of {found.records} records differ: "
            + "; ".join(found.differing[:SHOWN]),
            hint="replay with the code and the MGL_HOME of the run",
        )
    say(
        f"{found.records - len(found.exempt)} records of {path} are identical "
        f"({len(found.exempt)} failed in the run and are not compared)"
    )
