"""General Agentic Memory: an abstract of each page, and research over the pages for a question.

Source: Yan et al. 2025 (arXiv 2511.18423), §3, with the numbers of its released code. The memorizer
writes an abstract of each page, with all abstracts before it in sight: a page is a session of a
conversation, or 2,048 tokens of a document (8,192 in MindGraph's tables). For a question the
researcher works in three rounds at most: it plans (words, vectors, numbers of pages) over all
abstracts, searches with each tool for its five best pages, integrates what they say into one note,
and reflects whether that is enough, or what is to be asked next. The note is answered from. The
prompts are ours.

Unlike that code: BM25 scores and cosines are fused by reciprocal ranks, not compared; every page
has an abstract of its own, repeated or not; the prompt does not depend on a question's gold
category. The compaction ratio is of the abstracts that the planner sees. Where pages or abstracts
are cut because the model's context does not hold them, the answer is marked ``pages_cut`` or
``abstracts_cut``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import Field, create_model

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt, Notes, StepNote, judge, keep_notes
from mgl.llm.constraints import max_chars, number
from mgl.llm.prompting import fit_texts
from mgl.memories.calls import summarize
from mgl.memories.log import Draft
from mgl.memories.propose import StrictReply
from mgl.prompt import Prompt
from mgl.retrieval import LexicalIndex, reciprocal_rank_fusion
from mgl.retrieval.ranking import best, likeness
from mgl.types import Answer, Conversation, Question, Span

ABSTRACT_TOKENS: Final = 256
NOTE_TOKENS: Final = 1024
PLAN_TOKENS: Final = 512
FALLBACK_CHARS: Final = 200
NOTHING: Final = "(nothing yet)"
CUT: Final = "page_cut"
"""The reason of an abstract's row whose page, or an earlier abstract, was not shown whole."""

ABSTRACT = Prompt(
    "general-agentic-memory.abstract",
    source="ours, in the role of Yan et al. 2025, §3.2",
    text="""What is remembered so far, page by page:

{abstracts}

The next page:

{text}

Write one paragraph that tells what this page holds, so that it can be found again: who, what, \
when and where, and how it goes on from earlier pages.

{"notes": "..."}""",
    variables=("abstracts", "text"),
)

PLAN = Prompt(
    "general-agentic-memory.plan",
    source="ours, in the role of Yan et al. 2025, §3.3",
    text="""What is remembered of a long text, page by page:

{abstracts}

Wanted: {request}

Plan how to find it in the pages: words that stand there, questions whose meaning is searched for, \
and the numbers of pages that are to be read whole. Leave empty what is of no use.

{"words": ["..."], "questions": ["..."], "pages": [numbers]}""",
    variables=("abstracts", "request"),
)

INTEGRATE = Prompt(
    "general-agentic-memory.integrate",
    source="ours, in the role of Yan et al. 2025, §3.3",
    text="""Question: {question}

Known so far: {known}

Pages that were found:

{pages}

Write down all that is known now and helps to answer the question, with names, times and numbers.

{"notes": "..."}""",
    variables=("question", "known", "pages"),
)

REFLECT = Prompt(
    "general-agentic-memory.reflect",
    source="ours, in the role of Yan et al. 2025, §3.3",
    text="""Question: {question}

Known: {known}

Is that enough to answer the question? If not, say what has to be looked for next.

{"enough": true, "requests": ["..."]}""",
    variables=("question", "known"),
)

Line = Annotated[str, max_chars(160)]
Lines = Annotated[list[Line], Field(max_length=5)]


class _Plan(StrictReply):
    words: Lines
    questions: Lines
    pages: list[int]


class Reflection(StrictReply):
    enough: bool
    requests: Lines


class GeneralAgenticMemoryConfig(BaselineConfig):
    """``page_tokens`` is the size of a document's page; ``rounds`` of research are made at most,
    each tool finding ``k`` pages."""

    page_tokens: int = Field(2048, ge=64)
    rounds: int = Field(3, ge=1)
    k: int = Field(5, ge=1)


class WriteAbstract(StepNote):
    """What a page is about."""


