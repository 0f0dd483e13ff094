"""EMem and EMem-G: statements that each stand alone, and a graph of what takes part in them.

Source: the paper of EMem (arXiv 2511.17208), with the numbers of its released code. One call per
session writes it as self-contained statements, each with its turns. For a question, search finds
the 30 most similar statements, one call keeps the relevant ones, and the first 10 are read, each
with the day and the speakers of its session.

With ``graph`` (EMem-G) one more call per statement names its event and its arguments. Edges join
statements to arguments (weighted by the number of times), sessions to statements (weight 1), and
arguments to each other from a cosine of 0.9. One call lists what the question mentions, search
finds the 10 arguments most like each, and another call keeps the relevant ones. An argument's
weight adds the cosines that found it to the scores of the kept statements that contain it, and
divides by the number of its sessions; the best 30 count. Personalised PageRank starts from these
and the kept statements, by their scores, and ranks all statements; the first 10 are read. The
prompts are ours.

Unlike the released code: calls that keep give numbers, not copies; assistants' turns are written as
statements like all others; a statement is of one session, so that its own score is divided by
nothing; negative cosines count as 0. A session of more than 48 turns is written in parts; one whose
reply cannot be used is remembered turn by turn in its own words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, create_model

from mgl.baselines.base import AT_ONCE, Baseline, BaselineConfig, Excerpt, judge, number_items
from mgl.baselines.hipporag import find_synonyms, keep_items, walk_from
from mgl.llm.concurrency import for_each
from mgl.llm.constraints import index_set, max_chars, several
from mgl.llm.prompting import fit_texts
from mgl.memories.log import Draft, Vocabulary
from mgl.memories.propose import Proposal, StrictReply
from mgl.prompt import Prompt
from mgl.retrieval.ranking import best, likeness
from mgl.text.groups import format_turn
from mgl.types import Answer, Question, Span

FOUND: Final = 30
READ: Final = 10
ALIKE: Final = 10
"""Arguments that are found for each thing that a question speaks of."""

ARGUMENTS: Final = 30
SYNONYM: Final = 0.9
MOST_TURNS: Final = 48
STATE_TOKENS: Final = 4096
REPLY_TOKENS: Final = 512

STATE = Prompt(
    "emem.state",
    source="ours, in the role of arXiv 2511.17208",
    text="""A conversation, turn by turn:

{turns}

Write down all that it tells as statements, each of which can be understood without the others: \
one event, fact, plan, wish or opinion in a whole sentence, with names in place of pronouns, and \
with dates in place of words like yesterday. Leave out greetings, but no particulars. Give with \
each statement the numbers of the turns that tell it.

{"statements": [{"turns": [numbers], "text": "..."}]}""",
    variables=("turns",),
)

ANALYSE = Prompt(
    "emem.analyse",
    source="ours, in the role of arXiv 2511.17208",
    text="""{text}

What kind of event or state does this statement tell of, and who and what takes part in it? Name \
each person, thing, place and time as it stands there, and its role.

{"event": "...", "arguments": [{"role": "...", "name": "..."}]}""",
    variables=("text",),
)

MENTION = Prompt(
    "emem.mention",
    source="ours, in the role of arXiv 2511.17208",
    text="""Name the people, things, places, times and events that this question speaks of.

{question}

{"entities": ["..."]}""",
    variables=("question",),
)

KEEP = Prompt(
    "emem.keep",
    source="ours, in the role of arXiv 2511.17208",
    text="""Question: {question}

From a conversation:
{items}

Which of these could matter to the answer? Keep each that might, and leave out only those that \
surely do not. Give their numbers.

{"kept": [numbers]}""",
    variables=("question", "items"),
)

Term = Annotated[str, max_chars(60)]


class _Told(StrictReply):
    turns: list[int]
    text: Annotated[str, Field(min_length=1), max_chars(240)]


class _AllTold(StrictReply):
    statements: list[_Told]


class _Argument(StrictReply):
    role: Term
    name: Term


class _Event(StrictReply):
    event: Term
    arguments: several(_Argument, 8)  # type: ignore[valid-type]


class _Entities(StrictReply):
    entities: Annotated[list[Term], Field(max_length=6)]


class EMemConfig(BaselineConfig):
    """``graph`` makes EMem-G of EMem."""

    graph: bool = True


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, the turns that tell it, the number of its session, and its arguments."""

    text: str
    turns: tuple[int, ...]
    session: int
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadSession:
    """A session, or a part of one, that was read, and its turns that no statement is made of."""

    span: Span
    left_out: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KeepStatement:
    """A statement, with its event and its arguments where one call named them."""

    span: Span
    turns: tuple[int, ...]
    text: str
    session: int
    event: str = ""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatementLog:
    """All statements, in the order of their sessions."""

    statements: tuple[Statement, ...] = ()


