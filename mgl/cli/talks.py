"""What the commands for conversations print."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from mgl.cli.output import one_line

if TYPE_CHECKING:
    from mgl.lab.talk import Talk
    from mgl.memories.gam import Gam
    from mgl.memories.gam.state import Link
    from mgl.memories.mnemis import Mnemis
    from mgl.types import Answer, Conversation, Turn

__all__ = [
    "gam_of",
    "made_of",
    "mnemis_of",
    "print_made",
    "print_sources",
    "print_topic",
    "print_topics",
    "print_turn",
    "turn_line",
]


def gam_of(talk: Talk) -> Gam:
    """The memory of a talk as the kind that topics are of."""
    from mgl.memories.gam import Gam

    assert isinstance(talk.memory, Gam)
    return talk.memory


def mnemis_of(talk: Talk) -> Mnemis | None:
    """The memory of a talk, where it is of this kind."""
    from mgl.memories.mnemis import Mnemis

    return talk.memory if isinstance(talk.memory, Mnemis) else None


def made_of(talk: Talk) -> str:
    """How much a memory has made of its conversation."""
    memory = mnemis_of(talk)
    if memory is None:
        view = talk.memory.view()
        return f"{len(view.nodes)} topics, {len(view.edges)} links"
    state = memory.state
    return (
        f"{len(state.entities)} entities, {len(state.facts)} facts, "
        f"{len(state.categories)} categories"
    )


def print_made(talk: Talk) -> None:
    """What a memory has made of its conversation: topics, or the categories of the top layer."""
    memory = mnemis_of(talk)
    if memory is None:
        print_topics(talk)
        return
    state = memory.state
    typer.echo(made_of(talk))
    for node in state.layer(state.top):
        typer.echo(f"{node.id}  {one_line(node.name)}")
        typer.echo(f"    {one_line(node.summary) or '(no summary)'}")


def print_sources(answer: Answer, conversation: Conversation) -> None:
    """A line for each turn that an answer cites: session, id, day, speaker and what was said."""
    turns = {turn.id: turn for turn in conversation.turns}
    for citation in answer.citations:
        typer.echo(f"  {turn_line(turns[citation.node_id], 200)}")


def print_topics(talk: Talk) -> None:
    """The topics of a conversation, each with its keywords, its size and its summary."""
    state = gam_of(talk).state
    if not state.topics:
        typer.echo("no topics yet: turns are in the buffer until a session or a subject ends")
        return
    for topic in state.topics.values():
        links = [link for link in state.links if topic.id in (link.source, link.target)]
        sizes = f"{len(topic.turns)} turns, {len(links)} links{', frozen' * topic.frozen}"
        typer.echo(
            f"{topic.id}  {one_line(', '.join(topic.keywords)) or '(no keywords)'}  ({sizes})"
        )
        typer.echo(f"    {one_line(topic.summary) or '(no summary)'}")
    if state.buffer:
        typer.echo(f"{len(state.buffer)} turns are in the buffer")


def print_topic(talk: Talk, name: str) -> None:
    """One topic with its links and its turns."""
    memory = gam_of(talk)
    turns, state = memory.conversation.turns, memory.state
    topic = state.topics[name]
    typer.echo(f"topic:     {name}{' (frozen)' * topic.frozen}")
    typer.echo(f"keywords:  {one_line(', '.join(topic.keywords)) or '(none)'}")
    typer.echo(f"summary:   {one_line(topic.summary) or '(none)'}")
    for link in state.links:
        if name in (link.source, link.target):
            typer.echo(f"link:      {_link(link)}")
    for number in topic.turns:
        typer.echo(f"  {turn_line(turns[number])}")


def print_turn(talk: Talk, identity: str) -> None:
    """One turn, and where the memory has it."""
    memory = gam_of(talk)
    turns, state = memory.conversation.turns, memory.state
    number = next(place for place, turn in enumerate(turns) if turn.id == identity)
    owner = next((name for name, topic in state.topics.items() if number in topic.turns), None)
    if number in state.forgotten:
        place = "forgotten"
    elif owner is not None:
        place = f"in topic {owner}"
    else:
        place = "in the buffer" if number in state.buffer else "not taken in yet"
    typer.echo(f"turn:  {number + 1} of {len(turns)}, {place}")
    typer.echo(f"  {turn_line(turns[number])}")


def turn_line(turn: Turn, width: int | None = None) -> str:
    """A turn on one line, its text cut to ``width`` characters."""
    session = None if turn.session is None else f"session {one_line(turn.session)}"
    day = None if turn.time is None else f"{turn.time:%d %B %Y %H:%M}"
    place = ", ".join(part for part in (session, f"turn {one_line(turn.id)}", day) if part)
    speaker = f"{one_line(turn.speaker)}: " if turn.speaker else ""
    return f"[{place}] {speaker}“{one_line(turn.text, width)}”"


def _link(link: Link) -> str:
    return f"{link.source} {link.relation} {link.target} ({link.confidence:.2f})"
