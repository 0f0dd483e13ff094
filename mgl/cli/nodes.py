"""What ``mgl memory show`` prints of a conversation that mnemis remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from mgl.cli.output import one_line
from mgl.cli.talks import turn_line

if TYPE_CHECKING:
    from mgl.memories.mnemis import Mnemis

__all__ = ["is_node", "print_node", "print_remembered"]


def is_node(memory: Mnemis, identity: str) -> bool:
    """Whether this is the id of an entity or of a category."""
    state = memory.state
    return identity in state.entities or identity in state.categories


def print_node(memory: Mnemis, identity: str) -> None:
    """An entity with its facts and its turns, or a category with its children."""
    state = memory.state
    node = state.node(identity)
    category = state.categories.get(identity)
    kind = "entity" if category is None else f"category of layer {category.layer}"
    typer.echo(f"{kind}: {one_line(node.name)}")
    typer.echo(f"tags:    {one_line(', '.join(node.tags)) or '(none)'}")
    typer.echo(f"summary: {one_line(node.summary) or '(none)'}")
    if category is not None:
        for child in category.children:
            typer.echo(f"  {child}  {one_line(state.node(child).name)}")
        return
    entity = state.entities[identity]
    for name in entity.names[1:]:
        typer.echo(f"also:    {one_line(name)}")
    for fact in state.facts_of(identity):
        typer.echo(f"fact:    {fact.id}  {one_line(fact.text)}")
    turns = memory.conversation.turns
    for episode in entity.episodes:
        for number in state.episodes[episode].turns:
            typer.echo(f"  {turn_line(turns[number])}")


def print_remembered(memory: Mnemis, identity: str) -> None:
    """One turn, the episode that it is in and the entities of that."""
    turns, state = memory.conversation.turns, memory.state
    number = next(place for place, turn in enumerate(turns) if turn.id == identity)
    episode = next((each for each in state.episodes.values() if number in each.turns), None)
    place = "forgotten" if number in memory.forgotten else "not taken in yet"
    if episode is not None:
        place = f"in episode {episode.number}"
    typer.echo(f"turn:  {number + 1} of {len(turns)}, {place}")
    typer.echo(f"  {turn_line(turns[number])}")
    for entity in state.entities.values():
        if episode is not None and episode.number in entity.episodes:
            typer.echo(f"  {entity.id}  {one_line(entity.name)}")
