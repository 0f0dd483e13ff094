"""LoCoMo-Plus: a remark made long ago decides what a reply to another should take up.

Source: Li et al., Locomo-Plus (2026, arXiv:2602.10715); ``locomo_plus.json`` of its repository,
beside LoCoMo's ``locomo10.json``. A row has a cue (a short exchange of two speakers, A and B), a
trigger (what A says later) and the time between them. As in the released ``unified_input.py``, the
n-th cue goes into the n-th conversation, and round again, as a session of its own: the trigger is
said a week after the last session, and the cue as long before it as the row says (weeks of 7,
months of 30, years of 365 days; none where that is not understood). A and B become the
conversation's speakers.

The item asks what B replies to the trigger; those words are ours. It has no gold answer:
``passage`` is the cue, which a reply has to show, and ``evidence`` the turns of the cue. The judge
prompt is read if the repository's ``prompt.py`` lies beside the file, or where its clone has it.
Some cues have the letters ``\\n`` between their lines in place of a new line; they count as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.benchmarks.files import DataFile, hash_files, open_file
from mgl.benchmarks.locomo import read_samples
from mgl.benchmarks.official import LOCOMO_PLUS as PROMPTS
from mgl.benchmarks.official import find_judge_prompts
from mgl.errors import InputError
from mgl.text.timewords import ONES
from mgl.types import Conversation, Question, Source, Turn

QUESTION: Final = (
    '{speaker} says: "{said}"\nWhat does {other}, who remembers their conversations, reply?'
)
WEEK: Final = timedelta(days=7)
DAYS: Final = {"week": 7, "month": 30, "year": 365}
_GAP: Final = re.compile(rf"\b(\d+|{'|'.join(ONES[:12])}|an?)\s+(week|month|year)s?\b")
_LINE: Final = re.compile(r"^([AB]):\s*(.*\S)\s*$", re.MULTILINE)
HINT: Final = "take locomo_plus.json and locomo10.json of the folder data"


class _Row(BaseModel):
    relation_type: str = ""
    cue_dialogue: str = Field(min_length=1)
    trigger_query: str = Field(min_length=1)
    time_gap: str = ""


def _read(path: Path) -> Dataset:
    """Read an item and a conversation for each row; InputError, with the place, if a file is not
    as described."""
    file = open_file(path, "locomo_plus.json", "locomo_plus*.json")
    folder = file.path.parent
    base = open_file(folder, "locomo10.json", "locomo10*.json")
    talks = [_Talk.of(sample, talk) for sample, talk in read_samples(base)]
    prompt, script = _find_prompt(folder)
    items: list[Item] = []
    notes: list[str] = []
    sources: dict[str, Callable[[], Source]] = {}
    for number, row in enumerate(file.rows(_Row, hint=HINT)):
        id, talk = f"plus-{number + 1}", talks[number % len(talks)]
        cue, trigger = _lines(row.cue_dialogue), _lines(row.trigger_query)
        if not cue or not trigger:
            notes.append(f"{id}: cue or trigger has no line of A or B: left out")
            continue
        asked_at = talk.ends + WEEK
        at = _go_back(asked_at, row.time_gap)
        if at is None:
            notes.append(f"{id}: the time {row.time_gap[:40]!r} is not understood: taken as none")
            at = asked_at
        said = [Turn("", talk.names[who], text, at) for who, text in cue]
        place = talk.count_before(at)
        speaker, other = talk.names["A"], talk.names["B"]
        words = " ".join(text for _, text in trigger)
        question = QUESTION.format(speaker=speaker, other=other, said=words)
        items.append(
            Item(
                id,
                id,
                Question(question, asked_at, speaker, "long", asked=other),
                category=row.relation_type,
                evidence=tuple(f"D{place + 1}:{n}" for n, _ in enumerate(said, start=1)),
                labels={"time_gap": row.time_gap},
                passage="\n".join(turn.line for turn in said),
                judge_prompt=prompt,
            )
        )
        sources[id] = partial(talk.insert, said, place, id)
    return Dataset(tuple(items), sources, hash_files([file, base, *script]), tuple(notes))


@dataclass(frozen=True)
class _Talk:
    """A conversation's sessions, when the last began, and its speakers by A and B."""

    sessions: Sequence[Sequence[Turn]]
    ends: datetime
    names: Mapping[str, str]

    @classmethod
    def of(cls, sample: Mapping[str, object], talk: Conversation) -> _Talk:
        sessions = [list(turns) for _, turns in groupby(talk.turns, key=lambda turn: turn.session)]
        told = sample["conversation"]
        assert isinstance(told, Mapping)
        names = {who: str(told.get(f"speaker_{who.lower()}") or who) for who in "AB"}
        times = [session[0].time for session in sessions]
        if not times or times[-1] is None:
            raise InputError(f"the last session of {talk.name} has no time", hint=HINT)
        return cls(sessions, times[-1], names)

    def count_before(self, at: datetime) -> int:
        """How many sessions began by then."""
        return sum((turns[0].time or datetime.max) <= at for turns in self.sessions)

    def insert(self, said: Sequence[Turn], place: int, name: str) -> Conversation:
        """Return the conversation with one more session at a place, all sessions renumbered."""
        sessions = [*self.sessions[:place], said, *self.sessions[place:]]
        turns = [
            replace(turn, id=f"D{number}:{order}", session=str(number))
            for number, session in enumerate(sessions, start=1)
            for order, turn in enumerate(session, start=1)
        ]
        return Conversation.from_turns(name, turns)


def _find_prompt(folder: Path) -> tuple[str, list[DataFile]]:
    for place in (folder, folder.parent / "evaluation_framework" / "task_eval"):
        prompts, script = find_judge_prompts(place, PROMPTS)
        if prompts:
            return prompts[""], script
    return "", []


def _lines(text: str) -> list[tuple[str, str]]:
    """Return the lines of A and B, each with its speaker."""
    return [(found[1], found[2]) for found in _LINE.finditer(text.replace("\\n", "\n"))]


def _go_back(moment: datetime, gap: str) -> datetime | None:
    """Return the moment to which another is ``about two weeks later``; None if that is not
    understood, or lies before the calendar."""
    found = _GAP.search(gap.lower())
    if found is None:
        return None
    count = {"a": 1, "an": 1, **{word: n for n, word in enumerate(ONES, start=1)}}
    try:
        number = int(found[1]) if found[1].isdigit() else count[found[1]]
        return moment - timedelta(days=number * DAYS[found[2]])
    except (OverflowError, ValueError):
        return None


LOCOMO_PLUS: Final = FileBenchmark(
    name="locomo-plus",
    about=About(
        title="LoCoMo-Plus, cues and triggers",
        paper="Li et al., Locomo-Plus: Beyond-Factual Cognitive Memory Evaluation Framework for "
        "LLM Agents, ACL 2026, arXiv:2602.10715",
        where="https://github.com/xjtuleeyf/Locomo-Plus (folder data)",
        licence="see its repository; LoCoMo's conversations are CC BY-NC 4.0",
        files="locomo_plus.json and locomo10.json; prompt.py for its judge",
        items=None,
        folder="locomo-plus",
    ),
    reads="conversation",
    scorers=("evidence_recall@10", "evidence_ndcg@10"),
    judge="locomo_plus",
    read=_read,
)
