"""How an episode is read: the turns of a conversation, their sentences, and the calls about them.

Source: Mnemis §2.1, where an episode is a message: a turn.

The calls come in the paper's order: names, reflection, matching of names, summaries and tags
(``entities``), facts, reflection, matching of facts (``facts``). They show the episode with recent
ones as context; after a list the model is asked what it missed (reflection). A long episode is
asked about part by part. What a reply that stays invalid was to say is missing, and a row says so:
the episode is read again later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Final, TypeVar

from pydantic import BaseModel, create_model

from mgl.llm.base import LLM, Message
from mgl.llm.calls import note_shown_only
from mgl.llm.prompting import fit_texts
from mgl.memories.mnemis.config import REPLY_TOKENS, MnemisConfig
from mgl.memories.mnemis.edits import EditDraft
from mgl.memories.mnemis.state import Episode, MnemisState
from mgl.memories.propose import Proposal, StrictReply, propose
from mgl.prompt import Prompt, one_line
from mgl.text import sentence_spans
from mgl.types import Conversation, Span

RECENT: Final = 4
"""Episodes shown as context (§2.1); the number ours."""

LISTED: Final = 12
"""Names or facts in one reply, at most; ours."""

BATCH: Final = 12
"""Names, entities or facts that are decided in one call."""

PART: Final = 20
"""Sentences that a list is read off in one call."""

CONTEXT_CHARS: Final = 3000
"""Characters of context before a part, at most, whole lines."""

Part = tuple[int, int]
"""The numbers of the first and the last of some sentences."""

_NO_CONTEXT: Final = "(nothing)"
_REFLECTION: Final = "_reflection"
ItemT = TypeVar("ItemT")
SchemaT = TypeVar("SchemaT", bound=BaseModel)


# Episodes


def find_fresh(
    source: Conversation, state: MnemisState, forgotten: Collection[int] = ()
) -> list[Episode]:
    """Return the episodes of a conversation that a state lacks, in order.

    Turns that are in an episode, were ``forgotten`` or have no visible character make none.
    """
    turns, taken = source.turns, state.lookups.episodes
    fresh = (
        n
        for n in range(state.lookups.next_turn, len(turns))
        if n not in taken and n not in forgotten and turns[n].text.strip()
    )
    return [
        Episode(number, source.span(turn), (turn,), turns[turn].time)
        for number, turn in enumerate(fresh, state.counts.get("n", 0))
    ]


def render_episode(source: Conversation, episode: Episode) -> str:
    """Return what a model reads: each turn on a line, with speaker and time."""
    return "\n".join(
        f"{_head(source, number)}{one_line(source.turns[number].text)}" for number in episode.turns
    )


def clip(text: str, most: int) -> str:
    """Return a text that a model wrote on one line, of at most ``most`` characters."""
    return one_line(text.encode("utf-8", "replace").decode(), most)


def _head(source: Conversation, number: int) -> str:
    turn = source.turns[number]
    time = "" if turn.time is None else f"({turn.time:%A, %d %B %Y, %H:%M}) "
    return f"{time}{' '.join(turn.speaker.split())}: " if turn.speaker else time


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence on one line; ``head`` is what stands before the first one of its ``turn``."""

    span: Span
    quote: str
    speaker: str
    time: datetime | None
    head: str
    turn: int

    @property
    def line(self) -> str:
        """The sentence with its speaker."""
        return f"{self.speaker}: {self.quote}" if self.speaker else self.quote


