"""The entities of an episode: matched with the known ones, and described.

Source: Mnemis §2.1. A name that an entity has already, in any spelling that ``entity_key`` levels,
is that entity and costs no call; but a common noun ("my sister") of another speaker may mean
another. For other names the model decides among likely entities: those that full-text search over
names and summaries finds, and those with a similar name by embeddings; both rankings are fused by
reciprocal rank. Ours is the least similarity, below which a name is no candidate: it spares the
model most of the questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, create_model

from mgl.llm.base import LLM
from mgl.llm.constraints import max_chars, number, one_of
from mgl.memories.mnemis.edits import AddEntity, Describe, EditDraft, Repeat, turns_of
from mgl.memories.mnemis.episodes import clip
from mgl.memories.mnemis.extract import BATCH, EpisodeReader, Part, StrictReply, compare, in_batches
from mgl.memories.mnemis.naming import Found, is_common
from mgl.memories.mnemis.prompts import SAME_ENTITIES, SUMMARIES
from mgl.memories.mnemis.state import Entity, Mention, State, key_of
from mgl.memories.propose import Proposal
from mgl.retrieval.base import Embedder, Hit
from mgl.retrieval.lexical import LexicalIndex, all_stems
from mgl.retrieval.ranking import fuse_hits
from mgl.types import Conversation

MOST_TAG_CHARS, SHOWN_CHARS = 40, 300
SUMMARY_CHARS, SUMMARY_TOKENS = 1000, 300
"""Of one description: its characters, at most, and the tokens of its reply."""

LEAST_SIMILARITY: Final = 0.5
"""Cosine of two names, above which they may mean the same."""

NEW: Final = "new"
EARLIER: Final = 2
"""Names of the same episode that a name is compared with, at most."""

_TAG_CHARS, _TAGS = 24, 3


class _Summary(StrictReply):
    src: int
    summary: Annotated[str, max_chars(SUMMARY_CHARS)]
    tags: Annotated[
        list[Annotated[str, max_chars(_TAG_CHARS)]], Field(min_length=1, max_length=_TAGS)
    ]


# Matching


async def match_names(
    reader: EpisodeReader, draft: EditDraft, found: Sequence[Found], speakers: frozenset[str]
) -> dict[str, Part]:
    """Put names into the state, as known entities or as new ones.

    Returns the ids of the episode's entities, each with the sentences that name it. ``speakers``
    are the keys of all who spoke so far: one of them is never another.
    """
    state = draft.state
    known = {f"n{place}": _find_known(reader, state, each) for place, each in enumerate(found, 1)}
    unknown = {f"n{place}": each for place, each in enumerate(found, 1) if not known[f"n{place}"]}
    matched = await _ask_matches(reader, draft, unknown, speakers)
    ids: dict[str, Part] = {}
    placed: dict[str, str] = {}
    for place, each in enumerate(found, 1):
        passage = reader.passage if each.recent is None else reader.recent[each.recent]
        number = reader.episode.number if each.recent is None else each.recent
        mention = Mention(number, passage.span(*each.at))
        label = f"n{place}"
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
        whole = 1, len(reader.passage.sentences)
        ids.setdefault(edit.id, each.at if each.recent is None else whole)
    return ids


def _find_known(reader: EpisodeReader, state: State, name: Found) -> str | None:
    """Return the entity that has a name; of a common noun, one that its speaker named so."""
    ids = state.lookups.entities.get(name.key, ())
    if not is_common(name.name) or not isinstance(reader.source, Conversation):
        return next(iter(ids), None)
    speaker = key_of(name.speaker)
    for each in ids:
        entity = state.entities[each]
        said = (_find_speaker(reader.source, mention) for mention in reversed(entity.mentions))
        if speaker in entity.keys or any(key_of(other) == speaker for other in said):
            return each
    return None


def _find_speaker(source: Conversation, mention: Mention) -> str:
    return source.turns[source.turns_at(mention.span)[0]].speaker


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
    likely = await _find_likely(reader, draft.state, unknown, speakers)

    async def ask(some: Sequence[str]) -> Proposal[BaseModel]:
        listed = []
        for label in some:
            each = unknown[label]
            passage = reader.passage if each.recent is None else reader.recent[each.recent]
            sentence = passage[each.at[0]]
            said = f"{sentence.speaker}: {sentence.quote}" if sentence.speaker else sentence.quote
            listed.append(f'{label} "{each.name}" in: {clip(said, SHOWN_CHARS)}')
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
    state: State,
    unknown: Mapping[str, Found],
    speakers: frozenset[str],
) -> dict[str, list[str]]:
    """For each label return the entities and earlier labels that its name may stand for."""
    entities = list(state.entities.values())
    labels, names = list(unknown), [each.name for each in unknown.values()]
    speaking = {entity.id for entity in entities if entity.keys & speakers}
    speaking |= {label for label, each in unknown.items() if each.key in speakers}
    candidates = await find_candidates(reader.embedder, names, entities, reader.config.candidates)
    earlier = await find_similar_before(reader.embedder, names, EARLIER)
    likely: dict[str, list[str]] = {}
    for label, among, before in zip(labels, candidates, earlier, strict=True):
        excluded = speaking if label in speaking else set()
        namesakes = state.lookups.entities.get(unknown[label].key, ())
        near = dict.fromkeys((*namesakes, *among, *(labels[b] for b in before)))
        kept = [each for each in near if each not in excluded]
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


def count_together(llm: LLM) -> int:
    """Return how many entities are described in one call."""
    return max(1, min(BATCH, llm.context_tokens // (4 * SUMMARY_TOKENS)))


async def describe_entities(reader: EpisodeReader, draft: EditDraft, ids: Sequence[str]) -> None:
    """Describe entities by summary and tags, from the episode and what was known of them."""
    sentences, text = len(reader.passage.sentences), reader.passage.render_numbered()

    async def ask(some: Sequence[str]) -> Proposal[BaseModel]:
        entities = [draft.state.entities[each] for each in some]
        lines = "\n".join(f"{each.id} {_line(each, SUMMARY_CHARS)}" for each in entities)
        item = create_model("summary", __base__=_Summary, src=(number(1, sentences), ...))
        fields: Any = dict.fromkeys(some, (item, ...))
        schema: type[BaseModel] = create_model("summaries", __base__=StrictReply, **fields)
        values = {"episode": text, "entities": lines}
        made_of = turns_of(draft.state, *entities)
        stage, tokens = "entity_summaries", SUMMARY_TOKENS * len(some)
        return await reader.ask(SUMMARIES, values, schema, stage, known=made_of, tokens=tokens)

    for proposal in await asyncio.gather(*map(ask, in_batches(ids, count_together(reader.llm)))):
        if proposal.reply is None:
            draft.fail(proposal.stage, proposal.problem)
            continue
        for identity, said in proposal.reply:
            entity = draft.state.entities[identity]
            line = clip(said.summary, SUMMARY_CHARS)
            tags = dict.fromkeys(clip(tag, MOST_TAG_CHARS) for tag in said.tags)
            draft.put(
                Describe(identity, line, tuple(tag for tag in tags if tag)),
                rejected=None if line else "empty",
                call_key=proposal.call_key,
                span=reader.passage.span(said.src),
                turns={*turns_of(draft.state, entity), *reader.episode.turns},
            )


def _line(entity: Entity, most: int = SHOWN_CHARS) -> str:
    summary = clip(entity.summary, most)
    return f"{entity.name}: {summary}" if summary else entity.name