def apply(log: StatementLog, edit: ReadSession | KeepStatement) -> StatementLog:
    """Add a statement."""
    if isinstance(edit, ReadSession):
        return log
    added = Statement(edit.text, edit.turns, edit.session, edit.arguments)
    return StatementLog((*log.statements, added))


class EMem(Baseline[StatementLog]):
    """Keeps statements that each stand alone, and ranks them by a graph of their arguments."""

    kind = "emem"
    reads = "conversation"
    retrieves = True
    vocabulary = Vocabulary(
        {"session": ReadSession, "statement": KeepStatement},
        apply,
        StatementLog(),
        columns=("span", "turns"),
    )
    Config = EMemConfig
    _config: EMemConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (STATE, ANALYSE) if self._config.graph else (STATE,)

    async def _count_steps(self) -> int:
        return len(self._parts())

    def _parts(self) -> list[tuple[int, list[int]]]:
        """The sessions by number, and their turns; a long one in parts."""
        return [
            (session, numbers[start : start + MOST_TURNS])
            for session, numbers in enumerate(self._sessions())
            for start in range(0, len(numbers), MOST_TURNS)
        ]

    async def _read(self) -> None:
        parts = self._parts()

        async def read(draft: Draft[Any, StatementLog], step: int) -> None:
            await self._read_session(draft, *parts[step])

        await self._fill("sessions", 0, len(parts), read)

    async def _read_session(
        self, draft: Draft[Any, StatementLog], session: int, numbers: Sequence[int]
    ) -> None:
        """Put a session: which of its turns no statement is made of, and its statements."""
        turns, span = self.conversation.turns, self._span_of(numbers)
        told_by = create_model(
            "statement",
            __base__=_Told,
            turns=(index_set(len(numbers), first=1, least=1), ...),
        )
        schema = create_model(
            "statements", __base__=_AllTold, statements=(several(told_by, MOST_TURNS), ...)
        )
        lines = [format_turn(turns[number]) for number in numbers]
        with self._note_shown([span]):
            fitting = await fit_texts(self._tools.llm, lines, reserve=STATE_TOKENS)
            prompt = STATE.render(turns=number_items(fitting))
            said = await self._propose(prompt, schema, STATE_TOKENS, "statements")
        told: list[tuple[tuple[int, ...], str]]
        if said.reply is None:
            told = [((number,), turns[number].line) for number in numbers]
        else:
            told = [
                (tuple(numbers[turn - 1] for turn in each.turns), each.text)
                for each in said.reply.statements
            ]
        left_out = sorted({*numbers} - {turn for own, _ in told for turn in own})
        draft.put(ReadSession(span, tuple(left_out)), **judge(said))
        analysed: dict[int, Proposal[_Event]] = {}

        async def analyse(place: int) -> None:
            own, text = told[place]
            with self._note_shown([self._span_of(own)]):
                analysed[place] = await self._propose(
                    ANALYSE.render(text=text), _Event, REPLY_TOKENS, "arguments"
                )

        if self._config.graph:
            await for_each(range(len(told)), analyse, at_once=AT_ONCE)
        for place, (own, text) in enumerate(told):
            edit = KeepStatement(self._span_of(own), own, text, session)
            event = analysed.get(place)
            if event is None:
                draft.put(edit)
                continue
            if (reply := event.reply) is not None:
                names = (argument.name.strip().lower() for argument in reply.arguments)
                edit = replace(edit, event=reply.event, arguments=tuple(filter(None, names)))
            draft.put(edit, **judge(event, failed="repaired"))

    async def _respond(self, question: Question) -> Answer:
        """Marked ``sessions_unread`` where a session is remembered by its turns alone."""
        embedder, statements = self._tools.required_embedder, self.state.statements
        alike = await likeness(
            embedder, question.text, [statement.text for statement in statements]
        )
        found = best(alike, FOUND)
        texts = [self._format(statements[place]) for place, _ in found]
        kept = {found[at][0]: found[at][1] for at in await self._keep(question, texts)}
        ranked, trace = list(kept), [f"kept {len(kept)} of {len(found)} statements"]
        if self._config.graph and statements:
            similar = await self._find_arguments(question, statements)
            weights = weigh_arguments(statements, similar, kept)
            names = dict.fromkeys(name for statement in statements for name in statement.arguments)
            synonyms = await find_synonyms(embedder, names, SYNONYM)
            ranks = rank_statements(statements, weights, kept, synonyms)
            if ranks.any():
                ranked = [place for place, _ in best(ranks, READ)]
            trace.append(f"arguments: {', '.join(weights) or 'none'}")
        talk, read = self.conversation, ranked[:READ]
        excerpts = [
            Excerpt(self._format(each), f"statement-{at}", self._span_of(each.turns), each.turns)
            for at, each in ((at, statements[at]) for at in read)
        ]
        spans = [talk.line_span(turn) for place in read for turn in statements[place].turns]
        marks = self._mark_failed({"session": "sessions_unread"})
        return await self._answer(question, excerpts, read=spans, trace=trace, marks=marks)

    def _format(self, statement: Statement) -> str:
        """Write a statement as a model reads it: with the day and the speakers of its session."""
        turns = self.conversation.turns
        first = turns[statement.turns[0]]
        speakers = dict.fromkeys(
            turns[number].speaker for number in self._sessions()[statement.session]
        )
        day = "" if first.time is None else f"{first.time:%A, %d %B %Y}; "
        return f"[{day}{' and '.join(speakers)}] {statement.text}"

    async def _find_arguments(
        self, question: Question, statements: Sequence[Statement]
    ) -> dict[str, float]:
        """Find the arguments like what the question speaks of, and add up their cosines; those
        that one call keeps."""
        embedder = self._tools.required_embedder
        prompt = MENTION.render(question=question.text)
        said = await self._propose(prompt, _Entities, REPLY_TOKENS, "mention")
        names = [*dict.fromkeys(name for each in statements for name in each.arguments)]
        similar: dict[str, float] = defaultdict(float)
        for entity in said.reply.entities if said.reply else ():
            cosines = await likeness(embedder, entity, names)
            for place, cosine in best(cosines, ALIKE):
                similar[names[place]] += max(0.0, cosine)
        candidates = list(similar)
        return {
            candidates[at]: similar[candidates[at]] for at in await self._keep(question, candidates)
        }

    async def _keep(self, question: Question, items: Sequence[str]) -> list[int]:
        """Choose the items that could matter, by their places; all where none is chosen."""
        prompt = KEEP.render(question=question.text, items=number_items(items))
        kept = await keep_items(self._tools.llm, prompt, "kept", len(items), tokens=REPLY_TOKENS)
        return kept or list(range(len(items)))


