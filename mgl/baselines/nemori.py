"""Nemori: episodes that a model groups, and knowledge that an episode's prediction had missed.

Source: Nan et al. 2025 (arXiv 2508.03341), §3, with the numbers of its released code. Messages are
collected by session until there are 20, and grouped, 80 at most in a call; groups need not be
consecutive. Each group becomes an episode (title, and narrative in the third person). If one of
the five episodes most like it tells of the same event within an hour, both become one. Then
knowledge is learnt: the episode is predicted from its title and the ten nearest statements, and
what its messages say beyond the prediction is written as new statements; without any statements
yet, all that they say. For a question, the ``k`` nearest episodes and 2k nearest statements are
read, with the messages of the two best episodes. The prompts are ours.

Unlike that code: a message alone is an episode, messages that were left out of all groups are
grouped where they stand, and one in two groups belongs to the first; the hour is checked by code,
not by the model; times are those of the messages; knowledge is learnt from the new messages alone
where episodes become one; calls are made at temperature 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from typing import Annotated, Any, Final

from pydantic import Field, create_model

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt, judge, number_items
from mgl.llm.constraints import index_set, max_chars, number, several
from mgl.llm.prompting import fit_texts
from mgl.memories.calls import summarize
from mgl.memories.log import Draft, Vocabulary
from mgl.memories.propose import Proposal, StrictReply
from mgl.prompt import Prompt
from mgl.retrieval.ranking import nearest
from mgl.text.groups import format_turn
from mgl.text.times import find_gap
from mgl.types import Answer, Question, Span

ENOUGH: Final = 20
MOST: Final = 80
LIKE: Final = 5
KNOWN: Final = 10
WHOLE: Final = 2
GAP: Final = timedelta(hours=1)
GROUP_TOKENS: Final = 1024
EPISODE_TOKENS: Final = 500

GROUP = Prompt(
    "nemori.group",
    source="ours, in the role of Nan et al. 2025, §3.1",
    text="""Messages of a conversation:

{messages}

Group the messages by what they are about. Each group is one episode of 2 to 15 messages; its \
messages need not follow each other. Put each message into one group.

{"episodes": [{"messages": [numbers]}]}""",
    variables=("messages",),
)

NARRATE = Prompt(
    "nemori.narrate",
    source="ours, in the role of Nan et al. 2025, §3.1",
    text="""{messages}

Tell this part of a conversation as an episode: a title that says what it is about, and a \
narrative in the third person that keeps names, places, numbers and feelings. Write dates in place \
of words such as "yesterday".

{"title": "...", "content": "..."}""",
    variables=("messages",),
)

SAME = Prompt(
    "nemori.same",
    source="ours, in the role of Nan et al. 2025, §3.1",
    text="""A new episode:

{episode}

Earlier episodes:

{earlier}

Does the new episode go on with the very event of an earlier one? Give the number of that one, or \
0 if it is an event of its own.

{"same": 0}""",
    variables=("episode", "earlier"),
)

MERGE = Prompt(
    "nemori.merge",
    source="ours, in the role of Nan et al. 2025, §3.1",
    text="""Two episodes of the same event:

{earlier}

{episode}

Write one episode from both. Leave out nothing that either tells.

{"title": "...", "content": "..."}""",
    variables=("earlier", "episode"),
)

PREDICT = Prompt(
    "nemori.predict",
    source="ours, in the role of Nan et al. 2025, §3.2",
    text="""What is known:

{known}

A new episode has the title "{title}". From what is known, predict what it tells.

{"notes": "..."}""",
    variables=("known", "title"),
)

COMPARE = Prompt(
    "nemori.compare",
    source="ours, in the role of Nan et al. 2025, §3.2",
    text="""A prediction of a conversation:

{prediction}

What was said:

{messages}

List what was said and the prediction lacks or has wrong, as statements that will still be true \
and useful in later talks. Each is about one thing, names whom it is about, and is understood alone.

