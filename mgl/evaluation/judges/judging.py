"""Judges: a model says under a schema whether an answer is right, or which of two is better.

    >>> verdict = await JUDGES["locomo"].judge(llm, item, answered)     # doctest: +SKIP
    >>> verdict.score, verdict.reason                                   # doctest: +SKIP
    (1.0, 'Both name the lake.')
    >>> (await prefer(llm, item, "It rained.", "It rained and blew.")).score   # doctest: +SKIP
    0.0

| judge | source |
|---|---|
| ``mindgraph`` | MindGraph D.4 after its cascade; of choices letter against letter |
| ``mindgraph_prompt`` | MindGraph D.4 alone, for what the cascade and it agree on |
| ``hgmem_comprehensiveness``, ``hgmem_diversity`` | HGMem Fig. 8 and 9, beside the item's passage |
| ``entailment`` | ours, after HGMem §4.3: the answer entails the reference (NarrativeQA) |
| ``correctness`` | ours (LooGLE, and wherever there is no other) |
| ``locomo`` | ours; adversarial questions are right where the answer abstains |
| ``longmemeval`` | ours, by question type; ids in ``_abs`` are right where the answer abstains |
| ``dialsim`` | ours; an answer that is the reference is right without a model, as in DialSim |
| ``moviechat`` | ours |
| ``citation_support`` | ours: the share of an answer's sentences that what it cites supports |

A verdict is 0 or 1; HGMem's are 0 to 1 (of 100), support is a share. A reply that does not fit its
schema after the client's repairs is no verdict: its score is None. So it is if the item lacks what
a judge reads. A preference is 1 for the first answer, 0 for the second, 0.5 for neither (after Edge
et al., From Local to Global, 2024; prompts ours). ``reliability`` measures what judges are worth.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mgl.benchmarks.base import Item
from mgl.errors import ContextOverflow, ReplyInvalid
from mgl.evaluation.judges.prompts import (
    ABSTENTION,
    BETTER,
    CLOSER,
    COMPREHENSIVENESS,
    CORRECTNESS,
    DIALOGUE,
    DIVERSITY,
    ENTAILMENT,
    EVALUATION_AS_JSON,
    FILM,
    KNOWLEDGE_UPDATE,
    MINDGRAPH,
    PREFERENCE,
    REMEMBERED,
    SUPPORT,
    TALK,
    TEMPORAL,
)
from mgl.evaluation.records import Answered, VerdictRecord
from mgl.evaluation.scorers.cascade import cascade
from mgl.evaluation.scorers.choices import find_letter, gold_letter
from mgl.llm.base import LLM, Message, Sampling
from mgl.llm.constraints import max_chars
from mgl.prompt import Prompt
from mgl.text import sentence_spans

__all__ = [
    "JUDGES",
    "JUDGING",
    "NEITHER",
    "SEED_STEP",
    "TEMPERATURE",
    "Judge",
    "prefer",
    "resampled_judging",
]

JUDGING: Final = Sampling(max_tokens=400)
REASON_CHARS: Final = 300
LEVEL_WIDTH: Final = 20

TEMPERATURE: Final = 0.7  # of repeats: at 0 a judge repeats itself whatever it is worth
SEED_STEP: Final = 100  # an unusable reply is sampled again with the seeds that follow


def resampled_judging(repeat: int) -> Sampling:
    """Return the sampling of the ``repeat``-th repeat of a verdict, from 1."""
    return replace(JUDGING, temperature=TEMPERATURE, seed=SEED_STEP * repeat)


Ask = Callable[[LLM, Item, Answered, Sampling], Awaitable[VerdictRecord]]
Reason = Annotated[str, max_chars(REASON_CHARS)]


@dataclass(frozen=True, slots=True)
class Judge:
    """``prompts`` are all that it may use; a run keeps their hashes."""

    name: str
    source: str
    prompts: tuple[Prompt, ...]
    ask: Ask

    async def judge(
        self, llm: LLM, item: Item, answered: Answered, *, sampling: Sampling = JUDGING
    ) -> VerdictRecord:
        """Judge an answer. Raises the EngineError family, except for an invalid reply and a prompt
        that is too long: these are no verdict, with their reason."""
        return await self.ask(llm, item, answered, sampling)


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Reasoned(_Reply):
    reason: Reason
    correct: bool


class _AsPrinted(_Reply):
    correct: bool
    reason: Reason


class _Support(_Reply):
    reason: Reason
    supported: bool


class _Evaluation(_Reply):
    level: Annotated[int, Field(ge=1, le=5)]
    score: Annotated[int, Field(ge=0, le=100)]
    explanation: Reason

    @model_validator(mode="after")
    def _within_its_level(self) -> _Evaluation:
        last = LEVEL_WIDTH * self.level
        if not last - LEVEL_WIDTH <= self.score <= last:
            raise ValueError(f"level {self.level} has scores from {last - LEVEL_WIDTH} to {last}")
        return self


async def ask_model(
    llm: LLM,
    text: str,
    schema: type[BaseModel],
    read: Callable[[Any], tuple[float, str]],
    sampling: Sampling,
) -> VerdictRecord:
    """Ask under a schema and ``read`` the score and reason from the reply; without a score, but
    with the reason, if the reply is invalid or the prompt too long."""
    try:
        reply = await llm.complete(
            [Message("user", text)], schema, sampling=sampling, stage="judge"
        )
    except (ReplyInvalid, ContextOverflow) as error:
        return _none(error.message)
    score, reason = read(reply.parsed)
    return VerdictRecord(float(score), reply.text, reason)


def _none(reason: str) -> VerdictRecord:
    return VerdictRecord(None, "", reason)


def _without_model(right: bool, reason: str) -> VerdictRecord:
    return VerdictRecord(float(right), "", reason)


def join_golds(item: Item) -> str:
    """Join the gold answers as a prompt shows them."""
    return "\nor: ".join(item.golds)


def _judge_yes_no(prompt: Prompt) -> Ask:
    """Judge by one prompt of ours, every item that has a gold answer."""

    async def ask(llm: LLM, item: Item, answered: Answered, sampling: Sampling) -> VerdictRecord:
        if not item.golds:
            return _none("the item has no gold answer")
        return await _ask_decision(llm, prompt, item, answered, sampling)

    return ask


async def _ask_decision(
    llm: LLM, prompt: Prompt, item: Item, answered: Answered, sampling: Sampling
) -> VerdictRecord:
    text = prompt.render(
        question=item.question.text,
        gold=join_golds(item) or "It never came up.",
        answer=answered.text,
    )
    return await ask_model(llm, text, _Reasoned, lambda it: (it.correct, it.reason), sampling)


async def _mindgraph_prompt(
    llm: LLM, item: Item, answered: Answered, sampling: Sampling
) -> VerdictRecord:
    if not item.golds:
        return _none("the item has no gold answer")
    text = MINDGRAPH.render(
        question=item.question.text, gold=join_golds(item), predicted=answered.text
    )
    return await ask_model(llm, text, _AsPrinted, lambda it: (it.correct, it.reason), sampling)


async def _mindgraph(llm: LLM, item: Item, answered: Answered, sampling: Sampling) -> VerdictRecord:
    gold = gold_letter(item)
    if gold is not None:
        said = find_letter(answered.text, item.choices)
        return _without_model(said == gold, f"letter {said} against {gold}")
    step = cascade(answered.text, item.golds)
    if step is not None:
        return _without_model(True, f"cascade: {step}")
    return await _mindgraph_prompt(llm, item, answered, sampling)


def _judge_by(prompt: Prompt) -> Ask:
    """Judge by a prompt of HGMem's, beside the passage that the question was made from."""

    async def ask(llm: LLM, item: Item, answered: Answered, sampling: Sampling) -> VerdictRecord:
        if not item.passage:
            return _none("the item has no passage to judge by")
        printed = prompt.render(
            paragraph=item.passage, question=item.question.text, response=answered.text
        )
        text = printed + EVALUATION_AS_JSON.text
        return await ask_model(
            llm, text, _Evaluation, lambda it: (it.score / 100, it.explanation), sampling
        )

    return ask


