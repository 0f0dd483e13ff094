"""LoCoMo: long conversations in many sessions, with questions and the turns that answer them.

Source: Maharana et al., Evaluating Very Long-Term Conversational Memory of LLM Agents (ACL 2024);
``locomo10.json``, ten conversations and 1,986 questions, CC BY-NC 4.0.

Other work gives the categories other names; the ids are what counts (``labels["category"]``): 1
multi-hop (282 questions), 2 temporal (321), 3 open-domain (96), 4 single-hop (841), 5 adversarial
(446). ``locomo`` has 1 to 4, which papers report, ``locomo-all`` all five. An adversarial question
asks for what was never said, so nearly none has an answer (two of 446 have one). The file's
``adversarial_answer`` is a trap for models that are shown it, and is not read.

``locomo-growth`` asks while a conversation grows (GAM's Table 10): after sessions 3, 15 and 27 each
question of the categories 1 to 4 whose evidence has been said by then (``labels["sessions"]``).

Mem0's judge prompt is read if its ``llm_judge.py`` lies beside the file.

Evidence is normalised: ``D8:6; D9:17`` are two turns, ``D:11:26`` is D11:26, ``D30:05`` is D30:5;
what names no turn of the conversation is left out, with a note.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel, ValidationError

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item, in_memory
from mgl.benchmarks.files import (
    DataFile,
    first_fault,
    gold_texts,
    hash_files,
    open_file,
    refuse_duplicates,
)
from mgl.benchmarks.official import MEM0, find_judge_prompts
from mgl.errors import InputError
from mgl.text.conversations import looks_like_locomo, read_locomo
from mgl.types import Conversation, Question

CATEGORIES: Final[Mapping[int, str]] = MappingProxyType(
    {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
)
ASKED: Final = (1, 2, 3, 4)
"""The categories that are scored: questions of the fifth have no answer."""
_TURN_ID: Final = re.compile(r"D:?(\d+):(\d+)")


class _Question(BaseModel):
    question: str
    category: int
    answer: str | int | float | None = None
    evidence: list[str] = []


def _read(path: Path, categories: Collection[int]) -> Dataset:
    """Read conversations and questions; InputError if the file is not LoCoMo's."""
    file = open_file(path, "locomo10.json", "locomo10*.json")
    prompts, script = find_judge_prompts(file.path.parent, MEM0)
    talks: list[Conversation] = []
    items: list[Item] = []
    notes: list[str] = []
    for sample, talk in read_samples(file):
        talks.append(talk)
        for item in _items(sample, talk, notes):
            category = int(item.labels["category"])
            if category in categories:
                own = prompts.get("", "") if category in ASKED else ""
                items.append(replace(item, judge_prompt=own))
    refuse_duplicates(file.path, (talk.name for talk in talks))
    sources = {talk.name: in_memory(talk) for talk in talks}
    return Dataset(tuple(items), sources, hash_files([file, *script]), tuple(notes))


def read_samples(file: DataFile) -> list[tuple[Mapping[str, object], Conversation]]:
    """Read the samples of LoCoMo's file, each with its conversation; InputError if it is another
    file."""
    value = file.json()
    samples = value if isinstance(value, list) else [value]
    if not samples or not all(map(_is_sample, samples)):
        raise InputError(
            f"{file.path} is not LoCoMo's file", hint="give locomo10.json, or a part of its list"
        )
    return [
        (sample, read_locomo(sample, f"{file.path.stem}-{number}"))
        for number, sample in enumerate(samples, start=1)
    ]


def _is_sample(item: object) -> bool:
    return isinstance(item, Mapping) and "qa" in item and looks_like_locomo(item)


def _items(sample: Mapping[str, object], talk: Conversation, notes: list[str]) -> Iterator[Item]:
    """Yield the questions of a sample; repairs and omissions go to ``notes``."""
    known = frozenset(turn.id for turn in talk.turns)
    asked = sample["qa"]
    for number, fields in enumerate(asked if isinstance(asked, Sequence) else []):
        id = f"{talk.name}/q{number}"
        try:
            read = _Question.model_validate(fields)
        except ValidationError as error:
            notes.append(f"{id}: {first_fault(error)}: left out")
            continue
        if read.category not in CATEGORIES:
            notes.append(f"{id}: category {read.category} is none of LoCoMo's: left out")
            continue
        evidence, lost = _evidence(read.evidence, known)
        if lost:
            notes.append(f"{id}: evidence that names no turn left out: {', '.join(lost)}")
        yield Item(
            id,
            talk.name,
            Question(read.question),
            gold_texts(read.answer),
            CATEGORIES[read.category],
            evidence,
            labels={"category": str(read.category)},
        )


def _evidence(
    given: Sequence[str], known: frozenset[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split evidence into the turns that it names, each once, and what names none."""
    found: dict[str, None] = {}
    lost: list[str] = []
    for entry in given:
        named = [f"D{int(session)}:{int(turn)}" for session, turn in _TURN_ID.findall(entry)]
        lost.extend(id for id in named or [entry] if id not in known)
        found.update((id, None) for id in named if id in known)
    return tuple(found), tuple(lost)


LOCOMO: Final = FileBenchmark(
    name="locomo",
    about=About(
        title="LoCoMo, categories 1 to 4",
        paper="Maharana et al., Evaluating Very Long-Term Conversational Memory of LLM Agents, "
        "ACL 2024, arXiv:2402.17753",
        where="https://github.com/snap-research/locomo (data/locomo10.json)",
        licence="CC BY-NC 4.0",
        files="locomo10.json, or a part of its list; llm_judge.py of Mem0 for its judge",
        items=1540,
        folder="locomo",
    ),
    reads="conversation",
    scorers=("f1_locomo_official", "f1_set_amem", "bleu1_amem", "evidence_recall@10"),
    judge="locomo",
    read=partial(_read, categories=ASKED),
)
LOCOMO_ALL: Final = replace(
    LOCOMO,
    name="locomo-all",
    about=replace(LOCOMO.about, title="LoCoMo, all five categories", items=1986),
    read=partial(_read, categories=tuple(CATEGORIES)),
)


GROWN: Final = (3, 15, 27)
"""The sessions after which Table 10 of GAM asks."""


def _read_growth(path: Path) -> Dataset:
    """Read the questions that can be answered after each of ``GROWN`` sessions."""
    dataset = _read(path, ASKED)
    asked: dict[str, list[Item]] = {}
    for item in dataset.items:
        asked.setdefault(item.source, []).append(item)
    items: list[Item] = []
    for name, own in asked.items():
        talk = dataset.sources[name]()
        assert isinstance(talk, Conversation)
        lasts = {turn.session: turn.id for turn in talk.turns}
        said = {turn.id: place for place, turn in enumerate(talk.turns)}
        for count in GROWN:
            if count > len(lasts):
                break
            after = [*lasts.values()][count - 1]
            items += (
                replace(
                    item,
                    id=f"{item.id}@{count}",
                    after=after,
                    labels={**item.labels, "sessions": str(count)},
                )
                for item in own
                if item.evidence and all(said[turn] <= said[after] for turn in item.evidence)
            )
    return replace(dataset, items=tuple(items))


LOCOMO_GROWTH: Final = replace(
    LOCOMO,
    name="locomo-growth",
    about=replace(LOCOMO.about, title="LoCoMo as it grows, categories 1 to 4", items=None),
    read=_read_growth,
)
