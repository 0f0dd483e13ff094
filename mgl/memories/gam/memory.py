"""GAM as a memory: one conversation that it takes in turn by turn and is asked about in between.

    memory = Gam(tools, Conversation.from_name("diary"))
    await memory.append(Turn("1", "Ann", "I have got the job!"))
    answer = await memory.answer(Question("Did Ann get the job?"))

Each turn is a step of the log, and so is each consolidation: a process killed at any moment leaves
the buffer or the topics, never half of one, and the next one does what was due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, ClassVar

from mgl.llm.calls import note_made_of
from mgl.memories.base import Tools
from mgl.memories.deletion import Target
from mgl.memories.gam.boundaries import CONTEXT_TURNS, Trigger, find_cut, next_trigger
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.consolidate import Consolidator
from mgl.memories.gam.control import (
    choose,
    freeze_topic,
    merge_topics,
    rewrite_topic,
    unlink_topics,
)
from mgl.memories.gam.prompts import BOUNDARIES, CUES, RELATION, SUMMARY
from mgl.memories.gam.reading import Reader, RetrievedEvents, find_judge
from mgl.memories.gam.search import Search
from mgl.memories.gam.state import (
    VOCABULARY,
    Append,
    Consolidate,
    Edit,
    ForgetTurns,
    GamState,
    MarkEvents,
    MergeTopics,
    Miss,
    Part,
    Rewrite,
    Topic,
)
from mgl.memories.log import Log
from mgl.memories.talk import Change, Recall, TalkMemory, check_turns, to_plain
from mgl.memories.view import GraphView, MemorySize, ViewEdge, ViewNode
from mgl.prompt import Prompt, one_line
from mgl.retrieval.shifts import ShiftDetector
from mgl.store.deletion import MASK, Gone, Redaction, mask_text
from mgl.text.sentences import sentence_spans
from mgl.types import Answer, Conversation, Question, Source, Turn

LABEL_CHARACTERS = 60


# Forgetting


def find_private_parts(turns: Mapping[int, Turn]) -> Redaction:
    """Find what to mask in turns (``mgl.text.private``), and turns to delete as left empty."""
    from mgl.text.private import find_private

    forgotten: set[int] = set()
    parts: dict[int, tuple[tuple[int, int], ...]] = {}
    for number, turn in turns.items():
        ranges = tuple(find_private(turn.text))
        left = mask_text(turn.text, ranges)
        if left == turn.text:
            continue
        if left.replace(MASK, "").strip():
            parts[number] = ranges
        else:
            forgotten.add(number)
    return Redaction(frozenset(forgotten), parts)


class GamRedactor:
    """How a log of GAM loses its words (``mgl.memories.deletion``): a topic keeps its numbers.

    Replayed, the rows lead to the state that the deletion, which names turns alone, leads to.
    """

    def __init__(self, gone: Gone, before: GamState) -> None:
        self._gone = gone
        self._before = before

    def redact(self, edit: Edit) -> Edit | None:
        """The edit without words; None for one that has nothing else."""
        match edit:
            case Consolidate(topic) | MergeTopics(topic=topic):
                known = topic.marks.items()
                marks = {turn: mark for turn, mark in known if turn not in self._gone.turns}
                topic = replace(topic, summary="", keywords=(), marks=marks)
                return replace(edit, topic=topic)
            case Rewrite():
                return None
            case MarkEvents(_, marks):
                left = {turn: mark for turn, mark in marks.items() if turn not in self._gone.turns}
                return replace(edit, marks=left)
        return edit

    def restore(self, left: Sequence[Edit], after: GamState) -> list[Edit]:
        """The edit that says which turns were deleted and masked."""
        del left
        what = self._gone.what
        stale = [
            name
            for name, topic in self._before.topics.items()
            if topic.summary and name in after.topics and not after.topics[name].summary
            if what.turns.isdisjoint(topic.turns)
        ]
        return [
            ForgetTurns(tuple(sorted(what.forgotten)), tuple(stale), tuple(sorted(what.masked)))
        ]


# The memory


class Gam(TalkMemory[GamConfig, Edit, GamState]):
    """Groups the events of a conversation into linked topics."""

    kind = "gam"
    retrieves = True
    writes_topics: ClassVar[bool] = True
    """Whether the model writes the topics' summaries and says how topics are related."""
    Config: ClassVar[type[GamConfig]] = GamConfig
    search_type: ClassVar[type[Search]] = Search
    reader_type: ClassVar[type[Reader]] = Reader
    consolidator_type: ClassVar[type[Consolidator]] = Consolidator
    vocabulary = VOCABULARY
    Redactor = GamRedactor

    def __init__(
        self,
        tools: Tools,
        source: Source,
        questions: Sequence[Question] = (),
        config: GamConfig | None = None,
        *,
        identity: str | None = None,
    ) -> None:
        super().__init__(tools, source, questions, config, identity=identity)
        assert isinstance(source, Conversation)
        check_turns(source.turns)
        self._masked_to = 0
        self._quiet: tuple[int, ...] = ()
        self._counts: dict[str, int] = {}
        self._searches: tuple[int, Search] | None = None

    def _scope(self) -> dict[str, str]:
        return {"conversation": self._source.id}

    def _writing_prompts(self) -> Sequence[Prompt]:
        config = self._config
        asked = {
            BOUNDARIES: config.cut_by == "semantic" and config.detector is None,
            SUMMARY: self.writes_topics,
            RELATION: self.writes_topics and config.without != "tan",
            CUES: config.indicators == "prompt",
        }
        return [prompt for prompt, is_asked in asked.items() if is_asked]

    @property
    def _asks_judge(self) -> bool:
        """Whether a reranker gives P_sem."""
        return self._config.without != "mfr"

    # Writing

    async def flush(self) -> None:
        """The stream has ended: consolidate what the buffer holds."""
        async with self._writer() as log:
            await self._settle(ended=True)
            if log.state.buffer:
                await self._consolidate(Trigger("flush", log.state.buffer))

    async def end_session(self) -> None:
        async with self._writer() as log:
            await self._settle(ended=True)
            state = log.state
            if state.buffer and state.checked < state.buffer[-1]:
                await self._consolidate(Trigger("session_end", state.buffer))

    async def _settle(self, *, ended: bool) -> None:
        """Append the turns that the log lacks, and after each consolidate what is due."""
        del ended  # a buffer waits for its trigger either way
        if self._asks_judge:
            find_judge(self._tools)  # before anything is spent on what cannot be read
        log = self._log
        await self._consolidate_due()
        total = len(log.turns)
        while log.state.turns < total:
            self._append_next()
            self._tools.observer.progress("turns", log.state.turns, total)
            await self._consolidate_due()

    def _follow(self) -> None:
        while self._log.state.turns < len(self._log.turns):
            self._append_next()

    def _append_next(self) -> None:
        """Append the next turn that the conversation has; forget it where it was deleted before."""
        log, draft = self._log, self._log.draft()
        number = log.state.turns
        draft.put(Append(number))
        if number in log.forgotten and number not in log.state.forgotten:
            draft.put(ForgetTurns((number,)))
        log.write(draft)

    async def _consolidate_due(self) -> None:
        log = self._log
        while waiting := log.state.waiting:
            await self._renew(log.state.topics[waiting[0]], "summary")
        while trigger := await self._find_trigger():
            await self._consolidate(trigger)

    async def retry_failed(self) -> None:
        """Build, then ask once more for each summary and each topic's cues that no reply gave."""
        await self.build()
        async with self._writer() as log:
            missed = dict.fromkeys(log.state.missed)
            self._tools.observer.note(f"{len(missed)} parts of topics are asked for again")
            for miss in missed:
                while not await self._retry(miss):
                    pass

    async def _retry(self, miss: Miss) -> bool:
        """Ask once more for a part of a topic, if it is still missing; False as ``_renew``."""
        state = self._log.state
        topic, time = state.topics.get(miss.topic), state.missed.count(miss)
        if topic is None or topic.frozen or not time:
            return True
        return await self._renew(topic, miss.part, time)

    async def _renew(self, topic: Topic, part: Part, time: int = 0) -> bool:
        """Ask for a part of a topic; False where another process wrote meanwhile.

        ``time`` counts earlier failures.
        """
        log, consolidator = self._log, self._consolidator()
        renew = consolidator.renew_summary if part == "summary" else consolidator.renew_cues
        with log.note_shown(topic.turns):
            draft = log.draft()
            await renew(draft, topic, time)
            return log.write(draft)

    async def _find_trigger(self) -> Trigger | None:
        log = self._log
        state, turns, quiet = log.state, log.turns, self._quiet
        found = await next_trigger(state, turns, self._config, self._count_tokens, quiet=quiet)
        if found is None:
            self._quiet = state.buffer
        return found

    async def _consolidate(self, trigger: Trigger) -> None:
        await self._mask_private()
        log = self._log
        kept = set(log.state.buffer)
        trigger = replace(trigger, turns=tuple(turn for turn in trigger.turns if turn in kept))
        if not trigger.turns:
            return
        with log.note_shown():
            draft, turns = log.draft(), log.turns
            earlier = (n for n in reversed(range(trigger.turns[0])) if n not in log.forgotten)
            before = [*islice(earlier, CONTEXT_TURNS)][::-1]
            cut = await find_cut(
                self._tools.llm,
                trigger,
                turns,
                self._config,
                before=before,
                detector=self._detector,
            )
            await self._consolidator().consolidate(draft, trigger, cut)
            if log.write(draft):
                search = self._open_search()
                search.follow(log.state, log.turns)
                await search.index_turns()

    @cached_property
    def _detector(self) -> ShiftDetector | None:
        name = self._config.detector
        return None if name is None else self._tools.open_detector(name)

    def _consolidator(self) -> Consolidator:
        about = self._tools, self._log.turns, self._open_search(), self._config
        return self.consolidator_type(*about)

    def _open_search(self) -> Search:
        """What the memory is searched by, made anew after a deletion."""
        if self._searches is None or self._searches[0] != self._log.deletions:
            made = self.search_type(self._tools, self.id, self._config)
            self._searches = self._log.deletions, made
        return self._searches[1]

    async def _count_tokens(self, numbers: Sequence[int]) -> int:
        lines = [self._log.turns[number].line for number in numbers]
        missing = {
            line: (number,)
            for line, number in zip(lines, numbers, strict=True)
            if line not in self._counts
        }
        if missing:
            with self._log.note_shown(numbers), note_made_of(missing):
                counts = await self._tools.llm.count_tokens([*missing])
            self._counts.update(zip(missing, counts, strict=True))
        return sum(self._counts[line] for line in lines)

    async def _mask_private(self) -> None:
        """Mask, for good, what is private in turns that are in no topic yet."""
        if self._config.private == "keep":
            return
        state, turns = self._log.state, self._log.turns
        numbers = [*state.buffer, *range(state.turns, len(turns))]
        fresh = {number: turns[number] for number in numbers if number >= self._masked_to}
        what = await asyncio.to_thread(find_private_parts, fresh)
        self._masked_to = len(turns)
        if what.turns:
            self._delete(what)

    # Reading

    async def read(self, question: Question, *, recent: Sequence[int] = ()) -> RetrievedEvents:
        """The events that may answer a question, the best first; ``recent`` as for ``recall``.

        What is due is not done for a question: turns that wait for it are read as the buffer is.
        But what is private and to be masked is masked before a model is shown it.
        """
        async with self._writer() as log:
            await self._mask_private()
            gone, waiting = log.forgotten, range(log.state.turns, len(log.turns))
            buffer = (*log.state.buffer, *(number for number in waiting if number not in gone))
            state = replace(log.state, buffer=buffer, forgotten=gone)
        about = self._tools, state, log.turns, self._config, self._open_search()
        with log.note_shown():
            return await self.reader_type(*about).read(question, recent=recent)

    async def recall(self, question: Question, *, recent: Sequence[int] = ()) -> Recall:
        """The ``k`` best events for a question, and the summaries of their topics where the model
        wrote them, as an answer is shown them."""
        reading = await self.read(question, recent=recent)
        state, turns = self._log.state, self._log.turns
        is_told = self.writes_topics or self._config.without == "epg"
        shown = reading.show(state, turns, with_summaries=is_told)
        made_of = reading.made_of(state) if is_told else frozenset[int]()
        return Recall(shown, reading.rank_turns(state), reading.trace(), made_of=made_of)

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """Topics and links; a topic stands on all that was said from its first turn to its last."""
        talk, state = self.conversation, self._log.state
        spans = {
            name: talk.transcript.span(
                talk.span(topic.turns[0]).start, talk.span(topic.turns[-1]).end
            )
            for name, topic in state.topics.items()
        }
        nodes = [
            ViewNode(
                name,
                "topic",
                one_line(_title(topic, talk), LABEL_CHARACTERS),
                topic.summary,
                spans[name],
                topic.turns[-1],
            )
            for name, topic in state.topics.items()
        ]
        edges = [
            ViewEdge(f"e{place}", one, two, link.relation, spans[one], state.topics[one].turns[-1])
            for place, link in enumerate(state.links, 1)
            for one, two in [(link.source, link.target)]
        ]
        return self._view(nodes, edges, steps=len(talk.turns), answers=answers)

    def measure(self) -> MemorySize:
        state, turns = self.state, self._log.turns
        return MemorySize(len(state.topics), len(state.links), len(turns))

    def export(self) -> dict[str, Any]:
        held = super().export()
        del held["edges"]
        return {**held, "links": to_plain(self._log.state.links)}

    # Control

    async def edit(self, node: str, change: Change) -> None:
        merge, summary, keywords = change.merge, change.summary, change.keywords
        async with self._writer() as log:
            if change.frozen is False:
                log.change(lambda state: freeze_topic(state, node, False))
            if merge is not None:
                log.change(lambda state: merge_topics(state, node, merge, summary, keywords))
            elif summary is not None or keywords is not None:
                log.change(lambda state: rewrite_topic(state, node, summary, keywords))
            for each in change.unlink:
                log.change(partial(unlink_topics, one=node, two=each))
            if change.frozen:
                log.change(lambda state: freeze_topic(state, node, True))

    def _choose(
        self, log: Log[Edit, GamState], target: Target
    ) -> tuple[frozenset[int], frozenset[str]]:
        return choose(log.state, log.turns, target)

    def _nodes(self, state: GamState) -> Collection[str]:
        return state.topics.keys()

    def _count_renewals(self, state: GamState) -> tuple[int, bool]:
        return len(state.waiting) if self.writes_topics else 0, False


def _title(topic: Topic, talk: Conversation) -> str:
    """The first sentence of a topic's summary, without who said it, or its keywords; what its first
    turn says while it has neither, as after a deletion."""
    summary = topic.summary
    for speaker in sorted({talk.turns[number].speaker for number in topic.turns} - {""}):
        summary = summary.removeprefix(f"{speaker}: ").partition(f" {speaker}: ")[0]
    for start, end in sentence_spans(summary):
        return summary[start:end]
    return ", ".join(topic.keywords) or talk.turns[topic.turns[0]].text
