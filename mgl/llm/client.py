"""The model as memories see it: one engine, one call log, one policy.

    >>> import asyncio
    >>> from mgl.llm.base import Message
    >>> from mgl.llm.calls import MemoryCallLog
    >>> from mgl.llm.fakes import ScriptedEngine
    >>> llm = Client(ScriptedEngine(["Paris"]), MemoryCallLog())
    >>> asyncio.run(llm.complete([Message("user", "The capital of France?")])).text
    'Paris'

A call is replayed if the log holds its key, shared if the same call is in flight, and else sent:
retried while its error is retryable, asked again with another seed while its reply is empty or
breaks its schema, told once which rule it broke where its form was right, asked once more with
twice the budget if it was cut off. Every attempt is one
row of the log, with its outcome.

It does not know prompts or memories, and it trusts no engine: every reply is validated here.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
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
from mgl.llm.base import Completion, Engine, Message, Reply, Request, Sampling, SchemaT, Tool
from mgl.llm.calls import CallLog, CallRecord, Outcome, call_key
from mgl.llm.concurrency import Limiter
from mgl.llm.patience import Patience
from mgl.llm.repairs import invalid, told, varied
from mgl.llm.replies import Verdict, judge
from mgl.llm.schemas import json_schema
from mgl.llm.sharing import Sharing
from mgl.types import StageUsage

__all__ = ["Client", "Policy"]


@dataclass(frozen=True, slots=True)
class Policy:
    """How hard the client tries.

    ``timeout_s`` bounds one attempt in the engine; ``max_retries`` counts repeats after a
    retryable error of a call or a count, ``backoff_s`` is the first pause between them (doubled
    each time, with jitter); ``outage_s`` is how long a server that answered before is waited for
    when it is away; ``repair_attempts`` counts repeats after an empty or invalid reply.
    ``concurrency`` None is as many calls at once as the server takes without queueing
    (``mgl.llm.concurrency``).
    """

    timeout_s: float = 600.0
    max_retries: int = 2
    backoff_s: float = 0.5
    outage_s: float = 300.0
    concurrency: int | None = None
    repair_attempts: int = 2


_POLICY = Policy()

_NO_SCHEMA: type[BaseModel] | None = None
_YES_NO = ("Yes", "No")
_CHOICE_TOKENS = 4


@dataclass(frozen=True, slots=True)
class _Done:
    key: str
    completion: Completion
    seconds: float
    replayed: bool


@dataclass(slots=True)
class _Running:
    """What belongs to one event loop."""

    loop: asyncio.AbstractEventLoop
    slots: Limiter
    calls: Sharing[_Done] = field(default_factory=Sharing)


class Client:
    """The ``LLM`` of a run. Use it from one event loop at a time."""

    def __init__(self, engine: Engine, log: CallLog, policy: Policy = _POLICY) -> None:
        self._engine = engine
        self._log = log
        self._policy = policy
        self._usage: dict[str, StageUsage] = {}
        self._schemas: WeakKeyDictionary[type[BaseModel], dict[str, object]] = WeakKeyDictionary()
        self._running: _Running | None = None

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
        """A client of the same engine and the same slots that records elsewhere, with a usage of
        its own: for memories that are built side by side. Call it in the loop that both run in.
        """
        other = Client(self._engine, log, self._policy)
        other._running = self._here()
        return other

    def usage(self) -> dict[str, StageUsage]:
        """What was used since the client was made, by stage."""
        return dict(self._usage)

    async def aclose(self) -> None:
        await self._engine.aclose()

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return await self._patience().over(lambda: self._engine.count_tokens(texts))

    async def count_prompt_tokens(
        self,
        messages: Sequence[Message],
        schema: type[BaseModel] | None = None,
        *,
        tools: Sequence[Tool] = (),
    ) -> int:
        request = self._request(messages, schema, tools)
        return await self._patience().over(lambda: self._engine.count_prompt_tokens(request))

    async def complete(
        self,
        messages: Sequence[Message],
        schema: type[SchemaT] | None = None,
        *,
        tools: Sequence[Tool] = (),
        sampling: Sampling | None = None,
        stage: str = "",
    ) -> Reply[SchemaT]:
        """One validated reply; see ``mgl.llm.base.LLM``.

        Where both tools and a schema are given, a reply that breaks the schema is repaired
        without tools, so that the engine can decode under the schema.
        """
        if tools and not self._engine.native_tools:
            raise UsageError(
                f"{self.model_id} has no native tool calls",
                hint="describe the actions as a schema, or use a model with native_tools",
            )
        request = self._request(messages, schema, tools, sampling)
        done, verdict = await self._judged(request, schema, stage)
        return Reply(
            text=verdict.text,
            parsed=verdict.parsed,
            tool_calls=done.completion.tool_calls,
            usage=done.completion.usage,
            finish_reason=done.completion.finish_reason,
            seconds=done.seconds,
            replayed=done.replayed,
            call_key=done.key,
        )

    async def _judged(
        self, request: Request, schema: type[SchemaT] | None, stage: str
    ) -> tuple[_Done, Verdict[SchemaT]]:
        """A completion and its good verdict, after as many repairs as the policy allows."""
        was_told = False
        for attempt in count(1):
            done = await self._whole(request, schema, stage)
            verdict = judge(done.completion, schema, request.choices)
            if verdict.outcome == "ok":
                return done, verdict
            if attempt > self._policy.repair_attempts or (was_told and verdict.rule is not None):
                raise invalid(verdict, attempt)
            if verdict.rule is None:
                request = varied(request)
            else:
                request, was_told = told(request, verdict), True
        raise AssertionError("counting does not end")

    async def probability_of_yes(self, messages: Sequence[Message], *, stage: str = "") -> float:
        """P(Yes) of a reply that must be Yes or No; see ``mgl.llm.base.LLM``."""
        sampling = Sampling(max_tokens=_CHOICE_TOKENS)
        request = Request(tuple(messages), sampling=sampling, choices=_YES_NO)
        done, verdict = await self._judged(request, _NO_SCHEMA, stage)
        if not done.completion.logprobs:
            raise ReplyInvalid(
                f"the reply {verdict.text} came without its log-probability",
                hint="use an engine that gives log-probabilities, or a preset that needs none",
            )
        chosen = math.exp(done.completion.logprobs[0])
        return chosen if verdict.text == _YES_NO[0] else 1.0 - chosen

    def _request(
        self,
        messages: Sequence[Message],
        schema: type[BaseModel] | None,
        tools: Sequence[Tool],
        sampling: Sampling | None = None,
    ) -> Request:
        described = None
        if schema is not None:
            described = self._schemas.get(schema)
            if described is None:
                described = self._schemas[schema] = json_schema(schema)
        return Request(tuple(messages), described, tuple(tools), sampling or Sampling())

    async def _whole(self, request: Request, schema: type[SchemaT] | None, stage: str) -> _Done:
        """A completion that was not cut off, with up to twice the budget asked for."""
        done = await self._completion(request, schema, stage)
        if done.completion.finish_reason != "length":
            return done
        asked = request.sampling.max_tokens
        room = self.context_tokens - done.completion.usage.input_tokens
        budget = min(2 * asked, room)
        if budget > asked:
            sampling = replace(request.sampling, max_tokens=budget)
            done = await self._completion(replace(request, sampling=sampling), schema, stage)
            if done.completion.finish_reason != "length":
                return done
        raise ReplyInvalid(
            f"the reply was cut off at {max(asked, budget):,} tokens",
            hint="raise the reply budget, ask for less in one call, or use a longer context",
        )

    async def _completion(
        self, request: Request, schema: type[BaseModel] | None, stage: str
    ) -> _Done:
        key = call_key(self.model_id, request)
        record = self._log.replay(key)
        if record is not None and record.completion is not None:
            self._count_replay(stage, record.completion)
            return _Done(key, record.completion, record.seconds, replayed=True)
        done, shared = await self._here().calls.join(
            key, lambda: self._issue(key, request, schema, stage)
        )
        if not shared:
            return done
        self._count_replay(stage, done.completion)
        return replace(done, replayed=True)

    def _here(self) -> _Running:
        loop = asyncio.get_running_loop()
        if self._running is None or self._running.loop is not loop:
            fixed = self._policy.concurrency
            slots = (
                Limiter(fixed)
                if fixed
                else Limiter(self._engine.concurrency, waiting=self._engine.waiting)
            )
            self._running = _Running(loop, slots)
        return self._running

    async def _issue(
        self, key: str, request: Request, schema: type[BaseModel] | None, stage: str
    ) -> _Done:
        await self._check_context(request)
        patience = self._patience()
        while True:
            try:
                async with self._here().slots:
                    start = time.perf_counter()
                    completion = await self._send(request)
            except EngineError as error:
                failure, completion = error, None
            seconds = time.perf_counter() - start
            outcome: Outcome
            if completion is not None:
                verdict = judge(completion, schema, request.choices)
                outcome, reason = verdict.outcome, verdict.error
            else:
                outcome, reason = _outcome(failure), failure.message
            self._log.record(
                CallRecord(key, stage, self.model_id, request, completion, outcome, reason, seconds)
            )
            if completion is not None:
                completion = self._first(key, completion)
            self._count_call(stage, completion, seconds, violated=outcome == "violated")
            if completion is not None:
                return _Done(key, completion, seconds, replayed=False)
            await patience.wait(failure)

    def _first(self, key: str, completion: Completion) -> Completion:
        """What the log will replay: another process may have issued the same call, and its reply
        came first. So all that work over one log go on from the same reply."""
        first = self._log.replay(key)
        return completion if first is None or first.completion is None else first.completion

    def _patience(self) -> Patience:
        policy = self._policy
        return Patience(policy.outage_s, policy.backoff_s, retries=policy.max_retries)

    async def _send(self, request: Request) -> Completion:
        limit = asyncio.timeout(self._policy.timeout_s)
        try:
            async with limit:
                return await self._engine.generate(request)
        except TimeoutError:
            if not limit.expired():
                raise
            raise EngineTimeout(
                f"the model gave no answer within {self._policy.timeout_s:g} s",
                hint="raise the time-out, use smaller chunks, or look at the server's log",
            ) from None

    async def _check_context(self, request: Request) -> None:
        budget = request.sampling.max_tokens
        room = self.context_tokens - budget
        if _most_tokens(request) <= room:
            return
        used = await self._patience().over(lambda: self._engine.count_prompt_tokens(request))
        room = self.context_tokens - budget
        if used > room:
            raise ContextOverflow(
                f"the prompt has {used:,} tokens and its reply may take {budget:,}, "
                f"but the model's context holds {self.context_tokens:,}",
                hint="use smaller chunks, a smaller reply budget, or a model with a longer context",
            )

    def _count_call(
        self, stage: str, completion: Completion | None, seconds: float, *, violated: bool
    ) -> None:
        spent = StageUsage(
            calls=1, seconds=seconds, violated=int(violated), failed=int(completion is None)
        )
        if completion is not None:
            usage = completion.usage
            spent = replace(
                spent,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cached_tokens=usage.cached_tokens,
                loosened=completion.loosened,
            )
        self._usage[stage] = self._usage.get(stage, StageUsage()) + spent

    def _count_replay(self, stage: str, completion: Completion) -> None:
        usage = completion.usage
        saved = StageUsage(
            replayed=1,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.input_tokens,
            loosened=completion.loosened,
        )
        self._usage[stage] = self._usage.get(stage, StageUsage()) + saved


def _most_tokens(request: Request) -> int:
    """More tokens than a prompt can have: a token covers a byte or more of what was written.

    The rest is room for what a chat template adds (role marks, a default system prompt, the
    frame around tools).
    """
    texts = [m.content for m in request.messages]
    texts += [call.arguments + call.name for m in request.messages for call in m.tool_calls]
    texts += [f"{tool.name}{tool.description}{dict(tool.parameters)}" for tool in request.tools]
    frame = 256 + 64 * len(request.messages) + (1024 if request.tools else 0)
    return frame + sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


def _outcome(error: EngineError) -> Outcome:
    if isinstance(error, EngineTimeout):
        return "timeout"
    if isinstance(error, ContextOverflow):
        return "overflow"
    if isinstance(error, EngineFailed):
        return "failed"
    return "unavailable" if isinstance(error, EngineUnavailable) else "refused"
