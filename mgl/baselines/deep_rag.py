"""DeepRAG: at each step follow-up questions, answered by the model itself or from the source.

Source: Guan et al. 2025 (arXiv 2502.01142), §3: answering as a chain of decisions. The paper trains
a model for it; here, as in HGMem's comparison, an untrained one is asked under a schema. Each step
raises follow-up questions and decides for each to retrieve, or to answer it from what the model
knows; or it ends. HGMem's comparison (§4.3) gives every such method the most steps and subqueries
of HGMem, four and three a step, and as many chunks a step as HGMem finds on average. The chain and
the chunks that were read go to the shared answering call. The prompts are ours.

How often the model relied on itself is in the trace: of a well-known book, that is what it has
memorised.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, create_model

from mgl.baselines.base import Excerpt, number_items
from mgl.baselines.naive_rag import NaiveRag, NaiveRagConfig, share_out
from mgl.llm.constraints import max_chars, one_of, several
from mgl.llm.prompting import fit_texts, reader_messages
from mgl.memories.propose import Proposal, StrictReply
from mgl.prompt import Prompt
from mgl.retrieval.ranking import best, likeness
from mgl.types import Answer, Question

REPLY_TOKENS: Final = 200
NOTHING: Final = "(nothing yet)"

DECIDE = Prompt(
    "deep-rag.decide",
    source="ours, in the role of Guan et al. 2025, §3.1",
    text="""You answer a question about a long text step by step. Each step asks follow-up \
questions whose answers are still missing, {most} at most.

Question: {question}

Found so far:
{found}

Decide for each. "retrieve": passages of the text are needed to answer the follow-up question. \
"know": you can answer it yourself; give the answer. "final": nothing is missing.

{"questions": [{"decision": "retrieve", "follow_up": "...", "answer": "..."}]}""",
    variables=("question", "found", "most"),
)

READ = Prompt(
    "deep-rag.read",
    source="ours, in the role of Guan et al. 2025, §3.1",
    text="""{passages}

Answer in one sentence from these passages alone, or say that they do not tell.

Question: {question}

{"answer": "..."}""",
    variables=("passages", "question"),
)

Sentence = Annotated[str, max_chars(300)]


class _Asked(StrictReply):
    decision: Literal["retrieve", "know", "final"]
    follow_up: str
    answer: str


class _Step(StrictReply):
    questions: list[_Asked]


class SubAnswer(StrictReply):
    answer: Sentence


class DeepRagConfig(NaiveRagConfig):
    """Of at most ``steps`` each asks ``subqueries`` follow-up questions at most, and reads ``k``
    chunks for all of them together."""

    steps: int = Field(4, ge=1)
    subqueries: int = Field(3, ge=1)


class DeepRag(NaiveRag):
    """Asks itself follow-up questions, and retrieves for those that it cannot answer."""

    kind = "deep-rag"
    Config = DeepRagConfig
    _config: DeepRagConfig

    async def _respond(self, question: Question) -> Answer:
        spans = self.state.spans
        texts = [self._quote(span) for span in spans]
        chain: list[str] = []
        trace: list[str] = []
        read: dict[int, None] = {}
        for number in range(self._config.steps):
            said = await self._decide(question, chain)
            asked = said.reply.questions if said.reply else []
            asked = [each for each in asked if each.decision != "final"]
            if not asked:
                trace.append(said.problem or "nothing is missing")
                break
            wanted = [each for each in asked if each.decision == "retrieve"]
            counts = iter(share_out(self._config.k, len(wanted)))
            for each in asked:
                answer = each.answer
                if each.decision == "retrieve":
                    alike = await likeness(self._tools.required_embedder, each.follow_up, texts)
                    found = best(alike, next(counts))
                    places = [place for place, _ in found if texts[place]]
                    read.update(dict.fromkeys(places))
                    answer = await self._read_for(each.follow_up, [texts[at] for at in places])
                chain.append(f"{each.follow_up} {answer}")
                trace.append(f"{each.decision}: {each.follow_up}")
            self._tools.observer.progress("steps", number + 1, self._config.steps)
        kept = sorted(read)
        passages, whole = await self._fit_chunks(question, [texts[place] for place in kept])
        excerpts = [
            *map(Excerpt, chain),
            *(
                Excerpt(text, f"chunk-{place}", spans[place])
                for place, text in zip(kept, passages, strict=False)
            ),
        ]
        marks = () if whole else ("text_truncated",)
        ranked = [spans[place] for place in read]
        return await self._answer(question, excerpts, read=ranked, trace=trace, marks=marks)

    async def _decide(self, question: Question, chain: list[str]) -> Proposal[_Step]:
        """One step; the first cannot end, since nothing was asked yet."""
        found = number_items(chain) or NOTHING
        ways = ["retrieve", "know", "final"] if chain else ["retrieve", "know"]
        most = self._config.subqueries
        asked = create_model(
            "question",
            __base__=_Asked,
            decision=(one_of(ways), ...),
            follow_up=(Sentence, ...),
            answer=(Sentence, ...),
        )
        questions = several(asked, most, least=1)
        schema = create_model("step", __base__=_Step, questions=(questions, ...))
        prompt = DECIDE.render(question=question.text, found=found, most=str(most))
        return await self._propose(prompt, schema, REPLY_TOKENS * most, "decide")

    async def _read_for(self, question: str, texts: list[str]) -> str:
        """Answer a follow-up question from passages; where the reply cannot be used, say so."""
        llm = self._tools.llm
        fitting = await fit_texts(llm, texts, reserve=2 * REPLY_TOKENS)
        prompt = READ.render(passages="\n\n".join(fitting), question=question)
        said = await self._propose(reader_messages(prompt), SubAnswer, REPLY_TOKENS, "read")
        return said.reply.answer if said.reply else "(no answer)"
