"""The entities of an episode: named, matched with the known ones, and described.

Source: Mnemis §2.1. Names are those of the episode and of recent ones, and what reflection adds;
speakers are always named. A name that an entity has already, in any spelling that ``entity_key``
levels, is that entity and costs no call; but what may be no proper name ("my sister", "我的姐姐":
``persons``) may mean another where another speaker says it. For these and for other names the model
decides among likely entities: those that full-text search over names and summaries finds, and those
with a similar name by embeddings; both rankings are fused by reciprocal rank. Ours is the least
similarity, below which a name is no candidate: it spares the model most of the questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

from pydantic import Field, create_model

from mgl.errors import Conflict, NotThere
from mgl.llm.constraints import max_chars, number, one_of
from mgl.memories.graph.names import NAME_CHARS, PRONOUNS, clean_name, mentions
from mgl.memories.mnemis.edits import (
    AddEntity,
    Describe,
    EditDraft,
    MergeEntities,
    Repeat,
    turns_of,
)
from mgl.memories.mnemis.index import Index
from mgl.memories.mnemis.persons import is_common, is_first_person
from mgl.memories.mnemis.prompts import MORE_NAMES, NAMES, SAME_ENTITIES, SUMMARIES
from mgl.memories.mnemis.reading import (
    LISTED,
    Decision,
    EpisodeReader,
    EpisodeSentences,
    LabelledItem,
    Part,
    clip,
    find_usable,
)
from mgl.memories.mnemis.state import Entity, Mention, MnemisState, key_of
from mgl.memories.propose import StrictReply
from mgl.text.language import find_language

REJECTED_CHARS, MOST_TAG_CHARS, SHOWN_CHARS = 200, 40, 300
SUMMARY_CHARS, SUMMARY_TOKENS = 1000, 300
"""Of one description: its characters, at most, and the tokens of its reply."""

CANDIDATES: Final = 5
"""Entities that a new name is held against, at most; ours."""

NEW: Final = "new"
EARLIER: Final = 2
"""Names of the same episode that a name is compared with, at most."""

_NAME_CHARS, _TAGS = 60, 5

_MATCHING: Final = Decision(SAME_ENTITIES, "names", "same_entities", "entity_deduplication")
DESCRIBING: Final = Decision(SUMMARIES, "entities", "summaries", "entity_summaries", SUMMARY_TOKENS)


class _Names(StrictReply):
    entities: Annotated[list[Annotated[str, max_chars(_NAME_CHARS)]], Field(max_length=LISTED)]


class _Summary(StrictReply):
    src: int
    summary: Annotated[str, max_chars(SUMMARY_CHARS)]
    tags: Annotated[
        list[Annotated[str, max_chars(MOST_TAG_CHARS)]], Field(min_length=1, max_length=_TAGS)
    ]


# Naming


@dataclass(frozen=True, slots=True)
class NameFound:
    """A name in an episode, with the first and the last sentence that it stands in.

    ``speaker`` says these, "" if unknown; ``is_common``: it may mean another for each speaker, and
    is not proper; ``recent`` is the number of the recent episode that has
    them, if not this one has. ``rejected`` or ``repaired`` say why it is not kept, or was changed.
    """

    name: str
    at: Part = (0, 0)
    speaker: str = ""
    is_common: bool = False
    recent: int | None = None
    rejected: str | None = None
    repaired: str | None = None
    call_key: str | None = None

    @property
    def key(self) -> str:
        return key_of(self.name)

    @property
    def meaning(self) -> tuple[str, str]:
        """What is one name: its key, and of a common one also who says it."""
        return self.key, key_of(self.speaker) if self.is_common else ""

    def passage(self, reader: EpisodeReader) -> EpisodeSentences:
        """Return the passage that it stands in."""
        return reader.passage if self.recent is None else reader.recent[self.recent]


def check_name(said: str, speaker: str) -> NameFound:
    """Clean a name that a model gave, or reject it.

    ``speaker`` is whose words name it, "" if unknown: first persons and "user" are that speaker.

    >>> check_name("“The  Louvre”", "Ann").name, check_name("I", "Ann").name
    ('The Louvre', 'Ann')
    """
    shown = clip(said[:REJECTED_CHARS], REJECTED_CHARS)
    if len(said) > 4 * NAME_CHARS or len(name := clean_name(said)) > NAME_CHARS:
        return NameFound(shown, rejected="name_too_long")
    key = key_of(name)
    if not key:
        return NameFound(shown, rejected="no_name")
    is_speaker = is_first_person(name) and key != key_of(speaker)
    if is_speaker and clean_name(speaker):
        return NameFound(clean_name(speaker), repaired="speaker")
    if key in PRONOUNS or is_speaker:
        return NameFound(name, rejected="pronoun")
    return NameFound(name, repaired=None if name == said else "name_cleaned")


def is_said(name: str, folded: str) -> bool:
    """Whether a case-folded text has any longer word of a name; a name without one was made up."""
    words = key_of(name).split()
    return any(word in folded for word in [word for word in words if len(word) > 2] or words)


async def find_names(reader: EpisodeReader, draft: EditDraft) -> list[NameFound]:
    """Return the names in an episode, each once: its speakers, then what the model names."""
    replies = await asyncio.gather(
        *(reader.ask_list((NAMES, MORE_NAMES), part, _Names, "entities") for part in reader.parts)
    )
    episodes = (*reader.recent.values(), reader.passage)
    said_in = (" ".join(each.quote for each in episode.sentences) for episode in episodes)
    by_capitals = "de" not in map(find_language, said_in)  # whose nouns all have one
    found: dict[tuple[str, str], NameFound] = {}
    for src, sentence in enumerate(reader.passage.sentences, 1):
        name = check_name(sentence.speaker, sentence.speaker)
        if name.rejected is None:
            found.setdefault((name.key, ""), NameFound(name.name, (src, src), sentence.speaker))
    for part, proposals in zip(reader.parts, replies, strict=True):
        speakers = {each.speaker for each in reader.passage.sentences[part[0] - 1 : part[1]]}
        speaker = speakers.pop() if len(speakers) == 1 else ""
        for reply, call_key in find_usable(draft, proposals):
            for said in reply.entities:
                name = replace(check_name(said, speaker), call_key=call_key)
                name = replace(name, is_common=is_common(name.name, by_capitals=by_capitals))
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


def _locate(reader: EpisodeReader, part: Part, name: NameFound) -> list[NameFound]:
    """Return a name with the sentence that has it, of a common one with one of each speaker.

    That is a sentence of the part, or else of a recent episode, or else the one that has most of
    the name's words; or else the whole part.
    """
    numbers = range(part[0], part[1] + 1)
    found: dict[str, NameFound] = {}
    for place in numbers:
        sentence = reader.passage[place]
        if mentions(name.name, sentence.quote):
            speaker = sentence.speaker
            found.setdefault(speaker, replace(name, at=(place, place), speaker=speaker))
            if not name.is_common:
                break
    if found:
        return list(found.values())
    for episode, passage in reversed(reader.recent.items()):
        for place, sentence in enumerate(passage.sentences, 1):
            if mentions(name.name, sentence.quote):
                own = sentence.speaker
                return [replace(name, at=(place, place), speaker=own, recent=episode)]
    words = set(name.key.split())
    shared = {n: len(words & set(key_of(reader.passage[n].quote).split())) for n in numbers}
    best = max(shared, key=lambda n: shared[n])
    at, guess = ((best, best), "sentence_guessed") if shared[best] else (part, "no_sentence")
    speaker = reader.passage[best].speaker
    return [replace(name, at=at, speaker=speaker, repaired=name.repaired or guess)]


# Matching


async def match_names(
    reader: EpisodeReader, draft: EditDraft, index: Index, found: Sequence[NameFound]
) -> dict[str, Part]:
    """Put names into the state, as known entities or as new ones.

    Returns the ids of the episode's entities, each with the sentences that name it.
    """
    labelled = {f"n{place}": each for place, each in enumerate(found, 1)}
    known = {label: _find_known(reader, draft.state, each) for label, each in labelled.items()}
    unknown = {label: each for label, each in labelled.items() if not known[label]}
    matched = await _ask_matches(reader, draft, index, unknown)
    ids: dict[str, Part] = {}
    placed: dict[str, str] = {}
    for label, each in labelled.items():
        number = reader.episode.number if each.recent is None else each.recent
        mention = Mention(number, each.passage(reader).span(*each.at))
        target, call_key = matched.get(label, (NEW, each.call_key))
        edit: AddEntity | Repeat
        if own := known[label]:
            edit = Repeat(own, mention)
        elif target != NEW:
            edit = Repeat(placed.get(target, target), mention, each.name)
        else:
            edit = AddEntity(draft.state.next_id("e"), each.name, mention)
            call_key = each.call_key
        draft.put(edit, repaired=each.repaired, call_key=call_key)
        placed[label] = edit.id
        whole = 1, len(reader.passage)
        ids.setdefault(edit.id, each.at if each.recent is None else whole)
    return ids


def _find_known(reader: EpisodeReader, state: MnemisState, name: NameFound) -> str | None:
    """Return the entity that has a name; of a common one, one that its speaker named so."""
    ids = state.lookups.entities.get(name.key, ())
    if not name.is_common:
        return next(iter(ids), None)
    speaker, turns = key_of(name.speaker), reader.source.turns
    for each in ids:
        entity = state.entities[each]
        said = (turns[state.episodes[m.episode].turns[0]] for m in reversed(entity.mentions))
        if speaker in entity.keys or any(key_of(turn.speaker) == speaker for turn in said):
            return each
    return None


async def _ask_matches(
    reader: EpisodeReader, draft: EditDraft, index: Index, unknown: Mapping[str, NameFound]
) -> dict[str, tuple[str, str | None]]:
    """Ask what the name of each label stands for, if anything is likely.

    That is the id of an entity, the label of an earlier name, or ``new``; with the call's key.
    """
    if not unknown:
        return {}
    entities, items = draft.state.entities, dict[str, LabelledItem]()
    likely = await _find_likely(reader, draft.state, index, unknown)
    for label, others in likely.items():
        each = unknown[label]
        said = each.passage(reader)[each.at[0]].line
        lines = [f'{label} "{each.name}" in: {clip(said, SHOWN_CHARS)}']
        for other in others:
            name = _line(entities[other]) if other in entities else unknown[other].name
            lines.append(f"  {other} {name}")
        known = turns_of(draft.state, *(entities[other] for other in others if other in entities))
        items[label] = LabelledItem(lines, known, one_of((*others, NEW)))
    return await reader.decide(draft, _MATCHING, items)


async def _find_likely(
    reader: EpisodeReader, state: MnemisState, index: Index, unknown: Mapping[str, NameFound]
) -> dict[str, list[str]]:
    """For each label return the entities and earlier labels that its name may stand for.

    One who spoke so far is never another who did.
    """
    labels, names = list(unknown), [each.name for each in unknown.values()]
    turns = reader.source.turns[: reader.episode.turns[-1] + 1]
    speakers = frozenset(key_of(turn.speaker) for turn in turns) - {""}
    speaking = {entity.id for entity in state.entities.values() if entity.keys & speakers}
    speaking |= {label for label, each in unknown.items() if each.key in speakers}
    candidates = await asyncio.to_thread(index.find_entities, names, CANDIDATES)
    earlier = await asyncio.to_thread(index.find_earlier, names, EARLIER)
    likely: dict[str, list[str]] = {}
    for label, among, before in zip(labels, candidates, earlier, strict=True):
        excluded = speaking if label in speaking else set()
        namesakes = state.lookups.entities.get(unknown[label].key, ())
        known = (each for each in among if each in state.entities)
        near = dict.fromkeys((*namesakes, *known, *(labels[b] for b in before)))
        if kept := [each for each in near if each not in excluded]:
            likely[label] = kept
    return likely


# Describing


async def describe_entities(reader: EpisodeReader, draft: EditDraft, ids: Sequence[str]) -> None:
    """Describe entities by summary and tags, from the episode and what was known of them."""
    src = number(1, len(reader.passage))
    answer = create_model("summary", __base__=_Summary, src=(src, ...))
    made_of = {each: turns_of(draft.state, draft.state.entities[each]) for each in ids}
    items = {
        each: LabelledItem(
            [f"{each} {_line(draft.state.entities[each], SUMMARY_CHARS)}"], turns, answer
        )
        for each, turns in made_of.items()
    }
    described = await reader.decide(draft, DESCRIBING, items, episode=reader.passage.render())
    for identity, (said, call_key) in described.items():
        line = clip(said.summary, SUMMARY_CHARS)
        tags = dict.fromkeys(clip(tag, MOST_TAG_CHARS) for tag in said.tags)
        draft.put(
            Describe(identity, line, tuple(tag for tag in tags if tag)),
            rejected=None if line else "empty",
            call_key=call_key,
            span=reader.passage.span(said.src),
            turns={*made_of[identity], *reader.episode.turns},
        )


# By hand


def merge_entities(
    draft: EditDraft,
    one: str,
    other: str,
    summary: str | None = None,
    tags: Sequence[str] | None = None,
) -> None:
    """Let an entity take in another, with what is said of it unless that is given.

    InputError for an unknown one.
    """
    entities = draft.state.entities
    for name in (one, other):
        if name not in entities:
            raise NotThere(f"there is no entity {name!r}", hint="`mgl show` lists the entities")
    if one == other:
        raise Conflict(f"{one} cannot take in itself", hint="name another entity")
    both = entities[one], entities[other]
    draft.put(MergeEntities(one, other))
    if summary is not None or one not in draft.state.stale:
        said = " ".join(each.summary for each in both if each.summary)
        known = dict.fromkeys(tag for each in both for tag in each.tags)
        draft.put(Describe(one, said if summary is None else summary, tuple(tags or known)))


def _line(entity: Entity, most: int = SHOWN_CHARS) -> str:
    summary = clip(entity.summary, most)
    return f"{entity.name}: {summary}" if summary else entity.name
