"""The entities of an episode: named, checked, matched with the known ones, and described.

Source: Mnemis §2.1. A name that an entity has already, in any spelling that ``entity_key`` levels,
is that entity and costs no call. For other names the model decides among likely entities: those
that full-text search over names and summaries finds, and those with a similar name by embeddings;
both rankings are fused by reciprocal rank. Ours is the least similarity, below which a name is no
candidate: it spares the model most of the questions. Speakers are always entities.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, create_model

from mgl.llm.constraints import max_chars, number, one_of
from mgl.memories.graph.names import NAME_CHARS, PRONOUNS, clean_name, mentions
from mgl.memories.mnemis.edits import AddEntity, Describe, EditDraft, Repeat, turns_of
from mgl.memories.mnemis.episodes import clip
from mgl.memories.mnemis.extract import EpisodeReader, Part, StrictReply, compare, in_batches
from mgl.memories.mnemis.prompts import MORE_NAMES, NAMES, SAME_ENTITIES, SUMMARIES
from mgl.memories.mnemis.state import Entity, Mention, key_of
from mgl.memories.propose import Proposal
from mgl.retrieval.base import Embedder, Hit
from mgl.retrieval.lexical import LexicalIndex, all_stems
from mgl.retrieval.ranking import fuse_hits

MOST_SUMMARY_CHARS, MOST_TAG_CHARS, SHOWN_CHARS = 600, 40, 300
REJECTED_CHARS: Final = 200
LEAST_SIMILARITY: Final = 0.5
"""Cosine of two names, above which they may mean the same."""

NEW: Final = "new"
EARLIER: Final = 2
"""Names of the same episode that a name is compared with, at most."""

_NAME_CHARS, _SUMMARY_CHARS, _TAG_CHARS, _TAGS = 60, 240, 24, 3
_FIRST_PERSON: Final = frozenset("i me my mine myself i'm user speaker narrator".split())


class Names(StrictReply):
    entities: list[str]


class _Summary(StrictReply):
    src: int
    summary: Annotated[str, max_chars(_SUMMARY_CHARS)]
    tags: Annotated[
        list[Annotated[str, max_chars(_TAG_CHARS)]], Field(min_length=1, max_length=_TAGS)
    ]


NamesOfParts = Sequence[Sequence[Proposal[Names]]]
"""Replies about the parts of an episode: a list of names, and what reflection adds to it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A name in an episode, with the first and the last sentence that it stands in.

    ``rejected`` or ``repaired`` say why it is not kept, or was changed.
    """

    name: str
    at: Part = (0, 0)
    rejected: str | None = None
    repaired: str | None = None
    call_key: str | None = None

    @property
    def key(self) -> str:
        return key_of(self.name)


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


# Naming


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
    found: dict[str, Found] = {}
    for src, speaker in enumerate((each.speaker for each in reader.passage.sentences), 1):
        name = check_name(speaker, speaker)
        if name.rejected is None:
            found.setdefault(name.key, Found(name.name, (src, src)))
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
                    found.setdefault(name.key, _locate(reader, part, name))
                    continue
                mention = Mention(reader.episode.number, reader.passage.span(*part))
                edit = AddEntity("", name.name, mention)
                draft.put(edit, rejected=name.rejected, call_key=name.call_key)
    return list(found.values())


def _locate(reader: EpisodeReader, part: Part, name: Found) -> Found:
    """Return a name with the sentence that has it, or most of its words; else the whole part."""
    quotes = {n: reader.passage[n].quote for n in range(part[0], part[1] + 1)}
    for place, quote in quotes.items():
        if mentions(name.name, quote):
            return replace(name, at=(place, place))
    words = set(name.key.split())
    shared = {n: len(words & set(key_of(quote).split())) for n, quote in quotes.items()}
    best = max(shared, key=lambda n: shared[n])
    if shared[best]:
        return replace(name, at=(best, best), repaired=name.repaired or "sentence_guessed")
    return replace(name, at=part, repaired=name.repaired or "no_sentence")


# Matching


async def match_names(
    reader: EpisodeReader, draft: EditDraft, found: Sequence[Found], speakers: frozenset[str]
) -> dict[str, Part]:
    """Put names into the state, as known entities or as new ones.

    Returns the ids of the episode's entities, each with the sentences that name it. ``speakers``
    are the keys of all who spoke so far: one of them is never another.
    """
    known = draft.state.lookups.entities
    unknown = {f"n{place}": each for place, each in enumerate(found, 1) if each.key not in known}
    matched = await _ask_matches(reader, draft, unknown, speakers)
    ids: dict[str, Part] = {}
    placed: dict[str, str] = {}
    for place, each in enumerate(found, 1):
        mention = Mention(reader.episode.number, reader.passage.span(*each.at))
        label = f"n{place}"
        target, call_key = matched.get(label, (NEW, each.call_key))
        edit: AddEntity | Repeat
        if each.key in known:
            edit = Repeat(known[each.key], mention)
        elif target != NEW:
            edit = Repeat(placed.get(target, target), mention, each.name)
        else:
            edit = AddEntity(draft.state.next_id("e"), each.name, mention)
            call_key = each.call_key
        draft.put(edit, repaired=each.repaired, call_key=call_key)
        placed[label] = edit.id
        ids.setdefault(edit.id, each.at)
    return ids


async def _ask_matches(
    reader: EpisodeReader,
    draft: EditDraft,
    unknown: Mapping[str, Found],
    speakers: frozenset[str],
) -> dict[str, tuple[str, str | None]]:
    """Ask what the name of each label stands for, if anything is likely.

    That is the id of an entity, the label of an earlier name, or ``new``; with the call's key.
    """
    entities = draft.state.entities
    lines = {entity.id: _line(entity) for entity in entities.values()}
    lines |= {label: each.name for label, each in unknown.items()}
    likely = await _find_likely(reader, list(entities.values()), unknown, speakers)

    async def ask(some: Sequence[str]) -> Proposal[BaseModel]:
        listed = []
        for label in some:
            each = unknown[label]
            sentence = clip(reader.passage[each.at[0]].quote, SHOWN_CHARS)
            listed.append(f'{label} "{each.name}" in: {sentence}')
            listed += [f"  {other} {lines[other]}" for other in likely[label]]
        fields: Any = {label: (one_of((*likely[label], NEW)), ...) for label in some}
        schema: type[BaseModel] = create_model("same_entities", __base__=StrictReply, **fields)
        shown = dict.fromkeys(other for label in some for other in likely[label])
        made_of = turns_of(draft.state, *(entities[each] for each in shown if each in entities))
        values = {"names": "\n".join(listed)}
        return await reader.ask(
            SAME_ENTITIES, values, schema, "entity_deduplication", known=made_of
        )

    matched: dict[str, tuple[str, str | None]] = {}
    for proposal in await asyncio.gather(*map(ask, in_batches(list(likely)))):
        if proposal.reply is None:
            draft.fail(proposal.stage, proposal.problem)
        else:
            matched |= {label: (target, proposal.call_key) for label, target in proposal.reply}
    return matched


async def _find_likely(
    reader: EpisodeReader,
    entities: Sequence[Entity],
    unknown: Mapping[str, Found],
    speakers: frozenset[str],
) -> dict[str, list[str]]:
    """For each label return the entities and earlier labels that its name may stand for."""
    labels, names = list(unknown), [each.name for each in unknown.values()]
    speaking = {entity.id for entity in entities if entity.keys & speakers}
    speaking |= {label for label, each in unknown.items() if each.key in speakers}
    candidates = await find_candidates(reader.embedder, names, entities, reader.config.candidates)
    earlier = await find_similar_before(reader.embedder, names, EARLIER)
    likely: dict[str, list[str]] = {}
    for label, among, before in zip(labels, candidates, earlier, strict=True):
        excluded = speaking if label in speaking else set()
        kept = [each for each in [*among, *(labels[b] for b in before)] if each not in excluded]
        if kept:
            likely[label] = kept
    return likely


async def find_candidates(
    embedder: Embedder, names: Sequence[str], entities: Sequence[Entity], most: int
) -> list[list[str]]:
    """For each name return the ids of at most ``most`` entities, the likeliest first."""
    if not names or not entities:
        return [[] for _ in names]
    forms = [(place, name) for place, entity in enumerate(entities) for name in entity.names]
    words = LexicalIndex.of([f"{' '.join(entity.names)} {entity.summary}" for entity in entities])
    cosines = await compare(embedder, names, [name for _, name in forms])
    owners = np.array([place for place, _ in forms])
    found = []
    for name, row in zip(names, cosines, strict=True):
        similar = np.full(len(entities), -1.0)
        np.maximum.at(similar, owners, row)
        rankings = [
            _rank(words.scores(name), 0.0, most),
            _rank(similar, LEAST_SIMILARITY, most),
        ]
        found.append([entities[hit.id].id for hit in fuse_hits(rankings)[:most]])
    return found


async def find_similar_before(
    embedder: Embedder, names: Sequence[str], most: int
) -> list[list[int]]:
    """For each name return the places of earlier names that may mean the same, likeliest first.

    They share a word, or their embeddings are similar.
    """
    if len(names) < 2:
        return [[] for _ in names]
    stems = [frozenset(each) for each in all_stems(names)]
    found: list[list[int]] = []
    for place, row in enumerate(await compare(embedder, names, names)):
        before = [
            other
            for other in range(place)
            if stems[other] & stems[place] or row[other] > LEAST_SIMILARITY
        ]
        found.append(sorted(before, key=lambda other: (-float(row[other]), other))[:most])
    return found


def _rank(scores: NDArray[np.floating], above: float, most: int) -> list[Hit]:
    best = np.argsort(-scores, kind="stable")[:most]
    return [Hit(int(place), float(scores[place])) for place in best if scores[place] > above]


# Describing


async def describe_entities(reader: EpisodeReader, draft: EditDraft, ids: Sequence[str]) -> None:
    """Describe entities by summary and tags, from the episode and what was known of them."""
    sentences, text = len(reader.passage.sentences), reader.passage.render_numbered()

    async def ask(some: Sequence[str]) -> Proposal[BaseModel]:
        entities = [draft.state.entities[each] for each in some]
        lines = "\n".join(f"{entity.id} {_line(entity)}" for entity in entities)
        item = create_model("summary", __base__=_Summary, src=(number(1, sentences), ...))
        fields: Any = dict.fromkeys(some, (item, ...))
        schema: type[BaseModel] = create_model("summaries", __base__=StrictReply, **fields)
        values = {"episode": text, "entities": lines}
        made_of = turns_of(draft.state, *entities)
        return await reader.ask(SUMMARIES, values, schema, "entity_summaries", known=made_of)

    for proposal in await asyncio.gather(*map(ask, in_batches(ids))):
        if proposal.reply is None:
            draft.fail(proposal.stage, proposal.problem)
            continue
        for identity, said in proposal.reply:
            line = clip(said.summary, MOST_SUMMARY_CHARS)
            tags = dict.fromkeys(clip(tag, MOST_TAG_CHARS) for tag in said.tags)
            draft.put(
                Describe(identity, line, tuple(tag for tag in tags if tag)),
                rejected=None if line else "empty",
                call_key=proposal.call_key,
                span=reader.passage.span(said.src),
            )


def _line(entity: Entity) -> str:
    summary = clip(entity.summary, SHOWN_CHARS)
    return f"{entity.name}: {summary}" if summary else entity.name
