"""The calls about one episode: what is shown, and how a list is asked for twice.

Source: Mnemis §2.1: the episode, with recent ones as context; after a list, a reflection on what it
lacks. A long episode is asked about part by part, with what stands before each as its context.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pydantic import BaseModel

from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM, Message
from mgl.llm.prompting import fit_texts
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.episodes import Passage, shown
from mgl.memories.mnemis.nodes import Episode
from mgl.prompt import Prompt
from mgl.types import Source

__all__ = ["BATCH", "Asker", "Part", "Said", "batches", "clipped"]

BATCH: Final = 12
"""Names, entities or facts that are decided in one call."""

PART: Final = 20
"""Sentences that a list is read off in one call."""

CONTEXT_CHARS: Final = 3000
"""Of what stands before a part, its last lines of so many characters are shown."""

Part = tuple[int, int]
"""The numbers of the first and the last of some sentences."""

_NO_CONTEXT: Final = "(nothing)"
_REFLECTION: Final = "_reflection"
ItemT = TypeVar("ItemT")
SchemaT = TypeVar("SchemaT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Said(Generic[SchemaT]):
    """What a call gave: a proposal, or a ``problem`` where its reply could not be used."""

    stage: str
    proposal: SchemaT | None
    call_key: str | None = None
    problem: str = ""


class Asker:
    """Asks a model about one episode. All raise the EngineError family, ReplyInvalid excepted."""

    def __init__(
        self,
        llm: LLM,
        source: Source,
        episodes: Iterable[Episode],
        episode: Episode,
        config: MnemisConfig,
    ) -> None:
        """``episodes`` are those of the source, of which those before this one are context."""
        self.passage = Passage.of(source, episode)
        before = [each for each in episodes if each.number < episode.number]
        recent = before[max(0, len(before) - config.recent) :]
        self.recent = tuple(shown(source, each) for each in recent)
        passages = (*(Passage.of(source, each) for each in recent), self.passage)
        self.said = "\n".join(part for passage in passages for part in passage.said)
        """What was said in it and the recent ones, and by whom; without times."""
        self._llm = llm
        self._config = config

    @property
    def parts(self) -> list[Part]:
        """The sentences, in parts that are asked about one by one."""
        numbers = range(1, len(self.passage.sentences) + 1)
        return [(some[0], some[-1]) for some in batches(numbers, PART)]

    async def ask(
        self, prompt: Prompt, values: Mapping[str, str], schema: type[SchemaT], stage: str
    ) -> Said[SchemaT]:
        """One reply."""
        tokens = self._config.extraction_tokens
        texts = await fit_texts(self._llm, list(values.values()), reserve=tokens)
        rendered = prompt.render(**dict(zip(values, texts, strict=True)))
        said, _ = await self._complete([Message("user", rendered)], schema, stage)
        return said

    async def listed(
        self,
        prompt: Prompt,
        more: Prompt,
        part: Part,
        schema: type[SchemaT],
        stage: str,
        **values: str,
    ) -> list[Said[SchemaT]]:
        """A list read off a part of the episode, and what reflection adds to it."""
        calls = 1 + self._config.reflect
        reserve = (2 * calls - 1) * self._config.extraction_tokens
        given = {
            "recent": self._before(part[0]),
            "episode": self.passage.numbered(*part),
            **values,
        }
        texts = await fit_texts(self._llm, list(given.values()), reserve=reserve)
        rendered = prompt.render(**dict(zip(given, texts, strict=True)))
        messages, made = [Message("user", rendered)], []
        for again in range(calls):
            said, text = await self._complete(messages, schema, stage + _REFLECTION * again)
            made.append(said)
            if said.proposal is None:
                break
            messages += [Message("assistant", text), Message("user", more.text)]
        return made

    def _before(self, first: int) -> str:
        """What stands before a sentence: recent episodes, and the beginning of this one."""
        own = [self.passage.plain(1, first - 1)] if first > 1 else []
        kept: list[str] = []
        room = CONTEXT_CHARS
        for line in reversed("\n".join((*self.recent, *own)).splitlines()):
            room -= len(line)
            if room < 0:
                break
            kept.append(line)
        return "\n".join(reversed(kept)) or _NO_CONTEXT

    async def _complete(
        self, messages: Sequence[Message], schema: type[SchemaT], stage: str
    ) -> tuple[Said[SchemaT], str]:
        sampling = self._config.sampling(self._config.extraction_tokens)
        try:
            reply = await self._llm.complete(messages, schema, sampling=sampling, stage=stage)
        except ReplyInvalid as error:
            return Said(stage, None, problem=error.message), ""
        return Said(stage, reply.parsed, reply.call_key), reply.text


def batches(items: Sequence[ItemT], size: int = BATCH) -> list[Sequence[ItemT]]:
    """The items in runs of at most ``size``."""
    return [items[first : first + size] for first in range(0, len(items), size)]


def clipped(text: str, most: int) -> str:
    """A text that a model wrote, on one line, of at most so many characters."""
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
