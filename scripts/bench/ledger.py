"""What clients said in a conversation, what of it the server acknowledged, and what is stored.

    book = Book("diary")
    said = book.say("client 3", "It rains zq0000000001q", "append")
    said.id = "1"                                   # the server's answer came
    list(book.check(exported))                      # [] if it is stored once, and in order

Each message has a code word of its own (``served.WORD``), by which it is known wherever it turns
up.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from served import WORD

Problem = tuple[str, str]
"""Its kind, and what is wrong."""


@dataclass(eq=False)
class Said:
    """One message, and ``how`` it was sent. ``id`` is its turn's, once the server acknowledged it;
    ``reply`` likewise.

    ``most`` is how often it may be stored: a message that is sent alone, and again because no
    answer came, cannot be told from one that is said twice. A message that its client edited is
    replaced: it may be there or not.
    """

    word: str
    text: str
    how: str
    id: str = ""
    reply: str | None = None
    most: int = 1
    is_forgotten: bool = False
    is_replaced: bool = False


@dataclass
class Book:
    """What all clients said in one conversation, each in its order."""

    name: str
    said: dict[str, list[Said]] = field(default_factory=lambda: defaultdict(list))

    def say(self, client: str, text: str, how: str) -> Said:
        said = Said(WORD.findall(text)[0], text, how)
        self.said[client].append(said)
        return said

    def forget(self, ids: Collection[str]) -> None:
        """Note that the server acknowledged the deletion of these turns."""
        for said in self:
            said.is_forgotten = said.is_forgotten or said.id in ids

    def __iter__(self) -> Iterator[Said]:
        for each in self.said.values():
            yield from each

    @property
    def words(self) -> set[str]:
        return {said.word for said in self}

    @property
    def forgotten(self) -> set[str]:
        """The words that may be nowhere any more."""
        return {said.word for said in self if said.is_forgotten}

    def check(self, exported: Mapping[str, Any]) -> Iterator[Problem]:
        """Compare with what the server exports while no request is under way."""
        stored = _Stored(exported)
        for client, each in self.said.items():
            for kind, about in self._check_order(each, stored):
                yield kind, f"{self.name}, {client}, {about}"
        for kind, about in self._check_others(exported, stored):
            yield kind, f"{self.name}: {about}"

    def _check_order(self, own: list[Said], stored: _Stored) -> Iterator[Problem]:
        last = -1
        for said in own:
            if said.is_forgotten or said.is_replaced:
                continue
            places = stored.places[said.word]
            if said.id and not places:
                yield "lost", f"{said.how}: {said.text!r}, acknowledged as turn {said.id}"
            if not places:
                continue
            if len(places) > said.most:
                yield (
                    "doubled",
                    f"{said.how}: {said.text!r}, turns {[stored.ids[n] for n in places]}",
                )
            if places[0] < last:
                yield "disordered", f"{said.how}: {said.text!r}, turn {stored.ids[places[0]]}"
            last = places[0]
            if said.id and stored.texts.get(said.id) != said.text:
                yield (
                    "changed",
                    f"{said.how}: turn {said.id}, {said.text!r}: {stored.texts.get(said.id)!r}",
                )
            if said.reply is not None:
                yield from self._check_reply(said, stored)

    def _check_reply(self, said: Said, stored: _Stored) -> Iterator[Problem]:
        """A deletion may take replies with it, or have them made again; so may a client, whose new
        reply has an id of its own."""
        own = f"{said.id}+"
        while own in stored.forgotten:
            own += "+"
        kept = stored.texts.get(own)
        if kept is None and f"{said.id}+" not in stored.forgotten:
            yield "lost", f"{said.how}: the reply to turn {said.id}, {said.reply!r}"
        elif kept != said.reply and not self.forgotten:
            yield "changed", f"{said.how}: the reply to turn {said.id}, {said.reply!r}: {kept!r}"

    def _check_others(self, exported: Mapping[str, Any], stored: _Stored) -> Iterator[Problem]:
        known = self.words
        for word in stored.places.keys() - known:
            yield "foreign", f"{[stored.ids[n] for n in stored.places[word]]}, word {word!r}"
        for identity in stored.replies:
            if identity not in stored.texts and identity not in stored.forgotten:
                yield "foreign", f"a reply to turn {identity}, which is not there"
        parts = {name: json.dumps(part) for name, part in exported.items()}
        for word in self.forgotten:
            if places := [name for name, text in parts.items() if word in text]:
                turns = [identity for identity, text in stored.texts.items() if word in text]
                yield "reappeared", f"{word}, which was deleted, in {places}, turns {turns}"


class _Stored:
    """An export, by words and ids. ``replies`` are the ids of the turns that were replied to."""

    def __init__(self, exported: Mapping[str, Any]) -> None:
        turns = exported["turns"]
        self.forgotten = set(exported["forgotten"])
        self.ids = [turn["id"] for turn in turns]
        self.texts = {turn["id"]: turn["text"] for turn in turns}
        self.replies = [each.removesuffix("+") for each in self.ids if each.endswith("+")]
        self.places: dict[str, list[int]] = defaultdict(list)
        for place, turn in enumerate(turns):
            if not turn["id"].endswith("+"):
                words = WORD.findall(turn["text"])
                self.places[words[0] if words else ""].append(place)