async def _locomo(llm: LLM, item: Item, answered: Answered, sampling: Sampling) -> VerdictRecord:
    if item.labels.get("category", item.category) == "5":
        return await _ask_decision(llm, ABSTENTION, replace(item, golds=()), answered, sampling)
    return await _judge_yes_no(TALK)(llm, item, answered, sampling)


_TYPES: Final[Mapping[str, Prompt]] = MappingProxyType(
    {
        "single-session-user": REMEMBERED,
        "single-session-assistant": REMEMBERED,
        "multi-session": REMEMBERED,
        "temporal-reasoning": TEMPORAL,
        "knowledge-update": KNOWLEDGE_UPDATE,
        "single-session-preference": PREFERENCE,
    }
)


async def _longmemeval(
    llm: LLM, item: Item, answered: Answered, sampling: Sampling
) -> VerdictRecord:
    if item.id.endswith("_abs"):
        return await _ask_decision(llm, ABSTENTION, item, answered, sampling)
    if item.category not in _TYPES:
        return _none(f"LongMemEval has no question type {item.category!r}")
    return await _judge_yes_no(_TYPES[item.category])(llm, item, answered, sampling)


async def _dialsim(llm: LLM, item: Item, answered: Answered, sampling: Sampling) -> VerdictRecord:
    if any(answered.text in (gold, f"{gold}.") for gold in item.golds):
        return _without_model(True, "the reference answer itself")
    return await _judge_yes_no(DIALOGUE)(llm, item, answered, sampling)


