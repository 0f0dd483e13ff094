"""The names in an episode: asked for, checked, and found in its sentences.

Source: Mnemis §2.1. Names are those of the episode and of recent ones, and what reflection adds.
Speakers are always named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

from pydantic import Field, create_model

from mgl.llm.constraints import max_chars
from mgl.memories.graph.names import NAME_CHARS, PRONOUNS, clean_name, mentions
from mgl.memories.mnemis.edits import AddEntity, EditDraft
from mgl.memories.mnemis.extract import EpisodeReader, Part, StrictReply
from mgl.memories.mnemis.prompts import MORE_NAMES, NAMES
from mgl.memories.mnemis.state import Mention, key_of
from mgl.memories.propose import Proposal

REJECTED_CHARS: Final = 200

_NAME_CHARS: Final = 60
_POSSESSIVES: Final = frozenset("my our your his her its their a an the".split())
_FIRST_PERSON: Final = frozenset("i me my mine myself i'm user speaker narrator".split())


class Names(StrictReply):
    entities: list[str]


NamesOfParts = Sequence[Sequence[Proposal[Names]]]
"""Replies about the parts of an episode: a list of names, and what reflection adds to it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A name in an episode, with the first and the last sentence that it stands in.

    ``speaker`` says these, "" if unknown; ``recent`` is the number of the recent episode that has
    them, if not this one has. ``rejected`` or ``repaired`` say why it is not kept, or was changed.
    """

    name: str
    at: Part = (0, 0)
    speaker: str = ""
    recent: int | None = None
    rejected: str | None = None
    repaired: str | None = None
    call_key: str | None = None

    @property
    def key(self) -> str:
        return key_of(self.name)

    @property
    def meaning(self) -> tuple[str, str]:
        """What is one name: its key, and of a common noun also who says it."""
        return self.key, key_of(self.speaker) if is_common(self.name) else ""


def is_common(name: str) -> bool:
    """Whether a name is a common noun, which means for each speaker another: "my sister"."""
    words = [word for word in name.split() if word.casefold() not in _POSSESSIVES]
    return " ".join(words).islower()


def check_name(said: str, speaker: str) -> Found:
    """Clean a name that a model gave, or reject it.

    ``speaker`` is whose words name it, "" if unknown: first persons and "user" are that speaker.

    >>> check_name("“The  Louvre”", "Ann").name, check_name("I", "Ann").name
    ('The Louvre', 'Ann')
    """
    shown = " ".join(said[:REJECTED_CHARS].encode("utf-8", "replace").decode().split())
    if len(said) > 4 * NAME_CHARS or len(name := clean_name(said)) > NAME_CHARS:
        return Found(shown, rejected="name_too_long")
    key = key_of(name)
    if not key:
        return Found(shown, rejected="no_name")
    if key in _FIRST_PERSON and key != key_of(speaker):
        if clean_name(speaker):
            return Found(clean_name(speaker), repaired="speaker")
        return Found(name, rejected="pronoun")
    if key in PRONOUNS:
        return Found(name, rejected="pronoun")
    return Found(name, repaired=None if name == said else "name_cleaned")


def is_said(name: str, text: str) -> bool:
    """Whether a text has any longer word of a name; a name without one was made up."""
    words = key_of(name).split()
    folded = text.casefold()
    return any(word in folded for word in [word for word in words if len(word) > 2] or words)


async def ask_names(reader: EpisodeReader) -> NamesOfParts:
    """Ask what each part of an episode names, and what was missed."""
    schema = _names_schema(reader.config.most_entities)
    prompts = NAMES, MORE_NAMES
    asked = (reader.ask_list(prompts, part, schema, "entities") for part in reader.parts)
    return await asyncio.gather(*asked)


def _names_schema(most: int) -> type[Names]:
    names = Annotated[list[Annotated[str, max_chars(_NAME_CHARS)]], Field(max_length=most)]
    return create_model("names", __base__=Names, entities=(names, ...))


def find_names(reader: EpisodeReader, draft: EditDraft, replies: NamesOfParts) -> list[Found]:
    """Return the names in an episode, each once: its speakers, then what the model named."""
    found: dict[tuple[str, str], Found] = {}
    for src, sentence in enumerate(reader.passage.sentences, 1):
        name = check_name(sentence.speaker, sentence.speaker)
        if name.rejected is None:
            found.setdefault((name.key, ""), Found(name.name, (src, src), sentence.speaker))
    for part, proposals in zip(reader.parts, replies, strict=True):
        speakers = {each.speaker for each in reader.passage.sentences[part[0] - 1 : part[1]]}
        speaker = speakers.pop() if len(speakers) == 1 else ""
        for proposal in proposals:
            if proposal.reply is None:
                draft.fail(proposal.stage, proposal.problem)
                continue
            for said in proposal.reply.entities:
                name = replace(check_name(said, speaker), call_key=proposal.call_key)
                if name.rejected is None and not is_said(name.name, reader.words):
                    name = replace(name, rejected="not_said")
                if name.rejected is None:
                    for one in _locate(reader, part, name):
                        if (one.key, "") not in found:
                            found.setdefault(one.meaning, one)
                    continue
                mention = Mention(reader.episode.number, reader.passage.span(*part))
                edit = AddEntity("", name.name, mention)
                draft.put(edit, rejected=name.rejected, call_key=name.call_key)
    return list(found.values())


def _locate(reader: EpisodeReader, part: Part, name: Found) -> list[Found]:
    """Return a name with the sentence that has it, of a common noun with one of each speaker.

    That is a sentence of the part, or else of a recent episode, or else the one that has most of
    the name's words; or else the whole part.
    """
    numbers = range(part[0], part[1] + 1)
    here = [(n, reader.passage[n]) for n in numbers]
    found: dict[str, Found] = {}
    for place, sentence in here:
        if mentions(name.name, sentence.quote):
            speaker = sentence.speaker
            found.setdefault(speaker, replace(name, at=(place, place), speaker=speaker))
            if not is_common(name.name):
                break
    if found:
        return list(found.values())
    for episode, passage in reversed(reader.recent.items()):
        for place, sentence in enumerate(passage.sentences, 1):
            if mentions(name.name, sentence.quote):
                own = sentence.speaker
                return [replace(name, at=(place, place), speaker=own, recent=episode)]
    words = set(name.key.split())
    shared = {n: len(words & set(key_of(each.quote).split())) for n, each in here}
    best = max(shared, key=lambda n: shared[n])
    speaker = reader.passage[best].speaker
    if shared[best]:
        guessed = name.repaired or "sentence_guessed"
        return [replace(name, at=(best, best), speaker=speaker, repaired=guessed)]
    return [replace(name, at=part, speaker=speaker, repaired=name.repaired or "no_sentence")]
