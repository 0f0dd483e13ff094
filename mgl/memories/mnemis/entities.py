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
from pydantic import BaseModel, ConfigDict, Field, create_model

from mgl.llm.constraints import max_chars, number, one_of
from mgl.memories.graph.names import NAME_CHARS, PRONOUNS, clean_name, mentions
from mgl.memories.log import Draft
from mgl.memories.mnemis.edits import AddEntity, Describe, Edit, Repeat, turns_of
from mgl.memories.mnemis.episodes import clip
from mgl.memories.mnemis.extract import EpisodeReader, Part, in_batches
from mgl.memories.mnemis.prompts import MORE_NAMES, NAMES, SAME_ENTITIES, SUMMARIES
from mgl.memories.mnemis.state import Entity, Mention, State, key_of
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


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Names(_Reply):
    entities: list[str]


class _Summary(_Reply):
    src: int
    summary: Annotated[str, max_chars(_SUMMARY_CHARS)]
    tags: Annotated[
        list[Annotated[str, max_chars(_TAG_CHARS)]], Field(min_length=1, max_length=_TAGS)
    ]


NamesOfParts = Sequence[Sequence[Proposal[Names]]]
"""Replies about the parts of an episode: a list of names, and what reflection adds to it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A name in an episode, with the first and the last sentence that it stands in."""

    name: str
    at: Part
    repaired: str | None = None
    call_key: str | None = None

    @property
    def key(self) -> str:
        return key_of(self.name)


@dataclass(frozen=True, slots=True)
class CleanName:
    """A name as it is kept; ``rejected`` or ``repaired`` say why it is not, or was changed."""

    name: str
    rejected: str | None = None
    repaired: str | None = None


def check_name(said: str, speaker: str) -> CleanName:
    """Clean a name that a model gave, or reject it.

    ``speaker`` is whose words name it, "" if unknown: first persons and "user" are that speaker.

    >>> check_name("“The  Louvre”", "Ann")
    CleanName(name='The Louvre', rejected=None, repaired='name_cleaned')
    >>> check_name("I", "Ann")
    CleanName(name='Ann', rejected=None, repaired='speaker')
    """
    shown = " ".join(said[:REJECTED_CHARS].encode("utf-8", "replace").decode().split())
    if len(said) > 4 * NAME_CHARS or len(name := clean_name(said)) > NAME_CHARS:
        return CleanName(shown, rejected="name_too_long")
    key = key_of(name)
    if not key:
        return CleanName(shown, rejected="no_name")
    if key in _FIRST_PERSON and key != key_of(speaker):
        if clean_name(speaker):
            return CleanName(clean_name(speaker), repaired="speaker")
        return CleanName(name, rejected="pronoun")
    if key in PRONOUNS:
        return CleanName(name, rejected="pronoun")
    return CleanName(name, repaired=None if name == said else "name_cleaned")


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


def find_names(
    reader: EpisodeReader, draft: Draft[Edit, State], number: int, replies: NamesOfParts
) -> list[Found]:
    """Return the names in an episode, each once: its speakers, then what the model named."""
    found: dict[str, Found] = {}
    for src, speaker in enumerate(reader.passage.speakers, 1):
        name = check_name(speaker, speaker)
        if name.rejected is None:
            found.setdefault(key_of(name.name), Found(name.name, (src, src)))
    for part, proposals in zip(reader.parts, replies, strict=True):
        for proposal in proposals:
            if proposal.reply is None:
                draft.fail(proposal.stage, proposal.problem)
                continue
            for said in proposal.reply.entities:
                name = _check_said(reader, part, said)
                if name.rejected is not None:
                    edit = AddEntity("", name.name, Mention(number, reader.passage.span(*part)))
                    draft.put(edit, rejected=name.rejected, call_key=proposal.call_key)
                    continue
                at, repaired = _locate(reader, part, name.name)
                one = Found(name.name, at, name.repaired or repaired, proposal.call_key)
                found.setdefault(one.key, one)
    return list(found.values())


def _check_said(reader: EpisodeReader, part: Part, said: str) -> CleanName:
    speakers = set(reader.passage.speakers[part[0] - 1 : part[1]])
    name = check_name(said, speakers.pop() if len(speakers) == 1 else "")
    if name.rejected is None and not is_said(name.name, reader.words):
        return replace(name, rejected="not_said")
    return name


def _locate(reader: EpisodeReader, part: Part, name: str) -> tuple[Part, str | None]:
    """Return the sentence that has a name, or most of its words; else the whole part."""
    first, last = part
    quotes = {n: reader.passage.quote(n) for n in range(first, last + 1)}
    for place, quote in quotes.items():
        if mentions(name, quote):
            return (place, place), None
    words = set(key_of(name).split())
    shared = {n: len(words & set(key_of(quote).split())) for n, quote in quotes.items()}
    best = max(shared, key=lambda n: shared[n])
    return ((best, best), "sentence_guessed") if shared[best] else (part, "no_sentence")


# Matching


