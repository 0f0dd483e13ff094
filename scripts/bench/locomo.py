"""LoCoMo's conversations one by one, whole or up to a session."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from mgl.benchmarks.base import Item
from mgl.benchmarks.locomo import LOCOMO
from mgl.errors import InputError
from mgl.types import Conversation


@dataclass(frozen=True, slots=True)
class LocomoSample:
    """One conversation and what is asked of it, in the categories that are scored."""

    name: str
    conversation: Conversation
    items: tuple[Item, ...]

    @property
    def evident(self) -> tuple[Item, ...]:
        """The items that name the turns which answer them."""
        return tuple(item for item in self.items if item.evidence)

    def to_session(self, count: int) -> LocomoSample:
        """The sample as it was after so many sessions, with the items whose evidence was there by
        then; those that name none are left out."""
        conversation = first_sessions(self.conversation, count)
        said = frozenset(turn.id for turn in conversation.turns)
        known = (item for item in self.evident if said.issuperset(item.evidence))
        return replace(self, conversation=conversation, items=tuple(known))


def read_samples(
    path: Path, names: Collection[str] = (), sessions: int | None = None
) -> list[LocomoSample]:
    """Read the samples of these names, or all; with ``sessions`` only the first of each.

    InputError if the file is not LoCoMo's, or has no sample of a name.
    """
    dataset = LOCOMO.read(path)
    if missing := [name for name in names if name not in dataset.sources]:
        raise InputError(
            f"{path} holds no {', '.join(missing)}", hint=f"it holds {', '.join(dataset.sources)}"
        )
    found = []
    for name, read in dataset.sources.items():
        if not names or name in names:
            talk = read()
            assert isinstance(talk, Conversation)
            items = tuple(item for item in dataset.items if item.source == name)
            found.append(LocomoSample(name, talk, items))
    return found if sessions is None else [sample.to_session(sessions) for sample in found]


def first_sessions(conversation: Conversation, count: int) -> Conversation:
    """The conversation as it was after so many sessions."""
    kept = set(list(dict.fromkeys(turn.session for turn in conversation.turns))[:count])
    turns = [turn for turn in conversation.turns if turn.session in kept]
    return Conversation.from_turns(f"{conversation.name} to session {count}", turns)
