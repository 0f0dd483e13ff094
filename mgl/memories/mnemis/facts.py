"""The facts of an episode: stated between two of its entities, dated, and matched with known ones.

Source: Mnemis §2.1, which de-duplicates edges as it does entities. Times are given in words and
resolved against the time of the turn that states the fact. That the model decides among the known
facts that are most similar by embeddings, those of the same two entities and any others, and that
a contradicted fact is closed with the time of the new one and kept, is our reading (Graphiti's
way). A fact that repeats one that holds letter for letter costs no call, nor does one that none is
similar to.

The model says what contradicts what; times decide which of two facts ended. A fact without a begin
holds when it is stated. The one that holds later closes the other: "in 2016 I lived in Paris" is
itself ended by "I live in Rome", said in 2023. A repetition brings the times that it states. An
ended fact cannot be repeated by what holds after its end: who moves back states a new fact.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from typing import Annotated, Any, Final

from pydantic import Field, create_model

from mgl.llm.constraints import max_chars, number, one_of, several
from mgl.memories.graph.names import entity_key, has_key, level
from mgl.memories.mnemis.edits import AddFact, Close, EditDraft, Repeat, turns_of
from mgl.memories.mnemis.index import Index
from mgl.memories.mnemis.prompts import FACTS, MORE_FACTS, SAME_FACTS
from mgl.memories.mnemis.reading import (
    LISTED,
    Decision,
    EpisodeReader,
    LabelledItem,
    Part,
    clip,
    find_usable,
    in_batches,
)
from mgl.memories.mnemis.state import Entity, Fact, Mention, MnemisState, key_of
from mgl.memories.propose import Proposal, StrictReply
from mgl.text.times import time_mentions

ENTITIES: Final = 40
"""Entities that a list of facts is asked for at a time."""

MOST_CHARS, SHOWN_CHARS, ALIASES = 500, 200, 4
CANDIDATES: Final = 5
"""Known facts of the same entities, and of others, that a new one is held against; ours."""

NONE: Final = "none"

_FACT_CHARS, _TIME_CHARS, _WORDS_CHARS = 200, 40, 200
_NO_TIME: Final = frozenset({"", "none", "null", "n/a", "na", "unknown", "not stated", "..."})
_YEAR: Final = re.compile(r"\d{4}")
_Time = Annotated[str, max_chars(_TIME_CHARS)] | None


_MATCHING: Final = Decision(SAME_FACTS, "facts", "same_facts", "edge_deduplication")


class _SaidFact(StrictReply):
    src: int
    source: str
    target: str
    fact: Annotated[str, max_chars(_FACT_CHARS)]
    valid_at: _Time = None
    invalid_at: _Time = None


class _Facts(StrictReply):
    facts: list[_SaidFact]


class _Same(StrictReply):
    same: str
    contradicts: list[str]


@dataclass(frozen=True, slots=True)
class Stated:
    """A fact that an episode states between two entities, by their ids, at ``said_at``.

    ``valid_at`` is the first day that the words for its begin speak of, ``begun_by`` the last.
    """

    source: str
    target: str
    text: str
    mention: Mention
    said_at: datetime | None = None
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    begun_by: datetime | None = None
    repaired: str | None = None
    call_key: str | None = None

    @property
    def ends(self) -> frozenset[str]:
        return frozenset((self.source, self.target))

    def edit(self, identity: str) -> AddFact:
        """Return the edit that adds it under an id."""
        times = self.valid_at, self.invalid_at
        return AddFact(identity, self.source, self.target, self.text, self.mention, *times)


# Stating


async def find_facts(
    reader: EpisodeReader, draft: EditDraft, ids: Mapping[str, Part]
) -> list[Stated]:
    """Ask for the facts of an episode; ``ids`` are its entities and where they are named."""
    entities = [draft.state.entities[each] for each in ids]
    keyed = [(each, each.keys, entity_key(each.name)) for each in entities]
    asked = [(part, some) for part in reader.parts for some in _group(reader, part, keyed, ids)]
    replies = await asyncio.gather(
        *(_ask_facts(reader, part, some, turns_of(draft.state, *some)) for part, some in asked)
    )
    found: dict[tuple[frozenset[str], str], Stated] = {}
    for (_, some), proposals in zip(asked, replies, strict=True):
        by_name = {entity.name: entity.id for entity in some}
        for reply, call_key in find_usable(draft, proposals):
            for item in reply.facts:
                fact = Stated(
                    by_name[item.source],
                    by_name[item.target],
                    clip(item.fact, MOST_CHARS),
                    Mention(reader.episode.number, reader.passage.span(item.src)),
                    reader.passage[item.src].time,
                    call_key=call_key,
                )
                if fact.text and len(fact.ends) == 2:
                    found.setdefault((fact.ends, fact.text.casefold()), _date(fact, item))
                else:
                    reason = "same_ends" if fact.text else "empty"
                    draft.put(fact.edit(""), rejected=reason, call_key=call_key)
    return list(found.values())


async def _ask_facts(
    reader: EpisodeReader, part: Part, entities: Sequence[Entity], known: Sequence[int]
) -> list[Proposal[_Facts]]:
    listed = "\n".join(f"- {_line(entity)}" for entity in entities)
    end = one_of([entity.name for entity in entities])
    fields: Any = {"src": (number(*part), ...), "source": (end, ...), "target": (end, ...)}
    item = create_model("fact", __base__=_SaidFact, **fields)
    facts = several(item, LISTED)
    schema = create_model("facts", __base__=_Facts, facts=(facts, ...))
    prompts = FACTS, MORE_FACTS
    return await reader.ask_list(prompts, part, schema, "edges", known=known, entities=listed)


def _line(entity: Entity) -> str:
    name, *others = entity.names[:ALIASES]
    known = f"{name} ({', '.join(others)})" if others else name
    return f"{known}: {clip(entity.summary, SHOWN_CHARS)}" if entity.summary else known


def _group(
    reader: EpisodeReader,
    part: Part,
    keyed: Sequence[tuple[Entity, frozenset[str], str]],
    ids: Mapping[str, Part],
) -> Iterator[list[Entity]]:
    """Yield the entities that a part may join: its speakers with some of those that it names.

    ``keyed`` are entities with all their keys, and that of the name which is shown.
    """
    first, last = part
    passage = reader.passage
    speakers = {key_of(each.speaker) for each in passage.sentences[first - 1 : last]}
    speaking = [entity for entity, keys, _ in keyed if keys & speakers]
    text = level(passage.render(first, last))

    def is_named(entity: Entity, key: str) -> bool:
        begin, end = ids[entity.id]
        return (begin <= last and first <= end) or has_key(text, key)

    others = [
        entity for entity, keys, key in keyed if not keys & speakers and is_named(entity, key)
    ]
    for some in in_batches(others, ENTITIES) or [[]]:
        if len(speaking) + len(some) > 1:
            yield [*speaking, *some]


# Dating


def parse_moment(said: str, at: datetime | None, *, end: bool = False) -> datetime | None:
    """Return the first day that words speak of (the last with ``end``); None if unreadable.

    ``at`` is when they were said; the result is in its zone, if it has one.

    >>> parse_moment("last week", datetime(2023, 5, 8, 13, 56))
    datetime.datetime(2023, 5, 1, 0, 0)
    >>> parse_moment("31 February 2023", None) is None
    True
    """
    words = said.strip()[:_WORDS_CHARS]
    zone = None if at is None else at.tzinfo
    if _YEAR.fullmatch(words):
        words = f"in {words}"
    found = time_mentions(words, at)
    if found:
        day = found[0].until if end else found[0].begin
        return datetime.combine(day, time(), zone)
    try:
        read = datetime.fromisoformat(words)
    except ValueError:
        return None
    return read if read.tzinfo is not None else read.replace(tzinfo=zone)


def _date(fact: Stated, item: _SaidFact) -> Stated:
    """Return a fact with its times; those that cannot be read, or are out of order, are dropped."""
    begin, is_begin_lost = _parse(item.valid_at, fact.said_at)
    end, is_end_lost = _parse(item.invalid_at, fact.said_at, end=True)
    if begin is not None and end is not None and _clock(end) < _clock(begin):
        end, is_end_lost = None, True
    repaired = "time_dropped" if is_begin_lost or is_end_lost else None
    begun_by, _ = _parse(item.valid_at, fact.said_at, end=True)
    return replace(fact, valid_at=begin, invalid_at=end, begun_by=begun_by, repaired=repaired)


def _parse(
    said: str | None, at: datetime | None, *, end: bool = False
) -> tuple[datetime | None, bool]:
    """Return the moment that words give, and whether they give one that cannot be read."""
    if said is None or said.strip().strip(".").casefold() in _NO_TIME:
        return None, False
    moment = parse_moment(said, at, end=end)
    return moment, moment is None


def _clock(time: datetime) -> datetime:
    """Return a time as it is compared: one source may have times with a zone and without."""
    return time.replace(tzinfo=None)


# Matching


async def match_facts(
    reader: EpisodeReader, draft: EditDraft, index: Index, stated: Sequence[Stated]
) -> None:
    """Put facts into the state, as known ones, or as new ones that close others."""
    state = draft.state
    labelled = {f"n{place}": fact for place, fact in enumerate(stated, 1)}
    verdicts: dict[str, tuple[_Same, str | None]] = {}
    for label, fact in labelled.items():
        for known in _find_repeatable(state, fact):
            if known.text.casefold() == fact.text.casefold():
                same = _Same(same=known.id, contradicts=[])
                verdicts.setdefault(label, (same, fact.call_key))
    open_facts = {each: fact for each, fact in labelled.items() if each not in verdicts}
    own = [[each.id for each in state.facts_between(fact.ends)] for fact in open_facts.values()]
    texts = [fact.text for fact in open_facts.values()]
    near = await asyncio.to_thread(index.find_facts, texts, own, CANDIDATES)
    items: dict[str, LabelledItem] = {}
    for (label, fact), ids in zip(open_facts.items(), near, strict=True):
        if rivals := [state.facts[each] for each in ids if each in state.facts]:
            answer = _same_schema(_find_repeatable(state, fact), rivals)
            lines = [*_show(state, label, fact, rivals)]
            items[label] = LabelledItem(lines, turns_of(state, *rivals), answer)
    verdicts |= await reader.decide(draft, _MATCHING, items)
    for label, fact in labelled.items():
        _put(draft, fact, *verdicts.get(label, (_Same(same=NONE, contradicts=[]), None)))


def _find_repeatable(state: MnemisState, fact: Stated) -> list[Fact]:
    """Return the known facts of the same two entities whose period lets this one repeat them."""
    return [each for each in state.facts_between(fact.ends) if _may_repeat(state, fact, each)]


def _may_repeat(state: MnemisState, fact: Stated, known: Fact) -> bool:
    """Whether neither of two facts is over before the other one holds."""
    begin, end = state.period(known)
    if fact.invalid_at is not None and _is_before(fact.invalid_at, begin):
        return False
    if end is None:
        return True
    if fact.valid_at is None and fact.invalid_at is not None:
        return not _is_before(end, fact.invalid_at)
    return _is_before(fact.valid_at or fact.said_at, end)


def _is_before(one: datetime | None, other: datetime | None) -> bool:
    """Whether both times are known and the first is the earlier one."""
    return one is not None and other is not None and _clock(one) < _clock(other)


def _same_schema(repeatable: Sequence[Fact], rivals: Sequence[Fact]) -> type[_Same]:
    """Build the schema of what is said of a fact that may repeat or contradict its rivals."""
    alike = [each.id for each in rivals if each in repeatable]
    rival: Any = one_of([each.id for each in rivals])
    ended: Any = Annotated[list[rival], Field(max_length=len(rivals))]
    own: Any = {"same": (one_of((*alike, NONE)), ...), "contradicts": (ended, ...)}
    return create_model("same", __base__=_Same, **own)


def _put(draft: EditDraft, fact: Stated, verdict: _Same, call_key: str | None) -> None:
    """Add or repeat a fact; of it and each that it contradicts, close the earlier one."""
    others = [each for each in dict.fromkeys(verdict.contradicts) if each != verdict.same]
    known = [draft.state.facts[each] for each in others]
    ends = {each.id: _find_end(draft.state, fact, each) for each in known}
    if verdict.same != NONE:
        draft.put(_repeat(draft.state, draft.state.facts[verdict.same], fact), call_key=call_key)
    else:
        first = min((end for end in ends.values() if end is not None), key=_clock, default=None)
        if first is not None and fact.invalid_at is None:
            fact = replace(fact, invalid_at=first, repaired=fact.repaired or "ended_by_later")
        new = fact.edit(draft.state.next_id("f"))
        draft.put(new, repaired=fact.repaired, call_key=fact.call_key)
    for each in known:
        if ends[each.id] is None:
            _close(draft, each, fact, call_key)


def _repeat(state: MnemisState, known: Fact, by: Stated) -> Repeat:
    """Return a repetition with the times that were not known and that fit what was."""
    begin = end = None
    if known.valid_at is None and not _is_before(state.period(known)[0], by.valid_at):
        begin = by.valid_at
    if known.invalid_at is None and not _is_before(by.invalid_at, begin or known.valid_at):
        end = by.invalid_at
    return Repeat(known.id, by.mention, valid_at=begin, invalid_at=end)


def _find_end(state: MnemisState, fact: Stated, known: Fact) -> datetime | None:
    """Return when a known fact that a new one contradicts began, if the new one held before.

    A known begin is compared with the first day of the new one's. A fact without one held when it
    was stated: a new one that began on some day up to then, such as "last month", is the later one.
    """
    begin = state.period(known)[0]
    held = fact.valid_at if known.valid_at is not None else fact.begun_by or fact.said_at
    return begin if _is_before(held, begin) else None


def _close(draft: EditDraft, known: Fact, by: Stated, call_key: str | None) -> None:
    """Close a fact when what contradicts it began, or else was said to hold, or ended."""
    said = by.said_at
    end = by.valid_at or (
        by.invalid_at if said is None or _is_before(by.invalid_at, said) else said
    )
    if end is None:
        draft.fail(f"close {known.id}", "no time is known", reason="no_time")
        return
    begin = draft.state.period(known)[0]
    if begin is not None and _is_before(end, begin):
        end = begin
    if known.invalid_at is None or _clock(end) < _clock(known.invalid_at):
        draft.put(Close(known.id, end), call_key=call_key, span=by.mention.span)


def _show(state: MnemisState, label: str, fact: Stated, rivals: Sequence[Fact]) -> Iterator[str]:
    times = fact.valid_at or fact.said_at, fact.invalid_at
    yield f"{label} {fact.text}{render_period(*times)}"
    for each in rivals:
        yield f"  {each.id} {each.text}{render_period(*state.period(each))}"


def render_period(begin: datetime | None, end: datetime | None) -> str:
    """Return from when to when a fact holds, as Appendix B shows it: " (2023-06-17 - now)".

    "" where neither is known.
    """
    if begin is None and end is None:
        return ""
    first = f"{begin:%Y-%m-%d}" if begin else "date unknown"
    return f" ({first} - {end:%Y-%m-%d})" if end else f" ({first} - now)"
