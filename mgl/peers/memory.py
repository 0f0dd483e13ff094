"""A peer as a memory: what another package remembers, with the calls that it makes on our books.

The package runs in its own environment (``mgl.peers.process``) and calls the model by the proxy, so
its calls are in the log, and its reading is done again from there: what it keeps on disk lives as
long as its process. Opened again, the memory is read again by calls that are all in the log, and a
build that was killed goes on with the first call that is not.

``mode=retrieval`` gives what the peer finds to the call that answers for every baseline, so that
methods differ by what they read alone; ``native`` takes the peer's own answer, as its authors do.

The log has a row for each part of the source that was read, with its span, and in the end the
peer's own counts: what it holds, and what it could not use of the model's replies.
"""

from __future__ import annotations

import asyncio
import secrets
import weakref
from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Literal

from pydantic import Field, RootModel

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt
from mgl.errors import EngineError, EngineTimeout, EngineUnavailable, MglError, StoreDeleted
from mgl.llm.prompting import available_tokens, take_leading
from mgl.memories.log import Vocabulary
from mgl.models import shipped
from mgl.peers.environments import PEERS, find_python, lock_hash
from mgl.peers.process import PeerProcess
from mgl.peers.proxy import Proxy, ServedModels
from mgl.retrieval.base import Embedder
from mgl.types import Answer, Conversation, Question, Span

LONG_AGO: Final = "2024-01-01T00:00:00+00:00"
"""What time it is for a peer that reads a source without times."""

_OURS: Final = (EngineUnavailable, EngineTimeout, StoreDeleted)


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of the source as a peer is given it; ``turns`` are those of a conversation."""

    place: int
    text: str
    span: Span
    tokens: int = 0
    speaker: str = ""
    time: str = ""
    turns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """What a peer finds for a question, and the units that it stands on."""

    text: str
    kind: str
    units: tuple[Unit, ...]


def _list_spans(found: Sequence[PeerAnswer]) -> list[Span]:
    """What was read of the source, each part once."""
    return list(dict.fromkeys(unit.span for each in found for unit in each.units))


class PeerConfig(BaselineConfig):
    """``mode``: what the peer finds is read by the shared answering call, or its own answer is
    taken. ``reply_tokens`` is the budget of a call for which the peer names none."""

    mode: Literal["retrieval", "native"] = "retrieval"
    reply_tokens: int = Field(2048, ge=16)


@dataclass(frozen=True, slots=True)
class ReadUnit:
    """A part of the source that a peer has read."""

    place: int
    span: Span


class PeerCounts(RootModel[dict[str, int]]):
    """What a peer holds, and what it could not use of the model's replies."""


