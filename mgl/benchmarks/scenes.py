"""One question of a scene, drawn as DialSim's simulator draws it.

Source: Kim et al., DialSim (arXiv:2406.13144) and the behaviour of its released simulator.

- The one who is asked (the agent) has just spoken: any of the agent's lines in the scene but the
  first, where there are several. Who asks is one of those who speak within three lines of it.
- Hard questions are drawn with probability 0.7 where there are both; then the kind, then one of it.
- Kinds that nobody can answer yet (``fu`` among the hard ones, ``unans`` among the easy ones) are
  kept below 21.5% and 27% by drawing the others more often, one after the other.
- A hard question that names the scene's own month or year is passed over, and so is one that has no
  wording for the asker, or whose answer is none of its five options.

The draw depends on the seed and the scene alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Final, Literal

from pydantic import BaseModel, ValidationError

__all__ = ["Drawn", "Line", "Scene", "drawn", "lines"]

HARD_SHARE: Final = 0.7
UNANSWERABLE: Final = {"hard": ("fu", 0.215), "easy": ("unans", 0.27)}
NEAR: Final = 3
OPTIONS: Final = 5
_SPEAKER: Final = re.compile(r"\s*([^:]*?)\s*:\s*(.*)", re.DOTALL)
_CREDITS: Final = ("Teleplay: ", "Story: ")


class Scene(BaseModel):
    """A scene as the release has it; its questions are looked at when they are drawn."""

    date: str
    script: str
    hard_q: dict[str, list[Any]] | None = None
    easy_q: dict[str, dict[str | int, Any]] | None = None


class _Asked(BaseModel):
    questions: dict[str, str]
    options: list[str]
    answer: str


@dataclass(frozen=True, slots=True)
class Line:
    """What one speaker says; ``speaker`` is "" before the first."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A question, who asks it after which line of the scene, its options and the right one."""

    level: Literal["hard", "easy"]
    kind: str
    asker: str
    at: int
    text: str
    options: tuple[str, ...]
    right: int


def lines(script: str) -> Iterator[Line]:
    """The lines of a script; one without a speaker goes on with the one before it."""
    speaker, said = "", []
    for line in script.split("\n"):
        if not line.strip() or any(credit in line for credit in _CREDITS):
            continue
        if (found := _SPEAKER.fullmatch(line)) is None:
            said.append(line.strip())
            continue
        if said:
            yield Line(speaker, "\n".join(said))
        speaker, said = found[1], [found[2].strip()]
    if said:
        yield Line(speaker, "\n".join(said))


def drawn(scene: Scene, said: Sequence[Line], agent: str, *, seed: str) -> Drawn | None:
    """The question of a scene; None where the agent says nothing, is alone, or nothing fits."""
    chance = random.Random(seed)
    own = [number for number, line in enumerate(said) if line.speaker.endswith(agent)]
    if not own:
        return None
    at = chance.choice(own[1:] or own)
    near = said[max(0, at - NEAR) : at + NEAR]
    others = {line.speaker for line in near if not _same(line.speaker, agent)} - {""}
    if not others:
        return None
    asker = chance.choice(sorted(others))
    hard = {kind: list(asked) for kind, asked in (scene.hard_q or {}).items() if asked}
    easy = {kind: list(asked.values()) for kind, asked in (scene.easy_q or {}).items() if asked}
    levels: list[tuple[Literal["hard", "easy"], Mapping[str, list[Any]]]]
    levels = [("hard", hard), ("easy", easy)]
    if chance.random() >= HARD_SHARE:
        levels.reverse()
    for level, kinds in levels:
        if kinds:
            return _of_level(level, kinds, scene, asker, at, chance)
    return None


def _of_level(
    level: Literal["hard", "easy"],
    kinds: Mapping[str, list[Any]],
    scene: Scene,
    asker: str,
    at: int,
    chance: random.Random,
) -> Drawn | None:
    kind = chance.choice(_balanced(list(kinds), *UNANSWERABLE[level]))
    for value in chance.sample(kinds[kind], len(kinds[kind])):
        try:
            asked = _Asked.model_validate(value)
        except ValidationError:
            continue
        text = asked.questions.get(asker) or asked.questions.get("default")
        options = [option.casefold() for option in asked.options]
        answer = asked.answer.casefold()
        if text is None or len(options) != OPTIONS or answer not in options:
            continue
        if level == "hard" and _dates_itself(text, scene.date):
            continue
        right = options.index(answer)
        return Drawn(level, kind, asker, at, text, tuple(asked.options), right)
    return None


def _balanced(kinds: list[str], mark: str, share: float) -> list[str]:
    """The kinds, the answerable ones so often that the others are fewer than ``share``."""
    answerable = [kind for kind in kinds if mark not in kind]
    marked = len(kinds) - len(answerable)
    for kind in cycle(answerable):
        if marked / len(kinds) < share:
            break
        kinds = [*kinds, kind]
    return kinds


def _dates_itself(text: str, date: str) -> bool:
    month, *_, year = date.replace(",", "").split() or [""]
    return f"n {year}" in text or f"{month} {year}" in text


def _same(speaker: str, agent: str) -> bool:
    return agent.lower() in speaker.lower() or speaker.lower() == "all"
