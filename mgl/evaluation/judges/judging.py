"""Judges: a model says under a schema whether an answer is right.

    >>> verdict = await JUDGES["locomo"].judge(llm, item, record)       # doctest: +SKIP
    >>> verdict.score, verdict.reason                                   # doctest: +SKIP
    (1.0, 'Both name the lake.')

| judge | source |
|---|---|
| ``longmemeval_official`` | LongMemEval's own prompts, read from its ``evaluate_qa.py`` |
| ``locomo_mem0`` | Mem0's prompt for LoCoMo, read from its ``llm_judge.py`` |
| ``beam`` | BEAM Listing 20 for each item of a rubric; the order of events by Listing 21 |
| ``beam_released`` | the same, where half an item counts nothing, as in the released code |
| ``locomo_plus_official`` | LoCoMo-Plus's own prompt, read from its ``prompt.py`` |
| ``mindgraph`` | MindGraph D.4 after its cascade; of choices letter against letter |
| ``mindgraph_prompt`` | MindGraph D.4 alone, for what the cascade and it agree on |
| ``hgmem_comprehensiveness``, ``hgmem_diversity`` | HGMem Fig. 8 and 9, beside the item's passage |
| ``entailment`` | ours, after HGMem §4.3: the answer entails the reference (NarrativeQA) |
| ``correctness`` | ours (LooGLE, and wherever there is no other) |
| ``locomo`` | ours; adversarial questions are right where the answer abstains |
| ``locomo_plus`` | ours: a reply shows that the cue, the item's passage, is remembered |
| ``longmemeval`` | ours, by question type; ids in ``_abs`` are right where the answer abstains |
| ``moviechat`` | ours |
| ``citation_support`` | ours: the share of an answer's sentences that what it cites supports |

A verdict is 0 or 1; HGMem's are 0 to 1 (of 100: the score that is given, whatever its level),
support is a share, BEAM's the mean over the rubric (§2.4: 0, 0.5 or 1 an item; the released code
counts 0.5 as 0, and the paper does not say which its tables use). For event ordering both BEAM
judges give Kendall's tau-b of the events that the answer lists, rescaled to 0 to 1 as in the
released report. There is no verdict if a reply does not fit its schema after the client's repairs,
or if an item lacks what the judge reads: the score is None, which is missing, not wrong.

Official prompts are not part of this package: the loaders read them where the user has put the
script beside the benchmark's files (``mgl.benchmarks.official``).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from mgl.benchmarks.base import Item
from mgl.errors import ContextOverflow, EngineError, ReplyInvalid, UsageError
from mgl.evaluation.judges import prompts
from mgl.evaluation.records import Record, VerdictRecord
from mgl.evaluation.scorers.cascade import cascade
from mgl.evaluation.scorers.choices import find_letter, gold_letter
from mgl.evaluation.scorers.rubric import list_events, score_order
from mgl.llm.base import LLM, Message, Sampling
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.constraints import max_chars
from mgl.llm.fakes import ScriptedEngine
from mgl.prompt import Prompt
from mgl.text import sentence_spans

JUDGING: Final = Sampling(max_tokens=400)
REASON_CHARS: Final = 300

TEMPERATURE: Final = 0.7  # of repeats: at 0 a judge repeats itself whatever it is worth
SEED_STEP: Final = 100  # an unusable reply is sampled again with the seeds that follow


def resampled_judging(repeat: int) -> Sampling:
    """Return the sampling of the ``repeat``-th repeat of a verdict, from 1."""
    return replace(JUDGING, temperature=TEMPERATURE, seed=SEED_STEP * repeat)


Reason = Annotated[str, max_chars(REASON_CHARS)]


@dataclass(frozen=True, slots=True)
class Asking:
    """One answer before a judge."""

    llm: LLM
    item: Item
    record: Record
    sampling: Sampling

    async def ask(
        self,
        text: str,
        schema: type[BaseModel] | None,
        read: Callable[[Any], tuple[float | None, str]],
    ) -> VerdictRecord:
        """Ask under a schema, or for plain text, and ``read`` the score and reason from the reply;
        without a score, but with the reason, if the reply is invalid or the prompt too long."""
        try:
            reply = await self.llm.complete(
                [Message("user", text)], schema, sampling=self.sampling, stage="judge"
            )
        except (ReplyInvalid, ContextOverflow) as error:
            return _none(error.message)
        score, reason = read(reply.text if schema is None else reply.parsed)
        return VerdictRecord(None if score is None else float(score), reply.text, reason)

    def with_golds(self, *golds: str) -> Asking:
        return replace(self, item=replace(self.item, golds=golds))

    async def decide(self, prompt: Prompt) -> VerdictRecord:
        """Ask a prompt of ours whether the answer is correct."""
        text = prompt.render(
            question=self.item.question.text,
            gold=join_golds(self.item) or "It never came up.",
            answer=self.record.answer,
        )
        return await self.ask(text, _Reasoned, lambda it: (it.correct, it.reason))


Ask = Callable[[Asking], Awaitable[VerdictRecord]]


def _is_trap(item: Item) -> bool:
    """Whether the right answer is that nothing is known: LoCoMo's category 5, and LongMemEval's
    ids in ``_abs``."""
    return item.labels.get("category", item.category) == "5" or item.id.endswith("_abs")


@dataclass(frozen=True, slots=True)
class Judge:
    """``prompts`` are all that it may use; a run keeps their hashes. It judges an answer only if
    the item has what it ``needs``. An ``official`` one asks what its benchmark's script asks;
    ``variant_of`` names the official one that it asks instead of."""

    name: str
    source: str
    prompts: tuple[Prompt, ...]
    ask: Ask
    needs: Callable[[Item, Record], object] = lambda item, _: item.golds
    official: bool = False
    variant_of: str = ""

    def has_prompts(self, items: Iterable[Item]) -> bool:
        """Whether what it asks is at hand: an official one's script lies beside the data."""
        return not self.official or any(item.judge_prompt for item in items)

    async def judge(
        self, llm: LLM, item: Item, record: Record, *, sampling: Sampling = JUDGING
    ) -> VerdictRecord:
        """Judge an answer. Raises the EngineError family, except for an invalid reply and a prompt
        that is too long: these are no verdict, with their reason."""
        if not self.needs(item, record):
            return _none("there is nothing to judge it by")
        return await self.ask(Asking(llm, item, record, sampling))


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


