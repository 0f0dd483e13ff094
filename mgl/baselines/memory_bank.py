"""MemoryBank: pairs of turns by day, a summary and a portrait of each day, and of all days.

Source: Zhong et al. 2023 (arXiv 2305.10250), §2, and its released code for the numbers. A session
is a day. Two calls a day write what happened and what it shows of the speakers; two more write the
whole history and the whole portrait from these. Pairs and summaries of days are searched by vector.
The three best are read, six with forgetting, each with pairs beside it up to 200 characters, in the
order of time, below history and portrait. The prompts are ours.

``forgetting`` drops a piece at random with 1 - R, where R = exp(-t / S) (§2.3): t is the days until
the last session, and S = 1, since a question changes nothing here. The released code computes
exp(-t / 5 · S), by which a stronger memory is forgotten sooner. Unlike that code, the last turn of
a day with an odd number of turns is kept, and calls are made at temperature 0.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Final

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt, Notes, StepNote, judge, keep_notes
from mgl.llm.prompting import fit_texts
from mgl.memories.calls import WrittenNote, summarize
from mgl.memories.log import Draft
from mgl.prompt import Prompt
from mgl.retrieval.ranking import nearest
from mgl.text.times import find_gap
from mgl.types import Answer, Question, Span

NOTE_TOKENS = 400
BESIDE_CHARS = 200
BEST = 3
BEST_FORGETTING = 6

EVENTS = Prompt(
    "memory-bank.events",
    source="ours, in the role of Zhong et al. 2023, §2.1",
    text="""Summarize what was told in this conversation: who did, has or plans what, and when.

{text}

{"notes": "..."}""",
    variables=("text",),
)

TRAITS = Prompt(
    "memory-bank.traits",
    source="ours, in the role of Zhong et al. 2023, §2.1",
    text="""Describe each speaker of this conversation: their character, feelings, likes and \
needs, as far as the conversation shows them.

{text}

{"notes": "..."}""",
    variables=("text",),
)

HISTORY = Prompt(
    "memory-bank.history",
    source="ours, in the role of Zhong et al. 2023, §2.1",
    text="""These are summaries of conversations, one a day. Write one summary of them all, with \
the most important events.

{text}

{"notes": "..."}""",
    variables=("text",),
)

PORTRAIT = Prompt(
    "memory-bank.portrait",
    source="ours, in the role of Zhong et al. 2023, §2.1",
    text="""These are descriptions of the same speakers, one a day. Write one description of each \
speaker from them.

{text}