async def _citation_support(
    llm: LLM, item: Item, answered: Answered, sampling: Sampling
) -> VerdictRecord:
    sentences = [answered.text[slice(*span)].strip() for span in sentence_spans(answered.text)]
    if not answered.citations or not sentences:
        return _none("nothing is cited")
    passages = "\n".join(f"[{n}] {each['quote']}" for n, each in enumerate(answered.citations, 1))
    verdicts = []
    for sentence in sentences:
        text = SUPPORT.render(passages=passages, question=item.question.text, sentence=sentence)
        verdicts.append(
            await ask_model(llm, text, _Support, lambda it: (it.supported, it.reason), sampling)
        )
    scores = [each.score for each in verdicts if each.score is not None]
    reason = " ".join(each.reason for each in verdicts)
    if len(scores) < len(verdicts):
        return _none(reason)
    replies = "\n".join(each.reply for each in verdicts)
    return VerdictRecord(sum(scores) / len(scores), replies, reason)


_ALL: Final = (
    Judge("mindgraph", "MindGraph D.4, after its cascade", (MINDGRAPH,), _mindgraph),
    Judge("mindgraph_prompt", "MindGraph D.4", (MINDGRAPH,), _mindgraph_prompt),
    Judge(
        "hgmem_comprehensiveness",
        "HGMem Fig. 8",
        (COMPREHENSIVENESS, EVALUATION_AS_JSON),
        _judge_by(COMPREHENSIVENESS),
    ),
    Judge(
        "hgmem_diversity",
        "HGMem Fig. 9",
        (DIVERSITY, EVALUATION_AS_JSON),
        _judge_by(DIVERSITY),
    ),
    Judge("entailment", "ours, after HGMem §4.3", (ENTAILMENT,), _judge_yes_no(ENTAILMENT)),
    Judge("correctness", "ours", (CORRECTNESS,), _judge_yes_no(CORRECTNESS)),
    Judge("locomo", "ours", (TALK, ABSTENTION), _locomo),
    Judge(
        "longmemeval",
        "ours, by LongMemEval's question types",
        (*dict.fromkeys(_TYPES.values()), ABSTENTION),
        _longmemeval,
    ),
    Judge("dialsim", "ours", (DIALOGUE,), _dialsim),
    Judge("moviechat", "ours", (FILM,), _judge_yes_no(FILM)),
    Judge("citation_support", "ours", (SUPPORT,), _citation_support),
)

JUDGES: Final[Mapping[str, Judge]] = MappingProxyType({each.name: each for each in _ALL})


# Preferences

NEITHER: Final = 0.5
_SCORES: Final = {"first": 1.0, "second": 0.0, "neither": NEITHER}


class _Preference(_Reply):
    reason: Reason
    better: Literal["first", "second", "neither"]


async def prefer(llm: LLM, item: Item, first: str, second: str) -> VerdictRecord:
    """Compare two answers beside the item's passage, or beside its gold answers if it has none.

    Errors as of ``Judge.judge``; an item with neither is no verdict. Asked in both orders, a model
    that prefers the same place twice looks at the place (``reliability.position_bias``).
    """
    given = {"question": item.question.text, "first": first, "second": second}
    if item.passage:
        text = BETTER.render(passage=item.passage, **given)
    elif item.golds:
        text = CLOSER.render(gold=join_golds(item), **given)
    else:
        return VerdictRecord(None, "", "the item has neither a passage nor a gold answer")
    return await ask_model(
        llm, text, _Preference, lambda it: (_SCORES[it.better], it.reason), JUDGING
    )