class _RubricScore(_Reply):
    score: Annotated[float, Field(ge=0, le=1)]
    reason: Reason


class _Same(_Reply):
    same: Literal["YES", "NO"]


class _Label(_Reply):
    label: Literal["CORRECT", "WRONG"]


class _Linked(_Reply):
    label: Literal["correct", "wrong"]
    reason: Reason


def _none(reason: str) -> VerdictRecord:
    return VerdictRecord(None, "", reason)


def join_golds(item: Item) -> str:
    """Join the gold answers as a prompt shows them."""
    return "\nor: ".join(item.golds)


# Official prompts


def _fill_official(asking: Asking) -> str:
    """Fill the official prompt about an answer."""
    item = asking.item
    prompt = Prompt(
        "official", "the benchmark's", item.judge_prompt, ("question", "gold", "answer")
    )
    values = {"question": item.question.text, "gold": item.golds[0] if item.golds else ""}
    return prompt.render(**values, answer=asking.record.answer)


async def _longmemeval_official(asking: Asking) -> VerdictRecord:
    """As the script has it: ten tokens of text, and right if they contain a yes."""
    brief = replace(asking, sampling=replace(asking.sampling, max_tokens=10))
    return await brief.ask(_fill_official(asking), None, lambda said: ("yes" in said.lower(), ""))


async def _locomo_plus_official(asking: Asking) -> VerdictRecord:
    text = _fill_official(_about_cue(asking))
    return await asking.ask(text, _Linked, lambda it: (it.label == "correct", it.reason))


def _about_cue(asking: Asking) -> Asking:
    """Put the item's passage in the place of its gold answer."""
    return asking.with_golds(asking.item.passage)


async def _locomo_mem0(asking: Asking) -> VerdictRecord:
    return await asking.ask(_fill_official(asking), _Label, lambda it: (it.label == "CORRECT", ""))


# The papers' and ours


async def _mindgraph_prompt(asking: Asking) -> VerdictRecord:
    item = asking.item
    text = prompts.MINDGRAPH.render(
        question=item.question.text, gold=join_golds(item), predicted=asking.record.answer
    )
    return await asking.ask(text, _AsPrinted, lambda it: (it.correct, it.reason))