{"notes": "..."}""",
    variables=("text",),
)

DAILY = {"events": EVENTS, "traits": TRAITS}
OVERALL = {"history": (HISTORY, "events"), "portrait": (PORTRAIT, "traits")}


class MemoryBankConfig(BaselineConfig):
    """``forgetting`` lets old pieces be forgotten at random, drawn by ``seed``."""

    forgetting: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class MemoryPiece:
    """A pair of turns, or the summary of a day, which is said without a span."""

    day: int
    text: str
    span: Span | None


class DayEvents(StepNote):
    """What happened on a day."""


class DayTraits(StepNote):
    """What a day shows of the speakers."""


class WholeHistory(StepNote):
    """What happened on all days."""


class WholePortrait(StepNote):
    """What all days show of the speakers."""


NAMED: Final = {
    "events": DayEvents,
    "traits": DayTraits,
    "history": WholeHistory,
    "portrait": WholePortrait,
}


class MemoryBank(Baseline[Notes]):
    """Keeps pairs of turns by day, with summaries and portraits of days and of all."""

    kind = "memory-bank"
    reads = "conversation"
    retrieves = True
    vocabulary = keep_notes(NAMED)
    Config = MemoryBankConfig
    _config: MemoryBankConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (*DAILY.values(), *(prompt for prompt, _ in OVERALL.values()))

    async def _count_steps(self) -> int:
        return len(self._sessions()) + 1

    async def _read(self) -> None:
        days = self._sessions()

        async def describe(draft: Draft[Any, Notes], step: int) -> None:
            span = self._span_of(days[step])
            with self._note_shown([span]):
                for name, prompt in DAILY.items():
                    note = await self._summarize(prompt, [self._quote(span)])
                    draft.put(NAMED[name](step, span, note.text), **judge(note))

        await self._fill("days", 0, len(days), describe)
        if days and len(days) not in self._tools.store.chunks_done(self.id):
            kept, draft = self.state, self._log.draft(len(days))
            whole = self._span_of([days[0][0], days[-1][-1]])
            for name, (prompt, part) in OVERALL.items():
                note = await self._summarize(prompt, [*kept.find(part).values()])
                draft.put(NAMED[name](draft.step, whole, note.text), **judge(note))
            self._write(draft)

    async def _summarize(self, prompt: Prompt, texts: Sequence[str]) -> WrittenNote:
        if not texts:
            return WrittenNote("", problem="there is nothing to summarize")
        llm = self._tools.llm
        fitting = await fit_texts(llm, texts, reserve=2 * NOTE_TOKENS)
        text = "\n\n".join(fitting)
        return await summarize(llm, prompt.render(text=text), NOTE_TOKENS, stage=prompt.name)

    def _pieces(self) -> list[MemoryPiece]:
        """Pairs and summaries of days, as they are searched."""
        pieces = []
        for day, numbers in enumerate(self._sessions()):
            for start in range(0, len(numbers), 2):
                span = self._span_of(numbers[start : start + 2])
                pieces.append(MemoryPiece(day, self._quote(span), span))
        events = self.state.find("events").items()
        return [*pieces, *(MemoryPiece(day, text, None) for day, text in events)]

    async def _respond(self, question: Question) -> Answer:
        """Marked ``days_missing`` where a day could not be summarized."""
        pieces = self._pieces()
        kept = [place for place in range(len(pieces)) if self._remembers(pieces, place)]
        texts = {place: pieces[place].text for place in kept}
        most = BEST_FORGETTING if self._config.forgetting else BEST
        found = await nearest(self._tools.required_embedder, question.text, texts, most)
        read = sorted({place for at, _ in found for place in _widen(pieces, at)})
        read.sort(key=lambda place: pieces[place].day)
        notes = self.state
        about = [Excerpt(text) for name in OVERALL for text in notes.find(name).values()]
        chosen = [Excerpt(pieces[at].text, f"piece-{at}", pieces[at].span) for at in read]
        spans = [pieces[place].span for place, _ in found]
        failed = len(notes.find("events")) < len(self._sessions())
        return await self._answer(
            question,
            [*about, *chosen],
            read=[span for span in spans if span is not None],
            marks=("days_missing",) if failed else (),
        )

    def _remembers(self, pieces: Sequence[MemoryPiece], place: int) -> bool:
        """Whether a piece is not forgotten by the day of the last session."""
        if not self._config.forgetting:
            return True
        turns, days = self.conversation.turns, self._sessions()
        then, now = turns[days[pieces[place].day][0]].time, turns[days[-1][0]].time
        if then is None or now is None:
            return True
        chance = random.Random(f"{self._config.seed} {place}").random()
        return chance < exp(-find_gap(then, now).days)


def _widen(pieces: Sequence[MemoryPiece], place: int) -> list[int]:
    """A piece, and pairs beside it of the same day as long as they have 200 characters together."""
    chosen, size = [place], len(pieces[place].text)
    if pieces[place].span is None:
        return chosen
    for distance in range(1, len(pieces)):
        beside = [at for at in (place + distance, place - distance) if 0 <= at < len(pieces)]
        same = [at for at in beside if pieces[at].day == pieces[place].day and pieces[at].span]
        if not same:
            break
        for at in same:
            size += len(pieces[at].text)
            if size > BESIDE_CHARS:
                return chosen
            chosen.append(at)
    return chosen
