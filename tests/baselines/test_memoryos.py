"""Pages, segments by theme, and what is drawn from the hottest."""

from __future__ import annotations

from dataclasses import replace

from mgl.baselines.memoryos import MemoryOS, PageTheme, Segment, _fold, _overlap, _place, _score
from mgl.retrieval.fakes import WordEmbedder
from mgl.store import Store
from mgl.types import Conversation, Question, Turn
from tests.baselines.asking import answered, asking, only_answering, prompts, said


def talk(*lines: tuple[str, str, str]) -> Conversation:
    turns = [Turn(f"t{n}", who, text, None, when) for n, (when, who, text) in enumerate(lines)]
    return Conversation.from_turns("talk", turns)


TALK = talk(
    ("1", "Ann", "I keep bees"),
    ("1", "Ann", "on the roof"),
    ("1", "Bo", "How many hives"),
    ("1", "Bo", "and since when"),
    ("1", "Ann", "Three hives"),
    ("2", "Bo", "Is the roof mended"),
    ("2", "Ann", "The roof leaks"),
)
BEES = ("bees", ["bees", "hives"], "Ann keeps bees in hives")


def remembering(prompt: str) -> str:
    if '"continues"' in prompt:
        return said(continues="Three hives" in prompt.split("Now:")[1])
    if "Sum up what" in prompt:
        return said(notes=f"sum of {prompt.count('Ann: ') + prompt.count('Bo: ')} turns")
    if '"themes"' in prompt:
        theme = BEES if "hives" in prompt else ("roof", ["roof"], "a roof that leaks")
        named = dict(zip(("theme", "keywords", "content"), theme, strict=True))
        return said(themes=[named])
    if '"profile"' in prompt:
        return said(profile="Ann likes bees", facts=["Ann has three hives"])
    if "what it shows of" in prompt:
        return said(facts=["Bo asks"])
    if "Two descriptions" in prompt:
        return said(notes="Ann still likes bees")
    if '"keywords"' in prompt:
        return said(keywords=["hives"])
    return answered(prompt)


async def test_every_turn_is_in_a_page_and_a_theme_joins_its_segment(store: Store) -> None:
    mine, engine = asking(store, remembering)
    memory = MemoryOS(mine, TALK)
    assert memory._pages() == [[0, 1, 2, 3], [4], [5], [6]]
    answer = await memory.answer(Question("How many hives?"))
    state = memory.state
    assert [segment.pages for segment in state.segments] == [(0, 1), (2, 3)]
    assert state.metas[0] == state.metas[1] == "sum of 5 turns"
    last = prompts(engine)[-1]
    assert "Ann: Three hives" in last
    assert "(about: sum of 5 turns)" in last
    assert "t4" in answer.retrieved


async def test_a_segment_is_drawn_from_at_its_seventh_page_and_profiles_merge(store: Store) -> None:
    lines = [("1", who, f"hives {n}") for n in range(14) for who in ("Ann", "Bo")]
    mine, engine = asking(store, remembering)
    memory = MemoryOS(mine, talk(*lines))
    answer = await memory.answer(Question("How many hives?"))
    drawn = [row for row in store.edits(memory.id) if row.op == "draw"]
    assert [row.chunk for row in drawn] == [6, 13]  # 0.8 · 7 is the first that reaches 5
    merging = [prompt for prompt in prompts(engine) if "Two descriptions" in prompt]
    assert len(merging) == 1
    last = prompts(engine)[-1]
    assert "Ann still likes bees" in last
    assert "Bo asks" in last
    assert answer.text


async def test_keywords_and_cosines_decide_where_a_theme_belongs() -> None:
    assert _overlap({"a", "b"}, {"b", "c", "d", "e"}) == (1 / 2 + 1 / 4) / 2
    assert _overlap(set(), {"a"}) == 0
    segments = [Segment(_fold(BEES[1]), BEES[2])]
    (score,) = await _score(WordEmbedder(), BEES[2], ["Hives", "bees"], segments)
    assert abs(score - 2) < 1e-5
    far = PageTheme("", ("fog",), "fog on the sea")
    assert await _place(WordEmbedder(), far, segments) == 1
    assert await _place(WordEmbedder(), replace(far, keywords=("bees", "hives")), segments) == 0


async def test_a_silent_model_leaves_pages_that_can_be_found(store: Store) -> None:
    mine, _ = asking(store, only_answering)
    memory = MemoryOS(mine, TALK)
    answer = await memory.answer(Question("Three hives"))
    assert "t4" in answer.retrieved
    assert {row.outcome for row in store.edits(memory.id)} == {"repaired"}
