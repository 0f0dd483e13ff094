"""``mgl memory show|forget|freeze|unfreeze|edit|unlink|export``: what its owner sees and changes.

No model runs for any of them. What is forgotten is gone from the store when the command ends;
summaries that were made of it are made again with the next turn. Topics are gam's: what changes
them is for conversations that it remembers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mgl.cli.agreeing import forgotten_by_gam, forgotten_by_mnemis
from mgl.cli.nodes import is_node, print_node, print_remembered
from mgl.cli.options import AsJson, TalkMemory, opened
from mgl.cli.output import one_line, print_json, print_table, say
from mgl.cli.talks import (
    gam_of,
    mnemis_of,
    print_made,
    print_topic,
    print_turn,
)

if TYPE_CHECKING:
    from mgl.lab.talk import Talk

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

GAM = "gam"

Name = Annotated[str, typer.Argument(metavar="NAME", help="The conversation's name.")]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="A topic's id.")]


def list_talks(as_json: AsJson = False) -> None:
    """List the conversations that are remembered."""
    with opened() as lab:
        found = lab.talks()
    if as_json:
        print_json([summary.to_json() for summary in found])
        return
    if not found:
        typer.echo("no conversations yet: `mgl chat NAME` begins one")
        return
    print_table(
        ("NAME", "MEMORY", "ID", "TURNS", "MODEL"),
        [
            (
                one_line(summary.document, 40),
                summary.record.kind,
                summary.id,
                str(summary.turns),
                one_line(summary.record.model_id, 40),
            )
            for summary in found
        ],
    )


def topics(name: Name, memory: TalkMemory = None) -> None:
    """Show what the memory has made of the conversation: its topics, or its top categories."""
    with _looked_at(name, memory) as talk:
        print_made(talk)


def show(
    name: Name,
    identity: Annotated[
        str, typer.Argument(metavar="ID", help="A topic's, a turn's, an entity's, a category's.")
    ],
    memory: TalkMemory = None,
) -> None:
    """Show a turn, a topic with its links and turns, or an entity with its facts, or a category."""
    from mgl.errors import InputError

    with _looked_at(name, memory) as talk:
        mnemis = mnemis_of(talk)
        if mnemis is None and identity in gam_of(talk).state.topics:
            print_topic(talk, identity)
        elif mnemis is not None and is_node(mnemis, identity):
            print_node(mnemis, identity)
        elif any(turn.id == identity for turn in talk.memory.conversation.turns):
            if mnemis is None:
                print_turn(talk, identity)
            else:
                print_remembered(mnemis, identity)
        else:
            raise InputError(
                f"{name} has nothing under the id {identity!r}",
                hint="`mgl memory topics` lists some, `mgl memory export` has all",
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
    memory: TalkMemory = None,
) -> None:
    """Delete turns and topics for good, with everything that was made of them.

    Shows what would go, and asks. What was exported or copied before is out of its reach.
    """
    with _looked_at(name, GAM if topic or branch else memory) as talk:
        mnemis = mnemis_of(talk)
        if mnemis is not None:
            gone = forgotten_by_mnemis(talk, mnemis, turn or (), before, yes=yes)
        else:
            gone = forgotten_by_gam(talk, turn or (), topic or (), branch, before, yes=yes)
    if gone is None:
        say("nothing was forgotten")
    else:
        typer.echo(f"forgotten: {gone}")


def freeze(name: Name, topic: Topic) -> None:
    """Keep a topic as it is: it is not rewritten, linked anew or forgotten."""
    with _looked_at(name, GAM) as talk:
        talk.run(lambda: gam_of(talk).freeze(topic))
    typer.echo(f"{topic} is frozen")


def unfreeze(name: Name, topic: Topic) -> None:
    """Let a frozen topic go again."""
    with _looked_at(name, GAM) as talk:
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
    with _looked_at(name, GAM) as talk:
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
    with _looked_at(name, GAM) as talk:
        talk.run(lambda: gam_of(talk).unlink(one, two))
    typer.echo(f"no link joins {one} and {two}")


def export(
    name: Name,
    path: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Write there, not to stdout.")
    ] = None,
    memory: TalkMemory = None,
) -> None:
    """Write all that is remembered as JSON, and the fact of what was deleted."""
    import json

    from mgl.errors import ResourceError

    with _looked_at(name, memory) as talk:
        mnemis = mnemis_of(talk)
        value = gam_of(talk).export() if mnemis is None else mnemis.export()
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
def _looked_at(name: str, memory: str | None) -> Iterator[Talk]:
    with opened() as lab:
        yield lab.look_at(name, memory=memory)
