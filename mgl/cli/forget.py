"""``mgl forget``: delete turns of a conversation for good, with everything derived from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mgl.cli.options import DryRun, Memory, OfKind, Yes, complete_id, open_lab, option
from mgl.cli.output import confirm_deletion, count, format_turn, one_line, print_some, say

if TYPE_CHECKING:
    from mgl.lab.talk import Talk
    from mgl.memories.deletion import Forgotten

TITLES: Final = {
    "removed": "what only they support:",
    "stale": "what they support in part, which is described again:",
    "spared": "frozen, and kept:",
}


def forget(
    source: Memory,
    turn: Annotated[list[str] | None, option("--turn ID", "Delete this turn (repeatable).")] = None,
    topic: Annotated[
        list[str] | None, option("--topic ID", "Delete this topic (repeatable).")
    ] = None,
    branch: Annotated[
        str | None, option("--branch ID", "Delete a topic and the later ones that link to it.")
    ] = None,
    before: Annotated[
        datetime | None,
        option(
            "--before DATE",
            "Delete everything said before this date or time.",
            formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"],
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
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
        names = _name_nodes(talk)
        _print_plan(talk, found, names)
        if dry_run:
            return
        if not found.turns or not (yes or confirm_deletion()):
            say("nothing was deleted")
            return
        gone = replace(talk.forget(found.turns), replies=found.replies)
        name = talk.memory.conversation.name
    typer.echo(f"deleted: {_count_gone(gone, names)}")
    for adapter in gone.adapters:
        say(f"removed the adapter {adapter}: train it again, for instance --on {name}")


def _print_plan(talk: Talk, found: Forgotten, names: Mapping[str, tuple[str, str]]) -> None:
    turns = {turn.id: format_turn(turn, 80) for turn in talk.memory.conversation.turns}
    replies = {*found.replies}
    own = [identity for identity in found.turns if identity not in replies]
    typer.echo(f"{count(len(own), 'turn')} would be deleted")
    print_some(turns[each] for each in own)
    for title, items in (
        ("replies that were made of them:", [turns[each] for each in found.replies]),
        ("answers that were made of them:", [one_line(each, 80) for each in found.answers]),
        *((title, [_tell(names, each) for each in getattr(found, field)])
          for field, title in TITLES.items()),
        ("kept, though they repeat it (--turn ID deletes them, too):",
         [turns[each] for each in found.echoes]),
    ):  # fmt: skip
        if items:
            typer.echo(title)
            print_some(items)
    if elsewhere := talk.find_elsewhere(own):
        where = ", ".join(one_line(each, 60) for each in elsewhere[:20])
        typer.echo(f"kept elsewhere, where the same words are: {where}")
    for folder in found.runs:
        typer.echo(f"evaluation run that keeps the text in its calls: {folder}")
    for adapter in found.adapters:
        typer.echo(f"adapter trained on this conversation, which is removed: {adapter}")
    if found.calls or found.is_least:
        least = "at least " if found.is_least else ""
        typer.echo(f"model calls to summarize again: {least}{found.calls}")


def _name_nodes(talk: Talk) -> dict[str, tuple[str, str]]:
    """What each node or fact of a memory is, and its name."""
    view = talk.memory.view()
    names = {edge.id: ("fact", edge.relation) for edge in view.edges}
    for node in view.nodes:
        names[node.id] = "category" if node.layer else node.kind, node.label
    return names


def _tell(names: Mapping[str, tuple[str, str]], identity: str) -> str:
    kind, name = names.get(identity, ("node", ""))
    return f"{kind} {identity} {one_line(name, 80)}".rstrip()


def _count_gone(found: Forgotten, names: Mapping[str, tuple[str, str]]) -> str:
    """Count what went by its kind: ``2 turns, 1 reply, 1 topic``."""
    kinds = Counter(names.get(each, ("node", ""))[0] for each in found.removed)
    gone = {
        "turn": len(found.turns) - len(found.replies),
        "reply": len(found.replies),
        "answer": len(found.answers),
        **kinds,
    }
    return ", ".join(count(number, kind) for kind, number in gone.items() if number)