@dataclass(frozen=True, slots=True)
class EpisodeSentences:
    """The sentences of episodes, numbered from 1; none spans two turns."""

    sentences: tuple[Sentence, ...]

    @classmethod
    def of(cls, source: Conversation, *episodes: Episode) -> EpisodeSentences:
        """Split episodes into sentences."""
        made: list[Sentence] = []
        for number in (turn for episode in episodes for turn in episode.turns):
            turn, begin = source.turns[number], source.span(number).start
            about = turn.speaker, turn.time, _head(source, number), number
            for start, end in sentence_spans(turn.text):
                place = Span(source.id, begin + start, begin + end)
                made.append(Sentence(place, one_line(turn.text[start:end]), *about))
        return cls(tuple(made))

    def __getitem__(self, number: int) -> Sentence:
        return self.sentences[number - 1]

    def __len__(self) -> int:
        return len(self.sentences)

    def at(self, span: Span) -> Sentence:
        """Return the sentence that has a span."""
        return next(each for each in self.sentences if each.span == span)

    def render(self, first: int = 1, last: int | None = None, form: str = "[{}] {}") -> str:
        """Return the sentences from ``first`` to ``last``, with ``[n]`` before each."""
        parts: list[str] = []
        for number in range(first, (last or len(self)) + 1):
            sentence = self[number]
            begins = number == first or sentence.turn != self[number - 1].turn
            before = ("\n" if parts else "") + sentence.head if begins else " "
            parts.append(before + form.format(number, sentence.quote))
        return "".join(parts)

    def span(self, first: int, last: int | None = None) -> Span:
        """Return the characters of a sentence, or from one to another."""
        return replace(self[first].span, end=self[last or first].span.end)


# Calls