async def _mindgraph(asking: Asking) -> VerdictRecord:
    said, item = asking.record.answer, asking.item
    if (gold := gold_letter(item)) is not None:
        letter = find_letter(said, item.choices)
        return VerdictRecord(float(letter == gold), "", f"letter {letter} against {gold}")
    if (step := cascade(said, item.golds)) is not None:
        return VerdictRecord(1.0, "", f"cascade: {step}")
    return await _mindgraph_prompt(asking)


def _evaluate_by(prompt: Prompt) -> Ask:
    """Judge by a prompt of HGMem's, beside the passage that the question was made from."""

    async def ask(asking: Asking) -> VerdictRecord:
        item = asking.item
        printed = prompt.render(
            paragraph=item.passage, question=item.question.text, response=asking.record.answer
        )
        text = printed + prompts.EVALUATION_AS_JSON.text
        return await asking.ask(text, _Evaluation, lambda it: (it.score / 100, it.explanation))

    return ask


async def _locomo(asking: Asking) -> VerdictRecord:
    if _is_trap(asking.item):
        return await asking.with_golds().decide(prompts.ABSTENTION)
    return await asking.decide(prompts.TALK)


_TYPES: Final[Mapping[str, Prompt]] = MappingProxyType(
    {
        "single-session-user": prompts.REMEMBERED,
        "single-session-assistant": prompts.REMEMBERED,
        "multi-session": prompts.REMEMBERED,
        "temporal-reasoning": prompts.TEMPORAL,
        "knowledge-update": prompts.KNOWLEDGE_UPDATE,
        "single-session-preference": prompts.PREFERENCE,
    }
)


async def _longmemeval(asking: Asking) -> VerdictRecord:
    if _is_trap(asking.item):
        return await asking.decide(prompts.ABSTENTION)
    if (prompt := _TYPES.get(asking.item.category)) is None:
        return _none(f"LongMemEval has no question type {asking.item.category!r}")
    return await asking.decide(prompt)


async def _citation_support(asking: Asking) -> VerdictRecord:
    answer, citations = asking.record.answer, asking.record.citations
    sentences = [answer[slice(*span)].strip() for span in sentence_spans(answer)]
    passages = "\n".join(f"[{n}] {each['quote']}" for n, each in enumerate(citations, 1))
    verdicts = []
    for sentence in sentences:
        text = prompts.SUPPORT.render(
            passages=passages, question=asking.item.question.text, sentence=sentence
        )
        verdicts.append(await asking.ask(text, _Support, lambda it: (it.supported, it.reason)))
    return _average(verdicts)


def _average(verdicts: Sequence[VerdictRecord]) -> VerdictRecord:
    """Join verdicts into one with the mean score; no verdict if one of them has no score."""
    scores = [each.score for each in verdicts if each.score is not None]
    reason = " ".join(each.reason for each in verdicts)
    if len(scores) < len(verdicts):
        return _none(reason)
    replies = "\n".join(each.reply for each in verdicts)
    return VerdictRecord(sum(scores) / len(scores), replies, reason)


# Rubrics

ORDERING: Final = "event_ordering"


def _judge_rubric(count: Callable[[float], float]) -> Ask:
    """Judge by BEAM's prompts; ``count`` turns the score of an item of the rubric into what it
    adds to the mean."""

    async def ask(asking: Asking) -> VerdictRecord:
        item, verdicts = asking.item, []
        if item.category == ORDERING:
            return await _judge_order(asking)
        for wanted in item.rubric:
            text = prompts.BEAM_RUBRIC.render(
                question=item.question.text,
                rubric_item=wanted,
                llm_response=asking.record.answer,
            )
            verdicts.append(
                await asking.ask(text, _RubricScore, lambda it: (count(it.score), it.reason))
            )
        return _average(verdicts)

    return ask


async def _judge_order(asking: Asking) -> VerdictRecord:
    """Score the order of the answer's lines. A line stands for the first event that it means and
    that no earlier line took; as in BEAM's script, an empty line counts as one that means none."""
    left, listed, replies = list(asking.item.rubric), [], []
    for line in list_events(asking.record.answer):
        for event in left if line.strip() else ():
            printed = prompts.BEAM_SAME.render(first_paragraph=event, second_paragraph=line)
            text = printed + prompts.SAME_AS_JSON.text
            verdict = await asking.ask(text, _Same, lambda it: (it.same == "YES", ""))
            if verdict.score is None:
                return verdict
            replies.append(verdict.reply)
            if verdict.score:
                left.remove(event)
                listed.append(event)
                break
        else:
            listed.append(line)
    order = score_order(asking.item.rubric, listed)
    found = len(asking.item.rubric) - len(left)
    told = f"{found} of {len(asking.item.rubric)} events in {len(listed)} lines, F1 {order.f1:.2f}"
    return VerdictRecord(order.tau, "\n".join(replies), told)


