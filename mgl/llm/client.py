"""The model as memories see it: one engine, one call log, one policy.

    >>> import asyncio
    >>> from mgl.llm.base import Message
    >>> from mgl.llm.calls import MemoryCallLog
    >>> from mgl.llm.fakes import ScriptedEngine
    >>> llm = Client(ScriptedEngine(["Paris"]), MemoryCallLog())
    >>> asyncio.run(llm.complete([Message("user", "The capital of France?")])).text
    'Paris'

A call is replayed if the log holds its key, shared if the same call is in flight, and otherwise
sent. It is retried while its error is retryable; resampled with another seed if its reply is empty
or invalid; repeated once with feedback if a well-formed reply breaks a rule; repeated once with
twice the budget if it was cut off. If no reply is usable, a later attempt of a person starts over
with other seeds. Every attempt is one row of the log, with its outcome.

No engine is trusted: every reply is validated here, once.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from mgl.errors import (
    ContextOverflow,
    EngineError,
    EngineFailed,
    EngineTimeout,
    EngineUnavailable,
    ReplyInvalid,
    UsageError,
)
from mgl.llm.base import Completion, Engine, Message, Reply, Request, Sampling, Tool
from mgl.llm.calls import (
    CallLog,
    CallRecord,
    Lineage,
    Outcome,
    call_key,
    may_ask_anew,
    note_call,
    note_unusable,
    note_usage,
)
from mgl.llm.concurrency import Retries, SharedCalls
from mgl.llm.replies import (
    Verdict,
    ask_anew,
    invalid_reply,
    judge,
    resample,
    with_feedback,
)
from mgl.llm.schemas import json_schema
from mgl.types import StageUsage


@dataclass(frozen=True, slots=True)
class Policy:
    """How persistent the client is.

    ``timeout_s`` bounds one attempt in the engine, with ``token_s`` more for each token that the
    reply may have. ``max_retries`` counts repeats after a retryable error, ``backoff_s`` is the
    first pause between them (it doubles, with jitter). ``outage_s`` is how long to wait for a
    server that answered before and is away. ``repair_attempts`` counts repeats after an empty or
    invalid reply. ``concurrency`` is how many calls are sent at once; None is the engine's own
    number.
    """

    timeout_s: float = 600.0
    token_s: float = 0.0
    max_retries: int = 2
    backoff_s: float = 0.5
    outage_s: float = 300.0
    concurrency: int | None = None
    repair_attempts: int = 2


_POLICY = Policy()
_YES_NO = ("Yes", "No")
_CHOICE_TOKENS = 4


@dataclass(frozen=True, slots=True)
class _Done:
    """A completion with its verdict."""

    key: str
    completion: Completion
    verdict: Verdict[Any]
    seconds: float
    replayed: bool = False


@dataclass(slots=True)
class _Running:
    """What belongs to one event loop."""

    loop: asyncio.AbstractEventLoop
    slots: asyncio.Semaphore
    calls: SharedCalls[_Done] = field(default_factory=SharedCalls)


class Client:
    """The ``LLM`` of a run. Use it from one event loop at a time."""

    def __init__(self, engine: Engine, log: CallLog, policy: Policy = _POLICY) -> None:
        self._engine = engine
        self._log = log
        self._policy = policy
        self._usage: dict[str, StageUsage] = {}
        self._schemas: WeakKeyDictionary[type[BaseModel], dict[str, object]] = WeakKeyDictionary()
        self._running: _Running | None = None
        self._seed_shift = 0

    @property
    def model_id(self) -> str:
        return self._engine.model_id

    @property
    def context_tokens(self) -> int:
        return self._engine.context_tokens

    @property
    def native_tools(self) -> bool:
        return self._engine.native_tools

    def beside(self, log: CallLog) -> Client:
        """A client of the same engine and slots with a log and a usage of its own.

        For memories that are built side by side; call it in the loop that both run in.
        """
        other = Client(self._engine, log, self._policy)
        other._running = self._on_this_loop()
        other._schemas, other._seed_shift = self._schemas, self._seed_shift
        return other

    def shift_seeds(self, shift: int) -> None:
        """Sample with other seeds from now on, for a repeat; greedy calls stay the same calls."""
        self._seed_shift = shift

    def usage(self) -> dict[str, StageUsage]:
        """The usage since the client was made, by stage."""
        return dict(self._usage)

    async def aclose(self) -> None:
        await self._engine.aclose()

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return await self._retries().run(lambda: self._engine.count_tokens(texts))

    async def count_prompt_tokens(
        self, messages: Sequence[Message], schema: type[BaseModel] | None = None
    ) -> int:
        request = Request(tuple(messages), self._describe(schema))
        return await self._retries().run(lambda: self._engine.count_prompt_tokens(request))

    async def complete(
        self,
        messages: Sequence[Message],
        schema: type[BaseModel] | None = None,
        *,
        tools: Sequence[Tool] = (),
        sampling: Sampling | None = None,
        stage: str = "",
    ) -> Reply[Any]:
        """One validated reply; see ``mgl.llm.base.LLM``."""
        if tools and not self._engine.native_tools:
            raise UsageError(
                f"{self.model_id} has no native tool calls",
                hint="describe the actions as a schema, or use a model with native_tools",
            )
        described = self._describe(schema)
        sampling = sampling or Sampling()
        if sampling.temperature > 0:
            sampling = replace(sampling, seed=sampling.seed + self._seed_shift)
        request = Request(tuple(messages), described, tuple(tools), sampling)
        done = await self._complete(request, schema, stage)
        return Reply(
            text=done.verdict.text,
            parsed=done.verdict.parsed,
            tool_calls=done.completion.tool_calls,
            usage=done.completion.usage,
            finish_reason=done.completion.finish_reason,
            seconds=done.seconds,
            replayed=done.replayed,
            call_key=done.key,
        )

    async def forward(self, request: Request, *, stage: str = "") -> Reply[None]:
        """Another program's request, as it is; see ``mgl.llm.base.LLM``."""
        budget = request.sampling.max_tokens
        if _most_tokens(request) > self.context_tokens - budget:
            used = await self._retries().run(lambda: self._engine.count_prompt_tokens(request))
            if 0 < (room := self.context_tokens - used) < budget:
                request = replace(request, sampling=replace(request.sampling, max_tokens=room))
        done = await self._call(request, None, stage)
        completion = done.completion
        return Reply(
            text=completion.text,
            parsed=None,
            tool_calls=completion.tool_calls,
            usage=completion.usage,
            finish_reason=completion.finish_reason,
            seconds=done.seconds,
            replayed=done.replayed,
            call_key=done.key,
        )

    async def probability_of_yes(self, messages: Sequence[Message], *, stage: str = "") -> float:
        """P(Yes) of a reply that must be Yes or No; see ``mgl.llm.base.LLM``."""
        sampling = Sampling(max_tokens=_CHOICE_TOKENS)
        request = Request(tuple(messages), sampling=sampling, choices=_YES_NO)
        done = await self._complete(request, None, stage)
        if not done.completion.logprobs:
            raise ReplyInvalid(
                f"the reply {done.verdict.text} came without its log-probability",
                hint="use an engine that gives log-probabilities, or a preset that needs none",
            )
        chosen = math.exp(done.completion.logprobs[0])
        return chosen if done.verdict.text == _YES_NO[0] else 1.0 - chosen

    async def _complete(
        self, request: Request, schema: type[BaseModel] | None, stage: str
    ) -> _Done:
        """A valid completion, after as many repairs as the policy allows.

        If they fail the request is repeated as often as the log has it, and once more in a new
        attempt.
        """
        while True:
            done, error = await self._repair(request, schema, stage)
            if error is None:
                return done
            request = ask_anew(request)
            again = self._log.replay(call_key(self.model_id, request))
            if again is None and not may_ask_anew(done.key):
                raise error

    async def _repair(
        self, request: Request, schema: type[BaseModel] | None, stage: str
    ) -> tuple[_Done, ReplyInvalid | None]:
        """The last completion of a request and its repairs; the error if it is unusable, too."""
        sent, attempt, had_feedback = request, 1, False
        while True:
            done = await self._call(sent, schema, stage)
            verdict = done.verdict
            if verdict.outcome == "ok":
                return done, None
            if verdict.outcome == "truncated":
                budget = sent.sampling.max_tokens
                room = self.context_tokens - done.completion.usage.input_tokens
                if sent is not request or room <= budget:
                    return done, ReplyInvalid(
                        f"the reply was cut off at {budget:,} tokens",
                        hint="raise the reply budget, ask for less in one call, or use a longer "
                        "context",
                    )
                roomier = replace(sent.sampling, max_tokens=min(2 * budget, room))
                sent = replace(request, sampling=roomier)
                continue
            if attempt > self._policy.repair_attempts or (had_feedback and verdict.rule):
                return done, invalid_reply(verdict, attempt)
            if verdict.rule is None:
                request = resample(request)
            else:
                request, had_feedback = with_feedback(request, verdict), True
            sent, attempt = request, attempt + 1

    async def _call(self, request: Request, schema: type[BaseModel] | None, stage: str) -> _Done:
        """A completion from the log, from the same call in flight, or from the engine."""
        key = call_key(self.model_id, request)
        lineage = note_call(key)
        record = self._log.replay(key)
        if record is not None and record.completion is not None:
            completion, seconds = record.completion, record.seconds
        else:
            async with self._on_this_loop().calls.join(
                key, lambda: self._send(key, request, schema, stage, lineage)
            ) as (flight, shared):
                done = await flight
            if not shared:
                return done
            completion, seconds = done.completion, done.seconds
        self._count(stage, completion, StageUsage(replayed=1), cached=True)
        return _Done(key, completion, judge(completion, request, schema), seconds, replayed=True)

    async def _send(
        self,
        key: str,
        request: Request,
        schema: type[BaseModel] | None,
        stage: str,
        lineage: Lineage | None,
    ) -> _Done:
        """Send a request until a completion comes back; each attempt is logged and counted."""
        await self._check_context(request)
        retries = self._retries()
        most_s = self._policy.timeout_s + self._policy.token_s * request.sampling.max_tokens
        while True:
            failure: EngineError
            completion = verdict = None
            try:
                async with self._on_this_loop().slots:
                    start = time.perf_counter()
                    limit = asyncio.timeout(most_s)  # from now, and not from when it was queued
                    async with limit:
                        completion = await self._engine.generate(request)
            except TimeoutError:
                if not limit.expired():
                    raise
                failure = EngineTimeout(
                    f"the model gave no answer within {most_s:g} s",
                    hint="raise the time-out, use smaller chunks, or look at the server's log",
                )
            except EngineError as error:
                failure = error
            seconds = time.perf_counter() - start
            outcome: Outcome
            if completion is not None:
                verdict = judge(completion, request, schema)
                outcome, reason = verdict.outcome, verdict.error or None
            else:
                outcome, reason = _outcome_of(failure), failure.message
            call = (key, stage, self.model_id, request, completion, outcome, reason, seconds)
            self._log.record(CallRecord(*call, lineage=lineage))
            spent = StageUsage(calls=1, seconds=seconds, violated=int(outcome == "violated"))
            if completion is None or verdict is None:
                self._count(stage, None, replace(spent, failed=1))
                await retries.pause(failure)
                continue
            # Another process may have made the same call, and its reply may have been logged
            # first: everybody who works over one log goes on from the same reply.
            first = self._log.replay(key)
            if first is not None and first.completion not in (None, completion):
                completion = first.completion
                verdict = judge(completion, request, schema)
            self._count(stage, completion, spent)
            if verdict.outcome != "ok":
                note_unusable(key)
            return _Done(key, completion, verdict, seconds)

    async def _check_context(self, request: Request) -> None:
        """Raise ContextOverflow if prompt and reply budget exceed the model's context."""
        budget = request.sampling.max_tokens
        if _most_tokens(request) <= self.context_tokens - budget:
            return
        used = await self._retries().run(lambda: self._engine.count_prompt_tokens(request))
        if used > self.context_tokens - budget:  # counting may start the engine, and shorten it
            raise ContextOverflow(
                f"the prompt has {used:,} tokens and its reply may take {budget:,}, "
                f"but the model's context holds {self.context_tokens:,}",
                hint="use smaller chunks, a smaller reply budget, or a model with a longer context",
            )

    def _describe(self, schema: type[BaseModel] | None) -> dict[str, object] | None:
        if schema is None:
            return None
        described = self._schemas.get(schema)
        if described is None:
            described = self._schemas[schema] = json_schema(schema)
        return described

    def _on_this_loop(self) -> _Running:
        loop = asyncio.get_running_loop()
        if self._running is None or self._running.loop is not loop:
            most = self._policy.concurrency or self._engine.concurrency
            self._running = _Running(loop, asyncio.Semaphore(most))
        return self._running

    def _retries(self) -> Retries:
        policy = self._policy
        return Retries(policy.outage_s, policy.backoff_s, retries=policy.max_retries)

    def _count(
        self, stage: str, completion: Completion | None, spent: StageUsage, *, cached: bool = False
    ) -> None:
        if completion is not None:
            usage = completion.usage
            spent = replace(
                spent,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cached_tokens=usage.input_tokens if cached else usage.cached_tokens,
                loosened=completion.loosened,
            )
        self._usage[stage] = self._usage.get(stage, StageUsage()) + spent
        note_usage(stage, spent)


def _most_tokens(request: Request) -> int:
    """An upper bound of a prompt's tokens: each covers at least one byte of what was written.

    The rest is room for what a chat template adds (role marks, a default system prompt, the
    frame around tools).
    """
    texts = [m.content for m in request.messages]
    texts += [call.arguments + call.name for m in request.messages for call in m.tool_calls]
    texts += [f"{tool.name}{tool.description}{dict(tool.parameters)}" for tool in request.tools]
    frame = 256 + 64 * len(request.messages) + (1024 if request.tools else 0)
    return frame + sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


def _outcome_of(error: EngineError) -> Outcome:
    if isinstance(error, EngineTimeout):
        return "timeout"
    if isinstance(error, ContextOverflow):
        return "overflow"
    if isinstance(error, EngineFailed):
        return "failed"
    return "unavailable" if isinstance(error, EngineUnavailable) else "refused"
