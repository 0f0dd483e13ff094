"""``mgl eval show``: one item of a run, with everything behind its answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mgl.cli.options import AsJson, Run, argument, option
from mgl.cli.output import clean, count, one_line, print_json, print_pairs
from mgl.errors import InputError

if TYPE_CHECKING:
    from mgl.evaluation.audit import Audit, LoggedCall, ShownPassage
    from mgl.evaluation.records import Record, RunLog
    from mgl.evaluation.runs.manifest import Manifest
    from mgl.store import Store


def show(
    folder: Run,
    item: Annotated[str, argument("ITEM", "The id of an item.")],
    method: Annotated[str | None, option("--method LABEL", "Only this method's answers.")] = None,
    build: Annotated[
        bool, option("--build", "Show the calls that built the memory in full, too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show an item with the prompts and replies behind its answers.

    Each answer comes with what was retrieved, each call, scores and verdicts.

    Prompts are in the log of calls of MGL_HOME, or in the folder of a packed run.
    """
    from mgl.evaluation.audit import Auditor
    from mgl.evaluation.runs.folder import open_run

    manifest, log = open_run(folder)
    records = _find_answers(manifest, log, item, method)
    with open_kept(folder) as store:
        auditor = Auditor(manifest, log, store)
        audits = [auditor.audit(record) for record in records]
    if as_json:
        print_json([asdict(audit) for audit in audits])
        return
    about = audits[0].record.item
    print_pairs(
        {
            "item": f"{item} ({manifest.arguments.benchmark})",
            "source": about["source"],
            "category": about["category"] or "-",
            "question": about["question"]["text"],
            "asked at": about["question"]["asked_at"] or "-",
            "gold": "\n".join(about["golds"]) or "-",
        }
    )
    _print_passages("evidence", audits[0].evidence)
    for audit in audits:
        _print_answer(audit, in_full=build)


@contextmanager
def open_kept(folder: Path) -> Iterator[Store | None]:
    """Open the store that has the calls of a run; None if there is none on this machine."""
    from mgl.evaluation.runs.folder import PACKED
    from mgl.lab.workplace import DATABASE
    from mgl.models import shipped
    from mgl.store import Store

    places = (folder / PACKED, shipped.home() / DATABASE)
    path = next((one for one in places if one.exists()), None)
    if path is None:
        yield None
        return
    with Store.open(path) as store:
        yield store


def _find_answers(manifest: Manifest, log: RunLog, item: str, method: str | None) -> list[Record]:
    """Find the answers to an item, in the order of methods; InputError for an item or a method
    without one."""
    keys = [(one.label, item, n) for one in manifest.methods
            for n in range(manifest.arguments.repeats)]  # fmt: skip
    of_item = [log.answers[key] for key in keys if key in log.answers]
    if not of_item:
        near = get_close_matches(item, log.items, n=5, cutoff=0.4) or list(log.items)[:5]
        raise InputError(
            f"the run has no answer to an item {item!r}",
            hint=f"name one of its items: {', '.join(near) or 'it has none yet'}",
        )
    found = [one for one in of_item if method in (None, one.method)]
    if not found:
        known = dict.fromkeys(one.method for one in of_item)
        raise InputError(
            f"no method {method!r} answered {item}", hint=f"name one of: {', '.join(known)}"
        )
    return found


def _print_answer(audit: Audit, *, in_full: bool) -> None:
    record = audit.record
    repeat = f", repeat {record.repeat}" if record.repeat else ""
    typer.echo(f"\n=== {one_line(record.method)}{repeat}: {audit.verdict} ===")
    pairs = {"answer": record.answer or "(empty)"}
    if record.failed:
        pairs = {"failed": record.reason}
    for name, value in record.scores.items():
        pairs[name] = _format(value)
    for judge, verdict in record.verdicts.items():
        reason = f" ({verdict.reason})" if verdict.reason else ""
        pairs[f"judge {judge}"] = f"{_format(verdict.score)}{reason}"
    for stage, spent in record.usage.items():
        pairs[f"{stage or 'no stage'} calls"] = (
            f"{spent.calls}, {spent.input_tokens:,} tokens in, {spent.output_tokens:,} out"
        )
    if "own_s" in record.took:
        pairs["seconds"] = f"{record.took['own_s']:g} of its own work"
    print_pairs({one_line(name): value for name, value in pairs.items()})
    _print_passages("retrieved", audit.retrieved)
    title = "answering" if audit.build is not None else "building and answering"
    _print_calls(title, audit.calls)
    for judge, calls in audit.judging.items():
        _print_calls(f"judge {one_line(judge)}", calls)
    if audit.build is not None:
        typer.echo(f"\nmemory: shared, built of {one_line(audit.build.source)}")
    _print_calls("built by", audit.building, in_full=in_full)
    if not in_full and audit.building:
        typer.echo("  (--build shows their prompts)")
    if "keys" not in record.took:
        typer.echo("note: the run was made before answers kept the keys of their calls")


def _print_passages(title: str, passages: Iterable[ShownPassage]) -> None:
    for number, one in enumerate(passages):
        if not number:
            typer.echo(f"{title} (* is evidence):")
        sign = "*" if one.is_evidence else " "
        typer.echo(f"  {sign} {one_line(one.id)}  {one_line(one.text) or '(text not at hand)'}")


def _print_calls(title: str, calls: tuple[LoggedCall, ...], *, in_full: bool = True) -> None:
    if calls and not in_full:
        typer.echo(f"\n{title}: {count(len(calls), 'call')}")
    for number, call in enumerate(calls, 1):
        if not in_full:
            typer.echo(f"  {call.key[:12]} · {one_line(call.about)}")
            continue
        typer.echo(f"\n--- {title}, call {number} of {len(calls)}: {one_line(call.about)}")
        typer.echo(f"key {call.key}")
        for role, text in call.said:
            typer.echo(f"[{role}]\n{clean(text)}")


def _format(value: float | None) -> str:
    return "no score" if value is None else f"{value:.3f}"