def _list_judges() -> Iterator[Judge]:
    p = prompts
    official = partial(Judge, prompts=(), needs=lambda item, _: item.judge_prompt, official=True)
    script = "LongMemEval's evaluate_qa.py"
    yield official("longmemeval_official", script, ask=_longmemeval_official)
    yield official("locomo_mem0", "Mem0's llm_judge.py", ask=_locomo_mem0)
    yield official("locomo_plus_official", "LoCoMo-Plus's prompt.py", ask=_locomo_plus_official)
    yield Judge(
        *("locomo_plus", "ours", (p.TAKEN_UP,)),
        lambda asking: _about_cue(asking).decide(p.TAKEN_UP),
        lambda item, _: item.passage,
        variant_of="locomo_plus_official",
    )
    printed = (p.BEAM_RUBRIC, p.BEAM_SAME, p.SAME_AS_JSON)
    for name, source, count in (
        ("beam", "BEAM Listings 20 and 21", float),
        ("beam_released", "BEAM's released code", int),
    ):
        yield Judge(name, source, printed, _judge_rubric(count), lambda item, _: item.rubric)
    yield Judge("mindgraph", "MindGraph D.4, after its cascade", (p.MINDGRAPH,), _mindgraph)
    yield Judge("mindgraph_prompt", "MindGraph D.4", (p.MINDGRAPH,), _mindgraph_prompt)
    for prompt, figure in ((p.COMPREHENSIVENESS, "HGMem Fig. 8"), (p.DIVERSITY, "HGMem Fig. 9")):
        name, asked = prompt.name.replace(".", "_"), (prompt, p.EVALUATION_AS_JSON)
        yield Judge(name, figure, asked, _evaluate_by(prompt), lambda item, _: item.passage)
    for name, source, prompt in (
        ("entailment", "ours, after HGMem §4.3", p.ENTAILMENT),
        ("correctness", "ours", p.CORRECTNESS),
        ("moviechat", "ours", p.FILM),
    ):
        yield Judge(name, source, (prompt,), partial(Asking.decide, prompt=prompt))
    trapping = partial(Judge, needs=lambda item, _: item.golds or _is_trap(item))
    asked = (p.TALK, p.ABSTENTION)
    yield trapping("locomo", "ours", asked, _locomo, variant_of="locomo_mem0")
    own = (*dict.fromkeys(_TYPES.values()), p.ABSTENTION)
    ours = "ours, by question type"
    yield trapping("longmemeval", ours, own, _longmemeval, variant_of="longmemeval_official")
    yield Judge(
        *("citation_support", "ours", (p.SUPPORT,), _citation_support),
        needs=lambda _, said: said.citations and said.answer.strip(),
    )


JUDGES: Final[Mapping[str, Judge]] = MappingProxyType({each.name: each for each in _list_judges()})


def find_judge(name: str) -> Judge:
    """Find a judge by its name; UsageError if there is none."""
    if name not in JUDGES:
        raise UsageError(f"there is no judge {name!r}", hint=f"take one of {', '.join(JUDGES)}")
    return JUDGES[name]


# Reading verdicts again

_ROOM: Final = 10**9  # tokens of context, for any prompt


class _NoLog(MemoryCallLog):
    """Has every call made, also one that was made before."""

    def replay(self, _key: str) -> None:
        return None


async def read_again(
    verdict: VerdictRecord, ask: Callable[[LLM], Awaitable[VerdictRecord]]
) -> float | None:
    """Return the score that ``ask`` reads from the replies of a verdict, or has by rule without
    them."""
    engine = ScriptedEngine(_split_replies(verdict.reply), context_tokens=_ROOM)
    try:
        return (await ask(Client(engine, _NoLog()))).score
    except EngineError:  # it asks for more than was said
        return None


def _split_replies(text: str) -> list[str]:
    """Split the replies of a verdict: several are JSON, one after the other."""
    found, start, decoder = [], 0, json.JSONDecoder()
    try:
        while start < len(text):
            _, end = decoder.raw_decode(text, start)
            found.append(text[start:end])
            start = end + len(text[end:]) - len(text[end:].lstrip())
    except ValueError:
        return [text]
    return found