async def match_names(
    reader: EpisodeReader,
    embedder: Embedder,
    draft: Draft[Edit, State],
    number: int,
    found: Sequence[Found],
    speakers: frozenset[str],
) -> dict[str, Part]:
    """Put names into the state, as known entities or as new ones.

    Returns the ids of the episode's entities, each with the sentences that name it. ``speakers``
    are the keys of all who spoke so far: one of them is never another.
    """
    known = draft.state.lookups.entities
    unknown = {f"n{place}": each for place, each in enumerate(found, 1) if each.key not in known}
    matched = await _ask_matches(reader, embedder, draft, unknown, speakers)
    labels = {each.key: label for label, each in unknown.items()}
    ids: dict[str, Part] = {}
    placed: dict[str, str] = {}
    for each in found:
        mention = Mention(number, reader.passage.span(*each.at))
        label = labels.get(each.key, "")
        target, call_key = matched.get(label, (NEW, each.call_key))
        edit: Edit
        if each.key in known:
            identity = known[each.key]
            edit = Repeat(identity, mention)
        elif target != NEW:
            identity = placed.get(target, target)
            edit = Repeat(identity, mention, each.name)
        else:
            identity = draft.state.next_id("e")
            edit, call_key = AddEntity(identity, each.name, mention), each.call_key
        draft.put(edit, repaired=each.repaired, call_key=call_key)
        placed[label] = identity
        ids.setdefault(identity, each.at)
    return ids


async def _ask_matches(
    reader: EpisodeReader,
    embedder: Embedder,
    draft: Draft[Edit, State],
    unknown: Mapping[str, Found],
    speakers: frozenset[str],
) -> dict[str, tuple[str, str | None]]:
    """Ask what the name of each label stands for, if anything is likely.

    That is the id of an entity, the label of an earlier name, or ``new``; with the call's key.
    """
    entities = list(draft.state.entities.values())
    known = {entity.id: (entity.name, entity.summary) for entity in entities}
    known |= {label: (each.name, "") for label, each in unknown.items()}
    likely = await _find_likely(reader, embedder, entities, unknown, speakers)

    async def ask(some: Sequence[str]) -> Proposal[BaseModel]:
        lines = []
        for label in some:
            each = unknown[label]
            sentence = clip(reader.passage.quote(each.at[0]), SHOWN_CHARS)
            lines.append(f'{label} "{each.name}" in: {sentence}')
            lines += [f"  {other} {_line(*known[other])}" for other in likely[label]]
        fields: Any = {label: (one_of((*likely[label], NEW)), ...) for label in some}
        schema: type[BaseModel] = create_model("same_entities", __base__=_Reply, **fields)
        values = {"names": "\n".join(lines)}
        shown = {other for label in some for other in likely[label]}
        nodes = [entity for entity in entities if entity.id in shown]
        made_of = turns_of(draft.state, *nodes)
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
    embedder: Embedder,
    entities: Sequence[Entity],
    unknown: Mapping[str, Found],
    speakers: frozenset[str],
) -> dict[str, list[str]]:
    """For each label return the entities and earlier labels that its name may stand for."""
    labels, names = list(unknown), [each.name for each in unknown.values()]
    speaking = {entity.id for entity in entities if entity.keys & speakers}
    speaking |= {label for label, each in unknown.items() if each.key in speakers}
    candidates = await find_candidates(embedder, names, entities, reader.config.candidates)
    earlier = await find_similar_before(embedder, names, EARLIER)
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
    cosines = await compare(embedder, names, names)
    found: list[list[int]] = []
    for place, row in enumerate(cosines):
        before = [
            other
            for other in range(place)
            if stems[other] & stems[place] or row[other] > LEAST_SIMILARITY
        ]
        found.append(sorted(before, key=lambda other: (-float(row[other]), other))[:most])
    return found


async def compare(
    embedder: Embedder, texts: Sequence[str], others: Sequence[str]
) -> NDArray[np.float32]:
    """Return the cosines of some texts with others, shape (texts, others)."""

    def work() -> NDArray[np.float32]:
        cosines: NDArray[np.float32] = embedder.embed(texts) @ embedder.embed(others).T
        return cosines

    return await asyncio.to_thread(work)


def _rank(scores: NDArray[np.floating], above: float, most: int) -> list[Hit]:
    best = np.argsort(-scores, kind="stable")[:most]
    return [Hit(int(place), float(scores[place])) for place in best if scores[place] > above]


# Describing


async def describe_entities(
    reader: EpisodeReader, draft: Draft[Edit, State], ids: Sequence[str]
) -> None:
    """Describe entities by summary and tags, from the episode and what was known of them."""
    sentences, text = len(reader.passage.sentences), reader.passage.render_numbered()

    async def ask(some: Sequence[str]) -> Proposal[BaseModel]:
        entities = [draft.state.entities[each] for each in some]
        lines = [f"{entity.id} {_line(entity.name, entity.summary)}" for entity in entities]
        item = create_model("summary", __base__=_Summary, src=(number(1, sentences), ...))
        fields: Any = dict.fromkeys(some, (item, ...))
        schema: type[BaseModel] = create_model("summaries", __base__=_Reply, **fields)
        values = {"episode": text, "entities": "\n".join(lines)}
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


def _line(name: str, summary: str) -> str:
    return f"{name}: {clip(summary, SHOWN_CHARS)}" if summary else name