def weigh_arguments(
    statements: Sequence[Statement], similar: Mapping[str, float], kept: Mapping[int, float]
) -> dict[str, float]:
    """Weigh arguments by their likeness to the question and by the scores of the kept statements
    that they are in, over the number of their sessions; the best 30."""
    sessions: dict[str, set[int]] = defaultdict(set)
    for statement in statements:
        for name in statement.arguments:
            sessions[name].add(statement.session)
    total: dict[str, float] = defaultdict(float, similar)
    for place, score in kept.items():
        for name in dict.fromkeys(statements[place].arguments):
            total[name] += max(0.0, score)
    weights = {name: value / len(sessions[name]) for name, value in total.items()}
    ordered = sorted(weights, key=lambda name: (-weights[name], name))
    return {name: weights[name] for name in ordered[:ARGUMENTS]}


def rank_statements(
    statements: Sequence[Statement],
    weights: Mapping[str, float],
    kept: Mapping[int, float],
    synonyms: Mapping[tuple[str, str], float],
) -> NDArray[np.float32]:
    """PageRank of each statement, restarted at arguments by their weights and at the kept
    statements by their scores; all 0 where nothing weighs."""
    names = dict.fromkeys(name for statement in statements for name in statement.arguments)
    places = {name: len(statements) + at for at, name in enumerate(names)}
    sessions = len(statements) + len(places)
    counts = Counter(
        (at, name) for at, statement in enumerate(statements) for name in statement.arguments
    )
    edges = [(at, places[name], float(count)) for (at, name), count in counts.items()]
    edges += [(at, sessions + statement.session, 1.0) for at, statement in enumerate(statements)]
    edges += [(places[one], places[other], cosine) for (one, other), cosine in synonyms.items()]
    restart = np.zeros(sessions + 1 + max(statement.session for statement in statements))
    for at, score in kept.items():
        restart[at] = max(0.0, score)
    for name, weight in weights.items():
        restart[places[name]] = weight
    ranks = walk_from(restart, edges) if restart.any() else restart
    return np.asarray(ranks[: len(statements)], dtype=np.float32)
