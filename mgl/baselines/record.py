"""What baselines share: a record in the store without edits, and a view without a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import BaseModel

from mgl.memories.base import Tools, memory_id
from mgl.store import MemoryRecord
from mgl.types import Answer, Conversation, Document, Question, Source
from mgl.web.view import GraphView

__all__ = ["Baseline"]


class Baseline:
    """A method that keeps nothing but its source. Subclasses set ``kind`` and answer."""

    kind: str
    reads: ClassVar[Literal["document", "conversation"]] = "document"
    retrieves: ClassVar[bool] = False
    per_question: ClassVar[bool] = False
    question_aware: ClassVar[bool] = False

    def __init__(
        self,
        tools: Tools,
        source: Source,
        questions: Sequence[Question],
        config: BaseModel,
        *,
        identity: str | None = None,
    ) -> None:
        self._identity = identity
        self._tools = tools
        self._source = source
        self._questions = tuple(questions)
        self._options = config.model_dump(mode="json")

    @property
    def id(self) -> str:
        if self._identity is not None:
            return self._identity
        return memory_id(
            self.kind,
            self._options,
            self._tools.llm.model_id,
            document=self._source.id,
            questions=[question.text for question in self._questions],
        )

    async def build(self) -> None:
        """Register the source and count its tokens; there is nothing to read beforehand."""
        store = self._tools.store
        if isinstance(self._source, Conversation):
            store.put_conversation(self._source)
        else:
            store.put_document(self._source)
        if store.chunks_done(self.id):
            return
        (tokens,) = await self._tools.llm.count_tokens([self._document.text])
        store.put_memory(
            MemoryRecord(
                id=self.id,
                kind=self.kind,
                document_id=self._source.id,
                questions=tuple(question.text for question in self._questions),
                model_id=self._tools.llm.model_id,
                config=self._options,
                chunks=1,
                tokens=tokens,
            )
        )
        store.append_edits(self.id, 0, [])

    @property
    def _document(self) -> Document:
        """The text that is read: a document, or a conversation's transcript."""
        source = self._source
        return source.transcript if isinstance(source, Conversation) else source

    async def source_tokens(self) -> int:
        await self.build()
        return self._tools.store.memory(self.id).tokens

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        return GraphView(
            memory_id=self.id,
            memory=self.kind,
            model=self._tools.llm.model_id,
            document=self._document,
            questions=tuple(question.text for question in self._questions),
            steps=0,
            nodes=(),
            edges=(),
            answers=tuple(answers),
        )
