"""``mgl memory show|forget|freeze|unfreeze|edit|unlink|export``: what its owner sees and changes.

No model runs for any of them. What is forgotten is gone from the store when the command ends;
summaries that were made of it are made again with the next turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mgl.cli.options import AsJson, opened
from mgl.cli.output import one_line, print_json, print_table, say
from mgl.cli.talks import gam_of, print_topic, print_topics, print_turn, turn_line

if TYPE_CHECKING:
    from mgl.memories.gam.control import Forgotten
    from mgl.talk import Talk

__all__ = [
    "Name",
    "edit",
    "export",
    "forget",
    "freeze",
    "list_talks",
    "show",
    "topics",
    "unfreeze",
    "unlink",
]

SHOWN = 20  # turns that are listed before a deletion is agreed to

Name = Annotated[str, typer.Argument(metavar="NAME", help="The conversation's name.")]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="A topic's id.")]


def list_talks(as_json: AsJson = False) -> None:
    """List the conversations that are remembered."""
    from mgl.types import Conversation

    with opened() as lab:
        found = [
            summary
            for summary in lab.memories()
            if summary.record.kind == "gam"
            and summary.record.document_id == Conversation.named(summary.document).id
        ]
    if as_json:
        print_json([summary.to_json() for summary in found])
        return
    if not found:
        typer.echo("no conversations yet: `mgl chat NAME` begins one")
        return
    print_table(
        ("NAME", "MEMORY", "TURNS", "MODEL"),
        [
            (
                one_line(summary.document, 40),
                summary.id,
                str(summary.turns),
                one_line(summary.record.model_id, 40),
            )
            for summary in found
        ],
    )


def topics(name: Name) -> None:
    """Show what the memory has made of the conversation: its topics."""
    with _looked_at(name) as talk:
        print_topics(talk)


def show(
    name: Name,
    identity: Annotated[str, typer.Argument(metavar="TOPIC|TURN", help="Its id.")],
) -> None:
    """Show a topic with its links and turns, or one turn."""
    from mgl.errors import InputError

    with _looked_at(name) as talk:
        memory = gam_of(talk)
        if identity in memory.state.topics:
            print_topic(talk, identity)
        elif any(turn.id == identity for turn in memory.conversation.turns):
            print_turn(talk, identity)
        else:
            raise InputError(
                f"{name} has no topic and no turn {identity!r}",
                hint="`mgl memory topics` lists topics, `mgl memory export` has every turn",
            )


def forget(
    name: Name,
    turn: Annotated[
        list[str] | None, typer.Option("--turn", metavar="ID", help="A turn; repeatable.")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="ID", help="A topic; repeatable.")
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch", metavar="ID", help="A topic, and every later one that leads to it by links."
        ),
    ] = None,
    before: Annotated[
        datetime | None,
        typer.Option(
            "--before",
            metavar="DATE",
            formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"],
            help="All that was said before that day, or that time of it.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
) -> None:
    """Delete turns and topics for good, with everything that was made of them.

    Shows what would go, and asks. What was exported or copied before is out of its reach.
    """
    with _looked_at(name) as talk:
        memory = gam_of(talk)
        found = talk.run(
            lambda: memory.forget(
                turn or (), topic or (), branch_of=branch, before=before, dry_run=True
            )
        )
        _print_meant(talk, found)
        if not found.turns or not (yes or _agreed()):
            say("nothing was forgotten")
            return
        gone = talk.run(lambda: memory.forget(found.turns))
    typer.echo(f"forgotten: {len(gone.turns)} turns, {len(gone.topics)} topics")


def freeze(name: Name, topic: Topic) -> None:
    """Keep a topic as it is: it is not rewritten, linked anew or forgotten."""
    with _looked_at(name) as talk:
        talk.run(lambda: gam_of(talk).freeze(topic))
    typer.echo(f"{topic} is frozen")


def unfreeze(name: Name, topic: Topic) -> None:
    """Let a frozen topic go again."""
    with _looked_at(name) as talk:
        talk.run(lambda: gam_of(talk).freeze(topic, frozen=False))
    typer.echo(f"{topic} is not frozen")


def edit(
    name: Name,
    topic: Topic,
    summary: Annotated[
        str | None, typer.Option("--summary", metavar="TEXT", help="What it is about.")
    ] = None,
    keywords: Annotated[
        str | None, typer.Option("--keywords", metavar="A,B", help="Its keywords, by commas.")
    ] = None,
) -> None:
    """Correct a topic's summary, its keywords, or both."""
    from mgl.errors import UsageError

    if summary is None and keywords is None:
        raise UsageError("nothing to change is given", hint="give --summary, --keywords or both")
    with _looked_at(name) as talk:
        memory = gam_of(talk)
        known = memory.state.topics.get(topic)
        words = known.keywords if known is not None else ()
        said = known.summary if known is not None else ""
        talk.run(
            lambda: memory.rewrite(
                topic,
                said if summary is None else summary,
                words if keywords is None else keywords.split(","),
            )
        )
        print_topic(talk, topic)


def unlink(
    name: Name,
    one: Annotated[str, typer.Argument(metavar="TOPIC", help="A topic's id.")],
    two: Annotated[str, typer.Argument(metavar="TOPIC", help="Another one's.")],
) -> None:
    """Cut the links between two topics."""
    with _looked_at(name) as talk:
        talk.run(lambda: gam_of(talk).unlink(one, two))
    typer.echo(f"no link joins {one} and {two}")


def export(
    name: Name,
    path: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Write there, not to stdout.")
    ] = None,
) -> None:
    """Write all that is remembered as JSON: topics with their turns, links, what was deleted."""
    import json

    from mgl.errors import ResourceError

    with _looked_at(name) as talk:
        value = gam_of(talk).export()
    if path is None:
        print_json(value)
        return
    try:
        path.write_text(
            json.dumps(value, indent=2, ensure_ascii=False),
            encoding="utf-8",
            errors="surrogatepass",
            newline="",
        )
    except OSError as error:
        raise ResourceError(
            f"cannot write {path} ({error.strerror})",
            hint="give a path in a folder that you can write to",
        ) from error
    say(f"wrote {path}")


@contextmanager
def _looked_at(name: str) -> Iterator[Talk]:
    with opened() as lab:
        yield lab.look_at(name)


def _print_meant(talk: Talk, found: Forgotten) -> None:
    memory = gam_of(talk)
    turns = {turn.id: turn for turn in memory.conversation.turns}
    typer.echo(f"{len(found.turns)} turns would be forgotten{':' * bool(found.turns)}")
    for identity in found.turns[:SHOWN]:
        typer.echo(f"  {turn_line(turns[identity], 80)}")
    if len(found.turns) > SHOWN:
        typer.echo(f"  and {len(found.turns) - SHOWN} more")
    for what, topics in (
        ("topics that go with them", found.topics),
        ("topics that keep other turns, and get another summary", found.shortened),
        ("frozen topics, which are kept", found.spared),
    ):
        if topics:
            typer.echo(f"{what}: {', '.join(topics)}")


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