class PeerMemory(Baseline[None]):
    """What another package remembers of a source, and finds in it.

    Subclasses name the ``peer``, cut the source into ``_units`` and say how it is set up.
    """

    peer: ClassVar[str]
    retrieves = True
    vocabulary = Vocabulary(
        {"read": ReadUnit},
        lambda state, _: state,
        None,
        events={"counts": PeerCounts},
        columns=("span",),
    )
    _config: PeerConfig

    @abstractmethod
    async def _units(self) -> list[Unit]:
        """The source as the peer reads it, part by part."""

    @abstractmethod
    def _set_up(self) -> dict[str, Any]:
        """The settings of the adapter, besides model, embedder and folder."""

    def _batches(self, units: Sequence[Unit]) -> list[Sequence[Unit]]:
        """Which units are read at once."""
        return [units] if units else []

    def _scope(self) -> dict[str, Any]:
        return {**super()._scope(), **self.describe_package()}

    @classmethod
    def describe_package(cls) -> dict[str, str]:
        """Return what pins the package: its version, and the hash of its environment's lock."""
        return {"peer": PEERS[cls.peer].version, "lock": lock_hash(cls.peer)}

    async def _count_steps(self) -> int:
        return len(self._batches(await self._units())) + 1

    async def _read(self) -> None:
        self._end()
        if not await self._units():
            await super()._read()
            return
        async with self._serve_stage("build"):
            await self._feed()

    async def _respond(self, question: Question) -> Answer:
        units = {unit.place: unit for unit in await self._units()}
        if not units:
            return await self._answer(question, [])
        async with self._serve_stage("answer") as process:
            if self._fed is None:
                await self._feed()
            rows = await asyncio.to_thread(process.do, "retrieve", question=question.text)
            native = None
            if self._config.mode == "native":
                native = await asyncio.to_thread(process.do, "answer", question=question.text)
        found = [
            PeerAnswer(row["text"], row["kind"], tuple(units[at] for at in row["units"]))
            for row in rows
        ]
        kinds = Counter(each.kind for each in found)
        counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        trace = [f"found {counted or 'nothing'}"]
        if native is not None:
            trace += native["trace"]
            return await self._take_native(question, native["text"], found, trace)
        return await self._answer_from(question, found, trace)

    async def _answer_from(
        self, question: Question, found: Sequence[PeerAnswer], trace: Sequence[str]
    ) -> Answer:
        """The shared answering call over what was found, as much as fits."""
        llm = self._tools.llm
        most = available_tokens(llm, len(found), reserve=await self._reserve(question))
        kept = await take_leading(llm, [each.text for each in found], most) if found else []
        excerpts = []
        for place, (text, each) in enumerate(zip(kept, found, strict=False)):
            turns = tuple(dict.fromkeys(turn for unit in each.units for turn in unit.turns))
            span = each.units[0].span if each.units else None
            if turns and isinstance(self._source, Conversation):
                span = self._span_of(sorted(turns))
            excerpts.append(Excerpt(text, f"{each.kind}-{place}", span, turns))
        marks = ("text_truncated",) if len(kept) < len(found) else ()
        read = _list_spans(found)
        return await self._answer(question, excerpts, read=read, trace=trace, marks=marks)

    async def _take_native(
        self, question: Question, text: str, found: Sequence[PeerAnswer], trace: Sequence[str]
    ) -> Answer:
        """The peer's own answer; one of the question's options where it has any, which the shared
        answering call chooses by what the peer said."""
        read = _list_spans(found)
        if question.options:
            said = Excerpt(text.strip(), "answer")
            return await self._answer(question, [said], read=read, trace=trace)
        tokens = await self.source_tokens()
        texts = [each.text for each in found]
        seen = sum(await self._tools.llm.count_tokens(texts)) if texts else 0
        answer = Answer(question.text, text.strip(), "low", (), tuple(trace))
        named = self._name_passages([], read) if read else ()
        return replace(answer, compaction_ratio=seen / tokens if seen else None, retrieved=named)

    # The process

    @cached_property
    def _busy(self) -> asyncio.Lock:
        return asyncio.Lock()

    @cached_property
    def _proxy(self) -> Proxy:
        """The proxy that this memory's peer calls, on one port as long as there is the memory."""
        llm = self._tools.llm
        served = ServedModels(
            llm, llm.model_id.partition("@")[0], self._embedder, self._config.reply_tokens
        )
        proxy = Proxy(served, key=secrets.token_urlsafe(16), keep_port=True)
        weakref.finalize(self, proxy.close)
        return proxy

    @property
    def _embedder(self) -> Embedder | None:
        """The embedder that the peer is served, where it needs one."""
        return self._tools.required_embedder if self.retrieves else None

    _process: PeerProcess | None = None
    _fed: dict[str, int] | None = None
    """The peer's own counts, once its process has read everything."""

    @asynccontextmanager
    async def _serve_stage(self, stage: str) -> AsyncIterator[PeerProcess]:
        """Serve the peer's calls within the block as one stage; one block at a time.

        If the proxy could not use the model, raises the proxy's error, not the peer's.
        """
        async with self._busy:
            proxy = self._proxy
            proxy.stage = stage
            proxy.failures.clear()
            failure: MglError | None = None
            async with proxy:
                try:
                    if self._process is None or not self._process.is_alive:
                        await self._start(proxy)
                    assert self._process is not None
                    yield self._process
                except EngineError as error:
                    failure = error
            lost = next((each for each in proxy.failures if isinstance(each, _OURS)), None)
            if lost is not None or failure is not None:
                self._end()
                raise lost or failure  # type: ignore[misc]

    async def _start(self, proxy: Proxy) -> None:
        self._end()
        python = find_python(shipped.home(), self.peer)
        process = self._process = PeerProcess(self.peer, python)
        weakref.finalize(self, process.close)
        embedder = self._embedder
        settings = {
            **self._set_up(),
            "folder": str(process.folder),
            "base_url": proxy.base_url,
            "key": proxy.key,
            "model": proxy.served.name,
            "embedder": proxy.served.embedder_name,
            "dims": None if embedder is None else embedder.dims,
        }
        await asyncio.to_thread(
            process.do, "open", settings=settings, now=self._now(), seed=self._source.id
        )

    def _now(self) -> str:
        """The time of the last turn."""
        source = self._source
        times = [turn.time for turn in getattr(source, "turns", ()) if turn.time is not None]
        return (
            max(times, key=lambda time: time.replace(tzinfo=None)).isoformat()
            if times
            else LONG_AGO
        )

    async def _feed(self) -> None:
        """Have the peer read everything, and note in the log what was read for the first time."""
        process, store = self._process, self._tools.store
        assert process is not None
        batches = self._batches(await self._units())
        for step, batch in enumerate(batches):
            sent = [
                {
                    "place": unit.place,
                    "text": unit.text,
                    "tokens": unit.tokens,
                    "speaker": unit.speaker,
                    "time": unit.time,
                }
                for unit in batch
            ]
            await asyncio.to_thread(process.do, "read", units=sent)
            if any(isinstance(each, _OURS) for each in self._proxy.failures):
                return  # which ``_serve_stage`` raises: what was read so far is not what it seems
            if step >= store.steps(self.id):
                draft = self._log.draft(step)
                for unit in batch:
                    draft.put(ReadUnit(unit.place, unit.span))
                self._write(draft)
            self._tools.observer.progress("parts read", step + 1, len(batches))
        counts = await asyncio.to_thread(process.do, "finish")
        counts["refused"] = len(self._proxy.failures)
        if store.steps(self.id) == len(batches):
            draft = self._log.draft(len(batches))
            draft.mark(PeerCounts(counts))
            self._write(draft)
        self._fed = counts

    def _end(self) -> None:
        if self._process is not None:
            self._process.close()
        self._process = self._fed = None
