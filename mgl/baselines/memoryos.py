"""MemoryOS: pages of a dialogue in segments by theme, and a profile drawn from the hottest ones.

Source: Kang et al. 2025 (arXiv 2506.06326), §3, with the numbers of its released code. A page is
what one speaker says and the other replies. Calls say whether it goes on from the page before, sum
up the chain of pages that it belongs to, and name its themes (two at most). A theme joins the
segment most like it if cosine and overlap of keywords together (Eq. 1) are at least 0.6, else it
opens one. A segment's heat is 0.8 for each page since it was last drawn from (Eq. 4). At 5 the
first speaker's profile and facts are drawn from it, and the other's traits. For a question, pages
are found within the five segments most like it, facts beside them; profile and traits are always
read. The prompts are ours.

Unlike that code: no turn is lost, time is the session's, and a question warms nothing, so visits do
not count; recency, whose weight is 0.0001, is left out; a theme has the keywords it was named with.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Annotated, Any, Final

from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt, judge
from mgl.llm.constraints import max_chars, several
from mgl.llm.prompting import fit_texts
from mgl.memories.calls import summarize
from mgl.memories.log import Draft, Vocabulary
from mgl.memories.propose import StrictReply
from mgl.memories.table import Table
from mgl.prompt import Prompt
from mgl.retrieval.base import Embedder
from mgl.retrieval.ranking import likeness, nearest
from mgl.text.groups import format_turn
from mgl.types import Answer, Question, Span

JOINS: Final = 0.6
FLOOR: Final = 0.1
HEAT: Final = 5.0
WARMTH: Final = 0.8
SEGMENTS: Final = 5
FACTS: Final = 10
NOTE_TOKENS: Final = 300
META_TOKENS: Final = 100

CONTINUES = Prompt(
    "memoryos.continues",
    source="ours, in the role of Kang et al. 2025, §3.2",
    text="""Earlier in a conversation:
{before}

Now:
{page}

Does the second part go on with what the first is about?

{"continues": true}""",
    variables=("before", "page"),
)

META = Prompt(
    "memoryos.meta",
    source="ours, in the role of Kang et al. 2025, §3.2",
    text="""Sum up what this conversation is about in one or two sentences.

{chain}

{"notes": "..."}""",
    variables=("chain",),
)

THEMES = Prompt(
    "memoryos.themes",
    source="ours, in the role of Kang et al. 2025, §3.2",
    text="""Name the themes of this part of a conversation, two at most, each with keywords and \
one sentence on what is said about it.

{page}

{"themes": [{"theme": "...", "keywords": ["..."], "content": "..."}]}""",
    variables=("page",),
)

PROFILE = Prompt(
    "memoryos.profile",
    source="ours, in the role of Kang et al. 2025, §3.3",
    text="""{pages}

From this conversation, describe {speaker} (character, likes, aims), and list the facts that it \
tells about {speaker}, one a line.

{"profile": "...", "facts": ["..."]}""",
    variables=("pages", "speaker"),
)

TRAITS = Prompt(
    "memoryos.traits",
    source="ours, in the role of Kang et al. 2025, §3.3",
    text="""{pages}

From this conversation, list what it shows of {speaker}: role, knowledge and deeds, one a line.

{"facts": ["..."]}""",
    variables=("pages", "speaker"),
)

MERGE = Prompt(
    "memoryos.merge",
    source="ours, in the role of Kang et al. 2025, §3.3",
    text="""Two descriptions of {speaker}, the earlier first:

{before}

{now}

Write one description from both; where they differ, the later one holds.

{"notes": "..."}""",
    variables=("speaker", "before", "now"),
)

KEYWORDS = Prompt(
    "memoryos.keywords",
    source="ours, in the role of Kang et al. 2025, §3.4",
    text="""Name the keywords of this question.

{question}

{"keywords": ["..."]}""",
    variables=("question",),
)

Word = Annotated[str, max_chars(40)]
Words = Annotated[list[Word], Field(max_length=8)]
Line = Annotated[str, max_chars(200)]
Lines = Annotated[list[Line], Field(max_length=10)]


class Continues(StrictReply):
    continues: bool


class Theme(StrictReply):
    theme: Word
    keywords: Words
    content: Line


class Themes(StrictReply):
    themes: several(Theme, 2)  # type: ignore[valid-type]


class DrawnProfile(StrictReply):
    profile: Annotated[str, max_chars(4 * NOTE_TOKENS)]
    facts: Lines


class Traits(StrictReply):
    facts: Lines


class PageKeywords(StrictReply):
    keywords: Words


class MemoryOSConfig(BaselineConfig):
    """``k`` pages are read."""

    k: int = Field(10, ge=1)


@dataclass(frozen=True, slots=True)
class PageTheme:
    """A theme of a page; without a name, what the page is about."""

    theme: str
    keywords: tuple[str, ...]
    content: str


@dataclass(frozen=True, slots=True)
class Segment:
    """Pages that share a theme; ``fresh`` are those since it was last drawn from."""

    keywords: frozenset[str]
    content: str
    pages: tuple[int, ...] = ()
    fresh: int = 0

    @property
    def heat(self) -> float:
        return WARMTH * self.fresh


@dataclass(frozen=True, slots=True)
class KeepPage:
    """The page of a step: whether it goes on with the one before, what its chain is about, and
    the segment that each of its themes joins or opens."""

    step: int
    span: Span
    continues: bool
    meta: str
    themes: tuple[PageTheme, ...]
    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DrawPersona:
    """What was drawn from a segment of the first speaker, and of the other (``traits``)."""

    span: Span
    segment: int
    profile: str = ""
    facts: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageLog:
    """What the log makes: pages' summaries, segments, and what was drawn from them."""

    metas: Table[int, str] = field(default_factory=Table)
    chain: tuple[int, ...] = ()
    segments: tuple[Segment, ...] = ()
    profile: str = ""
    facts: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()


