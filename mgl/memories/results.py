"""What a run hands back: the answer or the memory it built, and the figures of the run.

``to_json`` gives the shape that ``--json`` prints; keys are only ever added to it.

    >>> result = lab.ask("scandal.txt", "Who is Irene Adler?")      # doctest: +SKIP
    >>> result.to_json()["citations"][0]["quote"]                   # doctest: +SKIP
    'the well-known adventuress, Irene Adler'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mgl.llm.calls import CallRecord
from mgl.memories.view import MemorySize
from mgl.store.records import EditOutcome, EditRecord, MemoryRecord
from mgl.text.declining import is_declined
from mgl.text.language import ENGLISH, find_phrases
from mgl.text.sentences import split_question
from mgl.types import CONVERSATION, Answer, Citation, Document, Span, Usage


@dataclass(frozen=True, slots=True)
class Stats:
    """The size of a memory and what became of the edits that were proposed for it."""

    nodes: int
    edges: int
    chunks: int
    edits_applied: int
    edits_repaired: int
    edits_rejected: Mapping[str, int]

    @classmethod
    def of(cls, size: MemorySize, outcomes: Mapping[tuple[EditOutcome, str | None], int]) -> Stats:
        """A memory's size, and how many of its edits had which outcome, and for which reason."""
        counts, rejected = Counter[EditOutcome](), Counter[str]()
        for (outcome, reason), count in outcomes.items():
            counts[outcome] += count
            if outcome == "rejected":
                rejected[reason or "unexplained"] += count
        return cls(
            nodes=size.nodes,
            edges=size.edges,
            chunks=size.steps,
            edits_applied=counts["applied"],
            edits_repaired=counts["repaired"],
            edits_rejected=dict(sorted(rejected.items())),
        )


@dataclass(frozen=True, slots=True)
class AskResult:
    """An answer, the memory it was read from, and what this run cost."""

    answer: Answer
    memory_id: str
    stats: Stats
    usage: Usage

    def to_json(self) -> dict[str, Any]:
        said = answer_json(self.answer)
        return {
            "answer": said["answer"],
            "confidence": said["confidence"],
            "citations": said["citations"],
            "memory_id": self.memory_id,
            "stats": asdict(self.stats),
            "usage": usage_json(self.usage),
            "compaction_ratio": said["compaction_ratio"],
            "marks": said["marks"],
            "guesses": said["guesses"],
            "declined": said["declined"],
        }


@dataclass(frozen=True, slots=True)
class BuildResult:
    """A finished memory and what this run cost."""

    memory_id: str
    stats: Stats
    usage: Usage

    def to_json(self) -> dict[str, Any]:
        return {
            "memory_id": self.memory_id,
            "stats": asdict(self.stats),
            "usage": usage_json(self.usage),
        }


@dataclass(frozen=True, slots=True)
class MemorySummary:
    """A memory in the store, the name of its document, and how much of it is read.

    ``turns`` is the length of its conversation, None where it reads a document. ``asked`` are the
    questions that it has answered, ``read_for`` those, or their parts, that its log has read for.
    """

    record: MemoryRecord
    document: str
    chunks_done: int
    turns: int | None = None
    asked: tuple[str, ...] = ()
    read_for: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def questions(self) -> tuple[str, ...]:
        """The questions that it was built for, and those that it has answered."""
        read_for = leave_out_parts(self.read_for, self.asked)
        return tuple(dict.fromkeys((*self.record.questions, *read_for, *self.asked)))

    @property
    def unit(self) -> Literal["chunks", "steps", "turns"]:
        """What it reads, or takes, one after the other."""
        if self.turns is not None:
            return "turns"
        return "chunks" if self.record.chunks else "steps"

    def to_json(self) -> dict[str, Any]:
        record = self.record
        return {
            "memory_id": record.id,
            "memory": record.kind,
            "document": self.document,
            "document_id": record.document_id,
            "questions": list(self.questions),
            "model": record.model_id,
            "config": dict(record.config),
            "chunks": record.chunks,
            "chunks_done": self.chunks_done,
            "turns": self.turns,
            "tokens": record.tokens,
        }


def leave_out_parts(questions: Iterable[str], answered: Iterable[str]) -> list[str]:
    """Leave out empty questions, and those that are part of an answered one.

    >>> leave_out_parts(["Who is Bo?", "Where is Bo?"], ["Where is Ann, and where is Bo?"])
    ['Who is Bo?']
    """
    parts = {part for text in answered for part in split_question(text) if part != text}
    return [text for text in questions if text and text not in parts]


