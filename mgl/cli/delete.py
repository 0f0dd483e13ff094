"""``mgl delete``: delete a document or conversation for good, or one of its memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from mgl.cli.options import AsJson, DryRun, Yes, argument, complete_id, open_lab, option
from mgl.cli.output import confirm_deletion, count, one_line, print_json, print_some, say
from mgl.errors import StoreError

if TYPE_CHECKING:
    from mgl.lab.deleting import Deleted

SHOWN: Final = 20
"""Memories that are listed."""


def delete(
    source: Annotated[
        str,
        argument(
            "SOURCE", "The name of a document or conversation, or a memory's id, or its beginning."
        ),
    ],
    memory: Annotated[
        str | None, option("--memory KIND", "Delete its memories of this kind alone.")
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Delete a document, a conversation or one memory for good.

    Everything that is derived from it goes, too. It says what would be deleted and asks for
    confirmation. A memory that is named by its id goes alone, and its document or conversation with
    the last one. Jobs that read it, and adapters trained on it, are removed. Evaluation runs,
    earlier exports and copies are not changed.
    """
    with open_lab() as lab:
        try:
            named, planned = source, lab.delete(source, memory=memory, dry_run=True)
        except StoreError:  # no exact name: it may begin an id
            named = complete_id(lab, source)
            planned = lab.delete(named, memory=memory, dry_run=True)
        if not as_json:
            _print_plan(planned)
        if dry_run:
            if as_json:
                print_json(planned.to_json())
            return
        if not yes and not confirm_deletion():
            say("nothing was deleted")
            return
        deleted = lab.delete(named, memory=memory)
    if as_json:
        print_json(deleted.to_json())
        return
    what = count(len(deleted.memories), "memory")
    if deleted.takes_source:
        what = f"{one_line(deleted.name, 60)}, with {what}"
    typer.echo(f"deleted: {what}")


def _print_plan(planned: Deleted) -> None:
    name = one_line(planned.name, 60)
    if planned.takes_source:
        kind, size = "document", count(planned.characters, "character")
        if planned.turns is not None:
            kind, size = "conversation", count(planned.turns, "turn")
        typer.echo(f"the {kind} {name} would be deleted: {size}")
    else:
        kept = ", ".join(planned.kept[:SHOWN])
        typer.echo(f"{name} stays, since other memories are of it: {kept}")
    asked = [one_line(" | ".join(memory.questions), 60) for memory in planned.memories]
    print_some(
        f"memory {memory.memory_id} ({memory.memory}){text and f': {text}'}"
        for memory, text in zip(planned.memories, asked, strict=True)
    )
    typer.echo(
        f"with {count(planned.edits, 'edit')}, {count(planned.calls, 'model call')}, "
        f"{count(planned.questions, 'question')} and {count(planned.answers, 'answer')}"
    )
    for title, names in (
        ("jobs that are removed", planned.jobs),
        ("adapters trained on it, which are removed", planned.adapters),
        ("unfinished trainings on it, which are removed", planned.trainings),
        ("evaluation runs that keep what they measured of it", planned.runs),
    ):
        if names:
            typer.echo(f"{title}: {', '.join(map(one_line, names))}")