def apply(log: PageLog, edit: KeepPage | DrawPersona) -> PageLog:
    """Add a page, or what was drawn from a segment."""
    segments = list(log.segments)
    if isinstance(edit, DrawPersona):
        segments[edit.segment] = replace(segments[edit.segment], fresh=0)
        return replace(
            log,
            segments=tuple(segments),
            profile=edit.profile or log.profile,
            facts=log.facts + edit.facts,
            traits=log.traits + edit.traits,
        )
    chain, metas = (*(log.chain if edit.continues else ()), edit.step), log.metas
    for page in chain:
        metas = metas.put(page, edit.meta)
    for theme, place in zip(edit.themes, edit.segments, strict=True):
        if place == len(segments):
            segments.append(_open_segment(theme))
        old = segments[place]
        segments[place] = replace(old, pages=(*old.pages, edit.step), fresh=old.fresh + 1)
    return replace(log, metas=metas, chain=chain, segments=tuple(segments))


class MemoryOS(Baseline[PageLog]):
    """Keeps pages of a dialogue in segments by theme, and a profile of its speakers."""

    kind = "memoryos"
    reads = "conversation"
    retrieves = True
    vocabulary = Vocabulary(
        {"page": KeepPage, "draw": DrawPersona}, apply, PageLog(), columns=("step", "span")
    )
    Config = MemoryOSConfig
    _config: MemoryOSConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (CONTINUES, META, THEMES, PROFILE, TRAITS, MERGE)

    async def _count_steps(self) -> int:
        return len(self._pages())

    @property
    def _speakers(self) -> tuple[str, str]:
        """The speaker whose profile is drawn, and the other."""
        names = list(dict.fromkeys(turn.speaker for turn in self._all_turns))
        first, other, *_ = *names, "the speaker", "the other speaker"
        return first, other

    def _pages(self) -> list[list[int]]:
        """What the first speaker says and the others reply, by the numbers of the turns; without
        those that were deleted, and otherwise as if they were there."""
        turns, first = self._all_turns, self._speakers[0]
        pages: list[list[int]] = []
        spoken = [number for number, turn in enumerate(turns) if turn.text]
        runs = groupby(spoken, key=lambda at: (turns[at].session, turns[at].speaker == first))
        for (session, is_first), run in runs:
            same = bool(pages) and turns[pages[-1][-1]].session == session
            if is_first or not same:
                pages.append([*run])
            else:
                pages[-1] += run
        left = ([number for number in page if number not in self._gone] for page in pages)
        return [page for page in left if page]

    def _page_text(self, page: Sequence[int]) -> str:
        return "\n".join(format_turn(self.conversation.turns[number]) for number in page)

    async def _read(self) -> None:
        pages = self._pages()
        texts = [self._page_text(page) for page in pages]

        async def write(draft: Draft[Any, PageLog], step: int) -> None:
            span = self._span_of(pages[step])
            await self._keep_page(draft, texts, span)
            segments = draft.state.segments
            hottest = max(range(len(segments)), key=lambda at: segments[at].heat, default=None)
            if hottest is not None and segments[hottest].heat >= HEAT:
                shown = [texts[page] for page in segments[hottest].pages]
                draft.put(await self._draw(hottest, span, draft.state.profile, shown))

        await self._go_on("pages", len(pages), write)

    async def _keep_page(
        self, draft: Draft[Any, PageLog], texts: Sequence[str], span: Span
    ) -> None:
        """Put a page: whether it goes on, what it is about, and where its themes belong."""
        llm, step, state = self._tools.llm, draft.step, draft.state
        page = texts[step]
        continues = False
        if step:
            prompt = CONTINUES.render(before=texts[step - 1], page=page)
            said = await self._propose(prompt, Continues, 10, "continues")
            continues = bool(said.reply and said.reply.continues)
        chain = [texts[at] for at in state.chain] if continues else []
        shown = await fit_texts(llm, [*chain, page], reserve=2 * META_TOKENS)
        prompt = META.render(chain="\n".join(shown))
        meta = await summarize(llm, prompt, META_TOKENS, stage="meta", fallback=page[:200])
        prompt = THEMES.render(page=page)
        named = await self._propose(prompt, Themes, NOTE_TOKENS, "themes")
        themes = tuple(
            PageTheme(each.theme, tuple(each.keywords), each.content)
            for each in (named.reply.themes if named.reply else ())
        )
        if not themes:  # a page without a theme can be found by what it is about
            themes = (PageTheme("", (), meta.text),)
        segments = list(state.segments)
        places = []
        for theme in themes:
            place = await _place(self._tools.required_embedder, theme, segments)
            if place == len(segments):
                segments.append(_open_segment(theme))
            places.append(place)
        edit = KeepPage(step, span, continues, meta.text, themes, tuple(places))
        draft.put(edit, **judge(named, failed="repaired"))

    async def _draw(
        self, segment: int, span: Span, known: str, texts: Sequence[str]
    ) -> DrawPersona:
        """Draw the first speaker's profile and facts, and the other's traits, from the pages of a
        segment; ``known`` is the profile so far."""
        llm, (first, other) = self._tools.llm, self._speakers
        pages = "\n".join(await fit_texts(llm, texts, reserve=2 * NOTE_TOKENS))
        prompt = PROFILE.render(pages=pages, speaker=first)
        drawn = await self._propose(prompt, DrawnProfile, 2 * NOTE_TOKENS, "profile")
        prompt = TRAITS.render(pages=pages, speaker=other)
        traits = await self._propose(prompt, Traits, 2 * NOTE_TOKENS, "traits")
        profile = drawn.reply.profile if drawn.reply else ""
        if profile and known:
            prompt = MERGE.render(speaker=first, before=known, now=profile)
            note = await summarize(llm, prompt, NOTE_TOKENS, stage="merge", fallback=profile)
            profile = note.text
        facts = tuple(drawn.reply.facts) if drawn.reply else ()
        return DrawPersona(
            span, segment, profile, facts, tuple(traits.reply.facts) if traits.reply else ()
        )

    async def _respond(self, question: Question) -> Answer:
        embedder, pages, state = self._tools.required_embedder, self._pages(), self.state
        words = await self._keywords(question)
        alike = await _score(embedder, question.text, words, state.segments)
        order = sorted(range(len(alike)), key=lambda at: (-alike[at], at))[:SEGMENTS]
        near = [state.segments[at] for at in order if alike[at] >= FLOOR]
        texts = {at: self._page_text(pages[at]) for each in near for at in each.pages}
        found = await nearest(embedder, question.text, texts, self._config.k)
        read = [at for at, cosine in found if cosine >= FLOOR]
        facts = await nearest(embedder, question.text, dict(enumerate(state.facts)), FACTS)
        about = [state.profile] if state.profile else []
        about += [*(state.facts[at] for at, cosine in facts if cosine >= FLOOR), *state.traits]
        excerpts = [Excerpt(text) for text in about]
        excerpts += [
            Excerpt(
                f"{texts[at]}\n(about: {state.metas[at]})",
                f"page-{at}",
                self._span_of(pages[at]),
            )
            for at in sorted(read)
        ]
        spans = [self._span_of(pages[at]) for at in read]
        trace = [f"keywords: {', '.join(words)}; {len(near)} segments"]
        return await self._answer(question, excerpts, read=spans, trace=trace)

    async def _keywords(self, question: Question) -> list[str]:
        prompt = KEYWORDS.render(question=question.text)
        said = await self._propose(prompt, PageKeywords, 64, "keywords")
        return said.reply.keywords if said.reply else []


