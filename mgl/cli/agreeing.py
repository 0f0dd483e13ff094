"""``mgl memory forget`` shows what would go, and asks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import typer

from mgl.cli.output import one_line, say
from mgl.cli.talks import gam_of, turn_line

if TYPE_CHECKING:
    from mgl.lab.talk import Talk
    from mgl.memories.mnemis import Mnemis

__all__ = ["forgotten_by_gam", "forgotten_by_mnemis"]

SHOWN = 20  # turns that are listed before a deletion is agreed to


def forgotten_by_gam(
    talk: Talk,
    turns: Sequence[str],
    topics: Sequence[str],
    branch: str | None,
    before: datetime | None,
    *,
    yes: bool,
) -> str | None:
    """What was forgotten of turns and topics; None where nothing was meant, or agreed to."""
    memory = gam_of(talk)
    found = talk.run(
        lambda: memory.forget(turns, topics, branch_of=branch, before=before, dry_run=True)
    )
    meant = (
        ("topics that go with them", found.topics),
        ("topics that keep other turns, and get another summary", found.shortened),
        ("frozen topics, which are kept", found.spared),
    )
    if not _is_meant(talk, found.turns, [(what, ", ".join(ids)) for what, ids in meant], yes=yes):
        return None
    gone = talk.run(lambda: memory.forget(found.turns))
    return f"{len(gone.turns)} turns, {len(gone.topics)} topics"


def forgotten_by_mnemis(
    talk: Talk, memory: Mnemis, turns: Sequence[str], before: datetime | None, *, yes: bool
) -> str | None:
    """What was forgotten of turns; None where nothing was meant, or agreed to."""
    found = talk.run(lambda: memory.forget(turns, before=before, dry_run=True))
    entities = memory.state.entities
    names = ", ".join(one_line(entities[each].name, 40) for each in found.entities[:SHOWN])
    more = len(found.entities) - SHOWN
    meant = [
        ("entities that go with them", names + f" and {more} more" * (more > 0)),
        ("facts that go with them", f"{len(found.facts)}" if found.facts else ""),
    ]
    if not _is_meant(talk, found.turns, meant, yes=yes):
        return None
    gone = talk.run(lambda: memory.forget(found.turns))
    return f"{len(gone.turns)} turns, {len(gone.entities)} entities, {len(gone.facts)} facts"


def _is_meant(
    talk: Talk, ids: Sequence[str], besides: Iterable[tuple[str, str]], *, yes: bool
) -> bool:
    """Show what would go; whether it is to."""
    turns = {turn.id: turn for turn in talk.memory.conversation.turns}
    typer.echo(f"{len(ids)} turns would be forgotten{':' * bool(ids)}")
    for identity in ids[:SHOWN]:
        typer.echo(f"  {turn_line(turns[identity], 80)}")
    if len(ids) > SHOWN:
        typer.echo(f"  and {len(ids) - SHOWN} more")
    for what, named in besides:
        if named:
            typer.echo(f"{what}: {named}")
    return bool(ids) and (yes or _agreed())


def _agreed() -> bool:
    """Whether a person at the terminal says yes."""
    from mgl.errors import UsageError

    say("Delete this for good? [y/N]")
    try:
        said = input()
    except EOFError:
        raise UsageError(
            "nothing was forgotten: nobody was there to be asked", hint="--yes goes without asking"
        ) from None
    return said.strip().lower() in ("y", "yes")