def say_answer(answer: Answer) -> str:
    """An answer as people are shown it: a doubt before each of its ``guesses``, and a decline in
    the language of its question."""
    text, declines = answer.text, _declines(answer)
    if not (declines or answer.guesses):
        return text
    phrases = find_phrases(answer.question)
    if declines:
        return text if phrases is ENGLISH else phrases.unmentioned
    doubt = phrases.doubt
    parts, done = list[str](), 0
    for guess in answer.guesses:
        if (start := text.find(guess, done)) >= 0:
            parts += [text[done:start], doubt, guess]
            done = start + len(guess)
    return "".join([*parts, text[done:]])


def answer_json(answer: Answer) -> dict[str, Any]:
    """A stored answer as ``--json`` prints it, with the words that people are shown."""
    return {
        "question": answer.question,
        "answer": say_answer(answer),
        "confidence": answer.confidence,
        "citations": [citation_json(citation) for citation in answer.citations],
        "compaction_ratio": answer.compaction_ratio,
        "marks": list(answer.marks),
        "trace": list(answer.trace),
        "paths": [list(path) for path in answer.paths],
        "retrieved": list(answer.retrieved),
        "guesses": list(answer.guesses),
        "declined": _declines(answer),
    }


def _declines(answer: Answer) -> bool:
    """Whether an answer only says that the conversation does not tell it, with low confidence.

    Answers about a document have no confidence, but for those of the paper's MindGraph.
    """
    return answer.confidence == "low" and is_declined(answer.text, ENGLISH.unmentioned)


def describe_reading(answer: Answer, document: Document | None) -> str | None:
    """Say how much of its source an answer was made from: of the text of a ``document``, else of
    the source's tokens what the first prompt had. None where neither is known."""
    share = None if document is None else share_read(answer, document)
    if share is not None:
        return f"read {share:.0%} of the text for this answer"
    if answer.compaction_ratio is None:
        return None
    return f"the first prompt had {answer.compaction_ratio:.0%} of the text's tokens"


def share_read(answer: Answer, document: Document) -> float | None:
    """The share of a document's characters that an answer was made from; None where its passages
    are not known, and for a transcript, whose passages are turns."""
    if document.media_type == CONVERSATION or not answer.retrieved:
        return None
    found = (Span.at(document.id, at) for at in answer.retrieved)
    spans = sorted((span.start, span.end) for span in found)
    read = reached = 0
    for start, end in spans:
        read += max(0, end - max(start, reached))
        reached = max(reached, end)
    return read / max(1, len(document.text))


def citation_json(citation: Citation) -> dict[str, Any]:
    """A citation as ``--json`` prints it; ``page``, ``chapter`` or ``session`` is null where
    unknown, and turns alone have ``speaker`` and ``time``."""
    section, time = citation.section, citation.time
    said = {"speaker": citation.speaker, "time": time and time.isoformat()}
    return {
        "node_id": citation.node_id,
        "document": citation.document,
        "start": citation.span.start,
        "end": citation.span.end,
        "quote": citation.quote,
        **{
            kind: section.label if section is not None and section.kind == kind else None
            for kind in ("page", "chapter", "session")
        },
        **(said if citation.speaker or time else {}),
    }


def usage_json(usage: Usage) -> dict[str, Any]:
    """What a run cost; ``seconds`` is wall time at the top and engine time in a stage."""
    total = usage.total
    return {
        "calls": total.calls,
        "input_tokens": total.input_tokens,
        "output_tokens": total.output_tokens,
        "cached_tokens": total.cached_tokens,
        "seconds": round(usage.seconds, 3),
        "by_stage": {stage: asdict(spent) for stage, spent in usage.by_stage.items()},
    }


def edit_json(edit: EditRecord, document: Document) -> dict[str, Any]:
    """An edit as ``--json`` prints it; ``chunk`` is its step."""
    span = edit.span
    return {
        **{name: getattr(edit, name) for name in ("chunk", "op", "outcome", "reason", "score")},
        "start": None if span is None else span.start,
        "end": None if span is None else span.end,
        "quote": None if span is None else document.quote(span),
        "payload": dict(edit.payload),
        "call_key": edit.call_key,
    }


def call_json(call: CallRecord) -> dict[str, Any]:
    """A call of the model as ``--json`` prints it, without its words."""
    completion = call.completion
    usage = None if completion is None else completion.usage
    tokens = ("input_tokens", "cached_tokens", "output_tokens")
    return {
        "key": call.key,
        "stage": call.stage,
        "model": call.model_id,
        "outcome": call.outcome,
        "finish_reason": getattr(completion, "finish_reason", None),
        **{name: getattr(usage, name, None) for name in tokens},
        "seconds": call.seconds,
        "way": getattr(completion, "way", None),
        "loosened": getattr(completion, "loosened", None),
        "error": call.error,
    }