class GeneralAgenticMemory(Baseline[Notes]):
    """Keeps an abstract of each page, and researches the pages for a question."""

    kind = "general-agentic-memory"
    reads = "either"
    retrieves = True
    vocabulary = keep_notes({"abstract": WriteAbstract})
    Config = GeneralAgenticMemoryConfig
    _config: GeneralAgenticMemoryConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (ABSTRACT,)

    async def _count_steps(self) -> int:
        return len(await self._pages())

    async def _pages(self) -> list[Span]:
        """Sessions of a conversation, or parts of a document."""
        if not isinstance(self._source, Conversation):
            return [chunk.span for chunk in await self._chunks(self._config.page_tokens)]
        return [self._span_of(session) for session in self._sessions()]

    async def _read(self) -> None:
        llm, pages = self._tools.llm, await self._pages()

        async def write(draft: Draft[Any, Notes], step: int) -> None:
            text = self._quote(pages[step]).strip()
            shown = [*draft.state.find("abstract").values(), text]
            *before, page = await fit_texts(llm, shown, reserve=2 * ABSTRACT_TOKENS)
            prompt = ABSTRACT.render(abstracts=_number(before) or NOTHING, text=page)
            note = await summarize(
                llm, prompt, ABSTRACT_TOKENS, stage="abstracts", fallback=text[:FALLBACK_CHARS]
            )
            cut = CUT if [*before, page] != shown else None
            note = replace(note, problem=note.problem or cut)
            edit = WriteAbstract(step, pages[step], note.text)
            draft.put(edit, **judge(note, failed="repaired"))

        await self._go_on("pages", len(pages), write)

    async def _respond(self, question: Question) -> Answer:
        tokens = await self.source_tokens()
        llm, pages = self._tools.llm, await self._pages()
        abstracts = [*self.state.find("abstract").values()]
        texts = [self._quote(span) for span in pages]
        known, request, trace = "", question.text, list[str]()
        marks = {"pages_cut"} if any(row.reason == CUT for row in self._log.rows) else set[str]()
        found: dict[int, None] = {}
        for turn in range(self._config.rounds):
            places = await self._search(request, abstracts, texts, marks)
            trace.append(f"round {turn + 1}: pages {', '.join(map(str, places)) or 'none'}")
            found.update(dict.fromkeys(places))
            if places:
                read = [texts[at] for at in places]
                known = await self._integrate(question, known, read, marks)
            if turn + 1 == self._config.rounds:
                break
            prompt = REFLECT.render(question=question.text, known=known or NOTHING)
            said = await self._propose(prompt, Reflection, PLAN_TOKENS, "reflect")
            if said.reply is None or said.reply.enough or not said.reply.requests:
                break
            request = " ".join(said.reply.requests)
        excerpts = [Excerpt(known)] if known else []
        read_pages = [pages[place] for place in found]
        answer = await self._answer(
            question, excerpts, read=read_pages, trace=trace, marks=sorted(marks)
        )
        seen = sum(await llm.count_tokens(abstracts)) if abstracts else 0
        return replace(answer, compaction_ratio=seen / tokens if tokens else None)

    async def _search(
        self, request: str, abstracts: Sequence[str], texts: Sequence[str], marks: set[str]
    ) -> list[int]:
        """Plan over the abstracts, and find pages with each tool: their places, best first."""
        if not texts:
            return []
        llm, k = self._tools.llm, self._config.k
        fitting = await fit_texts(llm, abstracts, reserve=2 * PLAN_TOKENS)
        if fitting != list(abstracts):
            marks.add("abstracts_cut")
        page: Any = number(1, len(texts))
        numbers = Annotated[list[page], Field(max_length=k)]
        schema = create_model("plan", __base__=_Plan, pages=(numbers, ...))
        prompt = PLAN.render(abstracts=_number(fitting), request=request)
        said = await self._propose(prompt, schema, PLAN_TOKENS, "plan")
        plan = said.reply or _Plan(words=[request], questions=[request], pages=[])
        by_words = LexicalIndex.of(list(texts)).scores(" ".join(plan.words))
        rankings = [by_words] if any(by_words) else []
        asked = [
            await likeness(self._tools.required_embedder, each, texts) for each in plan.questions
        ]
        if asked:
            rankings.append(sum(asked[1:], asked[0]))
        chosen = [place for scores in rankings for place, _ in best(scores, k)]
        chosen += [page - 1 for page in plan.pages]
        if not rankings:
            return list(dict.fromkeys(chosen))
        fused = reciprocal_rank_fusion(rankings)
        return sorted(set(chosen), key=lambda place: (-fused[place], place))

    async def _integrate(
        self, question: Question, known: str, texts: Sequence[str], marks: set[str]
    ) -> str:
        """What is known once the pages are read; as before where no reply can be used."""
        llm = self._tools.llm
        fitting = await fit_texts(llm, texts, reserve=2 * NOTE_TOKENS)
        if fitting != list(texts):
            marks.add("pages_cut")
        prompt = INTEGRATE.render(
            question=question.text, known=known or NOTHING, pages=_number(fitting)
        )
        note = await summarize(llm, prompt, NOTE_TOKENS, stage="integrate", fallback=known)
        return note.text


def _number(texts: Sequence[str]) -> str:
    return "\n\n".join(f"Page {place}: {text}" for place, text in enumerate(texts, 1))