def _open_segment(theme: PageTheme) -> Segment:
    return Segment(_fold(theme.keywords), theme.content)


def _fold(words: Collection[str]) -> frozenset[str]:
    return frozenset(word.casefold() for word in words)


def _overlap(one: Collection[str], other: Collection[str]) -> float:
    """The mean of the shares of each that are in the other; 0 where one is empty."""
    shared = len(frozenset(one) & frozenset(other))
    return (shared / len(one) + shared / len(other)) / 2 if one and other else 0.0


async def _score(
    embedder: Embedder, text: str, keywords: Collection[str], segments: Sequence[Segment]
) -> list[float]:
    """How well segments fit a text: the cosine of their content, and the overlap of keywords."""
    cosines = await likeness(embedder, text, [each.content for each in segments], passage=True)
    words = _fold(keywords)
    return [
        float(cosine) + _overlap(words, each.keywords)
        for cosine, each in zip(cosines, segments, strict=True)
    ]


async def _place(embedder: Embedder, theme: PageTheme, segments: Sequence[Segment]) -> int:
    """The place of the segment that a theme joins, or of the new one that it opens."""
    scores = await _score(embedder, theme.content, theme.keywords, segments)
    best = max(range(len(scores)), key=lambda at: scores[at], default=None)
    return len(segments) if best is None or scores[best] < JOINS else best
