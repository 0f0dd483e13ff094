"""The calls about one episode: what they show, and how a list is asked for and completed.

Source: Mnemis §2.1. Calls show the episode with recent ones as context; after a list the model is
asked what it missed (reflection). A long episode is asked about part by part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from mgl.llm.base import LLM, Message, Sampling
from mgl.llm.calls import showing_only
from mgl.llm.prompting import fit_texts
from mgl.memories.base import Tools
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.episodes import Passage, render_episode
from mgl.memories.mnemis.state import Episode
from mgl.memories.propose import Proposal, propose
from mgl.prompt import Prompt
from mgl.retrieval.base import Embedder
from mgl.types import Source

BATCH: Final = 12
"""Names, entities or facts that are decided in one call."""

PART: Final = 20
"""Sentences that a list is read off in one call."""

CONTEXT_CHARS: Final = 3000
"""Characters of context before a part, at most, whole lines."""

Part = tuple[int, int]
"""The numbers of the first and the last of some sentences."""

_NO_CONTEXT: Final = "(nothing)"
_REFLECTION: Final = "_reflection"
_AGAIN_TEMPERATURE, _AGAIN_SEED = 0.7, 1000
ItemT = TypeVar("ItemT")
SchemaT = TypeVar("SchemaT", bound=BaseModel)


class StrictReply(BaseModel):
    model_config = ConfigDict(extra="forbid")


class EpisodeReader:
    """Asks a model about one episode, of which ``passage`` has the sentences.

    ``recent`` are the passages of the episodes before it, by number, and ``words`` is what all of
    them say, and who speaks in them; without times. ``failures`` says how often the episode was
    read before and a call gave no reply that can be used: such a call is made once more, warm and
    with another seed. ``failed`` says whether one gave none this time.
    """

    def __init__(
        self,
        tools: Tools,
        source: Source,
        episodes: Iterable[Episode],
        episode: Episode,
        config: MnemisConfig,
        failures: int = 0,
    ) -> None:
        """``episodes`` are those of the source; the last ones before ``episode`` are context."""
        before = [each for each in episodes if each.number < episode.number]
        recent = before[max(0, len(before) - config.recent) :]
        self.source = source
        self.episode = episode
        self.passage = Passage.of(source, episode)
        self.recent = {each.number: Passage.of(source, each) for each in recent}
        self.config = config
        self.failed = False
        passages = (*self.recent.values(), self.passage)
        self.words = "\n".join(text for passage in passages for text in passage.texts)
        self._failures = failures
        self._context = [render_episode(source, each) for each in recent]
        self._tools = tools
        self._turns = {turn for each in (*recent, episode) for turn in each.turns}

    @property
    def parts(self) -> list[Part]:
        """The sentences, in parts that are asked about one by one."""
        numbers = range(1, len(self.passage.sentences) + 1)
        return [(some[0], some[-1]) for some in in_batches(numbers, PART)]

    @property
    def embedder(self) -> Embedder:
        return self._tools.required_embedder

    @property
    def llm(self) -> LLM:
        return self._tools.llm

    async def ask(
        self,
        prompt: Prompt,
        values: Mapping[str, str],
        schema: type[SchemaT],
        stage: str,
        *,
        known: Iterable[int] = (),
        tokens: int | None = None,
    ) -> Proposal[SchemaT]:
        """Ask one question, which also shows what is known of the turns ``known``.

        Raises what ``propose`` raises.
        """
        most = tokens or self.config.extraction_tokens
        rendered = await self._render(prompt, values, reserve=most)
        return await self._propose([Message("user", rendered)], schema, stage, known, most)

    async def ask_list(
        self,
        prompts: tuple[Prompt, Prompt],
        part: Part,
        schema: type[SchemaT],
        stage: str,
        *,
        known: Iterable[int] = (),
        **values: str,
    ) -> list[Proposal[SchemaT]]:
        """Ask for a list from a part of the episode, then for what it lacks (the second prompt)."""
        prompt, reflection = prompts
        calls = 1 + self.config.reflect
        shown = {
            "recent": self._before(part[0]),
            "episode": self.passage.render_numbered(*part),
            **values,
        }
        reserve = (2 * calls - 1) * self.config.extraction_tokens
        messages = [Message("user", await self._render(prompt, shown, reserve=reserve))]
        proposals: list[Proposal[SchemaT]] = []
        for again in range(calls):
            made = await self._propose(messages, schema, stage + _REFLECTION * again, known)
            proposals.append(made)
            if made.reply is None:
                break
            messages += [Message("assistant", made.text), Message("user", reflection.text)]
        return proposals

    async def _render(self, prompt: Prompt, values: Mapping[str, str], *, reserve: int) -> str:
        texts = await fit_texts(self._tools.llm, list(values.values()), reserve=reserve)
        return prompt.render(**dict(zip(values, texts, strict=True)))

    def _before(self, first: int) -> str:
        """Return what precedes a sentence: recent episodes, and the beginning of this one."""
        own = [self.passage.render_plain(1, first - 1)] if first > 1 else []
        kept: list[str] = []
        room = CONTEXT_CHARS
        for line in reversed("\n".join((*self._context, *own)).splitlines()):
            room -= len(line)
            if room < 0:
                break
            kept.append(line)
        return "\n".join(reversed(kept)) or _NO_CONTEXT

    async def _propose(
        self,
        messages: Sequence[Message],
        schema: type[SchemaT],
        stage: str,
        known: Iterable[int],
        tokens: int | None = None,
    ) -> Proposal[SchemaT]:
        sampling = self.config.sampling(tokens or self.config.extraction_tokens)
        about = messages, schema, sampling, stage, self._failures
        with showing_only(self._turns.union(known)):
            made = await propose_again(self.llm, *about)
        self.failed = self.failed or made.reply is None
        return made


async def propose_again(
    llm: LLM,
    prompt: str | Sequence[Message],
    schema: type[SchemaT],
    sampling: Sampling,
    stage: str,
    failures: int,
) -> Proposal[SchemaT]:
    """Ask for a reply, and once more, warm and with another seed, where that failed before.

    ``failures`` is how often: a call that failed is replayed from the log as it was.
    """
    made = await propose(llm, prompt, schema, sampling=sampling, stage=stage)
    if made.reply is None and failures:
        warm = max(sampling.temperature, _AGAIN_TEMPERATURE)
        seed = sampling.seed + failures * _AGAIN_SEED
        again = replace(sampling, temperature=warm, seed=seed)
        made = await propose(llm, prompt, schema, sampling=again, stage=stage)
    return made


async def compare(
    embedder: Embedder, texts: Sequence[str], others: Sequence[str]
) -> NDArray[np.float32]:
    """Return the cosines of some texts with others, shape (texts, others)."""
    return await asyncio.to_thread(lambda: embedder.embed(texts) @ embedder.embed(others).T)


def in_batches(items: Sequence[ItemT], size: int = BATCH) -> list[Sequence[ItemT]]:
    """Split items into runs of at most ``size``."""
    return [items[first : first + size] for first in range(0, len(items), size)]
