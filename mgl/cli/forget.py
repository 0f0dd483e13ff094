"""``mgl forget``: delete turns of a conversation for good, with everything derived from them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mgl.cli.options import Memory, OfKind, complete_id, open_lab
from mgl.cli.output import confirm, count, format_turn, one_line, say
from mgl.errors import UsageError

if TYPE_CHECKING:
    from mgl.lab.talk import Talk
    from mgl.memories.deletion import Forgotten

SHOWN: Final = 20  # turns or names that are listed before the question
TITLES: Final = {
    "removed": "nodes that are deleted",
    "stale": "nodes that lose turns and get a new summary",
    "spared": "frozen nodes, which are kept",
}


def forget(
    source: Memory,
    turn: Annotated[
        list[str] | None,
        typer.Option("--turn", metavar="ID", help="Delete this turn (repeatable)."),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="ID", help="Delete this topic (repeatable)."),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch", metavar="ID", help="Delete a topic and the later ones that link to it."
        ),
    ] = None,
    before: Annotated[
        datetime | None,
        typer.Option(
            "--before",
            metavar="DATE",
            formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"],
            help="Delete everything said before this date or time.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    memory: OfKind = None,
) -> None:
    """Delete turns for good, with everything derived from them.

    It lists what would be deleted and asks for confirmation. No model runs: summaries that lost
    turns are rewritten when the next turn is added. Adapters trained on the conversation are
    removed: train them again on what is left. Earlier exports and copies are not changed.
    """
    with open_lab() as lab:
        talk = lab.look_at(complete_id(lab, source), memory=memory)
        found = talk.forget(
            turn or (), topics=topic or (), branch_of=branch, before=before, dry_run=True
        )
        _print_plan(talk, found)
        if not found.turns or not (yes or _confirm()):
            say("nothing was deleted")
            return
        gone = talk.forget(found.turns)
        name = talk.memory.conversation.name
    typer.echo(f"deleted: {count(len(gone.turns), 'turn')}, {count(len(gone.removed), 'node')}")
    for adapter in gone.adapters:
        say(f"removed the adapter {adapter}: train it again, for instance --on {name}")


def _print_plan(talk: Talk, found: Forgotten) -> None:
    turns = {turn.id: turn for turn in talk.memory.conversation.turns}
    names = {node.id: node.label for node in talk.memory.view().nodes}
    typer.echo(f"{count(len(found.turns), 'turn')} would be deleted")
    for identity in found.turns[:SHOWN]:
        typer.echo(f"  {format_turn(turns[identity], 80)}")
    _print_more(found.turns)
    for title, ids in (
        ("replies among them, made of the others:", found.replies),
        ("kept, though they repeat it (--turn ID deletes them, too):", found.echoes),
    ):
        if ids:
            typer.echo(title)
            for identity in ids[:SHOWN]:
                typer.echo(f"  {format_turn(turns[identity], 80)}")
            _print_more(ids)
    for field, title in TITLES.items():
        if ids := getattr(found, field):
            shown = (f"{each} {one_line(names.get(each, ''), 40)}".strip() for each in ids[:SHOWN])
            typer.echo(f"{title}: {', '.join(shown)}")
            _print_more(ids)
    for folder in found.runs:
        typer.echo(f"evaluation run that keeps the text in its calls: {folder}")
    for adapter in found.adapters:
        typer.echo(f"adapter trained on this conversation, which is removed: {adapter}")
    if found.calls or found.is_least:
        least = "at least " if found.is_least else ""
        typer.echo(f"model calls to summarize again: {least}{found.calls}")


def _print_more(ids: tuple[str, ...]) -> None:
    if len(ids) > SHOWN:
        typer.echo(f"  and {len(ids) - SHOWN} more")


def _confirm() -> bool:
    try:
        return confirm("Delete this for good?")
    except EOFError:
        raise UsageError(
            "nothing was deleted: there was nobody to confirm it",
            hint="--yes deletes without asking",
        ) from None
