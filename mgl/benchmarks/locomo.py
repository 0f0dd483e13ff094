"""LoCoMo: long conversations in many sessions, with questions and the turns that answer them.

Source: Maharana et al., Evaluating Very Long-Term Conversational Memory of LLM Agents (ACL 2024);
``locomo10.json``, ten conversations and 1,986 questions, CC BY-NC 4.0.

    >>> samples = read_locomo_benchmark(Path("locomo10.json"))   # doctest: +SKIP
    >>> samples[0].questions[0].evidence                         # doctest: +SKIP
    ('D1:3',)

Other work gives the categories other names; the ids are what counts: 1 multi-hop (282 questions),
2 temporal (321), 3 open-domain (96), 4 single-hop (841), 5 adversarial (446). An adversarial
question asks for what was never said, so nearly none has an answer (two of 446 have one). The
file's ``adversarial_answer`` is a trap for models that are shown it, and is not read.

Evidence is normalised: ``D8:6; D9:17`` are two turns, ``D:11:26`` is D11:26, ``D30:05`` is D30:5;
what names no turn of the conversation is left out, with a note.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel, ValidationError

from mgl.errors import InputError
from mgl.text.conversations import read_json
from mgl.text.encoding import decode
from mgl.text.files import read_bytes
from mgl.text.locomo import looks_like_locomo, read_locomo
from mgl.types import Conversation

__all__ = [
    "ASKED",
    "CATEGORIES",
    "LocomoQuestion",
    "LocomoSample",
    "first_sessions",
    "read_locomo_benchmark",
    "read_samples",
]

CATEGORIES: Final[Mapping[int, str]] = MappingProxyType(
    {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
)
ASKED: Final = (1, 2, 3, 4)
"""The categories that are scored: questions of the fifth have no answer."""

_TURN_ID = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class LocomoQuestion:
    """A question, its gold answer (None where there is none) and the turns that hold it.

    ``id`` is the sample's name and the question's place in the file, from 0: ``conv-26/q4``.
    """

    id: str
    text: str
    answer: str | None
    category: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LocomoSample:
    """One conversation with its questions; ``notes`` tells what of the questions was mended."""

    name: str
    conversation: Conversation
    questions: tuple[LocomoQuestion, ...]
    notes: tuple[str, ...] = ()

    @property
    def asked(self) -> tuple[LocomoQuestion, ...]:
        """The questions of the categories that are scored."""
        return tuple(question for question in self.questions if question.category in ASKED)

    @property
    def evident(self) -> tuple[LocomoQuestion, ...]:
        """Those of them that name the turns which answer them."""
        return tuple(question for question in self.asked if question.evidence)

    def to_session(self, count: int) -> LocomoSample:
        """The sample as it was after so many sessions, with the questions whose evidence was there
        by then; those that name none are left out."""
        conversation = first_sessions(self.conversation, count)
        said = frozenset(turn.id for turn in conversation.turns)
        known = (
            each for each in self.questions if each.evidence and said.issuperset(each.evidence)
        )
        return replace(self, conversation=conversation, questions=tuple(known))


class _Question(BaseModel):
    question: str
    category: int
    answer: str | int | float | None = None
    evidence: list[str] = []


def read_locomo_benchmark(path: Path) -> list[LocomoSample]:
    """The samples of LoCoMo's file in its order; InputError where it is none."""
    value = read_json(decode(read_bytes(path), path.name).text, path)
    items = value if isinstance(value, list) else [value]
    if not items or not all(map(_is_sample, items)):
        raise InputError(
            f"{path} is not LoCoMo's file", hint="give locomo10.json, or a part of its list"
        )
    return [_sample(item, f"{path.stem}-{number}") for number, item in enumerate(items, start=1)]


def read_samples(
    path: Path, names: Collection[str] = (), sessions: int | None = None
) -> list[LocomoSample]:
    """The samples of these names, or all; with ``sessions`` the first so many of each alone.

    InputError where the file is not LoCoMo's, or has no sample of a name.
    """
    found = {sample.name: sample for sample in read_locomo_benchmark(path)}
    if missing := [name for name in names if name not in found]:
        raise InputError(
            f"{path} holds no {', '.join(missing)}", hint=f"it holds {', '.join(found)}"
        )
    chosen = [sample for name, sample in found.items() if not names or name in names]
    return chosen if sessions is None else [sample.to_session(sessions) for sample in chosen]


def first_sessions(conversation: Conversation, count: int) -> Conversation:
    """The conversation as it was after so many sessions."""
    kept = set(list(dict.fromkeys(turn.session for turn in conversation.turns))[:count])
    turns = [turn for turn in conversation.turns if turn.session in kept]
    return Conversation.from_turns(f"{conversation.name} to session {count}", turns)


def _is_sample(item: object) -> bool:
    return isinstance(item, Mapping) and "qa" in item and looks_like_locomo(item)


def _sample(item: Mapping[str, object], name: str) -> LocomoSample:
    conversation = read_locomo(item, name)
    known = frozenset(turn.id for turn in conversation.turns)
    questions: list[LocomoQuestion] = []
    notes: list[str] = []
    asked = item["qa"]
    for number, fields in enumerate(asked if isinstance(asked, Sequence) else []):
        id = f"{conversation.name}/q{number}"
        try:
            read = _Question.model_validate(fields)
        except ValidationError as error:
            notes.append(f"{id}: {error.errors()[0]['msg']}: left out")
            continue
        evidence, lost = _evidence(read.evidence, known)
        if lost:
            notes.append(f"{id}: evidence that names no turn left out: {', '.join(lost)}")
        answer = None if read.answer is None else str(read.answer)
        questions.append(LocomoQuestion(id, read.question, answer, read.category, evidence))
    return LocomoSample(conversation.name, conversation, tuple(questions), tuple(notes))


def _evidence(
    given: Sequence[str], known: frozenset[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The turns that a question's evidence names, each once, and what names none."""
    found: dict[str, None] = {}
    lost: list[str] = []
    for entry in given:
        named = [f"D{int(session)}:{int(turn)}" for session, turn in _TURN_ID.findall(entry)]
        lost.extend(id for id in named or [entry] if id not in known)
        found.update((id, None) for id in named if id in known)
    return tuple(found), tuple(lost)