@dataclass(frozen=True, slots=True)
class Decision:
    """A call that decides on some items, each under a label.

    ``shown_as`` is the prompt's variable for their lines, ``title`` the name of the reply's schema,
    ``tokens`` what an item takes of the reply, where that is not little.
    """

    prompt: Prompt
    shown_as: str
    title: str
    stage: str
    tokens: int | None = None

    def count_together(self, llm: LLM) -> int:
        """Return how many items are decided on in one call."""
        if self.tokens is None:
            return BATCH
        return max(1, min(BATCH, llm.context_tokens // (4 * self.tokens)))


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """What is decided: the ``lines`` that show it, the turns that these are made of, and the type
    of the ``answer``."""

    lines: Sequence[str]
    made_of: Sequence[int]
    answer: Any


class EpisodeReader:
    """Asks a model about ``episodes``: one that is read, or several that describe an entity again.

    ``passage`` has their sentences, ``recent`` the passages of the episodes before them, by number,
    and ``words`` is what all of them say, and who speaks in them, case-folded and without times.
    ``failures`` says how often the episode was read before and a call gave no reply that can be
    used: such a call is made once more, warm and with another seed. ``failed`` says whether one
    gave none this time.
    """

    def __init__(
        self,
        llm: LLM,
        config: MnemisConfig,
        source: Conversation,
        state: MnemisState,
        episodes: Sequence[Episode],
        failures: int = 0,
    ) -> None:
        self.llm = llm
        self.source = source
        self.episode = episodes[-1]
        earlier = (n for n in range(self.episode.number - 1, -1, -1) if n in state.episodes)
        recent = [state.episodes[n] for n in islice(earlier, RECENT)][::-1]
        self.passage = EpisodeSentences.of(source, *episodes)
        self.recent = {each.number: EpisodeSentences.of(source, each) for each in recent}
        self.config = config
        self.failed = False
        said = (each for p in (*self.recent.values(), self.passage) for each in p.sentences)
        self.words = "\n".join(f"{each.speaker}\n{each.quote}" for each in said).casefold()
        self._failures = failures
        self._context = [render_episode(source, each) for each in recent]
        self._turns = {turn for each in (*recent, *episodes) for turn in each.turns}

    @property
    def parts(self) -> list[Part]:
        """The sentences, in parts that are asked about one by one."""
        return [(some[0], some[-1]) for some in in_batches(range(1, len(self.passage) + 1), PART)]

    async def decide(
        self, draft: EditDraft, decision: Decision, items: Mapping[str, LabelledItem], **values: str
    ) -> dict[str, tuple[Any, str | None]]:
        """Decide on items by their labels; returns each answer with the key of its call.

        ``values`` are further variables of the prompt. The draft notes replies that cannot be used.
        Raises what ``propose`` raises.
        """

        async def ask(labels: Sequence[str]) -> Proposal[BaseModel]:
            fields: Any = {label: (items[label].answer, ...) for label in labels}
            schema: type[BaseModel] = create_model(decision.title, __base__=StrictReply, **fields)
            lines = (line for label in labels for line in items[label].lines)
            shown = {**values, decision.shown_as: "\n".join(lines)}
            known = (turn for label in labels for turn in items[label].made_of)
            tokens = REPLY_TOKENS if decision.tokens is None else decision.tokens * len(labels)
            rendered = await self._render(decision.prompt, shown, reserve=tokens)
            messages = [Message("user", rendered)]
            return await self._propose(messages, schema, decision.stage, known, tokens)

        batches = in_batches(list(items), decision.count_together(self.llm))
        usable = find_usable(draft, await asyncio.gather(*map(ask, batches)))
        return {label: (said, call_key) for reply, call_key in usable for label, said in reply}

    async def ask_list(
        self,
        prompts: tuple[Prompt, Prompt],
        part: Part,
        schema: type[SchemaT],
        stage: str,
        *,
        known: Iterable[int] = (),
        **values: str,
    ) -> list[Proposal[SchemaT]]:
        """Ask for a list from a part of the episode, then for what it lacks (the second prompt)."""
        prompt, reflection = prompts
        calls = 1 + self.config.reflect
        shown = {"recent": self._before(part[0]), "episode": self.passage.render(*part), **values}
        reserve = (2 * calls - 1) * REPLY_TOKENS
        messages = [Message("user", await self._render(prompt, shown, reserve=reserve))]
        proposals: list[Proposal[SchemaT]] = []
        for again in range(calls):
            made = await self._propose(messages, schema, stage + _REFLECTION * again, known)
            proposals.append(made)
            if made.reply is None:
                break
            messages += [Message("assistant", made.text), Message("user", reflection.text)]
        return proposals

    async def _render(self, prompt: Prompt, values: Mapping[str, str], *, reserve: int) -> str:
        texts = await fit_texts(self.llm, list(values.values()), reserve=reserve)
        return prompt.render(**dict(zip(values, texts, strict=True)))

    def _before(self, first: int) -> str:
        """Return what precedes a sentence: recent episodes, and the beginning of this one."""
        start, size = first, 0
        while start > 1 and size <= CONTEXT_CHARS:  # what is before that is not shown
            start -= 1
            size += len(self.passage[start].quote)
        own = [self.passage.render(start, first - 1, "{1}")] if first > 1 else []
        kept: list[str] = []
        room = CONTEXT_CHARS
        for line in reversed("\n".join((*self._context, *own)).splitlines()):
            room -= len(line)
            if room < 0:
                break
            kept.append(line)
        return "\n".join(reversed(kept)) or _NO_CONTEXT

    async def _propose(
        self,
        messages: Sequence[Message],
        schema: type[SchemaT],
        stage: str,
        known: Iterable[int],
        tokens: int = REPLY_TOKENS,
    ) -> Proposal[SchemaT]:
        sampling, failures = self.config.make_sampling(tokens), self._failures
        with note_shown_only(self._turns.union(known)):
            made = await propose(
                self.llm, messages, schema, sampling=sampling, stage=stage, failures=failures
            )
        self.failed = self.failed or made.reply is None
        return made


def find_usable(
    draft: EditDraft, proposals: Iterable[Proposal[SchemaT]]
) -> Iterator[tuple[SchemaT, str | None]]:
    """Yield each reply that can be used with the key of its call; the draft notes the others."""
    for proposal in proposals:
        if proposal.reply is None:
            draft.fail(proposal.stage, proposal.problem)
        else:
            yield proposal.reply, proposal.call_key


def in_batches(items: Sequence[ItemT], size: int = BATCH) -> list[Sequence[ItemT]]:
    """Split items into runs of at most ``size``."""
    return [items[first : first + size] for first in range(0, len(items), size)]