{"statements": ["..."]}""",
    variables=("prediction", "messages"),
)

EXTRACT = Prompt(
    "nemori.extract",
    source="ours, in the role of Nan et al. 2025, §3.2",
    text="""{messages}

List what this conversation tells, as statements that will still be true and useful in later \
talks. Each is about one thing, names whom it is about, and is understood alone.

{"statements": ["..."]}""",
    variables=("messages",),
)


class _Group(StrictReply):
    messages: list[int]


class _Groups(StrictReply):
    episodes: list[_Group]


class Narrative(StrictReply):
    title: Annotated[str, max_chars(100)]
    content: Annotated[str, max_chars(1600)]


class _Same(StrictReply):
    same: int


class Statements(StrictReply):
    statements: Annotated[list[Annotated[str, max_chars(200)]], Field(max_length=10)]


class NemoriConfig(BaselineConfig):
    """``k`` episodes are read, and twice as many statements."""

    k: int = Field(10, ge=1)


@dataclass(frozen=True, slots=True)
class NemoriEpisode:
    """What some turns, by their numbers, tell."""

    title: str
    content: str
    turns: tuple[int, ...]

    @property
    def text(self) -> str:
        return f"{self.title}: {self.content}" if self.title else self.content


@dataclass(frozen=True, slots=True)
class KeepEpisode:
    """A new episode."""

    span: Span
    title: str
    content: str
    turns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MergeEpisode:
    """One episode of the earlier one at the place ``episode`` and a new one."""

    span: Span
    title: str
    content: str
    turns: tuple[int, ...]
    episode: int


@dataclass(frozen=True, slots=True)
class LearnStatement:
    """What was not to be foreseen of the episode at a place."""

    span: Span
    text: str
    episode: int


@dataclass(frozen=True, slots=True)
class EpisodeLog:
    """What the log makes: episodes, and statements with the places of their episodes."""

    episodes: tuple[NemoriEpisode, ...] = ()
    statements: tuple[tuple[str, int], ...] = ()


def apply(log: EpisodeLog, edit: KeepEpisode | MergeEpisode | LearnStatement) -> EpisodeLog:
    """Add an episode or a statement, or put a merged episode in the place of the earlier one."""
    if isinstance(edit, LearnStatement):
        return replace(log, statements=(*log.statements, (edit.text, edit.episode)))
    episode = NemoriEpisode(edit.title, edit.content, edit.turns)
    place = edit.episode if isinstance(edit, MergeEpisode) else len(log.episodes)
    return replace(log, episodes=(*log.episodes[:place], episode, *log.episodes[place + 1 :]))


class Nemori(Baseline[EpisodeLog]):
    """Keeps episodes, and statements of what was not to be foreseen."""

    kind = "nemori"
    reads = "conversation"
    retrieves = True
    vocabulary = Vocabulary(
        {"episode": KeepEpisode, "merge": MergeEpisode, "statement": LearnStatement},
        apply,
        EpisodeLog(),
        columns=("span",),
    )
    Config = NemoriConfig
    _config: NemoriConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (GROUP, NARRATE, SAME, MERGE, PREDICT, COMPARE, EXTRACT)

    async def _count_steps(self) -> int:
        return len(self._batches())

    def _batches(self) -> list[list[int]]:
        """The turns that are grouped together: sessions until there are enough, cut at the most."""
        full: list[list[int]] = [[]]
        for session in self._sessions():
            if len(full[-1]) >= ENOUGH:
                full.append([])
            full[-1] += session
        return [each[at : at + MOST] for each in full for at in range(0, len(each), MOST)]

    async def _read(self) -> None:
        batches = self._batches()

        async def write(draft: Draft[Any, EpisodeLog], step: int) -> None:
            for turns in await self._group(draft, batches[step]):
                with self._note_shown([self._span_of([batches[0][0], batches[step][-1]])]):
                    await self._remember(draft, turns)

        await self._go_on("batches", len(batches), write)

    async def _group(self, draft: Draft[Any, EpisodeLog], batch: Sequence[int]) -> list[list[int]]:
        """The groups of a batch; its sessions, and a row that says why, where no reply had them."""
        llm, lines = self._tools.llm, self._lines(batch)
        shown = await fit_texts(llm, lines, reserve=2 * GROUP_TOKENS)
        places = index_set(len(batch), first=1, least=1)
        group = create_model("group", __base__=_Group, messages=(places, ...))
        groups = several(group, len(batch))
        schema = create_model("groups", __base__=_Groups, episodes=(groups, ...))
        with self._note_shown([self.conversation.line_span(at) for at in batch]):
            said = await self._propose(
                GROUP.render(messages=number_items(shown)), schema, GROUP_TOKENS, "group"
            )
        if said.reply is None:
            span = self._span_of(batch)
            draft.reject("group", {}, said.problem, span=span, turns=batch)
            return self._settle([], batch)
        named = [[batch[place - 1] for place in each.messages] for each in said.reply.episodes]
        return self._settle(named, batch)

    def _settle(self, named: Sequence[Sequence[int]], batch: Sequence[int]) -> list[list[int]]:
        """Put each turn in one group: the first that has it, or else one with the turns beside it
        that are in none, of the same session."""
        grouped: set[int] = set()
        groups: list[list[int]] = []
        for each in named:
            if fresh := [at for at in each if at not in grouped]:
                groups.append(fresh)
                grouped.update(fresh)
        turns = self.conversation.turns
        for (is_left, _), run in groupby(batch, lambda at: (at not in grouped, turns[at].session)):
            if is_left:
                groups.append(list(run))
        return sorted(groups, key=min)

    async def _remember(self, draft: Draft[Any, EpisodeLog], turns: Sequence[int]) -> None:
        """Put the episode of a group, alone or as part of an earlier one, and its statements."""
        state = draft.state
        llm, lines = self._tools.llm, self._lines(turns)
        shown = await fit_texts(llm, lines, reserve=2 * EPISODE_TOKENS)
        with self._note_shown([self.conversation.line_span(at) for at in turns]):
            said = await self._narrate(NARRATE.render(messages="\n".join(shown)), "narrate")
        if said.reply is None:
            episode = NemoriEpisode("", "\n".join(lines), tuple(turns))
        else:
            episode = NemoriEpisode(said.reply.title, said.reply.content, tuple(turns))
        place, span = len(state.episodes), self._span_of(turns)
        made = judge(said, failed="repaired")
        edit: KeepEpisode | MergeEpisode
        edit = KeepEpisode(span, episode.title, episode.content, episode.turns)
        if (earlier := await self._find_same(episode, state)) is not None:
            known = state.episodes[earlier]
            prompt = MERGE.render(earlier=known.text, episode=episode.text)
            merged = await self._narrate(prompt, "merge")
            if merged.reply is not None:
                both = tuple(sorted({*known.turns, *turns}))
                place, made, whole = earlier, judge(merged), merged.reply
                edit = MergeEpisode(self._span_of(both), whole.title, whole.content, both, earlier)
        draft.put(edit, turns=edit.turns, **made)
        learnt = await self._learn(episode, lines, state)
        if learnt.reply is None:
            draft.reject("learn", {}, learnt.problem, span=span, turns=turns)
            return
        for text in learnt.reply.statements:
            draft.put(LearnStatement(span, text, place), turns=turns, **judge(learnt))

    async def _narrate(self, prompt: str, stage: str) -> Proposal[Narrative]:
        return await self._propose(prompt, Narrative, EPISODE_TOKENS, stage)

    async def _find_same(self, episode: NemoriEpisode, state: EpisodeLog) -> int | None:
        """The place of an earlier episode of the same event, if there is one."""
        texts = {place: each.text for place, each in enumerate(state.episodes)}
        found = await nearest(
            self._tools.required_embedder, episode.text, texts, LIKE, passage=True
        )
        near = [place for place, _ in found if self._is_near(episode, state, place)]
        if not near:
            return None
        shown = "\n\n".join(
            f"{place}. {state.episodes[at].text}" for place, at in enumerate(near, 1)
        )
        prompt = SAME.render(episode=episode.text, earlier=shown)
        schema = create_model("same", __base__=_Same, same=(number(0, len(near)), ...))
        said = await self._propose(prompt, schema, 16, "same")
        return near[said.reply.same - 1] if said.reply and said.reply.same else None

    def _is_near(self, episode: NemoriEpisode, state: EpisodeLog, place: int) -> bool:
        """Whether two episodes are an hour apart at most, or of one session without times."""
        turns = self.conversation.turns
        for one in (turns[at] for at in episode.turns):
            for other in (turns[at] for at in state.episodes[place].turns):
                if one.time is None or other.time is None:
                    if one.session == other.session:
                        return True
                elif abs(find_gap(one.time, other.time)) <= GAP:
                    return True
        return False

    async def _learn(
        self, episode: NemoriEpisode, lines: Sequence[str], state: EpisodeLog
    ) -> Proposal[Statements]:
        """What the messages say beyond what was to be foreseen; all they say, if nothing was."""
        llm, prediction = self._tools.llm, ""
        texts = {place: text for place, (text, _) in enumerate(state.statements)}
        found = await nearest(
            self._tools.required_embedder, episode.text, texts, KNOWN, passage=True
        )
        if found and episode.title:
            known = "\n".join(f"- {texts[place]}" for place, _ in found)
            prompt = PREDICT.render(known=known, title=episode.title)
            prediction = (await summarize(llm, prompt, EPISODE_TOKENS, stage="predict")).text
        foreseen, *shown = await fit_texts(llm, [prediction, *lines], reserve=2 * EPISODE_TOKENS)
        messages = "\n".join(shown)
        prompt = (
            COMPARE.render(prediction=foreseen, messages=messages)
            if foreseen
            else EXTRACT.render(messages=messages)
        )
        return await self._propose(prompt, Statements, EPISODE_TOKENS, "learn")

    def _lines(self, turns: Sequence[int]) -> list[str]:
        return [format_turn(self.conversation.turns[at]) for at in turns]

    async def _respond(self, question: Question) -> Answer:
        """Marked ``batches_ungrouped`` and ``episodes_unlearnt`` where calls that were to group
        messages, or to learn statements from an episode, gave no reply that could be used."""
        embedder, state, k = self._tools.required_embedder, self.state, self._config.k
        texts = {place: each.text for place, each in enumerate(state.episodes)}
        found = [place for place, _ in await nearest(embedder, question.text, texts, k)]
        known = {place: text for place, (text, _) in enumerate(state.statements)}
        stated = [place for place, _ in await nearest(embedder, question.text, known, 2 * k)]
        excerpts = [
            self._excerpt(text, state, place)
            for text, place in (state.statements[place] for place in stated)
        ]
        excerpts += [
            self._excerpt(self._show(state.episodes[place]), state, place)
            for place in sorted(found)
        ]
        whole = {at for place in found[:WHOLE] for at in state.episodes[place].turns}
        excerpts += self._turns(sorted(whole))
        places = [*found, *(state.statements[place][1] for place in stated)]
        turns = dict.fromkeys(at for place in places for at in state.episodes[place].turns)
        return await self._answer(
            question,
            excerpts,
            read=[self.conversation.line_span(at) for at in turns],
            trace=[f"{len(found)} episodes, {len(stated)} statements"],
            marks=self._mark_failed({"group": "batches_ungrouped", "learn": "episodes_unlearnt"}),
        )

    def _excerpt(self, text: str, state: EpisodeLog, place: int) -> Excerpt:
        """A text that cites the messages of an episode."""
        turns = state.episodes[place].turns
        return Excerpt(text, f"episode-{place}", self._span_of(turns), turns)

    def _show(self, episode: NemoriEpisode) -> str:
        """An episode with the day on which it was told."""
        time = self.conversation.turns[min(episode.turns)].time
        day = "" if time is None else f"({time:%A, %d %B %Y}) "
        return f"{day}{episode.text}"
